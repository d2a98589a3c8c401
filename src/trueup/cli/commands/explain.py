"""`trueup explain`: the whole story of one record."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Json, Pair, key_of, opened

Key = Annotated[str, typer.Argument(metavar="KEY", help='The record\'s key: 42, or eu,7, or \'["eu","7"]\'.')]


def explain(context: typer.Context, pair: Pair, key: Key, json: Json = False) -> int:
    """Tell the whole story of one record, and how it is now at both sides.

    The exit code is 0 where the sides agree, 1 where they do not, 2 in trouble.
    """
    from dataclasses import asdict  # noqa: PLC0415

    from trueup.cli import report_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        bound = project.find(pair)
        story = bound.explain(key_of(key, bound))
        if json:
            print_json(asdict(story))
        else:
            report_text.show_story(story)
        return 1 if story.agree is False else 0
