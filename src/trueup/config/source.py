"""The file itself: its text, its tree, and the line on which an option stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trueup.errors import ConfigError

FILE_NAME: Final = "trueup.toml"
Place = tuple[str | int, ...]
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Source:
    """A TOML file. ConfigError where it can't be read or is not TOML."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.lines = path.read_bytes().decode("utf-8").split("\n")
            self.tree = tomllib.loads("\n".join(self.lines))
        except FileNotFoundError:
            hint = "Write one with `trueup init`, or name another with --project."
            raise ConfigError(f"there is no {path}.", hint=hint) from None
        except IsADirectoryError:
            raise ConfigError(f"{path} is a folder.", hint=f"Name the file: {path / FILE_NAME}.") from None
        except UnicodeDecodeError as error:
            reason = f"byte {error.start} is not UTF-8"
            raise ConfigError(f"{path} can't be read: {reason}.", hint="Save it as UTF-8 text.") from None
        except OSError as error:
            raise ConfigError(f"{path} can't be read: {error.strerror}.", hint="Check its permissions.") from None
        except tomllib.TOMLDecodeError as error:
            reason = str(error).replace("(at end of document)", f"(at its end, line {len(self.lines)})")
            raise ConfigError(f"{path} is not TOML: {reason}.", hint="See https://toml.io.") from None

    def has(self, place: Place) -> bool:
        """Whether the file says anything at this place."""
        return _has(self.tree, place)

    def said(self, place: Place, problem: str) -> str:
        """A sentence about an option, with file, line and name."""
        name = f", {'.'.join(map(str, place))}" if place else ""
        return f"{self.path} line {self.line_of(place)}{name}: {problem}"

    def substituted(self, value: Any, environment: Mapping[str, str], place: Place = ()) -> Any:
        """`value` with every ${NAME} replaced; ConfigError names the line of one that is not set."""
        if isinstance(value, dict):
            return {name: self.substituted(each, environment, (*place, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.substituted(each, environment, (*place, at)) for at, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        for name in _VARIABLE.findall(value):
            if name not in environment:
                problem = f"the variable {name} is not set."
                raise ConfigError(self.said(place, problem), hint=f"Set it first: export {name}=…")
        return _VARIABLE.sub(lambda found: environment[found[1]], value)

    def line_of(self, place: Place) -> int:
        """The line, from 1, of the statement that introduces the option, or the table that lacks it.

        Whole statements from the top are TOML themselves: the shortest such beginning that has the option
        ends with its statement.
        """
        while place and not self.has(place):
            place = place[:-1]
        begin = 0
        for end in range(1, len(self.lines) + 1 if place else 1):
            try:
                tree = tomllib.loads("\n".join(self.lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            if _has(tree, place):
                return self._line_within(begin, end, place)
            begin = end
        return 1

    def _line_within(self, begin: int, end: int, place: Place) -> int:
        """Of a statement over several lines, the last line that names the option, else its first."""
        statement = [at for at in range(begin, end) if self.lines[at].strip()] or [begin]
        name = next((each for each in reversed(place) if isinstance(each, str)), "")
        named = [at for at in statement if re.search(rf"(?<![\w-]){re.escape(name)}\W*=", self.lines[at])]
        return (named or statement)[-1 if named else 0] + 1


def _has(tree: object, place: Place) -> bool:
    for part in place:
        known = range(len(tree)) if isinstance(tree, list) else tree if isinstance(tree, dict) else ()
        if part not in known:
            return False
        tree = tree[part]  # type: ignore[index]
    return True
