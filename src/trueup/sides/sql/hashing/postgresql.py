"""PostgreSQL: its own 64-bit hashes, chained, or SHA-256 or MD5 of texts; rows packed on the server by string_agg."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute
import sqlalchemy as sa

from trueup.model.digest import CANONICAL
from trueup.model.kinds import Kind
from trueup.model.record import Field
from trueup.sides.sql.find import possible
from trueup.sides.sql.hashing import (
    Ask,
    Covered,
    Function,
    Hasher,
    Packed,
    Text,
    alike,
    as_written,
    by_grouping_sets,
    framed,
    hashed_columns,
    named,
)
from trueup.sides.sql.hashing import postgresql_packed as packed
from trueup.sides.sql.hashing.chained import COLUMNS_MAX, TEXTS, chained, sample
from trueup.sides.sql.hashing.plain import DIGITS, plain_name, plain_parts
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

pc: Any = pyarrow.compute
_SINCE: Final = 140_000  # the first version with hashes that SQL can call, XOR of groups, and scans by page
_UNPROVEN_SINCE: Final = 180_000  # from here on, NOT NULL may be declared of a column that still holds nulls
_REPEATABLE: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
# What takes so long that the server compiles it is worth optimising too: a row's hash is a long expression, and its
# planner divides what a row costs by the processes that share them, each of which compiles for itself.
_OPTIMISED: Final = (
    "SELECT set_config(name, current_setting('jit_above_cost'), true) FROM pg_settings "
    "WHERE name = 'jit_optimize_above_cost' AND setting <> '-1'"
)
_PAGES_AT_ONCE: Final = 256
_PAGE: Final = "ctid >= %s::tid AND ctid < %s::tid"
_LAST_PAGE: Final = 2**32 - 1
_KEYS_AT_ONCE: Final = 20_000
_PLACES_AT_ONCE: Final = 4_096
_PACK_ROWS: Final = 32_768
# Types of keys that can be found by an array of delivered values, and the array's type.
_FOUND_BY: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), "int8"), "uuid": "uuid", "text": "text", "varchar": "text",
}  # fmt: skip
# From here on, the server writes an exponent where Python does not yet.
_FLOATS: Final = {"float4": "1e6", "float8": "1e15"}
_FAR: Final = "{0} < '0001-01-01' OR {0} >= '10000-01-01'"
# Functions take up to a hundred arguments.
_ARGUMENTS_MAX: Final = 90
# The first 64 bits, and of these the last.
_PLAIN: Final = "('x' || encode(substr(sha256(textsend({0})), 1, 8), 'hex'))::bit(64)::int8 & {1}"


class PostgreSQL(Hasher):
    """PostgreSQL; its own hash from version 14."""

    sketches: bool = True
    packs_many: ClassVar[bool] = True
    shares_instant: ClassVar[bool] = True
    wide: ClassVar[str] = "{}::int8"

    def __init__(self) -> None:
        # Whether it may read all columns of the table, asked for or not.
        self._whole = False

    def begin(self, connection: sa.Connection) -> str:
        """Exports what it sees. A standby can't; there each comparison has one connection."""
        self.sketches = _recent(connection)
        driver: Any = connection.connection.driver_connection
        # Both at once: on a slow link each statement waits for the one before.
        with driver.cursor() as cursor:
            exported = "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_export_snapshot() END"
            cursor.execute(f"{_REPEATABLE}; {_OPTIMISED}; {exported}")
            cursor.nextset()
            cursor.nextset()
            return str(cursor.fetchone()[0])

    def join(self, connection: sa.Connection, instant: str) -> None:
        """Imports it."""
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute(f"{_REPEATABLE}; SET TRANSACTION SNAPSHOT '{instant}'; {_OPTIMISED}")

    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """Its own if the server is new enough, then those that other engines have too."""
        probe, sure, self._whole = _probed(connection, of) if _recent(connection) else (None, False, False)
        found = [_native(of, probe, sure=sure)] if probe is not None and len(hashed_columns(of)) <= COLUMNS_MAX else []
        if plain := self._plain(connection, of, sure=sure):
            found.append(plain)
        if digest := self.digest(connection, of, hashed_columns(of)):
            found.append(Function(CANONICAL, f"('x' || left({digest.sql}, 15))::bit(60)::int8", digest.unless))
        return found

    def _plain(self, connection: sa.Connection, of: Selection, *, sure: bool) -> Function | None:
        def or_empty(column: Covered, sql: str) -> str:
            return sql if sure and not column[1].stored.nullable else f"coalesce(({sql})::text, '')"

        # Texts are hashed as they would be sent.
        if {_told(connection).parameter_status(f"{name}_encoding") for name in ("server", "client")} != {"UTF8"}:
            return None
        made = plain_parts(self, of, "octet_length({0})", or_empty)
        if made is None:
            return None
        parts, unless = made
        some = (", ".join(parts[at : at + _ARGUMENTS_MAX]) for at in range(0, len(parts), _ARGUMENTS_MAX))
        line = " || ',' || ".join(f"concat_ws(',', {each})" for each in some)
        return Function(plain_name(of), _PLAIN.format(line, (1 << 4 * DIGITS) - 1), unless)

    def spelled(self, field: Field, known: Known, name: str) -> Text | None:
        """Numbers and times as the server shows them; infinite ones, and those before Christ, as it alone does."""
        stored = known.stored.kind
        match field.kind.name, stored.name:
            case ("integer" | "decimal", "integer"):
                return Text(name)
            case ("decimal", "decimal"):
                return Text(f"trim_scale({name})")
            case ("date", "date"):
                return Text(name)
            case ("timestamp", "timestamp" | "date"):
                # Moved by no hours, which costs less than to ask for a zone by its name.
                return Text(f"({name} AT TIME ZONE interval '0')" if stored.aware else f"{name}::timestamp")
        return None

    def digest(self, connection: sa.Connection, of: Selection, columns: Sequence[Covered]) -> Text | None:
        """MD5 of texts, which are hashed as the server stores them."""
        if not _utf8(connection):
            return None
        made = framed([self.text(of, *each) for each in columns], "octet_length({0})::text || ':' || {0}")
        return None if made is None else Text(f"md5({' || '.join(made[0])})", made[1])

    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """By the server's own text, which the session's settings fix."""
        name, base, asked = of.dialect.quoted(field.source), known.stored.base, field.kind
        stored = known.stored.kind
        if base in TEXTS or stored.name == "enum":
            plain = asked.name in TEXTUAL and known.kind == stored
            return Text(f"{name}::text") if plain else as_written(of, field, known, f"{name}::text")
        if known.kind != stored and not (asked.name == "timestamp" and known.zone is not None):
            return None
        match asked.name, stored.name:
            case ("integer" | "decimal" | "text" | "enum", "integer"):
                return Text(f"{name}::text")
            case ("decimal" | "text" | "enum", "decimal") if base == "numeric":
                return Text(f"lower(trim_scale({name})::text)")
            case ("boolean" | "text" | "enum", "boolean"):
                return Text(f"{name}::text")
            case ("boolean", "integer"):
                return Text(f"CASE {name} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END", f"{name} NOT IN (0, 1)")
            case ("float" | "decimal" | "text" | "enum", "float") if base in _FLOATS and _same_width(asked, stored):
                return _float(name, base, asked)
            case ("uuid" | "text" | "enum", "uuid"):
                return Text(f"{name}::text")
            case ("bytes" | "text" | "enum", "bytes"):
                return Text(f"encode({name}, 'hex')")
            case ("date" | "text" | "enum", "date"):
                return Text(f"{name}::text", _FAR.format(name))
            case ("time" | "text" | "enum", "time") if base == "time":
                return Text(f"{name}::text")
            case ("timestamp", "timestamp" | "date"):
                return _timestamp(name, field, known)
            case ("text" | "enum", "timestamp"):
                return _timestamp(name, Field(field.name, field.source, known.kind), known)
        return None

    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        """Each column as one string of bytes: its values, big-endian or end to end, beside lengths or marks of null."""
        one_use = all(column.shape != "text" and not column.nullable for column in columns)
        if one_use and (self._whole or not order):
            # Each is named once, and computed where it is packed.
            parts = packed.parts(columns, [f"({column.sql})" for column in columns], utf8=_utf8(connection))
            source = f"FROM (SELECT * {rest}{order}) AS q" if order else rest
        else:
            parts = packed.parts(columns, utf8=_utf8(connection))
            inner = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
            # Without the offset the planner would compute a hash once for each time it is named.
            source = f"FROM (SELECT {inner} {rest}{order} OFFSET 0) AS q"
        sql = f"SELECT {', '.join(parts)} {source}"
        driver: Any = connection.connection.driver_connection
        with driver.cursor(binary=True) as cursor:
            # psycopg formats with % only where there is something to put in.
            row = cursor.execute(*((sql, values) if values else (sql.replace("%%", "%"),))).fetchone()
        return packed.arrays(columns, row)

    def packs(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any]
    ) -> Iterator[list[pa.Array[Any]]]:
        """Packed by their numbers. In order, so that the server holds no more than one pack, nor is one held here."""
        inner = ", ".join(f"{column.sql} AS c{at}" for at, column in enumerate(columns))
        parts = packed.parts(columns, utf8=_utf8(connection))
        numbered = f"SELECT {inner}, (row_number() OVER () - 1) / {_PACK_ROWS} AS pack {rest} ORDER BY pack"
        sql = f"SELECT {', '.join(parts)} FROM ({numbered}) AS q GROUP BY pack"
        driver: Any = connection.connection.driver_connection
        with driver.cursor(binary=True) as cursor:
            for row in cursor.stream(*((sql, values) if values else (sql.replace("%%", "%"),))):
                yield packed.arrays(columns, row)

    def pages(
        self, connection: sa.Connection, of: Selection, ask: Ask, *, places: bool = False
    ) -> Iterator[tuple[str, list[Any]]] | None:
        """By place in the file, which a plain table of version 14 is scanned by; children lie in files of their own.

        Whoever may read only some of the columns may not read places.
        """
        if not _recent(connection):
            return None
        alone = " AND NOT c.relhassubclass" if places else ""
        found = connection.exec_driver_sql(
            "SELECT pg_relation_size(c.oid) / current_setting('block_size')::int FROM pg_class c JOIN pg_am a "
            f"ON a.oid = c.relam WHERE c.oid = {_regclass(of)} AND c.relkind IN ('r', 'm') AND a.amname = 'heap'{alone}"
            " AND has_table_privilege(c.oid, 'SELECT')"
        ).scalar()
        return None if found is None else _pages(int(found))

    def place(self) -> Packed:
        """Page and row: the same as long as a transaction is open that sees the row."""
        return Packed("ctid", "place", nullable=False)

    def at(self, places: pa.Array[Any]) -> Iterator[tuple[str, list[Any]]]:
        """By arrays; few enough that to fetch them one by one costs less than to scan a table of many rows."""
        for start in range(0, len(places), _PLACES_AT_ONCE):
            few: list[Any] = places[start : start + _PLACES_AT_ONCE].to_pylist()
            listed = ",".join(f'"({page},{row})"' for page, row in (struct.unpack(">IH", place) for place in few))
            yield "ctid = ANY(%s::tid[])", [f"{{{listed}}}"]

    def among(self, of: Selection, keys: pa.Table) -> Iterator[tuple[str, list[Any]]] | None:
        """By arrays, which an index serves."""
        types = [_FOUND_BY.get(known.stored.base) for _, known, _ in of.key]
        if None in types or not all(alike(field, known) for field, known, _ in of.key):
            return None
        if any(column.null_count for column in keys.columns):
            return None
        return _among(
            [of.dialect.quoted(known.stored.name) for _, known, _ in of.key], types, _sendable(possible(of, keys))
        )

    def segments(self, of: Selection, segment: str, function: Function, condition: str = "") -> str:
        """By a hash table in each worker.

        Of an expression over the key, the planner expects as many groups as there are keys, and sorts all rows. Of a
        column of a union it expects a few; so there is one, with nothing.
        """
        rows = f"SELECT {segment} AS s, {function.hash} AS h {of.from_where(condition)}"
        nothing = f"SELECT 0::int8, 0::int8 {of.from_where('false')}"
        without = "count(*) - count(h)" if function.unless else "0"
        sums = f"s, count(*) AS n, {without} AS w, {function.summed.format('h')} AS h"
        return f"SELECT {sums} FROM ({rows} UNION ALL {nothing}) AS q GROUP BY s"

    def cells(self, key: str, function: Function, sizes: Sequence[int], rest: str) -> str | None:
        """By grouping sets. The offsets keep the planner from hashing a row once for each use of its hash."""
        rows = f"SELECT {key}::int8 AS k, {function.hash} AS h {rest}"
        return by_grouping_sets(rows, sizes, mod="%%", fence=" OFFSET 0")

    def cancel(self, connection: sa.Connection) -> None:
        """By the protocol's own request."""
        driver: Any = connection.connection.driver_connection
        driver.cancel_safe(timeout=5)


