"""`trueup adopt`: compares once and remembers what agrees, so that later drift tells who moved."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import Client, Json, SomePairs, chosen, opened
from trueup.cli.commands._reconcile import reconcile
from trueup.cli.commands.run import DryRun, Limit

Backfill = Annotated[bool, typer.Option("--backfill", help="Create at the replica what it lacks.")]
Trust = Annotated[bool, typer.Option("--trust-authority", help="Overwrite at the replica what differs.")]


def adopt(
    context: typer.Context,
    pair: SomePairs,
    client: Client = None,
    backfill: Backfill = False,
    trust_authority: Trust = False,
    dry_run: DryRun = False,
    limit: Limit = 20,
    json: Json = False,
) -> int:
    """Take a pair under care, or those of a pattern: remember every record that agrees, and list the rest.

    The exit code is 0 where everything agrees, 1 where a person is needed, 2 in trouble.
    """
    from trueup.cli.terminal import print_json  # noqa: PLC0415
    from trueup.model.names import is_pattern  # noqa: PLC0415

    with opened(context) as project:
        ended = reconcile(
            project,
            chosen(project, [pair], client),
            lambda bound, follower: bound.adopt(
                backfill=backfill, trust_authority=trust_authority, dry_run=dry_run, progress=follower
            ),
            limit or None,
            json=json,
        )
    if json:
        print_json({"runs": [each.as_json() for each in ended]} if is_pattern(pair) else ended[0].as_json())
    return max(each.exit_code for each in ended)
