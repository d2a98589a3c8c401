"""SQLite: any column holds anything, but one whose type sounds like a number turns texts into numbers."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from trueup.model.numbers import ODD
from trueup.testing.pairs import spelled
from trueup.testing.pairs.engines.database import FileDatabase
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.types import Holds, Type, finite, is_object, packed_uuid, plain, signed, told, written

_LIKE_A_NUMBER: Final = re.compile(r"\s*[-+]?[\d.]+(?:e[-+]?\d+)?\s*\Z", re.IGNORECASE)


def _kept(inner: Holds = lambda text: True) -> Holds:
    def holds(text: str) -> bool:
        return not _LIKE_A_NUMBER.match(text[1:]) if text.startswith(ODD) else inner(text)

    return holds


def _short_decimal(text: str) -> bool:
    return finite(text) and len(text.strip("-0.").replace(".", "")) <= 14 and len(text) < 18


def _sqlite_float(text: str, chance: random.Random) -> Any:
    if text == "nan" or text.startswith(ODD):
        return spelled.plain(text, "float")
    return -0.0 if text == "0" and chance.random() < 0.5 else float(text)


def _sqlite_boolean(text: str, chance: random.Random) -> Any:
    if text.startswith(ODD):
        return text[1:]
    return chance.choice((int(text == "true"), text, text[:1].upper()))


def _sqlite_uuid(text: str, chance: random.Random) -> Any:
    if text.startswith(ODD):
        return text[1:]
    return chance.choice((text, text.upper(), packed_uuid(text, chance)))


def _sqlite_integer(text: str, chance: random.Random) -> Any:
    return text[1:] if text.startswith(ODD) else int(text)


def _sqlite_bytes(text: str, chance: random.Random) -> Any:
    return text[1:] if text.startswith(ODD) else bytes.fromhex(text)


def _no_nan(text: str) -> bool:
    return text != "nan"


_STRICT: Final = ("INTEGER", "INT", "TEXT", "BLOB", "REAL")
SQLITE: Final = (
    Type("BOOLEAN", "boolean", _kept(), mistakes=True, spell=_sqlite_boolean),
    Type("INTEGER", "integer", _kept(signed(64)), mistakes=True, spell=_sqlite_integer),
    Type("BIGINT", "integer", _kept(signed(64)), mistakes=True, spell=_sqlite_integer),
    Type("INT", "integer", signed(64), spell=_sqlite_integer),
    Type("DECIMAL(12,2)", "decimal", _kept(_short_decimal), mistakes=True, spell=plain("decimal")),
    Type("REAL", "float", _kept(), mistakes=True, spell=_sqlite_float),
    Type("REAL", "float32", _no_nan, spell=_sqlite_float),
    Type("TEXT", "text"),
    Type("VARCHAR(5)", "text"),
    Type("TEXT COLLATE NOCASE", "text"),
    Type("TEXT COLLATE RTRIM", "text"),
    Type("", "text"),
    Type("TEXT", "enum"),
    Type("BLOB", "bytes", mistakes=True, spell=_sqlite_bytes),
    Type("UUID", "uuid", _kept(), mistakes=True, spell=_sqlite_uuid),
    Type("DATE", "date", _kept(), mistakes=True, spell=written("date")),
    Type("TIME", "time", _kept(), mistakes=True, spell=written("time")),
    Type("DATETIME", "timestamp", _kept(), mistakes=True, spell=written("timestamp"), wall=True),
    Type("TIMESTAMPTZ", "instant", _kept(), mistakes=True, spell=written("instant")),
    Type("INTERVAL", "interval", _kept(), mistakes=True, spell=written("interval")),
    Type("JSON", "json", is_object, spell=written("json")),
    *told("TEXT", 6000, nul=True),
)


class SQLite(FileDatabase):
    """Its tables may be strict, or without row numbers, where they could be."""

    scheme = "sqlite"

    def _connect(self, path: Path) -> Any:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    def _options(self, table: Table, chance: random.Random) -> str:
        types = table.columns.values()
        able = all(each.declared in _STRICT and (each.told or not each.mistakes) for each in types)
        options = ["STRICT"] if able and chance.random() < 0.5 else []
        if table.constraint == "primary" and chance.random() < 0.2:
            options.append("WITHOUT ROWID")
        return ", ".join(options)

    def _fill(self, name: str, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        listed = ", ".join(map(self.quoted, table.columns))
        marks = ", ".join("?" * len(table.columns))
        self._execute("BEGIN")
        try:
            self._connection.executemany(f"INSERT INTO {self.quoted(name)} ({listed}) VALUES ({marks})", rows)
        finally:
            self._execute("COMMIT")

    def _duplicate(self) -> type[Exception]:
        return sqlite3.IntegrityError
