"""`trueup schedule`: when runs are due, and the switch that holds or hastens them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import Client, Json, Pairs, chosen, opened
from trueup.cli.commands.pause import Reason, person
from trueup.cli.help import Commands
from trueup.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.bound import BoundPair
    from trueup.project import Project


class What(enum.StrEnum):
    """What `--only` names."""

    SWEEP = "sweep"
    COMPARE = "compare"
    CHANGED = "changed"


Named = Annotated[list[str], typer.Argument(metavar="PAIR...", help="Names of pairs, or patterns such as 'orders@*'.")]
Only = Annotated[What | None, typer.Option("--only", help="Only this schedule of the pair.")]

schedule = Commands(
    help="Show when runs are due; hold them, let them go on, or make them due now.\n\n"
    "Without a command it lists. The exit code is 1 where a run is overdue, 2 in trouble."
)


@schedule.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int | None:
    """Lists where no command is named."""
    return show_all(context) if context.invoked_subcommand is None else None


@schedule.command("list")
def show_all(context: typer.Context, pairs: Pairs = None, client: Client = None, json: Json = False) -> int:
    """List schedules: when each is due, what was missed or refused, and who holds it.

    The exit code is 1 where one is overdue.
    """
    from trueup.cli import schedules_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        found = [pair.status() for pair in chosen(project, pairs, client)]
    if json:
        print_json({"schedules": schedules_text.as_json(found)})
    else:
        schedules_text.show(found)
    return 1 if any(each.overdue for each in found) else 0


@schedule.command("pause")
def pause(context: typer.Context, pairs: Named, reason: Reason = "by hand") -> int:
    """Start no runs of these pairs until `trueup schedule resume`. What waits is still worked, as are events.

    `trueup pause SYSTEM` holds that too, and with it the runs.
    """
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        for pair in _scheduled(project, pairs):
            project.archive.pause_turns(pair.name, person(), reason)
            say(f"{pair.name}: no run starts until trueup schedule resume {pair.name}")
    return 0


@schedule.command("resume")
def resume(context: typer.Context, pairs: Named) -> int:
    """Let runs of these pairs start again; what was due meanwhile starts once."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        for pair in _scheduled(project, pairs):
            project.archive.resume_turns(pair.name)
            say(f"{pair.name}: runs start when they are due")
    return 0


@schedule.command("now")
def now(context: typer.Context, pairs: Named, only: Only = None) -> int:
    """Make runs of these pairs due now, for the scheduler that is running. `trueup run` runs them here."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        for pair in _scheduled(project, pairs):
            if only is not None and only.value not in pair.pair.schedules:
                raise ConfigError(
                    f"pair {pair.name} has no schedule for {only.value}.",
                    hint=f"It has: {', '.join(pair.pair.schedules)}.",
                )
            hastened = project.archive.hasten_turns(pair.name, None if only is None else only.value)
            say(f"{pair.name}: due now" if hastened else f"{pair.name}: paused, or a run is under way")
    return 0


def _scheduled(project: Project, names: Sequence[str]) -> list[BoundPair]:
    """The pairs of these names, known to the store; ConfigError where one has no schedule."""
    from trueup.engine.schedules import declare_schedules  # noqa: PLC0415

    pairs = chosen(project, names)
    for each in pairs:
        if not each.pair.schedules:
            raise ConfigError(
                f"pair {each.name} has no schedule.", hint='Declare one: sweep="10m", compare="0 3 * * *".'
            )
    declare_schedules([each.pair for each in pairs], project.archive, project.ledger.now_us())
    return pairs
