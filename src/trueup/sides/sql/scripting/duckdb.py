"""Statements for DuckDB's shell and its `execute`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.scripting import Scribe

_MARKS: Final = re.compile(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'|\?')


class DuckDB(Scribe):
    """DuckDB."""

    opening: ClassVar[tuple[str, ...]] = ("SET TimeZone = 'UTC';", "BEGIN;")

    def literal(self, value: Any) -> str:
        """Text in quotes, within which only a quote means something; NUL, where some programs stop, by its number."""
        match value:
            case None:
                return "NULL"
            case bool():
                return "true" if value else "false"
            case str():
                parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
                return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"
            case bytes():
                return f"unhex('{value.hex()}')"
            case list():
                return f"[{', '.join(map(self.literal, value))}]"
        return str(value)

    def unchanged(self, column: Stored, reading: Reading, raw: Any) -> tuple[str, list[Any]]:
        """What was selected still gives this, past a collation. Floats as text, which is read in the column's width."""
        if column.base == "VARCHAR":
            return f"encode({reading.sql}) = encode(?)", [raw]
        return f"{reading.sql} = ?", [str(raw) if isinstance(raw, float) else raw]

    def written(self, sql: str, values: Sequence[Any]) -> str:
        """Question marks stand for values, unless they belong to a name or a text."""
        waiting = iter(values)
        return _MARKS.sub(lambda found: self.literal(next(waiting)) if found[0] == "?" else found[0], sql)
