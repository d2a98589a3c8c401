"""`trueup adopt`: compares once and remembers what agrees, so that later drift tells who moved."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Json, Pair, opened, park_reasons
from trueup.cli.commands.run import DryRun, Limit

Backfill = Annotated[bool, typer.Option("--backfill", help="Create at the replica what it lacks.")]
Trust = Annotated[bool, typer.Option("--trust-authority", help="Overwrite at the replica what differs.")]


def adopt(
    context: typer.Context,
    pair: Pair,
    backfill: Backfill = False,
    trust_authority: Trust = False,
    dry_run: DryRun = False,
    limit: Limit = 20,
    json: Json = False,
) -> int:
    """Take a pair under care: remember every record that agrees, and list the rest.

    The exit code is 0 where everything agrees, 1 where a person is needed, 2 in trouble.
    """
    from trueup.cli import report_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json, progress  # noqa: PLC0415

    with opened(context) as project:
        bound = project.find(pair)
        with progress() as follower:
            report = bound.adopt(backfill=backfill, trust_authority=trust_authority, dry_run=dry_run, progress=follower)
        if json:
            print_json(report.as_json())
        else:
            reasons = park_reasons(project, bound.name) if report.counts["parked"] else {}
            report_text.show(report, bound.pair, limit or None, reasons)
        return report.exit_code
