"""The total row at the end of a file: not a record, but a check on the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute

from trueup.errors import BadInput
from trueup.model.kinds import DECIMAL, TEXT
from trueup.model.record import Field
from trueup.sides.files.chunk import Chunk, first_true

# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute


class Footer:
    """Tells the total row of one file from its records, and adds up what it must equal.

    marks: the texts by which the row is known. totals: columns that the row may hold a total of.
    """

    def __init__(self, marks: Mapping[str, str], totals: Sequence[str]) -> None:
        self._marks, self._totals = marks, totals
        self._sums = dict.fromkeys(totals, Decimal(0))
        self._expected: dict[str, Decimal] = {}
        self._seen = False

    def strip(self, chunk: Chunk) -> Chunk:
        """The records of the chunk; BadInput where one follows the total row."""
        mask: Any = None
        for name, text in self._marks.items():
            here = pc.fill_null(pc.equal(_texts(chunk, name), text), False)
            mask = here if mask is None else pc.and_(mask, here)
        at = first_true(mask)
        if self._seen or (at is not None and at + 1 < len(chunk)):
            after = 0 if self._seen else (at or 0) + 1
            line = chunk.form.line(chunk.path, chunk.places[after].as_py())
            raise BadInput(f"{chunk.path.name} {line}: a record after the total row.", hint="Check the footer rule.")
        if at is not None:
            self._seen = True
            total = chunk.filter(mask)
            found = {name: _numbers(total, name) for name in self._totals}
            self._expected = {name: numbers[0] for name, numbers in found.items() if numbers}
            chunk = chunk.filter(pc.invert(mask))
        for name in self._totals:
            self._sums[name] += sum(_numbers(chunk, name))
        return chunk

    def check(self, name: str) -> None:
        """BadInput where the file ended without its total row, or the records do not add up to it."""
        if not self._seen:
            raise BadInput(f"{name} ends without its total row.", hint="The file may have been cut off.")
        for column, total in self._expected.items():
            if self._sums[column] != total:
                raise BadInput(
                    f"{name}, column {column}: the records do not add up to the total row.",
                    hint="The file is incomplete or wrong; fetch it again.",
                )


def _texts(chunk: Chunk, name: str) -> pa.Array[Any]:
    return chunk.deliver(Field(name, name, TEXT))


def _numbers(chunk: Chunk, name: str) -> list[Decimal]:
    """The finite numbers of a column; what is none is reported where the column is delivered."""
    texts = chunk.deliver(Field(name, name, DECIMAL)).to_pylist()
    return [Decimal(text) for text in texts if text is not None and text[0] not in "!ni" and "inf" not in text]
