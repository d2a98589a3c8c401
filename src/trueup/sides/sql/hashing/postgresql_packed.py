"""Rows that PostgreSQL packs into one by string_agg: what it is asked to send, and how that is taken apart.

Of each column that is a string of bytes, its values big-endian or end to end, beside lengths or marks of null.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.errors import IncompleteScan
from trueup.sides.sql.hashing import Packed

pc: Any = pyarrow.compute
# Of a row: the page, and the number in it.
_PLACE: Final = pa.binary(6)
# Of each row in what comes first of a packed column: its number, the length of its text, or its place.
_ROW_BYTES: Final = {"integer": 8, "text": 4, "place": 6}


def parts(columns: Sequence[Packed], names: Sequence[str] = (), *, utf8: bool) -> list[str]:
    """What is sent of all columns. names: in SQL, by which they are known; c0… for none. utf8: of the database."""
    octets = "octet_length({})" if utf8 else "octet_length(convert_to({}, 'UTF8'))"
    known = names or [f"c{at}" for at in range(len(columns))]
    return [part for name, column in zip(known, columns, strict=True) for part in _sent(name, column, octets)]


def _sent(name: str, column: Packed, octets: str) -> list[str]:
    """What is sent of a column; string_agg passes over null. octets: format of a text's length."""
    if column.shape == "integer":
        known = f"coalesce({name}, 0)" if column.nullable else name
        mark = f"string_agg(CASE WHEN {name} IS NULL THEN '\\x00' ELSE '\\x01' END::bytea, '')"
        return [f"string_agg(int8send({known}::int8), '')", *([mark] if column.nullable else [])]
    if column.shape == "place":
        return [f"string_agg(tidsend({name}), '')"]
    length = f"string_agg(int4send(coalesce({octets.format(name)}, -1)), '')"
    return [length, f"convert_to(string_agg({name}, ''), 'UTF8')"]


def arrays(columns: Sequence[Packed], row: Sequence[Any]) -> list[pa.Array[Any]]:
    """The columns of a packed row. How many rows are in it is told by how long it is."""
    rows, found = len(row[0] or b"") // _ROW_BYTES[columns[0].shape], iter(row)
    return [_unpacked(column, rows, found) for column in columns]


def _unpacked(column: Packed, rows: int, found: Iterator[Any]) -> pa.Array[Any]:
    if column.shape == "integer":
        values = _numbers("q", next(found) or b"")
        if len(values) != rows:
            raise IncompleteScan("a column holds null, and is declared to hold none.", hint="Declare it as it is.")
        answer: pa.Array[Any] = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(values)])
        if column.nullable:
            marks = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(next(found) or b"")])
            answer = pc.if_else(pc.equal(marks, 1), answer, pa.scalar(None, pa.int64()))
        return answer
    if column.shape == "place":
        places: pa.Array[Any] = pa.Array.from_buffers(_PLACE, rows, [None, pa.py_buffer(next(found) or b"")])
        return places
    # With a zero before them, so that their sums are offsets.
    lengths = pa.Array.from_buffers(
        pa.int32(), rows + 1, [None, pa.py_buffer(_numbers("i", bytes(4) + (next(found) or b"")))]
    )
    text = next(found) or b""
    offsets = pc.cumulative_sum(pc.max_element_wise(lengths, 0) if column.nullable else lengths).cast(pa.int32())
    answer = pa.Array.from_buffers(pa.string(), rows, [None, offsets.buffers()[1], pa.py_buffer(text)])
    if column.nullable:
        answer = pc.if_else(pc.greater_equal(lengths[1:], 0), answer, pa.scalar(None, pa.string()))
    return answer


def _numbers(code: str, big_endian: bytes) -> array[int]:
    values = array(code, big_endian)
    if sys.byteorder == "little":
        values.byteswap()
    return values
