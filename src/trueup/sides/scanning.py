"""What sides that enumerate in Python share: values to delivered columns, scans to records, and order."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute

from trueup.errors import SchemaError, did_you_mean
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.columns import canonical_array, text_array, texts
from trueup.model.kinds import Column, Kind
from trueup.model.natural import natural
from trueup.model.numbers import ODD
from trueup.model.record import Field, Found, Projection, key_parts, key_text, version_of
from trueup.model.times import timestamp_text
from trueup.model.window import Span

# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute
BATCH_ROWS = 16_384
_SORT_MEMORY = "256MB"


def check_columns(projection: Projection, columns: Sequence[Column], label: str) -> None:
    """Raises SchemaError where the side lacks a column of the projection."""
    names = [column.name for column in columns]
    for field in projection.columns:
        if field.source not in names:
            raise missing_column(field.source, names, label)


def missing_column(name: str, names: Sequence[str], label: str) -> SchemaError:
    """The error for a column that is not there, with the nearest names that are."""
    return SchemaError(f"{label} has no column {name}.", hint=did_you_mean(name, names, "Columns"))


def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type in which a scan delivers this field."""
    native = field.kind.arrow() if field.native else None
    return pa.string() if native is None else native


def schema_of(projection: Projection) -> pa.Schema:
    """The schema of the batches of a scan."""
    return pa.schema(
        [
            pa.field(field.name, pa.int64() if field is projection.version else arrow_type(field))
            for field in projection.columns
        ]
    )


def respelled(text: str | None, source: Kind, target: Kind, zone: ZoneInfo | None = None) -> str | None:
    """A canonical text of one kind as the canonical text of another."""
    if text is None or source == target:
        return text
    # Texts of array elements are all quoted; the values they stand for are what JSON wants to see.
    value = natural(text, source) if source.name == "array" else text
    return canonical_text(value[1:] if is_odd(text, source) else value, target, zone)


def column_of(values: Sequence[object], field: Field, zone: ZoneInfo | None = None) -> pa.Array[Any]:
    """Python values as a scan must deliver them."""
    array = _typed(values, field.kind)
    if array is not None and arrow_type(field) == pa.string():
        return canonical_array(array, field.kind, zone)
    return delivered_texts([canonical_text(value, field.kind, zone) for value in values], field)


def _typed(values: Sequence[object], kind: Kind) -> pa.Array[Any] | None:
    """The values as an Arrow array that means the same under `kind`; None where they are mixed or of another type."""
    found = {type(value) for value in values} - {type(None)}
    if Decimal in found and found <= {int, Decimal} and kind.name == "decimal":
        return _plain_numbers(values)
    type_ = _ARROW_TYPES.get(next(iter(found))) if len(found) == 1 else None
    if type_ is None:
        return None
    try:
        return pa.array(values, type_)
    except (OverflowError, pa.ArrowInvalid):
        return None  # an integer wider than 64 bits


def _plain_numbers(values: Sequence[object]) -> pa.Array[Any] | None:
    """Numbers as text, unless one of them has an exponent, is not finite, or is too wide for Python to spell."""
    try:
        spelled = [None if value is None else str(value) for value in values]
    except ValueError:
        return None
    return pa.array(spelled, pa.string()) if all(text is None or _PLAIN.match(text) for text in spelled) else None


_PLAIN = re.compile(r"-?\d+(?:\.\d+)?\Z", re.ASCII)
_ARROW_TYPES: dict[type, pa.DataType] = {
    str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64(), bytes: pa.binary(),
}  # fmt: skip


def delivered_texts(canonical: Sequence[str | None], field: Field) -> pa.Array[Any]:
    """Canonical texts as a scan must deliver them."""
    kind = arrow_type(field)
    if not field.native or kind == pa.string():
        return pa.array(canonical, pa.string())
    return pa.array([natural(text, field.kind) for text in canonical], kind)


