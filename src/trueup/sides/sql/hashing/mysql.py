"""MySQL and MariaDB: SHA-256 or MD5 of texts; rows packed on the server by GROUP_CONCAT.

There is no hash of rows here, so the native function differs from the canonical one only in which text it takes of a
column that has no canonical one: the reader's. Where all columns have one, the plain function costs less than both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import IncompleteScan
from trueup.model.digest import CANONICAL
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.record import Field
from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.dialects.mysql import CHARS, line_bytes_max
from trueup.sides.sql.hashing import (
    Ask,
    Covered,
    Function,
    Hasher,
    Packed,
    Text,
    alike,
    as_written,
    framed,
    hashed_columns,
    named,
    read_as,
)
from trueup.sides.sql.hashing.plain import DIGITS, plain_name, plain_parts
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.lines import arrays_from_lines
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

_KEYS_AT_ONCE: Final = 2_000
# Rows of a page; fewer where their keys may be longer than so many bytes, or than half a packet. Of pages of fewer yet,
# the two statements for each would take longer than a scan.
_PAGE_ROWS: Final = 32_768
_PAGE_ROWS_MIN: Final = 8_000
_PAGE_BYTES: Final = 8 << 20
# Texts of these are the same on their way here and back.
_CHARSETS: Final = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii")
# Rows of one statement may not be longer than a packet; so long are those that are hashed without asking for it.
_ROW_BYTES_MAX: Final = 256 << 10
_PACKED_BYTES_MAX: Final = 1 << 30
_FRAME: Final = "CONCAT(OCTET_LENGTH({0}), ':', {0})"
_UTF8: Final = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s AND character_set_name = 'utf8mb4'
"""
# Beyond, the server writes an exponent where Python does not, or the other way round.
_FAR_FLOAT: Final = "{0} <> 0 AND ABS({0}) < 1e-4 OR ABS({0}) >= 1e15"
_DAYS: Final = ("date", "datetime", "timestamp")
_PADDED: Final = ("bit", "year")


