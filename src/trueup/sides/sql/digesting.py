"""Digests and hashes of what is newer, taken inside the database: what a scan would bring here, in far fewer bytes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import IncompleteScan
from trueup.model.digest import CANONICAL
from trueup.model.kinds import TEXT
from trueup.model.record import Field
from trueup.sides.sql.dialects import VERSION, Reading, Stored
from trueup.sides.sql.hashing import Hasher, Packed, Text, packed, packed_key
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection, delivered_array, newer


def digest(connection: sa.Connection, of: Selection, hasher: Hasher) -> Text | None:
    """SQL for the digest of a row; None where only Python can tell it, or can't ask for what is newer."""
    asked = of.projection
    if not _versioned(of) or not asked.fields or any(field.rule.folds for field in asked.fields):
        return None
    return hasher.digest(connection, of, [(field, of.inspected.column(field.source)) for field in asked.fields])


def digests(
    connection: sa.Connection, of: Selection, hasher: Hasher, found: Text, since: int
) -> Generator[pa.RecordBatch, None, None]:
    """Key, `extra` and digest of rows whose version may be >= since, in one statement. found: SQL for the digest."""
    condition, _, values = newer(of, since)
    rest = of.from_where(condition)
    columns = [*of.key, *of.columns[len(of.columns) - len(of.projection.extra) :]]
    told = Packed(found.certain, "text", nullable=bool(found.unless))
    wanted = packed([(field, known) for field, known, _ in columns], of, hasher)
    if wanted is not None and hasher.packs_many:
        packs = hasher.packs(connection, [*wanted, told], rest, values)
    else:
        packs = _scanned(connection, of, columns, Reading(found.certain, "text", TEXT), rest, values)
    for arrays in packs:
        yield _batch(arrays, "d")


def functions(connection: sa.Connection, of: Selection, hasher: Hasher) -> list[str]:
    """Names of hash functions that cost less than a digest; none where what is newer can't be asked for."""
    if not _versioned(of):
        return []
    return [function.name for function in hasher.functions(connection, of) if function.name != CANONICAL]


def hashes(
    connection: sa.Connection, of: Selection, hasher: Hasher, name: str, since: int, rows_max: int
) -> Generator[pa.RecordBatch, None, None]:
    """Key and hash of at most so many rows whose version may be >= since, in one statement. name: of the function."""
    # Asked again: this connection may lead to another server, and one in this process has to be given the function.
    function = next((each for each in hasher.functions(connection, of) if each.name == name), None)
    if function is None:
        label = of.inspected.description.label
        raise IncompleteScan(f"{label}: its server hashes in another way than a moment ago.", hint="Run it again.")
    condition, _, values = newer(of, since)
    rest, limit = of.from_where(condition), f" LIMIT {rows_max}"
    told, wanted = function.packed, packed_key(of, hasher)
    # Where rows are packed rather than scanned: so few in one go, since to number them takes half as long again.
    if wanted is not None and hasher.packs_many:
        yield _batch(hasher.pack(connection, [*wanted, told], rest, values, limit), "h")
        return
    for arrays in _scanned(connection, of, of.key, Reading(function.hash, "integer", VERSION), rest + limit, values):
        yield _batch(arrays, "h")


def _versioned(of: Selection) -> bool:
    asked = of.projection.version
    if asked is None:
        return False
    version = of.inspected.column(asked.source)
    return of.dialect.versioned(version.stored, version.kind)


def _scanned(
    connection: sa.Connection,
    of: Selection,
    columns: Sequence[tuple[Field, Known, Reading]],
    told: Reading,
    rest: str,
    values: list[Any],
) -> Generator[list[pa.Array[Any]], None, None]:
    type_ = pa.int64() if told.kind is VERSION else pa.string()
    selected: list[tuple[Stored | None, Reading]] = [(known.stored, reading) for _, known, reading in columns]
    selected.append((None, told))
    for raw in of.dialect.scan(connection, selected, rest, values):
        *beside, last = raw
        arrays = [delivered_array(each, column, of, {}) for each, column in zip(beside, columns, strict=True)]
        yield [*arrays, last.cast(type_) if isinstance(last, pa.Array) else pa.array(last, type_)]


def _batch(arrays: list[pa.Array[Any]], last: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names=[*(f"c{at}" for at in range(len(arrays) - 1)), last])
