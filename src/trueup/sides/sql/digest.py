"""All records of a table in one number, taken where the data lives.

The hash sum of two tables may only be equal where their canonical values are. So each engine hashes either values
whose equality is canonical equality, or the text that the reader would read; and what bears on how a text is
understood (kinds, zone, zero dates) is part of the function's name. What is equal here but spelled differently
merely fails to match, and is then read.

Sums of PostgreSQL's own row hash would not see two values swapped between two rows: it is linear in the hashes of
the columns, and so is the sum. Therefore every row's hash is hashed once more.
"""

from __future__ import annotations

import json
import marshal
import sqlite3
from collections.abc import Sequence
from hashlib import md5
from typing import Any, Final

import sqlalchemy as sa

from trueup.model.digest import HashSum
from trueup.model.record import Field
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

_POSTGRES_SINCE: Final = 140_000  # the first version whose hash of rows can be called from SQL
# Types of PostgreSQL that are equal exactly where their canonical values are, by what they are cast to.
_DIRECT: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), "int8"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), 'text COLLATE "C"'),
    **{name: name for name in ("bool", "numeric", "float4", "float8", "date", "time", "timestamp", "timestamptz")},
    **{name: name for name in ("uuid", "bytea")},
}
# One value of each, to prove that two servers hash alike.
_SAMPLES: Final = (
    "(-7)::int8", "9007199254740993::int8", "repeat('ä', 40)::text COLLATE \"C\"", "''::text COLLATE \"C\"", "true",
    "(-123456.789)::numeric", "0::numeric", "(-0.1)::float4", "'nan'::float4", "(-0.1)::float8", "'nan'::float8",
    "date '2024-02-29'", "time '23:59:59.999999'", "timestamp '1969-07-20 20:17:40.5'", "'-infinity'::timestamp",
    "timestamptz '2024-02-29 12:00:00+00'", "'6f9619ff-8b86-d011-b42d-00cf4fc964ff'::uuid", "'\\x00ff'::bytea",
)  # fmt: skip
_SQLITE_ARGUMENTS_MAX: Final = 100


def hash_sum(connection: sa.Connection, of: Selection) -> HashSum | None:
    """Count and hash sum of every row of the selection; None where that would not be certain."""
    columns = [(field, of.inspected.column(field.source)) for field in (*of.projection.key, *of.projection.fields)]
    if not _unique(of, columns[: len(of.projection.key)]):
        return None
    match of.dialect.name:
        case "postgresql":
            return _postgresql(connection, of, columns)
        case "mysql":
            return _mysql(connection, of, columns)
        case "sqlite":
            return _sqlite(connection, of, columns)
    return None


_Columns = Sequence[tuple[Field, Known]]


def _unique(of: Selection, key: _Columns) -> bool:
    """Whether no two rows share a key, null keys apart: the database says so, and means by equal what we mean."""
    names = {known.stored.name for _, known in key}
    indexes = [index.columns for index in of.inspected.table.indexes if index.unique]
    said = any(columns and names.issuperset(columns) for columns in (of.inspected.table.key, *indexes))
    plain = all(
        known.kind == known.stored.kind
        and (field.kind.name, field.kind.aware) == (known.kind.name, known.kind.aware)
        and known.stored.base not in of.dialect.zero_dates
        for field, known in key
    )
    return said and plain


def _without_null(of: Selection, columns: _Columns) -> str:
    """SQL for how many rows have their whole key."""
    names = [of.dialect.quoted(field.source) for field, _ in columns[: len(of.projection.key)]]
    return f"count(CASE WHEN {' AND '.join(f'{name} IS NOT NULL' for name in names)} THEN 1 END)"


def _function(how: str, of: Selection, parts: Sequence[Any]) -> str:
    return json.dumps([how, of.zero_null, *parts])


def _read_as(field: Field, known: Known) -> list[str]:
    """All that decides which canonical value a raw one becomes."""
    return [known.stored.base, str(known.stored.kind), str(known.kind), str(field.kind), str(known.zone)]


