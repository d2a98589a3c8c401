"""`trueup pause` and `trueup resume`: the switch of a system."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli.commands._project import opened
from trueup.errors import ConfigError, did_you_mean

ALL = "*"
Name = Annotated[str | None, typer.Argument(metavar="[SYSTEM]", help="The system; by default each pair is one.")]
All = Annotated[bool, typer.Option("--all", help="Every system: no write starts anywhere.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown by `trueup status`.")]


def pause(context: typer.Context, system: Name = None, everything: All = False, reason: Reason = "by hand") -> int:
    """Stop all work for a system until `trueup resume`; events are still taken in and wait."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        name = _chosen(project.systems(), system, everything)
        project.budgets.pause(name, reason, _person())
    say(f"{'everything' if name == ALL else name} is paused: trueup resume {'--all' if name == ALL else name}")
    return 0


def resume(context: typer.Context, system: Name = None, everything: All = False) -> int:
    """End a pause, whoever began it."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        name = _chosen(project.systems(), system, everything)
        project.budgets.resume(name)
    say(f"{'everything' if name == ALL else name} goes on")
    return 0


def _person() -> str:
    """Who pauses, as the machine knows them."""
    import getpass  # noqa: PLC0415
    import socket  # noqa: PLC0415

    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return f"somebody@{socket.gethostname()}"


def _chosen(known: list[str], system: str | None, everything: bool) -> str:
    if everything == (system is not None):
        raise ConfigError("name one system, or say --all.", hint=f"Systems: {', '.join(known)}.")
    if system is not None and system not in known:
        raise ConfigError(f"there is no system {system}.", hint=did_you_mean(system, known, "Systems"))
    return system or ALL