def _recent(connection: sa.Connection) -> bool:
    return bool(_told(connection).server_version >= _SINCE)


def _utf8(connection: sa.Connection) -> bool:
    return bool(_told(connection).parameter_status("server_encoding") == "UTF8")


def _told(connection: sa.Connection) -> Any:
    """What the server said of itself when it was connected to; it need not be asked again."""
    driver: Any = connection.connection.driver_connection
    return driver.info


def _regclass(of: Selection) -> str:
    table = of.dialect.named(of.inspected.table).replace("'", "''")
    return f"'{table}'::regclass"


def _probed(connection: sa.Connection, of: Selection) -> tuple[int, bool, bool]:
    """How the server hashes samples, whether no column has a null that must not, and whether all may be read."""
    # Foreign tables, partitions and children may hold nulls that their parent declares to be none.
    alone = f"SELECT relkind = 'r' AND NOT relhassubclass FROM pg_class WHERE oid = {_regclass(of)}"
    whole = f"has_table_privilege({_regclass(of)}, 'SELECT')"
    probe, plain, all_ = connection.exec_driver_sql(f"SELECT {sample()}, ({alone}), {whole}").one()
    return probe, plain and _told(connection).server_version < _UNPROVEN_SINCE, all_


def _native(of: Selection, probe: int, *, sure: bool) -> Function:
    row, told = chained(of, hashed_columns(of), trusted=sure)
    return Function(named("postgresql", of, [probe, told]), row, abridged=True)


