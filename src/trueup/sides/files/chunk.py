"""A stretch of records of one file, before anybody asked for them under a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute

from trueup.errors import BadInput
from trueup.model.kinds import Column
from trueup.model.record import Field
from trueup.sides.scanning import column_of

# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute
CHUNK_ROWS = 65_536


class UnfitError(Exception):
    """A value of a column can't be delivered; the chunk adds file, line and column.

    row: its place in the chunk. why: what it is. hint: what to do.
    """

    def __init__(self, row: int, why: str, hint: str) -> None:
        super().__init__(why)
        self.row, self.why, self.hint = row, why, hint


class Values(Protocol):
    """The values of one column of a chunk, as the format gives them."""

    def deliver(self, field: Field) -> pa.Array[Any]:
        """As a scan must deliver them; raises UnfitError."""

    def filter(self, mask: pa.Array[Any]) -> Values:
        """Those where the mask is true."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one file.

    places: of each record, what `Format.line` turns into its line; int64.
    """

    form: Format
    path: Path
    places: pa.Array[Any]
    columns: Mapping[str, Values]

    def filter(self, mask: pa.Array[Any]) -> Chunk:
        """Only the records where the mask is true."""
        columns = {name: values.filter(mask) for name, values in self.columns.items()}
        return Chunk(self.form, self.path, self.places.filter(mask), columns)

    def deliver(self, field: Field) -> pa.Array[Any]:
        """One column as a scan must deliver it; raises BadInput for a value that can't be."""
        try:
            return self.columns[field.source].deliver(field)
        except UnfitError as failure:
            raise self.bad(failure.row, field.source, failure.why, failure.hint) from failure

    def bad(self, row: int, column: str, why: str, hint: str) -> BadInput:
        """The error for one value: file, line and column, never the value."""
        line = self.form.line(self.path, self.places[row].as_py())
        return BadInput(f"{self.path.name} {line}, column {column}: {why}.", hint=hint)

    def __len__(self) -> int:
        return len(self.places)


class Format(Protocol):
    """How records are read from one kind of file."""

    system: str

    def columns(self) -> tuple[Column, ...]:
        """The columns on which all files agree; reads at most enough to tell."""

    def chunks(self, path: Path, names: Sequence[str]) -> Iterator[Chunk]:
        """The records of one file, in order, with these columns; at most CHUNK_ROWS at a time."""

    def line(self, path: Path, place: int) -> str:
        """Where in the file a record is, for messages, such as `line 10,442`."""


@dataclass(frozen=True, slots=True)
class PythonValues:
    """Values that a parser gave as Python objects."""

    values: Sequence[object]
    zone: Any = None

    def deliver(self, field: Field) -> pa.Array[Any]:
        """By the reference rules."""
        try:
            return column_of(self.values, field, self.zone)
        except UnicodeEncodeError:
            row = next(i for i, value in enumerate(self.values) if _is_half(value))
            raise UnfitError(row, "it holds half of a surrogate pair", "Repair the escape sequence.") from None

    def filter(self, mask: pa.Array[Any]) -> PythonValues:
        """Those where the mask is true."""
        return PythonValues(list(compress(self.values, mask.to_pylist())), self.zone)


def _is_half(value: object) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in str(value))


def numbered(start: int, rows: int) -> pa.Array[Any]:
    """The numbers of so many records from `start` on; int64."""
    answer: pa.Array[Any] = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows), start=start - 1)
    return answer


def first_true(mask: pa.Array[Any]) -> int | None:
    """Index of the first true of a mask, or None."""
    at: int = pc.index(mask, pa.scalar(True)).as_py()
    return None if at < 0 else at