class MySQL(Hasher):
    """MySQL and MariaDB."""

    def __init__(self) -> None:
        # Columns, quoted, that need no conversion: it costs as much as the hash.
        self._utf8: frozenset[str] = frozenset()

    def begin(self, connection: sa.Connection) -> str:
        """What one connection sees can't be shown to another."""
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            cursor.execute(f"SET SESSION group_concat_max_len = {_PACKED_BYTES_MAX}")
        return ""

    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """Plain and canonical where every column allows it; the reader's texts for two of this family."""
        columns = hashed_columns(of)
        digest = self.digest(connection, of, columns)
        # What servers of one family spell alike need not be canonical.
        texts = [None if as_written(of, *each, "") else self.text(of, *each) for each in columns]
        read = [
            text or Text(_plain(of.dialect.reading(known.stored, field.kind).sql))
            for text, (field, known) in zip(texts, columns, strict=True)
        ]
        parts = [[*read_as(*each), text is None] for text, each in zip(texts, columns, strict=True)]
        native = framed(read, _FRAME)
        assert native is not None
        plain = self._plain(connection, of, columns)
        found = [] if plain is None else [plain]
        found.append(_function(named("mysql", of, parts), _md5(of, columns, *native)))
        if digest is not None:
            found.append(_function(CANONICAL, digest))
        return found

    def _plain(self, connection: sa.Connection, of: Selection, columns: Sequence[Covered]) -> Function | None:
        # On another side they may be null; that is not in the function's name, which other engines share.
        if not of.zero_null and any(known.stored.base in of.dialect.zero_dates for _, known in columns):
            return None
        made = plain_parts(self, of, "OCTET_LENGTH({0})", lambda _, sql: f"IFNULL({sql}, '')")
        # Of a server that was built without cryptography, each hash would be null.
        if made is None or connection.exec_driver_sql("SELECT SHA2('', 256)").scalar() is None:
            return None
        line = f"CONCAT_WS(',', {', '.join(made[0])})"
        unless = _or_too_long(of, columns, made[1])
        return Function(plain_name(of), _number(f"SUBSTR(SHA2({line}, 256), 2, {DIGITS})"), unless)

    def spelled(self, field: Field, known: Known, name: str) -> Text | None:
        """Numbers and times as the server shows them, without zeros at the end of a fraction."""
        stored, declared = known.stored.kind, known.stored.declared
        match field.kind.name, stored.name:
            case ("integer" | "decimal", "integer") if "zerofill" not in declared and known.stored.base not in _PADDED:
                return Text(name)
            case ("decimal", "decimal") if "zerofill" not in declared:
                return Text(_fraction(name) if stored.scale else name)
            case ("date", "date"):
                return Text(name)
            case ("timestamp", "date"):
                return Text(f"CONCAT({name}, ' 00:00:00')")
            case ("timestamp", "timestamp"):
                whole = f"LEFT({name}, 19)"
                return Text(
                    f"IF(MICROSECOND({name}), TRIM(TRAILING '0' FROM {name}), {whole})" if "(" in declared else name
                )
        return None

    def digest(self, connection: sa.Connection, of: Selection, columns: Sequence[Covered]) -> Text | None:
        """MD5 of texts in UTF-8."""
        table = of.inspected.table
        found_utf8 = connection.exec_driver_sql(_UTF8, (table.schema, table.name)).scalars()
        self._utf8 = frozenset(map(of.dialect.quoted, found_utf8))
        made = framed([self.text(of, *each) for each in columns], _FRAME)
        return None if made is None else _md5(of, columns, *made)

    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """By the server's own text, in UTF-8 and compared by bytes."""
        name, base, asked = of.dialect.quoted(field.source), known.stored.base, field.kind
        stored = known.stored.kind
        # Neither bits nor zeros in front are what is read.
        number = f"({name} + 0)" if "zerofill" in known.stored.declared or base in _PADDED else name
        if base in _DAYS:
            return _day(name, field, known) if _asked_as_day(field, known) else None
        letters = f"{name} COLLATE utf8mb4_bin" if name in self._utf8 else _plain(name)
        if _is_text(base) and asked.name not in TEXTUAL:
            return as_written(of, field, known, letters)
        if known.kind != stored:
            return None
        match asked.name, stored.name:
            case ("text" | "enum", "text" | "enum") if _is_text(base):
                return Text(letters)
            case ("integer" | "decimal" | "text" | "enum", "integer"):
                return Text(f"CAST({number} AS CHAR)")
            case ("boolean", "integer"):
                return Text(f"CASE {name} + 0 WHEN 0 THEN 'false' WHEN 1 THEN 'true' END", f"{name} + 0 NOT IN (0, 1)")
            case ("decimal" | "text" | "enum", "decimal"):
                return Text(_decimal(number, stored.scale or 0))
            case ("float" | "decimal" | "text" | "enum", "float") if base == "double" and asked.bits == 64:
                return Text(f"CASE WHEN {name} = 0 THEN '0' ELSE CAST({number} AS CHAR) END", _FAR_FLOAT.format(name))
            case ("bytes" | "text" | "enum", "bytes"):
                return Text(f"LOWER(HEX({name}))")
            case ("uuid" | "text" | "enum", "uuid"):
                return Text(f"LOWER(CAST({name} AS CHAR))")
            case ("time" | "text" | "enum", "time"):
                text = f"CAST({name} AS CHAR)"
                return Text(_fraction(text) if "(" in known.stored.declared else text)
        return None

    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        """Lines of CSV, as scans have them, joined to one text."""
        inner = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
        fields = ", ',', ".join(_csv(f"c{at}", column) for at, column in enumerate(columns))
        sql = f"SELECT COUNT(*), GROUP_CONCAT({fields}, '\\n' SEPARATOR '') FROM (SELECT {inner} {rest}{order}) AS q"
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute(sql, tuple(values))
            rows, lines = cursor.fetchone()
        readings = [
            Reading("", "integer", INTEGER) if column.shape == "integer" else Reading("", "text", TEXT)
            for column in columns
        ]
        if not int(rows):
            return [pa.array([], pa.int64() if column.shape == "integer" else pa.string()) for column in columns]
        packed = lines.encode() if isinstance(lines, str) else lines or b""
        arrays = arrays_from_lines(packed, readings) if packed.endswith(b"\n") else []
        # What is longer than a packet the server cuts, and no more than warns.
        if not arrays or len(arrays[0]) < int(rows):
            raise IncompleteScan("rows are longer than max_allowed_packet.", hint="Raise it on the server.")
        return arrays

    def pages(
        self, connection: sa.Connection, of: Selection, ask: Ask, *, places: bool = False
    ) -> Iterator[tuple[str, list[Any]]] | None:
        """Between rows of the primary key, by which rows are stored, some ten thousand of them apart."""
        key = [of.inspected.known[name].stored for name in of.inspected.table.key if name in of.inspected.known]
        if places or not key or len(key) < len(of.inspected.table.key):
            return None
        if not all(map(_ordered_alike, key)):
            return None
        # A line has a key and a hash.
        row_bytes = sum(line_bytes_max(column) for column in (*(known.stored for _, known, _ in of.key), None))
        packet = int(connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar() or 0)
        rows = min(_PAGE_ROWS, min(_PAGE_BYTES, packet // 2) // row_bytes)
        if rows < min(_PAGE_ROWS, _PAGE_ROWS_MIN):
            return None
        return _pages(of, key, rows, ask)

    def among(self, of: Selection, keys: pa.Table) -> Iterator[tuple[str, list[Any]]] | None:
        """By lists; what merely collates alike comes along."""
        kinds = ("integer", *TEXTUAL)
        if any(known.stored.kind.name not in kinds or not alike(field, known) for field, known, _ in of.key):
            return None
        if any(column.null_count for column in keys.columns):
            return None
        stored = [known.stored for _, known, _ in of.key]
        names, marks = map(of.dialect.quoted, (each.name for each in stored)), map(of.dialect.key_mark, stored)
        return _among(list(names), list(marks), keys)

    def cancel(self, connection: sa.Connection) -> None:
        """By a second connection."""
        driver: Any = connection.connection.driver_connection
        with contextlib.suppress(sa.exc.DBAPIError), connection.engine.connect() as other:
            other.exec_driver_sql(f"KILL QUERY {driver.thread_id()}")


def _function(name: str, digest: Text) -> Function:
    return Function(name, _number(f"LEFT({digest.sql}, 15)"), digest.unless)


def _number(digits: str) -> str:
    return f"CAST(CONV({digits}, 16, 10) AS SIGNED)"


def _md5(of: Selection, columns: Sequence[Covered], parts: Sequence[str], unless: str) -> Text:
    return Text(f"MD5(CONCAT({', '.join(parts)}))", _or_too_long(of, columns, unless))


def _or_too_long(of: Selection, columns: Sequence[Covered], unless: str) -> str:
    """The condition, or that a row is longer than a packet may be: it has no hash."""
    known = [column.stored for _, column in columns]
    longest = [_ROW_BYTES_MAX if each.bytes_max is None else 3 * each.bytes_max for each in known]
    if sum(longest) >= _ROW_BYTES_MAX:
        sizes = " + ".join(f"COALESCE(OCTET_LENGTH({of.dialect.quoted(each.name)}), 0)" for each in known)
        return f"{f'{unless} OR ' if unless else ''}{sizes} > @@max_allowed_packet DIV 16"
    return unless


def _plain(sql: str) -> str:
    """Text that is compared by its bytes in UTF-8; the explicit collation ends disputes between columns."""
    return f"CONVERT({sql} USING utf8mb4) COLLATE utf8mb4_bin"


def _is_text(base: str) -> bool:
    return base in (*CHARS, "enum")


def _decimal(name: str, scale: int) -> str:
    if not scale:
        return f"CASE WHEN {name} = 0 THEN '0' ELSE CAST({name} AS CHAR) END"
    trimmed = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({name} AS CHAR)))"
    return f"CASE WHEN {name} = 0 THEN '0' ELSE {trimmed} END"


