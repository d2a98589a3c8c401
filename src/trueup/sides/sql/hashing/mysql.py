"""MySQL and MariaDB: MD5 of texts; rows packed on the server by GROUP_CONCAT.

There is no hash of rows here but MD5, so the native function differs from the canonical one only in which text of a
column it takes: the reader's, which every column has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import IncompleteScan
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.record import Field
from trueup.sides.sql.dialects import Reading
from trueup.sides.sql.hashing import (
    CANONICAL,
    Function,
    Hasher,
    Packed,
    Text,
    alike,
    framed,
    hashed_columns,
    named,
    read_as,
)
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.lines import arrays_from_lines
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

_KEYS_AT_ONCE: Final = 2_000
# Rows of one statement may not be longer than a packet; so long are those that are hashed without asking for it.
_ROW_BYTES_MAX: Final = 256 << 10
_PACKED_BYTES_MAX: Final = 1 << 30
_FRAME: Final = "CONCAT(OCTET_LENGTH({0}), ':', {0})"
_DAYS: Final = ("date", "datetime", "timestamp")


class MySQL(Hasher):
    """MySQL and MariaDB."""

    def begin(self, connection: sa.Connection) -> str:
        """What one connection sees can't be shown to another."""
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            cursor.execute(f"SET SESSION group_concat_max_len = {_PACKED_BYTES_MAX}")
        return ""

    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """The canonical one where every column allows it; the reader's texts for two of this family."""
        columns = hashed_columns(of)
        read = [Text(_binary(of.dialect.reading(known.stored, field.kind).sql)) for field, known in columns]
        native = framed(read, _FRAME)
        assert native is not None
        found = [_function(named("mysql", of, [read_as(*each) for each in columns]), of, *native)]
        if made := framed([self.text(of, *each) for each in columns], _FRAME):
            found.append(_function(CANONICAL, of, *made))
        return found

    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """By the server's own text, in UTF-8 and compared by bytes."""
        name, base, asked = of.dialect.quoted(field.source), known.stored.base, field.kind
        stored = known.stored.kind
        if base in _DAYS:
            return _day(name, field, known, null_zero=of.zero_null) if _asked_as_day(field, known) else None
        if known.kind != stored:
            return None
        match asked.name, stored.name:
            case ("text" | "enum", "text" | "enum") if base not in ("set", "inet4", "inet6") and _is_text(base):
                return Text(_binary(f"CONVERT({name} USING utf8mb4)"))
            case ("integer" | "decimal" | "text" | "enum", "integer"):
                return Text(f"CAST({name} + 0 AS CHAR)")
            case ("boolean", "integer"):
                return Text(f"CASE {name} + 0 WHEN 0 THEN 'false' WHEN 1 THEN 'true' END", f"{name} + 0 NOT IN (0, 1)")
            case ("decimal" | "text" | "enum", "decimal"):
                return Text(_decimal(name, stored.scale or 0))
            case ("bytes" | "text" | "enum", "bytes"):
                return Text(f"LOWER(HEX({name}))")
            case ("uuid" | "text" | "enum", "uuid"):
                return Text(f"LOWER(CAST({name} AS CHAR))")
            case ("time" | "text" | "enum", "time"):
                return Text(_fraction(f"CAST({name} AS CHAR)"))
        return None

    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any]
    ) -> list[pa.Array[Any]]:
        """Lines of CSV, as scans have them, joined to one text."""
        inner = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
        fields = ", ',', ".join(_csv(f"c{at}", column) for at, column in enumerate(columns))
        sql = f"SELECT GROUP_CONCAT({fields}, '\\n' SEPARATOR '') FROM (SELECT {inner} {rest}) AS q"
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute(sql, tuple(values))
            (line,) = cursor.fetchone()
            cursor.execute("SHOW WARNINGS")
            if cursor.fetchall():
                raise IncompleteScan("rows are longer than max_allowed_packet.", hint="Raise it on the server.")
        readings = [
            Reading("", "integer", INTEGER) if column.shape == "integer" else Reading("", "text", TEXT)
            for column in columns
        ]
        if line is None:
            return [pa.array([], pa.int64() if column.shape == "integer" else pa.string()) for column in columns]
        return arrays_from_lines(line if isinstance(line, bytes) else line.encode(), readings)

    def among(self, of: Selection, keys: pa.Table) -> Iterator[tuple[str, list[Any]]] | None:
        """By lists; what merely collates alike comes along."""
        kinds = ("integer", *TEXTUAL)
        if any(known.stored.kind.name not in kinds or not alike(field, known) for field, known, _ in of.key):
            return None
        if any(column.null_count for column in keys.columns):
            return None
        return _among([of.dialect.quoted(known.stored.name) for _, known, _ in of.key], keys)

    def cancel(self, connection: sa.Connection) -> None:
        """By a second connection."""
        driver: Any = connection.connection.driver_connection
        with contextlib.suppress(sa.exc.DBAPIError), connection.engine.connect() as other:
            other.exec_driver_sql(f"KILL QUERY {driver.thread_id()}")


