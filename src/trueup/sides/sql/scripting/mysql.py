"""Statements for the clients mysql and mariadb."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from trueup.model.kinds import Kind
from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.scripting import INFINITE, Scribe
from trueup.sides.sql.spelling import TEXTUAL, as_stored


class MySQL(Scribe):
    """MySQL and MariaDB. The mode is strict, lets backslashes escape, and takes a 0 in a counting column for a 0."""

    opening: ClassVar[tuple[str, ...]] = (
        "SET NAMES utf8mb4;",
        "SET SESSION time_zone = '+00:00';",
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';",
        "START TRANSACTION;",
    )
    nowhere: ClassVar[str] = " FROM DUAL"

    def literal(self, value: Any) -> str:
        """As PyMySQL writes it, whose escapes leave no line break and no NUL."""
        converters = import_module("pymysql.converters")  # an extra
        return str(converters.escape_item(value, "utf8mb4", converters.encoders))

    def unchanged(self, column: Stored, reading: Reading, raw: Any) -> tuple[str, list[Any]]:
        """Numbers as numbers; everything else byte for byte, past collations."""
        if column.kind.name in ("integer", "decimal"):
            return f"{reading.sql} = %s", [Decimal(str(raw))]
        match reading.shape:
            case "float" | "float32":
                return f"{reading.sql} = %s", [float(raw)]
            case "hex":
                return f"{self.dialect.quoted(column.name)} = %s", [bytes.fromhex(raw)]
        return f"CAST({reading.sql} AS BINARY) = %s", [raw]

    def holds(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> bool:
        """As any; and only text knows what is no number or has no end."""
        stored = as_stored(text, kind, column.kind, zone)
        endless = stored in (*INFINITE, "nan") and column.kind.name not in TEXTUAL
        return not endless and super().holds(column, text, kind, zone)
