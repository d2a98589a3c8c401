"""Reading whole scopes as Arrow batches; `find` reads single records by key, from the same expressions and rules."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
import sqlalchemy as sa

from trueup.errors import SchemaError
from trueup.model.canonical import canonical_text
from trueup.model.columns import delivered, versions
from trueup.model.kinds import Kind
from trueup.model.record import Field, Projection, version_of
from trueup.ports import Scope
from trueup.sides.scanning import schema_of, within
from trueup.sides.sql import ranges, windows
from trueup.sides.sql.dialects import VERSION, Dialect, Raw, Reading, Stored
from trueup.sides.sql.inspect import Inspected, Known
from trueup.sides.sql.spelling import TEXTUAL

pc: Any = pyarrow.compute
_ZERO_DATE: Final = r"^\d{4}-(?:00|\d\d-00)"
ZERO_DATES: Final = "zero dates read as null"


@dataclass(frozen=True)
class Selection:
    """One projection over one table.

    where: the side's own condition. zero_null: zero dates become null.
    """

    dialect: Dialect
    inspected: Inspected
    projection: Projection
    where: str | None
    zero_null: bool

    @cached_property
    def columns(self) -> list[tuple[Field, Known, Reading]]:
        """The projection's columns and how each is read."""
        answer = []
        for field in self.projection.columns:
            known = self.inspected.column(field.source)
            asked = known.kind if field is self.projection.version else field.kind
            answer.append((field, known, self.dialect.reading(known.stored, asked)))
        return answer

    def check(self) -> None:
        """Raises SchemaError where the table lacks a column of the projection."""
        for field in self.projection.columns:
            self.inspected.column(field.source)

    @cached_property
    def key(self) -> list[tuple[Field, Known, Reading]]:
        """The key's columns."""
        return self.columns[: len(self.projection.key)]

    def from_where(self, *conditions: str) -> str:
        """FROM and WHERE with the side's own condition and these."""
        verbatim = self.dialect.verbatim
        held = [*([f"({verbatim(self.where)})"] if self.where else []), *(each for each in conditions if each)]
        return f"FROM {self.dialect.named(self.inspected.table)}" + (f" WHERE {' AND '.join(held)}" if held else "")


# Scopes.


