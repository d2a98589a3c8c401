"""Digests taken inside the database: what a scan would bring here to be digested, in a fraction of the bytes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from trueup.model.kinds import TEXT
from trueup.sides.sql.dialects import Reading, Stored
from trueup.sides.sql.hashing import Hasher, Packed, Text, packed
from trueup.sides.sql.read import Selection, delivered_array, newer


def digest(connection: sa.Connection, of: Selection, hasher: Hasher) -> Text | None:
    """SQL for the digest of a row; None where only Python can tell it, or can't ask for what is newer."""
    asked = of.projection
    if asked.version is None or not asked.fields or any(field.rule.folds for field in asked.fields):
        return None
    version = of.inspected.column(asked.version.source)
    if not of.dialect.versioned(version.stored, version.kind):
        return None
    return hasher.digest(connection, of, [(field, of.inspected.column(field.source)) for field in asked.fields])


def digests(
    connection: sa.Connection, of: Selection, hasher: Hasher, found: Text, since: int
) -> Generator[pa.RecordBatch, None, None]:
    """Key, `extra` and digest of rows whose version may be >= since, in one statement. found: SQL for the digest."""
    condition, _, values = newer(of, since)
    rest = of.from_where(condition)
    columns = [*of.key, *of.columns[len(of.columns) - len(of.projection.extra) :]]
    names = [*(f"c{at}" for at in range(len(columns))), "d"]
    wanted = packed([(field, known) for field, known, _ in columns], of, hasher)
    if wanted is not None:
        wanted.append(Packed(found.certain, "text", nullable=bool(found.unless)))
        packs = hasher.packs(connection, wanted, rest, values)
        if packs is not None:
            for arrays in packs:
                yield pa.RecordBatch.from_arrays(arrays, names=names)
            return
    selected: list[tuple[Stored | None, Reading]] = [(known.stored, reading) for _, known, reading in columns]
    selected.append((None, Reading(found.certain, "text", TEXT)))
    for raw in of.dialect.scan(connection, selected, rest, values):
        *beside, last = raw
        arrays = [delivered_array(each, column, of, {}) for each, column in zip(beside, columns, strict=True)]
        told: pa.Array[Any] = last if isinstance(last, pa.Array) else pa.array(last, pa.string())
        yield pa.RecordBatch.from_arrays([*arrays, told], names=names)
