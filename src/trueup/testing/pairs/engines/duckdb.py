"""DuckDB: what it holds, and how its tables are made. Each table has a file of its own."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from trueup.model.times import parse_interval
from trueup.testing.pairs.engines.database import FileDatabase
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.types import (
    Type,
    clock,
    letters,
    numeric,
    plain,
    signed,
    told,
    unsigned,
    written,
    years,
)


def _dated(text: str, chance: random.Random) -> str:
    """Years before 1 as DuckDB writes them."""
    found = re.match(r"(-?\d{4,})(-\d\d-\d\d)(.*)\Z", text)
    if found is None or int(found[1]) > 0:
        return text.removeprefix("+")
    return f"{1 - int(found[1]):04}{found[2]} (BC){found[3].replace('T', ' ')}"


def _interval(text: str, chance: random.Random) -> str:
    months, us = parse_interval(text)
    return f"{months} months {us} microseconds"


def _list(text: str, chance: random.Random) -> Any:
    return Type("", "array of text").stored(text, chance)


DUCKDB: Final = (
    Type("BOOLEAN", "boolean", spell=plain("boolean")),
    Type("TINYINT", "integer", signed(8), spell=plain("integer")),
    Type("INTEGER", "integer", signed(32), spell=plain("integer")),
    Type("BIGINT", "integer", signed(64), spell=plain("integer")),
    Type("UBIGINT", "integer", unsigned(64), spell=plain("integer")),
    Type("HUGEINT", "integer", signed(128), spell=plain("integer")),
    Type("DECIMAL(12,2)", "decimal", numeric(12, 2), spell=plain("decimal")),
    Type("DECIMAL(18,6)", "decimal", numeric(18, 6), spell=plain("decimal")),
    Type("DECIMAL(38,10)", "decimal", numeric(38, 10), spell=plain("decimal")),
    Type("DOUBLE", "float", spell=plain("float")),
    Type("FLOAT", "float32", spell=plain("float32"), hashed=False),
    Type("VARCHAR", "text", letters(6000), spell=plain("text")),
    Type("VARCHAR COLLATE NOCASE", "text", letters(6000), spell=plain("text")),
    Type("ENUM ('so so', 'well', 'Ä', 'it''s')", "enum", spell=plain("enum")),
    Type("VARCHAR", "enum", spell=plain("enum")),
    Type("BLOB", "bytes", spell=plain("bytes")),
    Type("UUID", "uuid", spell=plain("uuid")),
    Type("DATE", "date", spell=_dated),
    Type("TIME", "time", clock("00:00:00", "24:00:00"), spell=plain("time")),
    Type("TIMESTAMP", "timestamp", spell=_dated, wall=True),
    Type("TIMESTAMP_MS", "timestamp", years("0001", "9999", 3), spell=_dated, wall=True),
    Type("TIMESTAMP_NS", "timestamp", years("1678", "2262"), spell=_dated, wall=True, hashed=False),
    Type("TIMESTAMP WITH TIME ZONE", "instant", spell=_dated),
    Type("INTERVAL", "interval", spell=_interval, indexed=False),
    Type("JSON", "json", spell=written("json"), hashed=False, indexed=False),
    Type("BIGINT[]", "array of integer", hashed=False, indexed=False),
    Type("VARCHAR[]", "array of text", spell=_list, hashed=False, indexed=False),
    *told("VARCHAR", 6000, nul=True),
)


class DuckDB(FileDatabase):
    """Filled from Arrow, by casts of texts."""

    scheme = "duckdb"

    def _connect(self, path: Path) -> Any:
        return duckdb.connect(str(path))

    def _fill(self, name: str, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        types = list(table.columns.values())
        columns = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in types]
        # Not by the columns' names: DuckDB does not tell apart those that differ in case only.
        names = [f"c{at}" for at in range(len(types))]
        self._connection.register("chunk", pa.table(list(map(_array, columns, types)), names))
        listed = ", ".join(map(self.quoted, table.columns))
        self._execute(
            f"INSERT INTO {self.quoted(name)} ({listed}) SELECT {', '.join(map(_cast, names, types))} FROM chunk"
        )

    def _duplicate(self) -> type[Exception]:
        return duckdb.ConstraintException


def _array(values: list[Any], type_: Type) -> pa.Array[Any]:
    lists = {"BIGINT[]": pa.list_(pa.int64()), "VARCHAR[]": pa.list_(pa.string())}
    array: pa.Array[Any] = pa.array(values, lists.get(type_.declared, pa.string()))
    return array


def _cast(column: str, type_: Type) -> str:
    if type_.declared == "BLOB":
        return f"unhex({column})"
    return f"CAST({column} AS {type_.declared.partition(' COLLATE')[0]})"
