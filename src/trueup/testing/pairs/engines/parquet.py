"""Parquet: Arrow's types."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from trueup.ports import Side
from trueup.sides.files import File
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.engines.files import Files
from trueup.testing.pairs.types import (
    NOT_TEXT,
    Type,
    clock,
    known_days,
    narrow,
    numeric,
    octets,
    packed_uuid,
    signed,
    unsigned,
    written,
    years,
)


def _fixed(text: str) -> bool:
    """Without months."""
    return "M" not in text


_ARROW: Final[dict[str, pa.DataType]] = {
    **{name: getattr(pa, name)() for name in ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint64", "float32",
       "float64", "string", "large_string", "binary", "large_binary", "date32", "date64")},
    "dictionary of string": pa.dictionary(pa.int32(), pa.string()),
    "decimal128(12, 2)": pa.decimal128(12, 2), "decimal128(38, 10)": pa.decimal128(38, 10),
    "decimal256(60, 20)": pa.decimal256(60, 20), "binary(3)": pa.binary(3), "binary(16)": pa.binary(16),
    "time64[us]": pa.time64("us"), "time64[ns]": pa.time64("ns"), "time32[s]": pa.time32("s"),
    "timestamp[us]": pa.timestamp("us"), "timestamp[ns]": pa.timestamp("ns"), "timestamp[ms]": pa.timestamp("ms"),
    "timestamp[us, UTC]": pa.timestamp("us", "UTC"), "timestamp[us, Asia/Tokyo]": pa.timestamp("us", "Asia/Tokyo"),
    "duration[us]": pa.duration("us"), "list of int64": pa.list_(pa.int64()), "list of string": pa.list_(pa.string()),
}  # fmt: skip
PARQUET: Final = (
    Type("bool_", "boolean"),
    Type("int8", "integer", signed(8)),
    Type("int16", "integer", signed(16)),
    Type("int32", "integer", signed(32)),
    Type("int64", "integer", signed(64)),
    Type("uint8", "integer", unsigned(8)),
    Type("uint64", "integer", unsigned(64)),
    Type("decimal128(12, 2)", "decimal", numeric(12, 2)),
    Type("decimal128(38, 10)", "decimal", numeric(38, 10)),
    Type("decimal256(60, 20)", "decimal", numeric(60, 20)),
    Type("float64", "float"),
    Type("float32", "float32", spell=narrow),
    Type("string", "text"),
    Type("large_string", "text"),
    Type("dictionary of string", "text"),
    Type("string", "enum"),
    Type("dictionary of string", "enum"),
    Type("binary", "bytes"),
    Type("large_binary", "bytes"),
    Type("binary(3)", "bytes", octets(3, 3)),
    Type("binary(16)", "uuid", told=True, spell=packed_uuid),
    Type("date32", "date", known_days),
    Type("date64", "date", known_days),
    Type("time64[us]", "time", clock("00:00:00", "23:59:59.9999999")),
    Type("time64[ns]", "time", clock("00:00:00", "23:59:59.9999999")),
    Type("time32[s]", "time", clock("00:00:00", "23:59:59", 0)),
    Type("timestamp[us]", "timestamp", known_days, wall=True),
    Type("timestamp[ns]", "timestamp", years("1678", "2262"), wall=True),
    Type("timestamp[ms]", "timestamp", years("0001", "9999-12-32", 3), wall=True),
    Type("timestamp[us, UTC]", "instant", known_days),
    Type("timestamp[us, Asia/Tokyo]", "instant", years("0002", "9998")),
    Type("duration[us]", "interval", _fixed),
    Type("list of int64", "array of integer"),
    Type("list of string", "array of text"),
    *(Type("string", each, told=True, spell=written(each)) for each in NOT_TEXT),
    *(Type("string", each, mistakes=True, spell=written(each)) for each in NOT_TEXT),
)


class Parquet(Files):
    """By Arrow."""

    def make(self, table: Table, chance: random.Random) -> Side:
        """In one row group or several."""
        columns = list(zip(*table.stored(chance), strict=True)) or [()] * len(table.columns)
        arrays = [_array(values, type_) for values, type_ in zip(columns, table.columns.values(), strict=True)]
        names = list(table.columns)
        if table.lone is not None:
            arrays.append(pa.nulls(len(table.rows), pa.int8()))
            names.append(table.lone)
        path = self._path(".parquet")
        pq.write_table(pa.table(arrays, names), path, row_group_size=chance.choice((7, 1000)))
        return File(path, key=table.key, columns=table.told, zone=table.zone)


def _array(values: Sequence[Any], type_: Type) -> pa.Array[Any]:
    wanted = _ARROW[type_.declared]
    if pa.types.is_dictionary(wanted):
        encoded: pa.Array[Any] = pa.array(values, wanted.value_type).dictionary_encode()
        return encoded
    return pa.array(values, wanted)