def _function(name: str, of: Selection, parts: Sequence[str], unless: str) -> Function:
    row = f"CAST(CONV(LEFT(MD5(CONCAT({', '.join(parts)})), 15), 16, 10) AS SIGNED)"
    longest = [known.stored.bytes_max for _, known in hashed_columns(of)]
    if None in longest or sum(3 * each for each in longest if each) > _ROW_BYTES_MAX:
        # A row longer than a packet may be has no digest.
        unless = f"{unless} OR {row} IS NULL" if unless else f"{row} IS NULL"
    return Function(name, row, unless)


def _binary(sql: str) -> str:
    return f"CAST(CONVERT({sql} USING utf8mb4) AS BINARY)"


def _is_text(base: str) -> bool:
    return base in ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum")


def _decimal(name: str, scale: int) -> str:
    if not scale:
        return f"CASE WHEN {name} = 0 THEN '0' ELSE CAST({name} AS CHAR) END"
    trimmed = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({name} AS CHAR)))"
    return f"CASE WHEN {name} = 0 THEN '0' ELSE {trimmed} END"


def _fraction(text: str) -> str:
    """Without trailing zeros of a fraction."""
    trimmed = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    return f"CASE WHEN LOCATE('.', {text}) > 0 THEN {trimmed} ELSE {text} END"


def _asked_as_day(field: Field, known: Known) -> bool:
    asked, stored = field.kind, known.stored.kind
    if asked.name in TEXTUAL:
        return known.kind == stored
    if asked.name == "date":
        return stored.name == "date"
    return asked.name == "timestamp" and (asked.aware == stored.aware or str(known.zone) == "UTC")


def _day(name: str, field: Field, known: Known, *, null_zero: bool) -> Text:
    zero = f"MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0"
    far = f"YEAR({name}) = 0"
    stored, asked = known.stored.kind, field.kind
    if asked.name == "date" or (asked.name in TEXTUAL and stored.name == "date"):
        sql = f"CAST({name} AS CHAR)"
    else:
        wall = f"CAST(CAST({name} AS DATETIME) AS CHAR)" if stored.name == "date" else f"CAST({name} AS CHAR)"
        aware = asked.aware if asked.name == "timestamp" else stored.aware
        sql = f"CONCAT(REPLACE({_fraction(wall)}, ' ', 'T'), '{'Z' if aware else ''}')"
    if null_zero:
        return Text(f"CASE WHEN {zero} THEN NULL ELSE {sql} END", f"NOT ({zero}) AND {far}")
    return Text(sql, f"{zero} OR {far}")


def _csv(name: str, column: Packed) -> str:
    if column.shape == "integer":
        return f"IFNULL({name}, '')"
    text = f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin"
    return f"""IFNULL(CONCAT('"', REPLACE({text}, '"', '""'), '"'), '')"""


def _among(names: list[str], keys: pa.Table) -> Iterator[tuple[str, list[Any]]]:
    row = f"({', '.join(['%s'] * len(names))})" if len(names) > 1 else "%s"
    what = f"({', '.join(names)})" if len(names) > 1 else names[0]
    for few in keys.to_batches(_KEYS_AT_ONCE):
        values = zip(*(column.to_pylist() for column in few.columns), strict=True)
        yield f"{what} IN ({', '.join([row] * few.num_rows)})", [each for key in values for each in key]