def _fraction(text: str) -> str:
    """Without trailing zeros of a fraction."""
    return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"


def _asked_as_day(field: Field, known: Known) -> bool:
    asked, stored = field.kind, known.stored.kind
    if asked.name in TEXTUAL:
        return known.kind == stored
    if asked.name == "date":
        return stored.name == "date"
    return asked.name == "timestamp" and (asked.aware == stored.aware or str(known.zone) == "UTC")


def _day(name: str, field: Field, known: Known) -> Text:
    """The server's text of a date or time, with a T for the blank. What is no day has no hash."""
    stored, asked = known.stored.kind, field.kind
    unless = f"{name} < '0001-01-01' OR MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0"
    if asked.name == "date" or (asked.name in TEXTUAL and stored.name == "date"):
        return Text(f"CAST({name} AS CHAR)", unless)
    aware = asked.aware if asked.name == "timestamp" else stored.aware
    if stored.name == "date":
        wall = f"CONCAT({name}, 'T00:00:00')"
    else:
        wall = f"INSERT({name}, 11, 1, 'T')"
        if "(" in known.stored.declared:
            wall = f"IF(MICROSECOND({name}) = 0, LEFT({wall}, 19), TRIM(TRAILING '0' FROM {wall}))"
    return Text(f"CONCAT({wall}, 'Z')" if aware else wall, unless)


