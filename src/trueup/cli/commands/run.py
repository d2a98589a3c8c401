"""`trueup run`: reconciles pairs, repairs what is safe, and asks about the rest."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from trueup.cli.commands._project import Json, Pairs, chosen, opened, park_reasons
from trueup.errors import ConfigError


class Phase(enum.StrEnum):
    """The part of a run that `--only` names."""

    SWEEP = "sweep"
    COMPARE = "compare"


Only = Annotated[Phase | None, typer.Option("--only", help="Only look for changed records, or only compare.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the exact plan and write nothing anywhere.")]
Enqueue = Annotated[bool, typer.Option("--enqueue", help="Leave the jobs to a worker.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Records of a plan to list; 0 for all.")]


def run(
    context: typer.Context,
    pairs: Pairs = None,
    only: Only = None,
    dry_run: DryRun = False,
    enqueue: Enqueue = False,
    limit: Limit = 20,
    json: Json = False,
) -> int:
    """Reconcile pairs: find what was missed or changed, compare, repair, and ask about the rest.

    Before `trueup adopt` it only reports. The exit code is 0 in agreement or repaired, 1 where a person is
    needed, 2 in trouble.
    """
    from trueup.cli import report_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json, progress  # noqa: PLC0415

    if dry_run and enqueue:
        raise ConfigError("--dry-run and --enqueue exclude each other.", hint="A dry run offers nothing to a worker.")
    reports = []
    with opened(context) as project:
        for pair in chosen(project, pairs):
            with progress() as follower:
                report = pair.run(None if only is None else only.value, dry_run=dry_run, enqueue=enqueue,
                                  progress=follower)  # fmt: skip
            reports.append(report)
            if not json:
                reasons = park_reasons(project, pair.name) if report.counts["parked"] else {}
                report_text.show(report, pair.pair, limit or None, reasons)
    if json:
        print_json({"runs": [report.as_json() for report in reports]})
    return max(report.exit_code for report in reports)
