"""One side read once: every record kept on disk, its key and the hash of its judged fields in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute

from trueup.compare.judge import Array, judged
from trueup.compare.workspace import BATCHES_MAX, CHUNK_BYTES, CHUNK_ROWS, Spool, Workspace
from trueup.model.columns import text_array
from trueup.model.duck import hash_of
from trueup.model.record import Field, Projection

pc: Any = pyarrow.compute
SideName = Literal["left", "right"]
# The hash of a left record whose state means that the right side must lack it.
GONE: Final = 0xD1B54A32D192ED03


class Shape:
    """Names of a side's columns in chunks and tables: k0…, v, f0…, e0…"""

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self.keys = [f"k{at}" for at in range(len(projection.key))]
        self.fields = [f"f{at}" for at in range(len(projection.fields))]
        self.extra = [f"e{at}" for at in range(len(projection.extra))]
        version = [] if projection.version is None else ["v"]
        self.others = [*version, *self.fields, *self.extra]
        self.names = [*self.keys, *self.others]
        types = [_arrow_type(each, each is projection.version) for each in projection.columns]
        self.schema = pa.schema(list(zip(self.names, types, strict=True)))

    def values(self) -> Iterator[tuple[str, Field]]:
        """Columns that hold values of the record: fields and extra."""
        yield from zip(self.fields, self.projection.fields, strict=True)
        yield from zip(self.extra, self.projection.extra, strict=True)

    def record(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of a scan under these names, and with the types that the projection asks for."""
        arrays = [
            array if array.type == wanted else array.cast(wanted)
            for array, wanted in zip(batch.columns, self.schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def empty(self) -> pa.RecordBatch:
        """A chunk without records."""
        return pa.RecordBatch.from_arrays([pa.array([], each) for each in self.schema.types], schema=self.schema)


def _arrow_type(field: Field, is_version: bool) -> pa.DataType:
    if is_version:
        return pa.int64()
    native = field.kind.arrow() if field.native else None
    return pa.string() if native is None else native


class Stage:
    """The table `left` or `right`: k0…, h (hash), n (number of the record in the spool).

    shown: the records that are shown, in key order.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: SideName,
        projection: Projection,
        absent_when: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.name = name
        self.shape = Shape(projection)
        self.spool = self.shown = Spool(workspace.path, name)
        self.gone = 0
        self._workspace = workspace
        self._absent_when = absent_when or {}
        hashed = self._hashed(self.shape.empty(), 0)
        self._select = f"SELECT {', '.join(self.shape.keys)}, {hash_sql(hashed.schema)} AS h, n FROM chunk"
        self._workspace.insert(f'CREATE TABLE "{name}" AS {self._select} LIMIT 0', hashed)

    def fill(self, batches: Iterable[pa.RecordBatch], going: Callable[[], None]) -> None:
        """Reads a scan to its end; asks after each chunk whether to go on."""
        with self._workspace.inserts(f'INSERT INTO "{self.name}" {self._select}') as insert:
            for chunk in chunks(batches, self.shape, self._workspace):
                starts = self.spool.append(chunk)
                hashed = pa.concat_tables([self._hashed(*each) for each in zip(chunk, starts, strict=True)])
                insert(hashed)
                going()

    def keep_shown(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Keeps these records, which are in key order, to show them; the others did not come in it."""
        self.shown = Spool(self._workspace.path, f"{self.name}-shown")
        for chunk in chunks(batches, self.shape, self._workspace):
            self.shown.append(chunk)

    def shown_at(self, numbers: Array) -> pa.RecordBatch:
        """The shown records with these numbers, which ascend; null where a number is."""
        known = numbers.drop_null()
        found = self.shown.take(known) if len(known) else pa.Table.from_batches([self.shape.empty()])
        records = pa.RecordBatch.from_arrays([column.combine_chunks() for column in found.columns], found.schema.names)
        if not numbers.null_count:
            return records
        counted = pc.cumulative_sum(numbers.is_valid().cast(pa.int64()), start=-1)
        return records.take(pc.if_else(numbers.is_valid(), counted, None))

    def _hashed(self, chunk: pa.RecordBatch, start: int) -> pa.Table:
        columns = {name: chunk.column(name) for name in self.shape.keys}
        columns["n"] = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), chunk.num_rows), start=start - 1)
        for name, field in zip(self.shape.fields, self.shape.projection.fields, strict=True):
            columns[name] = judged(chunk.column(name), field)
        if self._absent_when:
            columns["gone"] = gone(chunk, self.shape, self._absent_when)
            self.gone += pc.sum(columns["gone"]).as_py() or 0
        return pa.table(columns)


def chunks(batches: Iterable[pa.RecordBatch], shape: Shape, workspace: Workspace) -> Iterator[list[pa.RecordBatch]]:
    """The records of a scan, so many at a time as a workspace has room for beside what it holds."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    rows_max, bytes_max = min(CHUNK_ROWS, workspace.chunk_rows), min(CHUNK_BYTES, workspace.chunk_bytes)
    for batch in batches:
        waiting.append(shape.record(batch))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= rows_max or size >= bytes_max:
            yield _few(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _few(waiting)


def _few(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same records in a few batches: many small ones would be slow to fetch from, joining large ones to write."""
    if len(batches) <= BATCHES_MAX:
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()


def gone(chunk: pa.RecordBatch, shape: Shape, absent_when: Mapping[str, frozenset[str]]) -> Array:
    """Which left records are in a state that means *no record on the right*. Booleans without null."""
    answer: Array = pa.repeat(pa.scalar(value=False), chunk.num_rows)
    for name, field in shape.values():
        if states := absent_when.get(field.name):
            texts = text_array(chunk.column(name), field)
            answer = pc.or_(answer, pc.is_in(texts, value_set=pa.array(sorted(states), pa.string())))
    return answer


def hash_sql(schema: pa.Schema) -> str:
    """SQL for the 64-bit hash of the judged fields f0… of a chunk; GONE where the column `gone` says so."""
    plain = hash_of([(column.name, _duck_type(column.type)) for column in schema if column.name.startswith("f")])
    return f"CASE WHEN gone THEN {GONE}::UBIGINT ELSE {plain} END" if "gone" in schema.names else plain


def _duck_type(type_: pa.DataType) -> str:
    """Of those that are hashed in a way of their own; else nothing."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return "VARCHAR" if pa.types.is_string(type_) else "BLOB" if pa.types.is_binary(type_) else ""