def _ordered_alike(column: Stored) -> bool:
    """Whether values, as the driver gives and binds them, compare as an index sorts them."""
    if column.base in CHARS:
        return column.collation.partition("_")[0] in _CHARSETS
    return column.kind.name in ("integer", "uuid") and column.base not in _PADDED


def _pages(of: Selection, key: Sequence[Stored], rows: int, ask: Ask) -> Iterator[tuple[str, list[Any]]]:
    """Conditions that part all rows, so many each in the order of the key."""
    names = [of.dialect.quoted(each.name) for each in key]
    listed, after, values = ", ".join(names), "", list[Any]()
    while True:
        sql = f"SELECT {listed} {of.from_where(after)} ORDER BY {listed} LIMIT 1 OFFSET {rows - 1}"
        row = ask(sql, values)
        if row is None:
            yield after, values
            return
        last = [int(value) if column.kind.name == "integer" else value for value, column in zip(row, key, strict=True)]
        until, ends = _beyond(names, "<", last, or_equal=True)
        yield " AND ".join(filter(None, (after, until))), [*values, *ends]
        after, values = _beyond(names, ">", last)


def _beyond(names: Sequence[str], way: str, ends: Sequence[Any], *, or_equal: bool = False) -> tuple[str, list[Any]]:
    """A condition on the columns of an index that are before or behind a row of it; rows of values use no index."""
    name, *others = names
    if not others:
        return f"{name} {way}{'=' if or_equal else ''} %s", [ends[0]]
    condition, values = _beyond(others, way, ends[1:], or_equal=or_equal)
    return f"({name} {way}= %s AND ({name} {way} %s OR ({condition})))", [ends[0], ends[0], *values]


def _csv(name: str, column: Packed) -> str:
    if column.shape == "integer":
        return f"IFNULL({name}, '')"
    text = f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin"
    return f"""IFNULL(CONCAT('"', REPLACE({text}, '"', '""'), '"'), '')"""


def _among(names: list[str], marks: list[str], keys: pa.Table) -> Iterator[tuple[str, list[Any]]]:
    row = f"({', '.join(marks)})" if len(names) > 1 else marks[0]
    what = f"({', '.join(names)})" if len(names) > 1 else names[0]
    for few in keys.to_batches(_KEYS_AT_ONCE):
        values = zip(*(column.to_pylist() for column in few.columns), strict=True)
        yield f"{what} IN ({', '.join([row] * few.num_rows)})", [each for key in values for each in key]
