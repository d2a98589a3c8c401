"""`trueup run`: reconciles pairs, repairs what is safe, and asks about the rest."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from trueup.cli.commands._project import Client, Json, Pairs, chosen, opened
from trueup.cli.commands._reconcile import reconcile
from trueup.errors import ConfigError


class Phase(enum.StrEnum):
    """The part of a run that `--only` names."""

    SWEEP = "sweep"
    COMPARE = "compare"
    CHANGED = "changed"


Only = Annotated[
    Phase | None,
    typer.Option("--only", help="Only look for changed records; only compare; or only compare what was touched since."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the exact plan and write nothing anywhere.")]
Enqueue = Annotated[bool, typer.Option("--enqueue", help="Leave the jobs to a worker.")]
Window = Annotated[
    str | None,
    typer.Option("--window", metavar="FROM..TO", help="Compare only these closed windows; TO is not included."),
]
Whole = Annotated[bool, typer.Option("--whole", help="Compare everything, though the pair declares windows.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Records of a plan to list; 0 for all.")]


def run(
    context: typer.Context,
    pairs: Pairs = None,
    client: Client = None,
    only: Only = None,
    dry_run: DryRun = False,
    enqueue: Enqueue = False,
    window: Window = None,
    whole: Whole = False,
    limit: Limit = 20,
    json: Json = False,
) -> int:
    """Reconcile pairs: find what was missed or changed, compare, repair, and ask about the rest.

    Before `trueup adopt` it only reports. Where one of several pairs is in trouble, the others are run all the same.
    The exit code is 0 in agreement or repaired, 1 where a person is needed, 2 in trouble.
    """
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    if dry_run and enqueue:
        raise ConfigError("--dry-run and --enqueue exclude each other.", hint="A dry run offers nothing to a worker.")
    if window is not None and (whole or only is Phase.SWEEP or only is Phase.CHANGED):
        raise ConfigError(
            "--window names what is compared, so --whole and --only exclude it.", hint="Keep one of them."
        )
    with opened(context) as project:
        ended = reconcile(
            project,
            chosen(project, pairs, client),
            lambda pair, follower: pair.run(
                None if only is None else only.value,
                dry_run=dry_run,
                enqueue=enqueue,
                window=window,
                whole=whole,
                progress=follower,
            ),
            limit or None,
            json=json,
        )
    if json:
        print_json({"runs": [each.as_json() for each in ended]})
    return max(each.exit_code for each in ended)
