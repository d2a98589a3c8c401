"""`trueup status`: how each pair is, from the state store alone."""

from __future__ import annotations

import typer

from trueup.cli.commands._project import Json, Pairs, chosen, opened


def status(context: typer.Context, pairs: Pairs = None, json: Json = False) -> int:
    """Show how each pair is and what to type next.

    The exit code is 0 in agreement, 1 where a person is needed, 2 in trouble.
    """
    from dataclasses import asdict  # noqa: PLC0415

    from trueup.cli import report_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        found = [pair.status() for pair in chosen(project, pairs)]
    if json:
        print_json({"pairs": [{**asdict(each), "exit_code": each.exit_code} for each in found]})
    else:
        report_text.show_status(found)
    return max(each.exit_code for each in found)
