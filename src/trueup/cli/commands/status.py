"""`trueup status`: how each pair is, from the state store alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from trueup.cli.commands._project import Client, Json, Pairs, chosen, opened
from trueup.errors import StateError

All = Annotated[bool, typer.Option("--all", help="A line for each client, not one for all of them.")]
Trend = Annotated[bool, typer.Option("--trend", help="Show how much drifted over time, by cause and field.")]


def status(
    context: typer.Context,
    pairs: Pairs = None,
    client: Client = None,
    everything: All = False,
    trend: Trend = False,
    json: Json = False,
) -> int:
    """Show how each pair is and what to type next.

    The exit code is 0 in agreement, 1 where a person is needed, 2 in trouble.
    """
    from dataclasses import asdict  # noqa: PLC0415

    from trueup.cli import clients_text, conditions_text, letters_text, presence_text, trend_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project, _with_next_command():
        bound = chosen(project, pairs, client)
        found = [pair.status() for pair in bound]
        trends = [pair.trend() for pair in bound] if trend else []
        workers = project.workers()
        beside = project.conditions_of_store()
        letters = project.archive.count_letters()
    if trend and json:
        print_json({"pairs": [each.as_json() for each in trends]})
    elif trend:
        trend_text.show(trends)
    elif json:
        document = {
            "pairs": [{**asdict(each), "exit_code": each.exit_code} for each in found],
            "workers": presence_text.workers_json(workers, found[0].now_us),
            "letters": letters,
            "conditions": [asdict(each) for each in beside],
        }
        print_json(document)
    else:
        clients_text.show_status(found, everything=everything)
        presence_text.show_workers(workers, found)
        conditions_text.show_beside(beside, found[0].now_us)
        letters_text.mention(letters)
    return max(each.exit_code for each in found)


@contextmanager
def _with_next_command() -> Iterator[None]:
    """Where the state store can't be used, nothing can be shown but what to type next."""
    try:
        yield
    except StateError as error:
        raise StateError(error.message, hint=f"{error.hint or ''} Next: trueup doctor".strip()) from error