def _same_width(asked: Kind, stored: Kind) -> bool:
    return asked.name in TEXTUAL or asked.bits == stored.bits


def _float(name: str, base: str, asked: Kind) -> Text:
    """The shortest text, as Python has it; of a decimal, only where that is without an exponent."""
    near = "1e-4" if asked.name == "decimal" else "1e-20"
    odd = f"{name} <> 0 AND abs({name}) < {near} OR abs({name}) >= {_FLOATS[base]} AND abs({name}) < 'infinity'"
    return Text(f"CASE WHEN {name} = 0 THEN '0' ELSE lower({name}::text) END", odd)


def _timestamp(name: str, field: Field, known: Known) -> Text | None:
    stored, aware = known.stored.kind, field.kind.aware
    if aware != stored.aware and str(known.zone) != "UTC":
        return None
    wall = f"({name} AT TIME ZONE 'UTC')" if stored.aware else f"{name}::timestamp"
    zone = " || 'Z'" if aware else ""
    return Text(f"replace({wall}::text, ' ', 'T'){zone}", _FAR.format(name))


def _pages(count: int) -> Iterator[tuple[str, list[Any]]]:
    for first in range(0, max(count, 1), _PAGES_AT_ONCE):
        end = first + _PAGES_AT_ONCE
        # The last one is open: the file may have grown since, though nothing of that is older than the instant.
        yield _PAGE, [f"({first},0)", f"({end if end < count else _LAST_PAGE},0)"]


def _sendable(keys: pa.Table) -> pa.Table:
    """Without those that no text of the server can hold."""
    for name in keys.column_names:
        if pa.types.is_string(keys.column(name).type):
            keys = keys.filter(pc.invert(pc.match_substring(keys.column(name), "\0")))
    return keys


def _among(names: list[str], types: list[Any], keys: pa.Table) -> Iterator[tuple[str, list[Any]]]:
    marks = [f"%s::{type_}[]" for type_ in types]
    if len(names) == 1:
        condition = f"{names[0]} = ANY({marks[0]})"
    else:
        condition = f"({', '.join(names)}) IN (SELECT * FROM unnest({', '.join(marks)}))"
    for few in keys.to_batches(_KEYS_AT_ONCE):
        yield condition, [_listed(column) for column in few.columns]


def _listed(values: pa.Array[Any]) -> str:
    """An array as the server reads it: made of its values one by one, it takes the driver longer than the rows."""
    texts: Any = values.cast(pa.string())
    if pa.types.is_string(values.type):
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', escaped, '"', "")
    return f"{{{','.join(texts.to_pylist())}}}"