def scan(
    connection: sa.Connection,
    of: Selection,
    scope: Scope,
    warnings: dict[str, int],
    among: tuple[str, list[Any]] | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Every row in scope, in one statement and so in one snapshot. Counts oddities into `warnings`.

    among: one more condition, with what is bound in it.
    """
    schema = schema_of(of.projection)
    selected, at = _selected(of)
    conditions = [f"({of.dialect.verbatim(scope.where)})"] if scope.where else []
    conditions.append(ranges.condition(of, scope))
    order = ""
    binds: list[Any] = []
    if scope.since is not None:
        if at is None:
            raise SchemaError(f"{of.inspected.description.label} can't be ordered by version: none is declared.")
        condition, order, binds = newer(of, scope.since)
        conditions.append(condition)
    span = None if scope.window is None else windows.interval(of, scope.window)
    if span is not None:
        conditions.append(span.condition)
        binds = [*binds, *span.binds]
        selected.append((span.known.stored, of.dialect.reading(span.known.stored, span.known.kind)))
    if among is not None:
        conditions.append(among[0])
        binds = [*binds, *among[1]]
    for raw in of.dialect.scan(connection, selected, of.from_where(*conditions) + order, binds):
        arrays = [
            _version_array(array, known, reading)
            if index == at
            else delivered_array(array, (field, known, reading), of, warnings)
            for index, (array, (field, known, _), (_, reading)) in enumerate(zip(raw, of.columns, selected))  # noqa: B905  the interval's column stands behind
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if span is not None and not span.exact:
            times = _version_array(raw[-1], span.known, selected[-1][1])
            batch = batch.filter(within(times, span.low, span.high))
        # The condition on a wall clock is coarse; what counts is the version as delivered.
        yield batch if at is None or scope.since is None else _at_least(batch, at, scope.since)


def _at_least(batch: pa.RecordBatch, at: int, version: int) -> pa.RecordBatch:
    return batch.filter(pc.greater_equal(batch.column(at), pa.scalar(version, pa.int64())))


def _selected(of: Selection) -> tuple[list[tuple[Stored | None, Reading]], int | None]:
    selected: list[tuple[Stored | None, Reading]] = [(known.stored, reading) for _, known, reading in of.columns]
    if of.projection.version is None:
        return selected, None
    at = len(of.projection.key)
    known = of.columns[at][1]
    if not of.dialect.versioned(known.stored, known.kind):
        raise SchemaError(
            f"{of.inspected.description.label}: {known.stored.name} ({known.stored.declared}) can't be a version.",
            hint="A version is an integer or a timestamp.",
        )
    if sql := of.dialect.version(known.stored, known.kind, known.zone):
        selected[at] = (None, Reading(sql, "integer", VERSION))
    return selected, at


def newer(of: Selection, since: int) -> tuple[str, str, list[Any]]:
    """A condition that lets pass every version >= since, the order by version and key, and what is bound in them."""
    known = of.columns[len(of.projection.key)][1]
    condition, binds = of.dialect.since(known.stored, known.kind, known.zone, since)
    key = [of.dialect.quoted(field.source) for field, _, _ in of.key]
    by = [of.dialect.ordered(known.stored, known.kind, known.zone), *key]
    return condition, f" ORDER BY {', '.join(by)}", binds


def _version_array(array: Raw, known: Known, reading: Reading) -> pa.Array[Any]:
    if reading.kind is VERSION:
        return array.cast(pa.int64()) if isinstance(array, pa.Array) else pa.array(array, pa.int64())
    if not isinstance(array, pa.Array):
        return pa.array([version_value(value, known) for value in array], pa.int64())
    return versions(delivered(array, known.kind, Field("", "", known.kind), known.zone), known.kind)


def delivered_array(
    raw: Raw, column: tuple[Field, Known, Reading], of: Selection, warnings: dict[str, int]
) -> pa.Array[Any]:
    """A raw column as it must be delivered."""
    field, known, reading = column
    if not isinstance(raw, pa.Array):
        types = set(map(type, raw)) - {type(None)}
        parts = [[value if type(value) is each else None for value in raw] for each in types]
        # Each value is delivered as one of its own type, all of a type at once.
        found = (delivered_array(pa.array(part), column, of, warnings) for part in parts)
        answer: pa.Array[Any] = pc.coalesce(*found)
        return answer
    array: pa.Array[Any] = raw
    if reading.shape == "hex":
        array = pa.array([plain(value, reading) for value in array.to_pylist()], pa.binary())
    if known.stored.base in of.dialect.zero_dates and of.zero_null:
        zero = pc.match_substring_regex(array, _ZERO_DATE)
        if count := pc.sum(zero).as_py():
            warnings[ZERO_DATES] = warnings.get(ZERO_DATES, 0) + count
            array = pc.if_else(zero.fill_null(False), None, array)
    if spelled_as(field, known) is not field.kind:
        array = delivered(array, known.kind, Field("", "", known.kind), known.zone)
    return delivered(array, known.kind, field, known.zone)


# Values.


def spelled_as(field: Field, known: Known) -> Kind:
    """The kind whose canonical text a raw value has: its own, where it is asked for as text."""
    # Not the engine's spelling but the canonical one, so that 1.50 as text is 1.5 everywhere.
    return known.kind if field.kind.name in TEXTUAL and known.kind.name not in TEXTUAL else field.kind


def version_value(value: Any, known: Known) -> int | None:
    """A raw version as int64."""
    return version_of(canonical_text(value, known.kind, known.zone), known.kind)


def plain(value: Any, reading: Reading) -> Any:
    """A raw value without the form in which it came."""
    return bytes.fromhex(value) if reading.shape == "hex" and isinstance(value, str) else value


def text(value: Any, known: Known, field: Field, of: Selection) -> str | None:
    """The canonical text of a plain value in the kind that is asked for; the twin of `delivered_array`."""
    if of.zero_null and known.stored.base in of.dialect.zero_dates and isinstance(value, str):
        value = None if value[5:7] == "00" or value[8:10] == "00" else value
    return canonical_text(value, spelled_as(field, known), known.zone)
