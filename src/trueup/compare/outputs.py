"""Differences as files: JSON Lines, CSV or Parquet, written as they are read, since there may be millions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, Final, Literal

import pyarrow as pa

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison, Difference
from trueup.compare.target import check_target, whole_file
from trueup.errors import ConfigError
from trueup.model.columns import native_array
from trueup.model.record import Field, key_parts

FormatName = Literal["jsonl", "csv", "parquet"]
_SUFFIXES: Final[Mapping[str, FormatName]] = {".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_PACKED: Final[Mapping[str, Literal["gzip", "zstd"]]] = {".gz": "gzip", ".zst": "zstd"}
_AT_ONCE: Final = 8_192
# One for all: `json.dumps` would build one for each of millions of lines.
_text: Final = json.JSONEncoder(ensure_ascii=False).encode
# Of Parquet, so much is held back until it is written as one group of rows.
_GROUP_ROWS: Final = 65_536
_GROUP_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Format:
    """How differences are written. packing: of the whole file, None for none; Parquet packs its own pages."""

    name: FormatName
    packing: Literal["gzip", "zstd"] | None = None


def format_of(path: str) -> Format:
    """What the suffix of a path says; ConfigError where that is nothing."""
    suffixes = [each.lower() for each in PurePath(path).suffixes]
    packing = _PACKED.get(suffixes.pop()) if suffixes and suffixes[-1] in _PACKED else None
    name = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if name is None or (packing and name == "parquet"):
        hint = f"Files end in {', '.join(_SUFFIXES)}; the first two may be packed: {', '.join(_PACKED)}."
        raise ConfigError(f"{path}: its suffix does not say how differences are to be written.", hint=hint)
    return Format(name, packing)


def write_differences(comparison: Comparison, plan: Plan, path: str) -> None:
    """Writes every difference to a file, which appears once it is complete; its suffix says in which format.

    Raises ConfigError for a path that is none, TrueupError where the file can't be written.
    """
    chosen = format_of(path)
    check_target(path)
    with whole_file(path) as file:
        stream_differences(comparison, plan, file, chosen)


def stream_differences(comparison: Comparison, plan: Plan, to: Any, chosen: Format) -> None:
    """Writes every difference to a binary file that is open, in key order and in bounded memory."""
    with ExitStack() as stack:
        sink = to
        if chosen.packing is not None:
            sink = stack.enter_context(pa.CompressedOutputStream(pa.PythonFile(to, "w"), chosen.packing))
        chunks = _chunks(comparison.differences())
        match chosen.name:
            case "jsonl":
                for few in chunks:
                    sink.write(b"".join(_line(each, plan) for each in few))
            case "csv":
                _write_csv((Table(plan, typed=False), chunks), sink)
            case "parquet":
                _write_parquet((Table(plan, typed=True), chunks), sink)


def as_document(difference: Difference, plan: Plan) -> dict[str, Any]:
    """One difference as JSON: canonical texts; of a record that one side lacks, all values beside nulls."""
    key = dict(zip((field.name for field in plan.left.key), key_parts(difference.key), strict=True))
    shown: dict[str, Any] = {"kind": difference.kind, "key": key}
    if difference.kind == "duplicate":
        copies = {"left": difference.left_copies, "right": difference.right_copies}
        unmatched = {"left": [dict(each) for each in difference.left_only],
                     "right": [dict(each) for each in difference.right_only]}  # fmt: skip
        return {**shown, "fields": {}, "copies": copies, "unmatched": unmatched}
    left, right = difference.left, difference.right
    names = difference.fields or [field.name for field in plan.left.fields]
    both = {
        name: {
            "left": None if left is None else left.get(name),
            "right": None if right is None else right.get(name),
        }
        for name in names
    }
    return {**shown, "fields": both}


def _line(difference: Difference, plan: Plan) -> bytes:
    return _text(as_document(difference, plan)).encode("utf-8", "backslashreplace") + b"\n"


def _chunks(differences: Iterator[Difference]) -> Iterator[list[Difference]]:
    while few := list(islice(differences, _AT_ONCE)):
        yield few


class Table:
    """Differences as rows, one each: kind, fields, the key, copies, and both values of every compared field.

    typed: each column in the type of its kind, where every value surely fits it; else, and in all others, canonical
    texts. Of a duplicate key the values are those of the first record of each side that has no equal on the other.
    """

    def __init__(self, plan: Plan, *, typed: bool) -> None:
        self._keys, self._fields, self._typed = plan.left.key, plan.left.fields, typed
        values = [(field, f"{field.name}_{side}") for field in self._fields for side in ("left", "right")]
        taken = {field.name for field in self._keys} | {name for _, name in values}
        own = [("kind", pa.string()), ("fields", pa.list_(pa.string()) if typed else pa.string())]
        copies = [("left_copies", pa.int64()), ("right_copies", pa.int64())]
        self.schema = pa.schema(
            [
                *(pa.field(_free(name, taken), kind) for name, kind in own),
                *(self._field(field.name, field) for field in self._keys),
                *(pa.field(_free(name, taken), kind) for name, kind in copies),
                *(self._field(name, field) for field, name in values),
            ]
        )

    def batch(self, few: Sequence[Difference]) -> pa.RecordBatch:
        """The rows of a few differences."""
        parts = list(zip(*(key_parts(each.key) for each in few), strict=True))
        told: list[Sequence[str]] = [() if each.kind == "duplicate" else each.fields for each in few]
        columns: list[Any] = [[each.kind for each in few], told if self._typed else [",".join(each) for each in told]]
        columns += [self._array(texts, field) for texts, field in zip(parts, self._keys, strict=True)]
        columns += [[each.left_copies for each in few], [each.right_copies for each in few]]
        for field in self._fields:
            for records in ([each.left for each in few], [each.right for each in few]):
                columns.append(self._array([None if each is None else each.get(field.name) for each in records], field))
        arrays = [
            pa.array(column, each.type) if isinstance(column, list) else column
            for column, each in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _field(self, name: str, field: Field) -> pa.Field[Any]:
        native = field.kind.arrow() if self._typed and field.native else None
        return pa.field(name, native or pa.string(), metadata={"kind": str(field.kind)})

    def _array(self, texts: Sequence[str | None], field: Field) -> pa.Array[Any]:
        array: pa.Array[Any] = pa.array(texts, pa.string())
        return native_array(array, field.kind) if self._typed and field.native else array


def _free(name: str, taken: set[str]) -> str:
    """The name, with as many underscores behind it as make it the only one: names of columns come first."""
    while name in taken:
        name += "_"
    return name


_Rows = tuple[Table, Iterable[Sequence[Difference]]]


def _write_csv(rows: _Rows, to: Any) -> None:
    """Null is nothing, and every text is in quotes, the empty one too."""
    import pyarrow.csv  # noqa: PLC0415

    table, chunks = rows
    with pyarrow.csv.CSVWriter(to, table.schema) as writer:
        for few in chunks:
            writer.write_batch(table.batch(few))


def _write_parquet(rows: _Rows, to: Any) -> None:
    import pyarrow.parquet  # noqa: PLC0415

    table, chunks = rows
    with pyarrow.parquet.ParquetWriter(to, table.schema, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        for few in chunks:
            waiting.append(table.batch(few))
            full = sum(each.nbytes for each in waiting) >= _GROUP_BYTES
            if full or sum(each.num_rows for each in waiting) >= _GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
