"""`trueup alerts`: what is wrong, who was told, and telling them from cron."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import Json, opened
from trueup.cli.help import Commands
from trueup.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from trueup.project import Project

Targets = Annotated[
    list[str] | None, typer.Argument(metavar="[TARGET]...", help="Names of targets; by default all of them.")
]

alerts = Commands(
    help="Show what is wrong and who was told; tell them, or try whether they can be told.\n\n"
    "Without a command it lists. The exit code is 1 where something is wrong, 2 in trouble."
)


@alerts.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int | None:
    """Lists where no command is named."""
    return show_all(context) if context.invoked_subcommand is None else None


@alerts.command("list")
def show_all(context: typer.Context, json: Json = False) -> int:
    """List what is wrong, the worst first, what each target was told, and pings that did not arrive.

    The exit code is 0 where nothing is wrong, else 1.
    """
    from trueup.cli import conditions_text  # noqa: PLC0415
    from trueup.cli.terminal import print_json  # noqa: PLC0415

    with opened(context) as project:
        found, now_us = project.conditions(), project.ledger.now_us()
        names = list(project.alert_plan.targets)
        tellings = list(project.archive.targets.known(names).values()) if names else []
        pulses = list(project.archive.pulses(list(project.pairs)).values())
        runbook = project.alert_plan.runbook
    if json:
        print_json(conditions_text.as_json(found, tellings, pulses, runbook))
    else:
        conditions_text.show(found, now_us)
        conditions_text.show_targets(tellings, pulses)
    return 1 if found else 0


@alerts.command("test")
def try_them(context: typer.Context, targets: Targets = None) -> int:
    """Send these targets a message that is a test. The exit code is 2 where one did not take it."""
    from trueup.cli import conditions_text  # noqa: PLC0415

    with opened(context) as project:
        names = _declared(project)
        for each in targets or ():
            if each not in names:
                raise ConfigError(f"there is no alert target {each}.", hint=did_you_mean(each, names, "Targets"))
        told = project.alerting().test(targets or names)
    conditions_text.show_told(told)
    return 2 if any(each.error is not None for each in told) else 0


@alerts.command("send")
def send(context: typer.Context) -> int:
    """Look once at what is wrong and tell every target what changed, as `trueup serve` and `worker` do all the time.

    For cron, so that somebody tells where none of those lives. The exit code is 2 where a target did not take it.
    """
    from trueup.cli import conditions_text  # noqa: PLC0415

    with opened(context) as project:
        _declared(project)
        told = project.alerting().send()
    conditions_text.show_told(told)
    return 2 if any(each.error is not None for each in told) else 0


def _declared(project: Project) -> list[str]:
    """Names of the targets; ConfigError where there are none."""
    if not project.alert_plan.targets:
        raise ConfigError(
            "nobody is told of anything.", hint="Declare a target, such as [alerts.target.oncall] with url or apprise."
        )
    return list(project.alert_plan.targets)
