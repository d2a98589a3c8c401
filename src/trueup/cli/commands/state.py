"""`trueup state`: backs up, restores and tidies trueup's own state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trueup.cli.commands._project import Json, opened
from trueup.cli.help import Commands

File = Annotated[Path, typer.Argument(metavar="FILE", help="A new file; it is never written over another one.")]
Backup = Annotated[Path, typer.Argument(metavar="FILE", help="What `trueup state backup` wrote.")]

state = Commands(
    help="Back up, restore and compact trueup's own state: what is done, what waits, cases, evidence.",
    no_args_is_help=True,
)


@state.command("backup")
def backup(context: typer.Context, file: File, json: Json = False) -> int:
    """Write the state, as it is at one moment, to a file; workers go on meanwhile.

    SQLite's own online backup, or a dump by pg_dump. The file holds values of records: keep it as you keep those.
    """
    from trueup.cli.terminal import print_json, say  # noqa: PLC0415

    with opened(context) as project:
        project.back_up(file)
    size = file.stat().st_size
    if json:
        print_json({"file": str(file), "bytes": size})
    else:
        say(f"{file}: {size:,} bytes. Restore it with: trueup state restore {file}")
    return 0


@state.command("restore")
def restore(context: typer.Context, file: Backup, json: Json = False) -> int:
    """Make the state anew from a backup, where there is none now. Stop all programs that use it first.

    What happened after the backup is found out again: what waits is read before it is done, old leases are void, and
    each pair needs `trueup adopt` before drift is repaired again.
    """
    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        records = project.restore(file)
        pairs = [name for name, each in project.pairs.items() if each.pair.replica is not None]
    if json:
        print_json({"file": str(file), "records": records, "adopt": pairs})
        return 0
    say(f"{file}: {counted(records, 'record')} known as of then")
    for name in pairs[:10]:
        say(f"next: trueup adopt {name}")
    if len(pairs) > 10:
        say(f"and so on, for {len(pairs):,} pairs")
    return 0


@state.command("compact")
def compact(
    context: typer.Context,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Give space back to the disk too: SQLite only; writers wait meanwhile.")
    ] = False,
    json: Json = False,
) -> int:
    """Forget histories, plans and dead letters that are older than `retention` says; `trueup serve` does so hourly.

    Records, runs, cases and decisions stay; and evidence, unless it has a retention of its own.
    """
    import dataclasses  # noqa: PLC0415

    from trueup.cli.terminal import counted, print_json, say  # noqa: PLC0415

    with opened(context) as project:
        gone = project.keeping().once()
        saved = project.vacuum() if vacuum else None
    if json:
        print_json(dataclasses.asdict(gone) | ({} if saved is None else {"bytes": saved}))
        return 0
    say(
        f"forgotten: {counted(gone.history, 'entry of histories', 'entries of histories')}, "
        f"{counted(gone.plans, 'plan')}, {counted(gone.letters, 'dead letter')}"
        + (f", {counted(gone.evidence, 'entry of evidence', 'entries of evidence')}" if gone.evidence else "")
    )
    if saved is not None:
        say(f"{saved:,} bytes given back")
    return 0
