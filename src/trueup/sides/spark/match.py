"""Two tables matched by Spark: what is surely the same stays in the cluster, the records of other keys come back.

One shuffle moves key and hash of every record (and a number for each field with a tolerance); records are read a second
time where their keys are in doubt. What Spark can't prove equal is not a difference yet: it is judged by the caller.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  what everybody calls it
from pyspark.storagelevel import StorageLevel

from trueup.errors import IncompleteScan, SchemaError
from trueup.model.record import Field, Projection
from trueup.sides.spark.collecting import collected
from trueup.sides.spark.keys import key_columns
from trueup.sides.spark.session import trouble
from trueup.sides.spark.spelling import Column, framed, itself, judged, near
from trueup.sides.spark.types import meet

# Far above what two roundings to doubles and one subtraction can be off, relatively.
_DOUBT: Final = 1e-14


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two tables. frame: its columns are named by their place, c0…; types: by name of the table's column."""

    label: str
    frame: Any
    places: dict[str, str]
    types: dict[str, Any]
    asked: Projection

    def column(self, field: Field) -> tuple[Column, Any]:
        """A field's column and its type."""
        return F.col(self.places[field.source]), self.types[field.source]


class Match:
    """left, right: records of each side. same: keys that have one record on each side, surely judged equal."""

    def __init__(self, left: Half, right: Half) -> None:
        self._left, self._right = left, right
        self._tag = f"trueup-{uuid.uuid4().hex}"
        self._session = left.frame.sparkSession
        self._both = f"{left.label} and {right.label}"
        with trouble(self._both), self._tagged():
            keys = _keys(left, right)
            self._keys = [f"k{at}" for at in range(len(keys))]
            self._key_columns = [each[0] for each in keys], [each[1] for each in keys]
            self._told = _told(left, right, self._key_columns).persist(StorageLevel.MEMORY_AND_DISK)
            sure = F.col("sure")
            sums = [F.sum(each) for each in ("cl", "cr")] + [
                F.sum(F.when(~sure, F.col(each)).otherwise(0)) for each in ("cl", "cr")
            ]
            row = self._told.agg(*sums, F.count_if(sure)).collect()[0]
        self.left, self.right, left_open, right_open, self.same = (int(each or 0) for each in row)
        self._open = left_open, right_open

    def left_records(self) -> Iterator[pa.RecordBatch]:
        """Every left record whose key is not surely the same, as scans deliver them."""
        return self._records(0)

    def right_records(self) -> Iterator[pa.RecordBatch]:
        """The same of the right side."""
        return self._records(1)

    def stop(self) -> None:
        """Ends what Spark is doing for this match. May be called by another thread."""
        self._session.interruptTag(self._tag)

    def close(self) -> None:
        """Gives back what Spark keeps for it."""
        self._told.unpersist()

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        self._session.addTag(self._tag)
        try:
            yield
        finally:
            self._session.removeTag(self._tag)

    def _records(self, at: int) -> Iterator[pa.RecordBatch]:
        half, expected = (self._left, self._right)[at], self._open[at]
        found = 0
        with self._tagged():
            if expected:
                open_ = self._told.where(~F.col("sure")).select(*self._keys)
                fields = half.asked.columns
                raw = [F.col(half.places[field.source]).alias(f"v{i}") for i, field in enumerate(fields)]
                own = [each.alias(f"q{i}") for i, each in enumerate(self._key_columns[at])]
                same = [F.col(f"q{i}").eqNullSafe(F.col(name)) for i, name in enumerate(self._keys)]
                few = half.frame.select(*raw, *own).join(open_, reduce(and_, same), "left_semi")
                few = few.select(*(f"v{i}" for i in range(len(fields))))
                for batch in collected(few, half.asked, half.types, half.label, expected):
                    found += batch.num_rows
                    yield batch
        if found != expected:
            raise IncompleteScan(
                f"{half.label} changed while it was compared.", hint="Compare again, on files that nobody writes to."
            )


def _keys(left: Half, right: Half) -> list[tuple[Column, Column]]:
    return [
        key_columns(left.column(a), right.column(b), a) for a, b in zip(left.asked.key, right.asked.key, strict=True)
    ]


