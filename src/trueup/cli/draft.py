"""A trueup.toml in the making: what was given, what the sides show, and what a person answers."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from trueup.cli.terminal import say
from trueup.environment import expand
from trueup.errors import ConfigError, SchemaError, did_you_mean
from trueup.locations import (
    FileLocation,
    TableLocation,
    absolute_url,
    hide_password,
    open_side,
    parse_location,
    password_of,
)

if TYPE_CHECKING:
    from trueup.compare.plan import SchemaNotes
    from trueup.ports import Description

# Names that people give to a column that grows with every change, the most telling first.
_VERSION_NAMES: Final = re.compile(
    r"(row_?version|revision|rev|version|updated_?(at|on|ts)?|modified_?(at|on|ts)?|last_?(updated?|modified|change)\w*|"
    r"changed_?(at|on)?|update_?(time|ts|date)|mtime|seq(uence)?)\Z",
    re.IGNORECASE,
)
_NONE: Final = "none"


@dataclass
class Draft:
    """What is known so far of one pair; `write` finds out the rest."""

    path: str
    name: str | None = None
    authority: str | None = None
    replica: str | None = None
    key: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    zone: tuple[str | None, str | None] = (None, None)
    handler: str | None = None
    asks: bool = True
    _variables: dict[str, str] = field(default_factory=dict)
    _secrets: dict[str, str] = field(default_factory=dict)

    def write(self, *, force: bool) -> dict[str, Any]:
        """Inspects, asks, writes; answers what was written. Nothing is written where anything fails."""
        target = Path(self.path)
        if target.suffix != ".toml":
            raise ConfigError(f"{target} is no TOML file.", hint="Name one: --project shop/trueup.toml.")
        if target.exists() and not force:
            raise ConfigError(
                f"{target} exists already.", hint="Add a [pair.NAME] to it, or overwrite it with --force."
            )
        self._ask_sides()
        assert self.authority is not None
        with ExitStack() as stack:
            left = self._look(stack, self.authority, self.zone[0])
            right = None if self.replica is None else self._look(stack, self.replica, self.zone[1])
            self._choose(left, right)
            notes = None if right is None else self._match(left, right)
        text = self._text(target.parent)
        self._check_and_place(target, text)
        return {
            "path": str(target),
            "pair": self.name,
            "key": list(self.key),
            "version": self.version,
            "compared_as": [] if notes is None else list(notes.compared_as),
            "only_authority": [] if notes is None else list(notes.only_left),
            "only_replica": [] if notes is None else list(notes.only_right),
            "export": dict(self._variables),
            "next": self._next(),
        }

    def tell(self, written: Mapping[str, Any]) -> None:
        """Says what was found and written, and what to type next."""
        say(f"wrote {written['path']}: pair {self.name}, key {', '.join(self.key)}, version {self.version or _NONE}")
        for line in written["compared_as"]:
            say(f"  {line}")
        for what, names in (("authority", written["only_authority"]), ("replica", written["only_replica"])):
            if names:
                say(f"  only at the {what}, not compared: {', '.join(names)}")
        for name, label in self._variables.items():
            say(f"Passwords are not written. First set that of {label}:  export {name}=…")
        say(f"Next: {' && '.join(written['next'])}")

    # ── what is asked ────────────────────────────────────────────────────────────────────────────────

    def _ask_sides(self) -> None:
        if self.authority is None:
            self.authority = self._ask("The side that is right (a table like shop.db#orders, or a file)", "--authority")
        if self.replica is None and self.handler is None:
            self.replica = self._ask("The other side", "--replica (or, without one, --handler module:function)")

    def _ask(self, question: str, option: str, default: str | None = None) -> str:
        if not self.asks or not sys.stdin.isatty():
            if default is not None:
                return default
            raise ConfigError(f"init needs {option}.", hint="Give it, or run init at a terminal, where it asks.")
        return str(typer.prompt(question, default=default)).strip()

    def _choose(self, left: Description, right: Description | None) -> None:
        columns = [column.name for column in left.columns]
        found = tuple(left.key) or self._key_of(right, columns)
        if not self.key:
            shown = f"Key of {left.label}, of {', '.join(columns)}"
            self.key = tuple(
                each.strip() for each in self._ask(shown, "--key", ",".join(found) or None).split(",") if each.strip()
            )
        if self.version is None:
            candidates = [*version_candidates(left), _NONE]
            self.version = self._ask("Column that grows whenever a record changes", "--version", candidates[0])
        if self.version == _NONE:
            self.version = None
        for name in (*self.key, *([self.version] if self.version else [])):
            if name not in columns:
                raise SchemaError(f"{left.label} has no column {name}.", hint=did_you_mean(name, columns, "Columns"))
        if self.name is None:
            self.name = self._ask("Name of the pair", "--name", _plain_name(left.label))

    def _key_of(self, right: Description | None, columns: Sequence[str]) -> tuple[str, ...]:
        """The replica's primary key, where the authority is a file with the same columns."""
        back = {theirs: ours for ours, theirs in self.rename.items()}
        names = tuple(back.get(name, name) for name in right.key) if right is not None else ()
        return names if all(name in columns for name in names) else ()

    # ── what the sides show ──────────────────────────────────────────────────────────────────────────

    def _look(self, stack: ExitStack, location: str, zone: str | None) -> Description:
        side = open_side(expand(location, "the location"), zone=zone)
        stack.callback(side.close)
        return side.describe()

    def _match(self, left: Description, right: Description) -> SchemaNotes:
        """Whether the sides can be compared; SchemaError says which columns can't."""
        from trueup.compare.plan import plan  # noqa: PLC0415

        assert self.replica is not None
        if self.handler is None and isinstance(parse_location(self.replica), FileLocation):
            raise ConfigError(
                f"{right.label} is a file: trueup can't write it.",
                hint="Name what does the work with --handler module:function, or only compare: trueup diff.",
            )
        keys = [self.rename.get(name, name) for name in self.key]
        return plan(left, right, key=self.key, key_right=keys, version_left=self.version, rename=self.rename).notes

    # ── what is written ──────────────────────────────────────────────────────────────────────────────

    def _text(self, folder: Path) -> str:
        assert self.authority is not None
        assert self.name is not None
        left = self._side(self.authority, "AUTHORITY", self.key, self.version, self.zone[0], folder)
        lines = [f"[pair.{_toml_key(self.name)}]", f"authority = {left}"]
        if self.replica is not None:
            keys = tuple(self.rename.get(name, name) for name in self.key)
            lines.append(f"replica = {self._side(self.replica, 'REPLICA', keys, None, self.zone[1], folder)}")
        if self.rename:
            lines.append(f"map = {_inline(self.rename)}")
        if self.handler is not None:
            lines.append(f"handler = {_toml(self.handler)}")
        return "\n".join(["# Written by trueup init. Every option: docs/reference/config.md", "", *lines, ""])

    def _side(
        self, location: str, role: str, key: Sequence[str], version: str | None, zone: str | None, folder: Path
    ) -> str:
        found = parse_location(location)
        options: dict[str, Any] = (
            {"url": self._without_password(found, role, folder), "table": found.table}
            if isinstance(found, TableLocation)
            else {"path": os.path.relpath(found.path, folder)}
        )
        options |= {"key": key[0] if len(key) == 1 else list(key), "version": version, "zone": zone}
        return _inline({name: value for name, value in options.items() if value is not None})

    def _without_password(self, location: TableLocation, role: str, folder: Path) -> str:
        url = location.url
        query = url.partition("?")[1:]
        if hide_password("".join(query)) != "".join(query):
            raise ConfigError(
                f"{hide_password(url)} has a secret among its options.",
                hint="Put it into an environment variable and write ${NAME} in its place.",
            )
        password = password_of(url)
        if password is not None and "${" not in password:
            variable = re.sub(r"\W", "_", f"{self.name}_{role}_PASSWORD", flags=re.ASCII).upper()
            variable = variable if variable[0].isalpha() else f"TRUEUP_{variable}"
            self._variables[variable] = hide_password(url)
            self._secrets[variable] = password
            url = url.replace(f":{password}@", f":${{{variable}}}@", 1)
        return _relative_sqlite(url, folder)

    def _check_and_place(self, target: Path, text: str) -> None:
        """Reads the new file as `run` would, and only then puts it into place."""
        from trueup.config import load  # noqa: PLC0415  loads pydantic

        if not target.parent.is_dir():
            raise ConfigError(f"there is no folder {target.parent}.", hint="Create it first.")
        draft = target.with_name(f".{target.name}.draft")
        try:
            draft.write_text(text, "utf-8")
            load(draft, {**os.environ, **self._secrets})
            draft.replace(target)
        except OSError as error:
            raise ConfigError(
                f"{target} can't be written: {error.strerror}.", hint="Name another with --project."
            ) from None
        finally:
            draft.unlink(missing_ok=True)

    def _next(self) -> list[str]:
        project = "" if self.path == "trueup.toml" else f"--project {self.path} "
        first = f"trueup {project}doctor"
        return [first, f"trueup {project}{'run' if self.replica is None else 'adopt'} {self.name}"]


def version_candidates(side: Description) -> Iterator[str]:
    """Columns whose name and kind suggest that they grow with every change."""
    for column in side.columns:
        if column.kind.name in ("integer", "timestamp") and _VERSION_NAMES.match(column.name):
            yield column.name


def _relative_sqlite(url: str, folder: Path) -> str:
    """Paths of trueup.toml start at its folder, those of the command line at the working directory."""
    if not url.startswith("sqlite") or url.startswith(("sqlite:////", "sqlite+pysqlite:////")):
        return url
    absolute = absolute_url(url, Path.cwd())
    head, _, path = absolute.partition(":///")
    return f"{head}:///{os.path.relpath(path, folder)}"


def _plain_name(label: str) -> str:
    return re.sub(r"\W+", "_", label.rsplit("/", 1)[-1].split(".")[0 if "/" in label else -1]).strip("_") or "records"


def _toml(value: Any) -> str:
    # TOML's basic strings are JSON's, but for the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _inline(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{_toml_key(name)} = {_toml(value)}" for name, value in table.items()) + " }"
