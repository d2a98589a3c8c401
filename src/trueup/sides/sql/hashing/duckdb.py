"""DuckDB: its own hash of a row, or MD5 of canonical texts; answers come as Arrow.

Both sides of a comparison run in this process, in one version of DuckDB; its hash differs between versions, so the
version is part of the function's name.

A hash is hashed once more before it is summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import duckdb
import pyarrow as pa
import sqlalchemy as sa

from trueup.model.digest import CANONICAL
from trueup.model.duck import DECIMAL_DIGITS_MAX, INTEGERS, hashable
from trueup.model.record import Field
from trueup.sides.sql.dialects.duckdb import INSTANT_TYPE, batches, interval_text
from trueup.sides.sql.find import possible
from trueup.sides.sql.hashing import (
    Covered,
    Function,
    Hasher,
    Packed,
    Text,
    alike,
    by_grouping_sets,
    framed,
    hashed_columns,
    named,
    read_as,
)
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import TEXTUAL

# Types that are equal exactly where their canonical values are, in the form that is hashed.
_DIRECT: Final = {
    type_: hashable("{0}", type_)
    for type_ in (*INTEGERS, "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", INSTANT_TYPE, "VARCHAR", "BLOB")
}
_KEYS_AT_ONCE: Final = 20_000
_FOUND_BY: Final = {
    **dict.fromkeys(INTEGERS, "BIGINT"),
    "VARCHAR": "VARCHAR",
    "UUID": "UUID",
}
_EXPONENT: Final = "{0} <> 0 AND abs({0}) < 1e-4 OR abs({0}) >= 1e16 AND abs({0}) < 'inf'"
_FAR: Final = "{0} < '0001-01-01' OR {0} >= '10000-01-01'"
_FRAME: Final = "strlen({0}) || ':' || {0}"


class DuckDB(Hasher):
    """DuckDB."""

    here: ClassVar[bool] = True
    sketches: bool = True
    wide: ClassVar[str] = "CAST({} AS BIGINT)"

    def begin(self, connection: sa.Connection) -> str:
        """The first look fixes what the transaction sees; DuckDB itself works on it with several threads."""
        connection.exec_driver_sql("SELECT count(*) FROM duckdb_tables()")
        return ""

    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """Its own, and the canonical one where every column allows it."""
        found = [_native(of)]
        if digest := self.digest(connection, of, hashed_columns(of)):
            found.append(Function(CANONICAL, f"CAST('0x' || left({digest.sql}, 15) AS BIGINT)", digest.unless))
        return found

    def digest(self, connection: sa.Connection, of: Selection, columns: Sequence[Covered]) -> Text | None:
        """MD5 of texts."""
        made = framed([self.text(of, *each) for each in columns], _FRAME)
        return None if made is None else Text(f"md5(concat({', '.join(made[0])}))", made[1])

    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """By DuckDB's own text."""
        name, base, asked = of.dialect.quoted(field.source), known.stored.base, field.kind
        stored, plain = known.stored.kind, Text(f"CAST({name} AS VARCHAR)")
        if stored.name in TEXTUAL:
            return plain if asked.name in TEXTUAL and known.kind == stored else None
        if known.kind != stored and not (asked.name == "timestamp" and known.zone is not None):
            return None
        match asked.name, stored.name:
            case ("integer" | "decimal" | "text" | "enum", "integer"):
                return plain
            case ("boolean", "integer"):
                return Text(f"CASE {name} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END", f"{name} NOT IN (0, 1)")
            case ("boolean" | "text" | "enum", "boolean") | ("uuid" | "text" | "enum", "uuid"):
                return plain
            case ("decimal" | "text" | "enum", "decimal"):
                return Text(_decimal(name, stored.scale or 0))
            case ("float" | "decimal" | "text" | "enum", "float") if base == "DOUBLE" and asked.bits == 64:
                # The text of a narrow float is not always the shortest.
                return Text(_float(name), _EXPONENT.format(name) if asked.name == "decimal" else "")
            case ("bytes" | "text" | "enum", "bytes"):
                return Text(f"lower(hex({name}))")
            case ("date" | "text" | "enum", "date"):
                return Text(f"CAST({name} AS VARCHAR)", _FAR.format(name))
            case ("time" | "text" | "enum", "time") if base == "TIME":
                return plain
            case ("interval" | "text" | "enum", "interval"):
                return Text(interval_text(name))
            case ("timestamp", "timestamp" | "date") if base != "TIMESTAMP_NS":
                return _timestamp(name, field, known)
            case ("text" | "enum", "timestamp") if base != "TIMESTAMP_NS":
                return _timestamp(name, Field(field.name, field.source, known.kind), known)
        return None

    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        """Arrow as it comes."""
        types = [pa.int64() if column.shape == "integer" else pa.string() for column in columns]
        selected = ", ".join(
            f"CAST({column.sql} AS {'BIGINT' if column.shape == 'integer' else 'VARCHAR'}) AS c{at}"
            for at, column in enumerate(columns)
        )
        schema = pa.schema([(f"c{at}", type_) for at, type_ in enumerate(types)])
        found = list(batches(connection, f"SELECT {selected} {rest}{order}", values))
        whole = pa.Table.from_batches(found, schema if not found else None)
        return [column.combine_chunks() for column in whole.columns]

    def among(self, of: Selection, keys: pa.Table) -> Iterator[tuple[str, list[Any]]] | None:
        """By lists that it joins with."""
        types = [_FOUND_BY.get(known.stored.base) for _, known, _ in of.key]
        if None in types or not all(alike(field, known) for field, known, _ in of.key):
            return None
        if any(column.null_count for column in keys.columns):
            return None
        return _among([of.dialect.quoted(known.stored.name) for _, known, _ in of.key], types, possible(of, keys))

    def cells(self, key: str, function: Function, sizes: Sequence[int], rest: str) -> str | None:
        """By grouping sets."""
        return by_grouping_sets(f"SELECT CAST({key} AS BIGINT) AS k, {function.hash} AS h {rest}", sizes)

    def cancel(self, connection: sa.Connection) -> None:
        """Between two batches of its operators."""
        driver: Any = connection.connection.driver_connection
        driver.interrupt()


