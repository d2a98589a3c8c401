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
from trueup.testing.pairs.engines.database import Database
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


class SQLite(Database):
    """One file. Its tables may be strict, or without row numbers, where they could be."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        super().__init__(f"sqlite:///{path}")
        self._execute("PRAGMA synchronous = OFF")

    def close(self) -> None:
        """And the one that fills."""
        super().close()
        self._connection.close()

    def _create(self, name: str, defined: Sequence[str], chance: random.Random, table: Table) -> None:
        types = {each.declared for each in table.columns.values()}
        options = []
        if types <= {"INTEGER", "INT", "TEXT", "BLOB", "REAL"} and not any(
            each.mistakes and not each.told for each in table.columns.values()
        ):
            options = [*(["STRICT"] if chance.random() < 0.5 else [])]
        if table.constraint == "primary" and any("PRIMARY" in each for each in defined) and chance.random() < 0.2:
            options.append("WITHOUT ROWID")
        self._execute(f"CREATE TABLE {self.quoted(name)} ({', '.join(defined)}) {', '.join(options)}")

    def _execute(self, sql: str) -> None:
        self._connection.execute(sql)

    def _fill(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        listed = ", ".join(map(self.quoted, columns))
        marks = ", ".join("?" * len(columns))
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany(f"INSERT INTO {self.quoted(name)} ({listed}) VALUES ({marks})", rows)
        finally:
            self._connection.execute("COMMIT")

    def _duplicate(self) -> type[Exception]:
        return sqlite3.IntegrityError