def versions_of(canonical: pa.Array[Any], field: Field) -> pa.Array[Any]:
    """Canonical texts of a version column as int64; null where a text is no version."""
    try:
        if field.kind.name == "integer":
            return _not_odd(canonical).cast(pa.int64())
        if field.kind.name == "timestamp":
            bare: pa.Array[Any] = pc.utf8_rtrim(_not_odd(canonical), "Z")
            return bare.cast(pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid:
        pass  # wider than 64 bits, or a year that Arrow can't parse: one by one
    return pa.array([version_of(text, field.kind) for text in canonical.to_pylist()], pa.int64())


def _not_odd(canonical: pa.Array[Any]) -> pa.Array[Any]:
    answer: pa.Array[Any] = pc.if_else(pc.starts_with(canonical, ODD), pa.scalar(None, pa.string()), canonical)
    return answer


def version_text(version: int | None, field: Field) -> str | None:
    """The canonical text of a delivered version."""
    if version is None:
        return None
    return timestamp_text(version, field.kind.aware) if field.kind.name == "timestamp" else str(version)


def found(projection: Projection, values: Mapping[str, str | None], version: int | None, token: str = "") -> Found:
    """A record from its canonical texts; its token is the version where there is one, else the digest."""
    key = key_text(values[field.name] for field in projection.key)
    token = token or (str(version) if version is not None else projection.digest(values))
    return Found(key, values, version, token)


def records(batch: pa.RecordBatch, projection: Projection) -> Iterator[Found]:
    """The records of one batch of a scan."""
    columns: list[Sequence[str | None]] = []
    versions: Sequence[int | None] = [None] * batch.num_rows
    for field, array in zip(projection.columns, batch.columns, strict=True):
        if field is projection.version:
            versions = array.to_pylist()
            columns.append([version_text(version, field) for version in versions])
        else:
            columns.append(texts(array, field))
    names = [field.name for field in projection.columns]
    for version, *row in zip(versions, *columns, strict=True):
        yield found(projection, dict(zip(names, row, strict=True)), version)


def read_by_scan(batches: Iterable[pa.RecordBatch], projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
    """The records with these key texts, found by looking at every record once."""
    wanted = set(keys)
    answer: dict[str, Found] = {}
    for batch in batches:
        few = batch.filter(key_mask(text_array(batch.column(0), projection.key[0]), wanted))
        for record in records(few, projection):
            if record.key in wanted:
                earlier = answer.get(record.key)
                answer[record.key] = record if earlier is None else replace(earlier, copies=earlier.copies + 1)
    return answer


def key_mask(first: pa.Array[Any], keys: Iterable[str]) -> pa.Array[Any]:
    """Where the text of the first key column is that of any of these keys."""
    answer: pa.Array[Any] = pc.is_in(first, value_set=pa.array({key_parts(key)[0] for key in keys}, pa.string()))
    return answer


def check_window(column: str, columns: Sequence[Column], label: str) -> Kind:
    """The kind of the column by which windows are cut; SchemaError where it can't be one."""
    found = next((each for each in columns if each.name == column), None)
    if found is None:
        raise missing_column(column, [each.name for each in columns], label)
    if found.kind.name not in ("date", "timestamp"):
        raise SchemaError(
            f"{label}: {column} ({found.kind}) can't say to which window a record belongs.",
            hint="It takes a date or a timestamp; declare the column as one if that is what it holds.",
        )
    return found.kind


def lies_within(text: str | None, kind: Kind, span: Span) -> bool:
    """Whether a canonical text lies in the interval."""
    at = version_of(text, kind)
    low, high = span.bounds(kind)
    return at is not None and (low is None or at >= low) and (high is None or at < high)


def within(array: pa.Array[Any], low: int | None, high: int | None) -> pa.Array[Any]:
    """Where integers lie between the bounds; null lies nowhere."""
    mask = pc.is_valid(array)
    if low is not None:
        mask = pc.and_(mask, pc.greater_equal(array, pa.scalar(low, pa.int64())))
    if high is not None:
        mask = pc.and_(mask, pc.less(array, pa.scalar(high, pa.int64())))
    answer: pa.Array[Any] = mask.fill_null(False)
    return answer


def since(batches: Iterable[pa.RecordBatch], projection: Projection, version: int) -> Iterator[pa.RecordBatch]:
    """Records with a version >= this, ordered by (version, key); sorts on disk what memory can't hold."""
    import duckdb  # noqa: PLC0415  only a sorted scan needs it

    if projection.version is None:
        raise SchemaError("records can't be ordered by version: no version column is declared.")
    at = projection.columns.index(projection.version)
    failures: list[BaseException] = []
    schema = pa.schema([(f"c{i}", each.type) for i, each in enumerate(schema_of(projection))])

    def newer() -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                few = batch.filter(pc.greater_equal(batch.column(at), version))
                yield pa.RecordBatch.from_arrays(few.columns, schema=schema)
        except BaseException as failure:
            failures.append(failure)
            raise

    order = ", ".join(f"c{i}" for i in (at, *range(len(projection.key))))
    with tempfile.TemporaryDirectory(prefix="trueup-") as spill, duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{_SORT_MEMORY}'")
        database.execute("SET temp_directory = $1", [spill])
        database.register("newer", pa.RecordBatchReader.from_batches(schema, newer()))
        try:
            ordered = database.sql(f"SELECT * FROM newer ORDER BY {order}").to_arrow_reader(BATCH_ROWS)
            for batch in ordered:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema_of(projection))
        except Exception:
            # DuckDB reports an error of the scan in words of its own; ours says which line of which file.
            if failures:
                raise failures[0] from None
            raise


def slices(rows: Sequence[Any], build: Callable[[Sequence[Any]], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows in batches of bounded size."""
    for start in range(0, len(rows), BATCH_ROWS):
        yield build(rows[start : start + BATCH_ROWS])
