"""Intervals of time: the condition that selects one, on the bare column so that an index serves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trueup.model.kinds import Kind
from trueup.model.times import US_PER_DAY
from trueup.model.window import Span
from trueup.sides import scanning
from trueup.sides.sql.inspect import Inspected, Known

if TYPE_CHECKING:
    from trueup.sides.sql.read import Selection


@dataclass(frozen=True, slots=True)
class Interval:
    """What selects an interval. low, high: bounds in the column's own terms. exact: the condition is not too wide."""

    known: Known
    condition: str
    binds: tuple[Any, ...]
    low: int | None
    high: int | None
    exact: bool


def kind_of(inspected: Inspected, column: str) -> Kind:
    """The kind of a column of dates or times; SchemaError where it is none."""
    described = inspected.description
    return scanning.check_window(column, described.columns, described.label)


def interval(of: Selection, span: Span) -> Interval:
    """How the records of the interval are selected."""
    kind = kind_of(of.inspected, span.column)
    known = of.inspected.column(span.column)
    low, high = span.bounds(kind)
    if kind.name == "date":
        # A date is its midnight: the first that is not before a bound.
        low, high = (None if at is None else -(-at // US_PER_DAY) * US_PER_DAY for at in (low, high))
    conditions, binds = [], []
    for bound, select in ((low, of.dialect.since), (high, of.dialect.until)):
        if bound is not None:
            sql, values = select(known.stored, kind, known.zone, bound)
            conditions.append(sql)
            binds += values
    exact = not (kind.aware and not known.stored.kind.aware) and known.stored.kind.name == kind.name
    return Interval(known, " AND ".join(conditions), tuple(binds), low, high, exact)


def narrowed(of: Selection, span: Span) -> Selection | None:
    """The selection with the interval as its own condition; None where that would take in too much.

    Only for drivers that format with %: their engines are those that can sum up canonical hashes.
    """
    found = interval(of, span)
    if not found.exact or of.dialect.mark != "%s":
        return None
    sql = found.condition % tuple(f"'{value}'" for value in found.binds)
    return replace(of, where=sql if of.where is None else f"({of.where}\n) AND {sql}")
