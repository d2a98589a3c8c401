"""The files themselves: their trees, and the line on which an option stands."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from trueup.errors import ConfigError

FILE_NAME: Final = "trueup.toml"
Place = tuple[str | int, ...]


class Document:
    """A file that says something at places of its tree."""

    path: Path
    tree: dict[str, Any]

    def has(self, place: Place) -> bool:
        """Whether the file says anything at this place."""
        return has(self.tree, place)

    def said(self, place: Place, problem: str) -> str:
        """A sentence about an option, with file, line and name."""
        name = f", {'.'.join(map(str, place))}" if place else ""
        return f"{self.path} line {self.line_of(place)}{name}: {problem}"

    def line_of(self, place: Place) -> int:
        """The line, from 1, of what stands at this place, or of the table that lacks it."""
        raise NotImplementedError


def text_of(path: Path, hint: str) -> str:
    """The text of a file; ConfigError where it can't be read. hint: where there is no such file."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}.", hint=hint) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder.", hint=f"Name the file: {path / FILE_NAME}.") from None
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
        raise ConfigError(f"{path} can't be read: {reason}.", hint="Save it as UTF-8 text.") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.", hint="Check its permissions.") from None


class Source(Document):
    """A TOML file. ConfigError where it can't be read or is not TOML."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = text_of(path, "Write one with `trueup init`, or name another with --project.")
        self.lines = text.split("\n")
        self._found: dict[Place, int] = {}
        try:
            self.tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            reason = str(error).replace("(at end of document)", f"(at its end, line {len(self.lines)})")
            raise ConfigError(f"{path} is not TOML: {reason}.", hint="See https://toml.io.") from None

    def line_of(self, place: Place) -> int:
        """The line of the statement that introduces the option."""
        # One mistake is often made for many clients, and is looked for each time.
        if place not in self._found:
            self._found[place] = self._line_of(place)
        return self._found[place]

    def _line_of(self, place: Place) -> int:
        """Whole statements from the top are TOML themselves: the shortest such beginning that has it ends with it."""
        while place and not self.has(place):
            place = place[:-1]
        if not place:
            return 1
        before, until = 0, len(self.lines)
        while (found := self._beginning(before, until)) is not None:
            end, tree = found
            if has(tree, place):
                until = end
            else:
                before = end
        return self._line_within(before, until, place)

    def _beginning(self, before: int, until: int) -> tuple[int, dict[str, Any]] | None:
        """A beginning of the file that is TOML, longer than `before` lines, shorter than `until`, near their middle."""
        middle = (before + until) // 2
        for end in (*range(middle, before, -1), *range(middle + 1, until)):
            try:
                return end, tomllib.loads("\n".join(self.lines[:end]) + "\n")
            except tomllib.TOMLDecodeError:
                continue
        return None

    def _line_within(self, begin: int, end: int, place: Place) -> int:
        """Of a statement over several lines, the last line that names the option, else its first."""
        statement = [at for at in range(begin, end) if self.lines[at].strip()] or [begin]
        name = next((each for each in reversed(place) if isinstance(each, str)), "")
        named = [at for at in statement if re.search(rf"(?<![\w-]){re.escape(name)}\W*=", self.lines[at])]
        return (named or statement)[-1 if named else 0] + 1


class Sheet(Document):
    """A CSV file with a row for each client, by its column `name`. ConfigError where it is not that.

    An empty cell says nothing. A column `pair.orders.sweep` stands for that place in the client's table.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.tree = path, {}
        self._lines: dict[str, int] = {}
        rows = csv.reader(text_of(path, "Correct `clients`.").splitlines())
        header = [name.strip() for name in next(rows, [])]
        if "name" not in header:
            raise ConfigError(f"{path} has no column name.", hint="Its first line names the columns; one is name.")
        for cells in rows:
            if not any(cells):
                continue
            if len(cells) > len(header):
                raise ConfigError(
                    f"{path} line {rows.line_num} has {len(cells)} cells under {len(header)} names.",
                    hint="Quote a cell that holds a comma.",
                )
            self._add(dict(zip(header, cells, strict=False)), rows.line_num)

    def _add(self, cells: dict[str, str], line: int) -> None:
        name = cells.pop("name", "").strip()
        if not name or name in self.tree:
            problem = f"there are two clients {name}" if name else "the client has no name"
            raise ConfigError(f"{self.path} line {line}: {problem}.", hint="Give each client its own name.")
        self._lines[name] = line
        table = self.tree[name] = {}
        for column, cell in cells.items():
            if cell != "":
                _put(table, column.split("."), cell)

    def line_of(self, place: Place) -> int:
        """The line of the client's row."""
        return self._lines.get(str(place[0]), 1) if place else 1


def _put(table: dict[str, Any], names: list[str], cell: str) -> None:
    for name in names[:-1]:
        inner = table.setdefault(name, {})
        table = inner if isinstance(inner, dict) else {}
    table[names[-1]] = cell


def has(tree: object, place: Place) -> bool:
    """Whether a tree of tables and lists has anything at this place."""
    for part in place:
        known = range(len(tree)) if isinstance(tree, list) else tree if isinstance(tree, dict) else ()
        if part not in known:
            return False
        tree = tree[part]  # type: ignore[index]
    return True
