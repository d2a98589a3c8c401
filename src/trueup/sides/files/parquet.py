"""Parquet: every type as the kind that holds it without loss."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from trueup.errors import BadInput, SchemaError
from trueup.model import kinds
from trueup.model.columns import delivered
from trueup.model.kinds import Column, Kind
from trueup.model.record import Field
from trueup.sides.files.chunk import CHUNK_ROWS, Chunk, PythonValues, UnfitError, numbered
from trueup.sides.files.opening import head, unreadable

pc: Any = pyarrow.compute
# A sample is taken of so many row groups at most, in runs of a few records.
_GROUPS_MAX = 16
_RUN = 16


@dataclass(slots=True)
class Parquet:
    """Parquet files of one schema."""

    files: Sequence[Path]
    zone: ZoneInfo | None = None
    rename: Mapping[str | int, str] = field(default_factory=dict)
    system: str = "Parquet"

    def columns(self) -> tuple[Column, ...]:
        """The schema as kinds."""
        first = self._columns(self.files[0])
        for path in self.files[1:]:
            if odd := {(each.name, each.kind) for each in self._columns(path)} ^ {
                (each.name, each.kind) for each in first
            }:
                name = min(each for each, _ in odd)
                raise SchemaError(
                    f"{path.name} and {self.files[0].name} differ in their columns, in {name} for one.",
                    hint="Files that are read as one side have the same columns and types.",
                )
        return first

    def _columns(self, path: Path) -> tuple[Column, ...]:
        with _opened(path) as file:
            return tuple(
                _column(name, each, self.zone)
                for name, each in zip(self._names(path, file.schema_arrow), file.schema_arrow, strict=True)
            )

    def own_names(self) -> dict[str, str]:
        """What the files call a column, by the side's name for it."""
        with _opened(self.files[0]) as file:
            return self._own(self.files[0], file)

    def _own(self, path: Path, file: pq.ParquetFile) -> dict[str, str]:
        return dict(zip(self._names(path, file.schema_arrow), file.schema_arrow.names, strict=True))

    def _names(self, path: Path, schema: pa.Schema) -> list[str]:
        for old in self.rename:
            if old not in schema.names:
                raise SchemaError(f"{path.name} has no column {old} to rename.")
        names = [self.rename.get(name, name) for name in schema.names]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{path.name} has two columns named {name}.", hint="Rename one of them with rename.")
        return names

    def schemas(self) -> list[pa.Schema]:
        """Of every file."""
        schemas = []
        for path in self.files:
            with _opened(path) as file:
                schemas.append(file.schema_arrow)
        return schemas

    def chunks(self, path: Path, names: Sequence[str], groups: list[int] | None = None) -> Iterator[Chunk]:
        """The records of one file. groups: only those of these row groups."""
        with _opened(path) as file:
            own = self._own(path, file)
            for place, batch in _batches(path, file, [own[name] for name in names], groups):
                columns = {name: ArrowValues(batch.column(own[name]), self.zone) for name in names}
                yield Chunk(self, path, numbered(place, batch.num_rows), columns)

    def holding(self, path: Path, name: str, numbers: Sequence[int]) -> list[int] | None:
        """Row groups of a file that may hold one of these ascending numbers in a column; None where nothing tells."""
        with _opened(path) as file:
            own, told = self._own(path, file)[name], file.metadata
            leaves = [at for at in range(told.num_columns) if told.schema.column(at).path == own]
            if len(leaves) != 1 or not pa.types.is_signed_integer(file.schema_arrow.field(own).type):
                return None
            return [
                at for at in range(file.num_row_groups)
                if _may_hold(told.row_group(at).column(leaves[0]).statistics, numbers)
            ]  # fmt: skip

    def some(self, names: Sequence[str], most: int) -> Iterator[Chunk]:
        """About so many records: evenly spread runs of a few, in row groups all over the files."""
        groups: list[tuple[Path, int, int, int]] = []
        for path in self.files:
            with _opened(path) as file:
                starts = _starts(file)
                groups += [(path, at, start, end - start) for at, (start, end) in enumerate(pairwise(starts))]
        chosen = groups[:: max(1, -(-len(groups) // _GROUPS_MAX))]
        step = max(1, sum(rows for *_, rows in chosen) // most)
        for path, at, start, _ in chosen:
            for chunk in self.chunks(path, names, [at]):
                runs = pc.divide(pc.subtract(chunk.places, start), _RUN)
                yield chunk.filter(pc.equal(runs, pc.multiply(pc.divide(runs, step), step)))

    def line(self, path: Path, place: int) -> str:
        """Parquet has rows, not lines."""
        return f"row {place + 1:,}"


def _starts(file: pq.ParquetFile) -> list[int]:
    """How many records are before each row group, and in all."""
    rows = (file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))
    return list(accumulate(rows, initial=0))


def _may_hold(statistics: Any, numbers: Sequence[int]) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    at = bisect_left(numbers, statistics.min)
    return at < len(numbers) and bool(numbers[at] <= statistics.max)


def _batches(
    path: Path, file: pq.ParquetFile, names: Sequence[str], groups: list[int] | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of records, each with the place of its first one."""
    if not names:
        for start in range(0, file.metadata.num_rows, CHUNK_ROWS):
            rows = min(CHUNK_ROWS, file.metadata.num_rows - start)
            yield start, pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
        return
    starts = _starts(file)
    parts = [(0, None)] if groups is None else [(starts[at], [at]) for at in groups]
    try:
        for first, some in parts:
            place = first
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=some, columns=list(names)):
                yield place, batch
                place += batch.num_rows
    except (pa.ArrowException, OSError) as failure:
        raise BadInput(f"{path.name} is damaged: its data can't be read.", hint="Fetch the file again.") from failure


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    start = head(path)
    try:
        file = pq.ParquetFile(str(path), buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        why = "is no Parquet file" if start[:4] != b"PAR1" else "is damaged or ends early"
        raise BadInput(f"{path.name} {why}.", hint="Fetch the file again, or declare its format.") from failure
    except OSError as failure:
        raise unreadable(path, failure) from failure
    with file:
        yield file


def _column(name: str, each: pa.Field[Any], zone: ZoneInfo | None) -> Column:
    kind = kind_of_type(each.type)
    # Read through the declared zone, a wall-clock time becomes an instant.
    zoned = zone is not None and kind == kinds.TIMESTAMP
    return Column(
        name,
        kinds.INSTANT if zoned else kind,
        native=not zoned and kind.arrow() is not None and not pa.types.is_uint64(each.type),
        nullable=each.nullable,
        declared=str(each.type),
    )


def kind_of_type(type_: pa.DataType) -> Kind:
    """The kind that holds every value of an Arrow type."""
    types = pa.types
    if isinstance(type_, pa.UuidType):
        return kinds.UUID
    if isinstance(type_, pa.JsonType):
        return kinds.JSON
    if isinstance(type_, pa.BaseExtensionType):
        return kind_of_type(type_.storage_type)
    if types.is_dictionary(type_):
        return kind_of_type(type_.value_type)
    if types.is_boolean(type_):
        return kinds.BOOLEAN
    if types.is_integer(type_):
        return kinds.INTEGER
    if types.is_decimal(type_):
        return Kind("decimal", scale=type_.scale, precision=type_.precision)
    if types.is_floating(type_):
        return kinds.FLOAT if type_.bit_width == 64 else Kind("float", bits=32)
    if (
        types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_fixed_size_binary(type_)
        or types.is_binary_view(type_)
    ):
        return kinds.BYTES
    if types.is_date(type_):
        return kinds.DATE
    if types.is_time(type_):
        return kinds.TIME
    if types.is_timestamp(type_):
        return kinds.TIMESTAMP if type_.tz is None else kinds.INSTANT
    if types.is_duration(type_) or types.is_interval(type_):
        return kinds.INTERVAL
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        item = kind_of_type(type_.value_type)
        return kinds.JSON if item == kinds.JSON else Kind("array", item=item)
    if types.is_struct(type_) or types.is_map(type_):
        return kinds.JSON
    return kinds.TEXT


@dataclass(frozen=True, slots=True)
class ArrowValues:
    """Values of a typed column."""

    array: pa.Array[Any]
    zone: ZoneInfo | None

    def deliver(self, field: Field) -> pa.Array[Any]:
        """Under the asked kind; nanoseconds are rounded to microseconds, half up."""
        array = self.array
        try:
            if pa.types.is_nested(array.type):
                # Objects of any depth, maps included, have no Arrow form that all engines share.
                return PythonValues(array.to_pylist(maps_as_pydicts="strict"), self.zone).deliver(field)
            return delivered(array, kind_of_type(array.type), field, self.zone)
        except (pa.ArrowInvalid, ValueError, KeyError) as failure:
            why = f"a value of type {array.type} can't be read exactly"
            raise UnfitError(0, why, "Leave the column out, or write the file with another type.") from failure

    def filter(self, mask: pa.Array[Any]) -> ArrowValues:
        """Those where the mask is true."""
        return ArrowValues(self.array.filter(mask), self.zone)
