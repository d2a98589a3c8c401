"""What commands of a project share: the project itself, its pairs by name, keys as people type them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trueup.errors import ConfigError

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.project import Project

Pair = Annotated[str, typer.Argument(metavar="PAIR", help="The pair's name in the project.")]
SomePairs = Annotated[str, typer.Argument(metavar="PAIR", help="The pair's name, or a pattern such as 'orders@*'.")]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PAIR]...", help="Names of pairs, or patterns such as 'orders@*'; by default all of them."),
]
Client = Annotated[str | None, typer.Option("--client", metavar="NAME", help="Only pairs of this client.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

# OpenTelemetry's own variables: where spans go.
TRACED: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def opened(context: typer.Context) -> Iterator[Project]:
    """The project that the command line names; its connections are given back at the end."""
    from trueup.loading import load  # noqa: PLC0415  loads the engine

    with load(context.obj) as project:
        if any(os.environ.get(name) for name in TRACED):
            from trueup.integrations.otel import export_by_environment  # noqa: PLC0415  an extra

            project.trace(export_by_environment())
        yield project


def chosen(project: Project, names: Sequence[str] | None, client: str | None = None) -> list[BoundPair]:
    """The pairs of these names or patterns, or all; of one client, or of all. ConfigError where one selects none."""
    if not project.pairs:
        raise ConfigError("the project has no pairs.", hint="Declare one: project.pair(…), or [pair.NAME].")
    return project.select(*(names or ()), client=client)


def park_reasons(project: Project, pair: str, shown: int = 3) -> dict[str, int]:
    """Why records of a pair are parked, the most frequent first, and how many for each."""
    rows = [row for rows in project.ledger.scan(pair, "parked") for row in rows]
    counts = Counter(row.park_reason or row.last_error or "out of tries" for row in rows)
    return dict(counts.most_common(shown))


def key_of(text: str, pair: BoundPair) -> str:
    """The key text of a key as people type it: `["eu","7"]`, or `eu,7`, or just `7`."""
    from trueup.model.record import key_parts, key_text  # noqa: PLC0415

    size = len(pair.pair.key)
    parts = key_parts(text) if text.startswith("[") else tuple(text.split(",") if size > 1 else [text])
    if len(parts) != size:
        raise ConfigError(
            f"{text} is not a key of {pair.name}: it has {len(parts)} of {size} columns.",
            hint=f"Its key is {', '.join(pair.pair.key)}; write it like {_example(size)}.",
        )
    return key_text(parts)


def _example(size: int) -> str:
    return "'[" + ",".join(f'"{at}"' for at in range(1, size + 1)) + "]'"


def agreed(question: str, *, yes: bool) -> bool:
    """Whether the person at the terminal says yes; ConfigError where nobody is there and --yes was not said."""
    import sys  # noqa: PLC0415

    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("nobody is here to be asked.", hint="Look at what would be done, then say --yes.")
    return typer.confirm(question)
