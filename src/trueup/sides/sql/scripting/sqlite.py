"""Statements for SQLite's shell and for `executescript`."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import groupby
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.scripting import Scribe

_MARKS: Final = re.compile(r'"(?:[^"]|"")*"|\?')
_CHUNK: Final = 62


class SQLite(Scribe):
    """SQLite. As everywhere in trueup, foreign keys are kept."""

    opening: ClassVar[tuple[str, ...]] = ("PRAGMA foreign_keys = ON;", "BEGIN;")

    def literal(self, value: Any) -> str:
        """Text as SQLAlchemy writes it; what a shell would change in a text, by its number."""
        match value:
            case None:
                return "NULL"
            case str():
                return _text(value)
            case bytes():
                return f"X'{value.hex()}'"
            case float():
                return _float(value)
        return str(int(value))

    def keyed(self, column: Stored, value: Any) -> tuple[str, list[Any]]:
        """Only of text there are collations."""
        if isinstance(value, str) or value is None:
            return super().keyed(column, value)
        return f"{self.dialect.quoted(column.name)} = ?", [value]

    def unchanged(self, column: Stored, reading: Reading, raw: Any) -> tuple[str, list[Any]]:
        """The value as it is, past a collation such as NOCASE."""
        collation = " COLLATE BINARY" if isinstance(raw, str) and column.kind.name == "text" else ""
        return f"{self.dialect.quoted(column.name)} = ?{collation}", [raw]

    def written(self, sql: str, values: Sequence[Any]) -> str:
        """Question marks stand for values, unless they belong to a name."""
        waiting = iter(values)
        return _MARKS.sub(lambda found: self.literal(next(waiting)) if found[0] == "?" else found[0], sql)


def _text(value: str) -> str:
    parts = []
    for plain, letters in groupby(value, str.isprintable):
        run = list(letters)
        parts.append(_quoted("".join(run)) if plain else f"char({', '.join(str(ord(each)) for each in run)})")
    return "''" if not parts else parts[0] if len(parts) == 1 else f"({' || '.join(parts)})"


@lru_cache(maxsize=1)
def _processor() -> Callable[[str], str]:
    string: Any = sa.String()
    processor: Callable[[str], str] = string.literal_processor(SQLiteDialect(paramstyle="qmark"))
    return processor


def _quoted(value: str) -> str:
    return _processor()(value)


@lru_cache(maxsize=4_096)
def _float(value: float) -> str:
    """Its shortest text, where SQLite reads it back exactly (it does not always); else whole numbers that are exact."""
    if math.isinf(value):
        return "9e999" if value > 0 else "-9e999"
    with closing(sqlite3.connect(":memory:")) as connection:
        read = connection.execute(f"SELECT {value!r}").fetchone()[0]
    return repr(value) if read == value else _exact(value)


def _exact(value: float) -> str:
    fraction, exponent = math.frexp(value)
    exponent -= 53
    parts = [f"CAST({int(fraction * 2**53)} AS REAL)"]
    sign = "*" if exponent > 0 else "/"
    for start in range(0, abs(exponent), _CHUNK):
        parts.append(f" {sign} {2 ** min(_CHUNK, abs(exponent) - start)}")
    return f"({''.join(parts)})"
