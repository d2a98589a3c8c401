"""What `--help` shows: plain sections, so that nobody waits for a library that draws boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

_OPTIONS: Final = "Options"
_COMMANDS: Final = "Commands"
# Of the section that a parameter or a command stands in.
Line = tuple[str, tuple[str, str]]


class Commands(typer.Typer):
    """A group of commands whose help is plain."""

    def __init__(self, **given: Any) -> None:
        super().__init__(cls=_Group, rich_markup_mode=None, **given)

    def command(self, name: str | None = None, **given: Any) -> Callable[[Any], Any]:
        """As Typer's; the name of the function is the name by default."""
        return super().command(name, cls=_Command, **given)


class _Command(TyperCommand):
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options by section, those of no section last."""
        _write(formatter, _parameters(self, ctx))


class _Group(TyperGroup):
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Commands by section, then options."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        lines = [
            (getattr(each, "rich_help_panel", None) or _COMMANDS, (name, each.get_short_help_str(1_000)))
            for name, each in commands
            if each is not None and not each.hidden
        ]
        _write(formatter, lines)
        _write(formatter, _parameters(self, ctx))


def _parameters(command: TyperCommand | TyperGroup, ctx: Any) -> list[Line]:
    found: list[Line] = []
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is not None:
            found.append((getattr(each, "rich_help_panel", None) or _section(each), record))
    return found


def _section(parameter: Any) -> str:
    return "Arguments" if parameter.param_type_name == "argument" else _OPTIONS


def _write(formatter: Any, lines: Iterable[Line]) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, line in lines:
        sections.setdefault(section, []).append(line)
    # What all commands have says least.
    for section in sorted(sections, key=lambda each: each == _OPTIONS):
        with formatter.section(section):
            formatter.write_dl(sections[section])