def _told(left: Half, right: Half, keys: tuple[list[Column], list[Column]]) -> Any:
    """A row for each key: k0… (null where surely the same), sure, cl and cr (records on each side)."""
    loose = [at for at, field in enumerate(left.asked.fields) if field.rule.tolerant or field.rule.fill]
    _check(left, right)
    one = _hashed(left, right, keys[0], loose, is_left=True)
    other = _hashed(right, left, keys[1], loose, is_left=False)
    names = [f"k{at}" for at in range(len(keys[0]))]
    is_left = F.col("l")
    parts = [F.count_if(is_left).alias("cl"), F.count_if(~is_left).alias("cr")]
    # Of one record on each side, equal hashes cancel out.
    parts += [F.bit_xor(name).alias(name) for name in one.columns if name.startswith("h")]
    for at in loose:
        parts += [F.max(F.when(is_left, F.col(f"n{at}"))).alias(f"l{at}")]
        parts += [F.max(F.when(~is_left, F.col(f"n{at}"))).alias(f"r{at}")]
    grouped = one.unionByName(other).groupBy(*names).agg(*parts)
    conditions = [F.col("cl") == 1, F.col("cr") == 1, F.col("h0") == 0, F.col("h1") == 0]
    conditions += [_alike(left.asked.fields[at], at) for at in loose]
    sure = F.coalesce(reduce(and_, conditions), F.lit(False))
    told = grouped.select(*names, "cl", "cr", sure.alias("sure"))
    hidden = [F.when(~F.col("sure"), F.col(name)).alias(name) for name in names]
    return told.select(*hidden, "sure", "cl", "cr")


def _check(left: Half, right: Half) -> None:
    for a, b in zip(left.asked.fields, right.asked.fields, strict=True):
        types = left.types[a.source], right.types[b.source]
        if not meet(*types):
            raise SchemaError(
                f"column {a.name}: Spark can't compare {types[0].simpleString()} with {types[1].simpleString()}.",
                hint="Cast one of them, leave the column out, or compare without Spark.",
            )


def _hashed(half: Half, other: Half, keys: list[Column], loose: list[int], *, is_left: bool) -> Any:
    """k0…, l (of the left side), h0 and h1 (128 bits over all strict fields), and of each loose field at: h…, n…"""
    values = [
        _hashable(*half.column(field), other.types[theirs.source], field)
        for field, theirs in zip(half.asked.fields, other.asked.fields, strict=True)
    ]
    strict = [each for at, many in enumerate(values) if at not in loose for each in many]
    columns = [each.alias(f"k{at}") for at, each in enumerate(keys)]
    columns += [F.lit(is_left).alias("l"), *_hash(strict, "")]
    for at in loose:
        field = half.asked.fields[at]
        column, type_ = half.column(field)
        number = near(column, type_, field) if field.rule.tolerant else F.when(column.isNotNull(), F.lit(1.0))
        columns += [*_hash(values[at], f"_{at}_"), number.alias(f"n{at}")]
    return half.frame.select(*columns)


def _hashable(column: Column, type_: Any, other: Any, field: Field) -> list[Column]:
    """What of a field goes into the hash; as many columns, of the same types, on both sides."""
    value = itself(column, type_, other, field)
    # Spark's hash passes over nulls.
    return [framed(judged(column, type_, field))] if value is None else [value.isNull(), value]


def _hash(values: list[Column], infix: str) -> list[Column]:
    # Spark's 64 bits from two beginnings. Aggregation by hash needs columns of fixed width, which md5 is not.
    return [F.xxhash64(F.lit(at), *values).alias(f"h{infix}{at}") for at in (0, 1)]


def _alike(field: Field, at: int) -> Column:
    """Whether the two values of a loose field are surely judged equal."""
    rule = field.rule
    equal = (F.col(f"h_{at}_0") == 0) & (F.col(f"h_{at}_1") == 0)
    left, right = F.col(f"l{at}"), F.col(f"r{at}")
    if rule.fill:
        return or_(equal, right.isNotNull())
    if field.kind.name == "timestamp":
        limit: Column = F.lit(float(rule.seconds or 0) * 1e6)
    else:
        limit = F.greatest(F.lit(float(rule.absolute or 0)), F.abs(left) * float(rule.relative or 0))
    doubt = (F.abs(left) + F.abs(right) + limit) * _DOUBT
    return or_(equal, F.coalesce(F.abs(left - right) + doubt <= limit, F.lit(False)))
