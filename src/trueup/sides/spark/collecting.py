"""Records of a DataFrame brought here as scans deliver them, a bounded number at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  what everybody calls it
from pyspark.storagelevel import StorageLevel

from trueup.errors import BadInput, SchemaError
from trueup.model.record import Projection
from trueup.sides import scanning
from trueup.sides.files.chunk import UnfitError
from trueup.sides.files.parquet import ArrowValues
from trueup.sides.spark.session import trouble
from trueup.sides.spark.types import family, readable

_ROWS_AT_ONCE: Final = 131_072
_BATCH_ROWS: Final = 65_536


def collected(
    frame: Any, asked: Projection, types: Mapping[str, Any], label: str, rows: int
) -> Iterator[pa.RecordBatch]:
    """All records. frame: the columns of the projection, by position. types: by source. rows: how many there are."""
    for field in asked.columns:
        if not readable(types[field.source]):
            raise SchemaError(
                f"{label}: column {field.source} of type {types[field.source].simpleString()} can't be read.",
                hint="Cast it to a string, or leave the column out.",
            )
    with trouble(label):
        ready = frame.select(
            *(
                _transported(F.col(name), types[field.source]).alias(name)
                for name, field in zip(frame.columns, asked.columns, strict=True)
            )
        )
        for table in _tables(ready, rows):
            for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
                yield _delivered(batch, asked, label)


def _tables(frame: Any, rows: int) -> Iterator[pa.Table]:
    """The whole frame where it is small, else in slices of a copy that Spark keeps on its disks."""
    slices = math.ceil(rows / _ROWS_AT_ONCE)
    if slices <= 1:
        yield frame.toArrow()
        return
    kept = frame.withColumn("slice", F.pmod(F.monotonically_increasing_id(), F.lit(slices)))
    kept = kept.persist(StorageLevel.DISK_ONLY)
    try:
        for at in range(slices):
            yield kept.where(F.col("slice") == at).drop("slice").toArrow()
    finally:
        kept.unpersist()


def _transported(column: Any, type_: Any) -> Any:
    """What Arrow has no form for in Spark goes as ISO text."""
    if family(type_) != "months":
        return column
    months = column.cast("interval month").cast("int").cast("string")
    return F.concat(F.lit("P"), months, F.lit("M"))


def _delivered(batch: pa.RecordBatch, asked: Projection, label: str) -> pa.RecordBatch:
    arrays = []
    for field, array in zip(asked.columns, batch.columns, strict=True):
        try:
            if field is asked.version:
                texts = ArrowValues(array, None).deliver(replace(field, native=False))
                arrays.append(scanning.versions_of(texts, field))
            else:
                arrays.append(ArrowValues(array, None).deliver(field))
        except UnfitError as failure:
            raise BadInput(f"{label}, column {field.source}: {failure.why}.", hint=failure.hint) from failure
    return pa.RecordBatch.from_arrays(arrays, schema=scanning.schema_of(asked))