def _native(of: Selection) -> Function:
    parts, spelled = [], []
    for field, known in hashed_columns(of):
        stored = known.stored
        form = _DIRECT.get(stored.base) if alike(field, known) else None
        if stored.base == "DECIMAL" and alike(field, known) and (stored.kind.precision or 0) <= DECIMAL_DIGITS_MAX:
            form = "{}"
        if stored.base == "DOUBLE" and field.kind.bits == 32:
            form = None
        # Any other type by what the reader reads: equal texts become equal canonical values.
        name = of.dialect.quoted(field.source)
        reading = of.dialect.reading(stored, field.kind)
        parts.append(form.format(name) if form else hashable(f"CAST({reading.sql} AS VARCHAR)", "VARCHAR"))
        spelled.append([form, str(stored.kind)] if form else read_as(field, known))
    # Without its lowest bit, so that it fits into a signed number.
    row = f"CAST(hash({', '.join(parts)}) >> 1 AS BIGINT)"
    name = named("duckdb", of, [duckdb.__version__, spelled])
    return Function(name, row, summed="sum(hash({}))", xored="CAST(bit_xor(hash({}) >> 1) AS BIGINT)")


def _decimal(name: str, scale: int) -> str:
    text = f"CAST({name} AS VARCHAR)"
    trimmed = f"rtrim(rtrim({text}, '0'), '.')" if scale else text
    return f"CASE WHEN {name} = 0 THEN '0' ELSE {trimmed} END"


def _float(name: str) -> str:
    text = f"CAST({name} AS VARCHAR)"
    return (
        f"CASE WHEN {name} = 0 THEN '0' WHEN isinf({name}) THEN replace({text}, 'inf', 'infinity') "
        f"WHEN ends_with({text}, '.0') THEN left({text}, -2) ELSE {text} END"
    )


def _timestamp(name: str, field: Field, known: Known) -> Text | None:
    stored, aware = known.stored.kind, field.kind.aware
    if aware != stored.aware and str(known.zone) != "UTC":
        return None
    wall = f"timezone('UTC', {name})" if stored.aware else f"CAST({name} AS TIMESTAMP)"
    zone = " || 'Z'" if aware else ""
    return Text(f"replace(CAST({wall} AS VARCHAR), ' ', 'T'){zone}", _FAR.format(name))


def _among(names: list[str], types: Sequence[Any], keys: pa.Table) -> Iterator[tuple[str, list[Any]]]:
    what = f"({', '.join(names)})" if len(names) > 1 else names[0]
    lists = ", ".join(f"unnest(CAST(? AS {type_}[]))" for type_ in types)
    for few in keys.to_batches(_KEYS_AT_ONCE):
        yield f"{what} IN (SELECT {lists})", [column.to_pylist() for column in few.columns]