def _postgresql(connection: sa.Connection, of: Selection, columns: _Columns) -> HashSum | None:
    version = connection.exec_driver_sql("SHOW server_version_num").scalar()
    if int(version or 0) < _POSTGRES_SINCE:
        return None
    parts, spelled = [], []
    for field, known in columns:
        name, base = of.dialect.quoted(field.source), known.stored.base
        textual = field.kind.name in TEXTUAL and known.kind.name in TEXTUAL
        asked, own = field.kind, known.kind
        alike = own == known.stored.kind and (textual or (asked.name, asked.aware) == (own.name, own.aware))
        cast = _DIRECT.get(base) if alike else None
        if cast == "float8" and field.kind.bits == 32:
            cast = None
        # Any other type by what the reader reads: equal texts become equal canonical values.
        reading = of.dialect.reading(known.stored, field.kind)
        parts.append(f"{name}::{cast}" if cast else f'({reading.sql})::text COLLATE "C"')
        spelled.append([cast, str(field.kind.name)] if cast else _read_as(field, known))
    row = _twice(f"ROW({', '.join(parts)})")
    samples = ", ".join(_SAMPLES)
    probe = connection.exec_driver_sql(f"SELECT {_twice(f'ROW({samples})')}").scalar()
    sql = f"SELECT count(*), {_without_null(of, columns)}, sum({row}) {of.from_where()}"
    count, whole, total = connection.exec_driver_sql(sql).one()
    if count != whole:
        return None
    return HashSum(count, int(total or 0), _function("postgresql", of, [probe, spelled]))


def _twice(row: str) -> str:
    return f'hashtextextended(hash_record_extended({row}, 0)::text COLLATE "C", 0)'


def _mysql(connection: sa.Connection, of: Selection, columns: _Columns) -> HashSum | None:
    framed = []
    for field, known in columns:
        reading = of.dialect.reading(known.stored, field.kind)
        text = f"CAST(CONVERT({reading.sql} USING utf8mb4) AS BINARY)"
        framed.append(f"COALESCE(CONCAT(LENGTH({text}), ':', {text}), '~')")
    digest = f"CAST(CONV(LEFT(MD5(CONCAT({', '.join(framed)})), 15), 16, 10) AS SIGNED)"
    # A row longer than a packet may be has no digest; null in a sum would be silence.
    sql = f"SELECT count(*), {_without_null(of, columns)}, count({digest}), sum({digest}) {of.from_where()}"
    count, whole, hashed, total = connection.exec_driver_sql(sql).one()
    if not int(count) == int(whole) == int(hashed):
        return None
    return HashSum(int(count), int(total or 0), _function("mysql", of, [_read_as(*each) for each in columns]))


def _sqlite(connection: sa.Connection, of: Selection, columns: _Columns) -> HashSum | None:
    width = len(of.projection.key)
    # Any column may hold any value; only of integers and texts is it plain that unequal ones are unequal keys.
    expected = [{"integer": int, "text": str}.get(field.kind.name) for field, _ in columns[:width]]
    if None in expected or len(columns) > _SQLITE_ARGUMENTS_MAX:
        return None

    class Sum:
        """The aggregate `trueup_hash_sum`: as text, for it is wider than SQLite's integers; null where unsure."""

        def __init__(self) -> None:
            self.total = 0
            self.keys: set[tuple[type, ...]] = set()

        def step(self, *values: Any) -> None:
            self.keys.add(tuple(map(type, values[:width])))
            # Spells any row of SQLite's five types, and no two rows alike.
            row = marshal.dumps(values, 0)
            self.total += int.from_bytes(md5(row, usedforsecurity=False).digest())

        def finalize(self) -> str | None:
            return str(self.total) if self.keys == {tuple(expected)} else None

    driver: Any = connection.connection.driver_connection
    driver.create_aggregate("trueup_hash_sum", len(columns), Sum)
    names = ", ".join(of.dialect.quoted(field.source) for field, _ in columns)
    try:
        count, total = driver.execute(f"SELECT count(*), trueup_hash_sum({names}) {of.from_where()}").fetchone()
    except sqlite3.OperationalError as failure:
        # Python refuses to decode a text that is not UTF-8 for the aggregate.
        if "user-defined" in str(failure):
            return None
        raise
    if count and total is None:
        return None
    return HashSum(count, int(total or 0), _function("sqlite", of, [_read_as(*each) for each in columns]))
