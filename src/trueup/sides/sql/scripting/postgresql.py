"""Statements for psql and everything else that reads PostgreSQL's SQL."""

from __future__ import annotations

from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from psycopg.sql import Literal

from trueup.model.kinds import Kind
from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.scripting import Scribe, Unspeakable


class PostgreSQL(Scribe):
    """PostgreSQL. Settings are those under which rows were read, for as long as the transaction lasts."""

    opening: ClassVar[tuple[str, ...]] = (
        "BEGIN;",
        "SET LOCAL client_encoding = 'UTF8';",
        "SET LOCAL TimeZone = 'UTC';",
        "SET LOCAL DateStyle = 'ISO, YMD';",
        "SET LOCAL IntervalStyle = 'iso_8601';",
        "SET LOCAL bytea_output = 'hex';",
        "SET LOCAL extra_float_digits = 1;",
    )

    def literal(self, value: Any) -> str:
        """As psycopg writes it where it has no connection: right whatever the server thinks of backslashes."""
        if isinstance(value, str) and not _sayable(value):
            raise Unspeakable("PostgreSQL holds no text with a NUL in it")
        return "NULL" if value is None else Literal(value).as_string(None).strip()

    def unchanged(self, column: Stored, reading: Reading, raw: Any) -> tuple[str, list[Any]]:
        """What was selected still gives this. Floats as text, which is read in the column's own width."""
        return f"{reading.sql} = {self.dialect.mark}", [str(raw) if isinstance(raw, float) else raw]

    def holds(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> bool:
        """As any; and no NUL."""
        return _sayable(text) and super().holds(column, text, kind, zone)


def _sayable(text: str) -> bool:
    return "\0" not in text
