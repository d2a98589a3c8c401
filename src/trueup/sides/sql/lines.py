"""Rows that a server packs as lines of CSV, parsed by Arrow.

In this form a null is nothing between commas and an empty text is `""`; numbers are plain, text is quoted
wherever it must be. Arrow parses integers, decimals and floats exactly (shortest or full digits read back).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from trueup.sides.sql.dialects import Reading

ROWS_MAX: Final = 8_192
BYTES_MAX: Final = 1 << 20


def batches_of_lines(lines: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Whole lines, joined to blocks that a parser takes at once."""
    # Joined as they come: of many objects of Python that are held, memory is lost that is not given back.
    held, rows = bytearray(), 0
    for line in lines:
        held += line
        rows += 1
        if rows >= ROWS_MAX or len(held) >= BYTES_MAX:
            yield bytes(held)
            held, rows = bytearray(), 0
    if held:
        yield bytes(held)


def arrays_from_lines(block: bytes, readings: Sequence[Reading]) -> list[pa.Array[Any]]:
    """One array for each reading; `hex` and `text` come as strings."""
    if block.startswith(BOM_UTF8):
        block = BOM_UTF8 + block  # Arrow takes the first one for a mark of the encoding; ours is a letter
    names = [str(number) for number in range(len(readings))]
    table = csv.read_csv(
        BytesIO(block),
        csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={name: arrow_shape(reading) for name, reading in zip(names, readings, strict=True)},
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip
    return [_whole(table.column(name)) for name in names]


def _whole(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else whole.chunk(0)


def arrow_shape(reading: Reading) -> pa.DataType:
    """The Arrow type in which values of this shape arrive."""
    match reading.shape:
        case "integer":
            return pa.int64()
        case "boolean":
            return pa.bool_()
        case "float":
            return pa.float64()
        case "float32":
            return pa.float32()
        case "decimal":
            return reading.kind.arrow() or pa.string()
        case _:
            return pa.string()
