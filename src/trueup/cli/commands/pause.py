"""`trueup pause` and `trueup resume`: the switch of a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import Client, opened
from trueup.errors import ConfigError, did_you_mean
from trueup.model.names import matching

if TYPE_CHECKING:
    from trueup.project import Project

ALL = "*"
Name = Annotated[
    str | None,
    typer.Argument(metavar="[SYSTEM]", help="The system, or a pattern of names; by default each pair is one."),
]
All = Annotated[bool, typer.Option("--all", help="Every system: no write starts anywhere.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown by `trueup status`.")]


def pause(
    context: typer.Context,
    system: Name = None,
    everything: All = False,
    client: Client = None,
    reason: Reason = "by hand",
) -> int:
    """Stop all work for systems until `trueup resume`; events are still taken in and wait."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        names = _chosen(project, system, client, everything=everything)
        by = person()
        for name in names:
            project.budgets.pause(name, reason, by)
    who, again = _named(names, system, client)
    say(f"{who} {'is' if len(names) == 1 else 'are'} paused: trueup resume {again}")
    return 0


def resume(context: typer.Context, system: Name = None, everything: All = False, client: Client = None) -> int:
    """End pauses, whoever began them."""
    from trueup.cli.terminal import say  # noqa: PLC0415

    with opened(context) as project:
        names = _chosen(project, system, client, everything=everything)
        for name in names:
            project.budgets.resume(name)
    who, _ = _named(names, system, client)
    say(f"{who} {'goes' if len(names) == 1 else 'go'} on")
    return 0


def person() -> str:
    """Who pauses, as the machine knows them."""
    import getpass  # noqa: PLC0415
    import socket  # noqa: PLC0415

    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return f"somebody@{socket.gethostname()}"


def _chosen(project: Project, system: str | None, client: str | None, *, everything: bool) -> list[str]:
    """The systems that are meant; ConfigError where none is, or where others would be held too."""
    known = project.systems()
    if [everything, system is not None, client is not None].count(True) != 1:
        hint = did_you_mean("", known, "Systems")
        raise ConfigError("name one system or pattern, or say --client NAME or --all.", hint=hint)
    if everything:
        return [ALL]
    if client is not None:
        return _of_client(project, client)
    names = matching(system or "", known)
    if not names:
        raise ConfigError(f"there is no system {system}.", hint=did_you_mean(system or "", known, "Systems"))
    return names


def _of_client(project: Project, client: str) -> list[str]:
    """The systems that only this client's pairs call. ConfigError where a pair has none of them."""
    pairs = project.select(client=client)
    shared = {name for each in project.pairs.values() if each not in pairs for name in each.pair.systems}
    for each in pairs:
        called = sorted({*each.pair.systems})
        if shared.issuperset(called):
            raise ConfigError(
                f"{each.name} calls no system that is only client {client}'s: {', '.join(called)}.",
                hint="Give the client its own, or name the system: trueup pause SYSTEM holds all that call it.",
            )
    return sorted({name for each in pairs for name in each.pair.systems} - shared)


def _named(names: Sequence[str], system: str | None, client: str | None) -> tuple[str, str]:
    """(who that is, how it is typed)."""
    if names == [ALL]:
        return "everything", "--all"
    if client is not None:
        return f"{len(names)} systems of client {client}" if len(names) > 1 else names[0], f"--client {client}"
    return (names[0], names[0]) if len(names) == 1 else (f"{len(names):,} systems", f"'{system}'")
