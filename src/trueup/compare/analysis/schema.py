"""What two schemas do not share: columns, types, widths, places, nulls and collations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trueup.compare.analysis.result import SchemaDifference
from trueup.compare.plan import Plan
from trueup.model.kinds import Column
from trueup.ports import Description

_TEXTUAL: Final = ("text", "enum")
_WIDTH: Final = re.compile(r"\((\d+)\)", re.ASCII)


def schema_differences(plan: Plan, left: Description, right: Description) -> Iterator[SchemaDifference]:
    """One-sided columns first, then by column in the order of the left side."""
    for name in plan.notes.only_left:
        yield SchemaDifference(name, None, "only_left", _told(left.column(name)), "")
    for name in plan.notes.only_right:
        yield SchemaDifference(None, name, "only_right", "", _told(right.column(name)))
    # Collations of two engines have other names, whatever they do.
    collated = left.system.partition(" ")[0] == right.system.partition(" ")[0]
    # A side that declares no column as required says nothing about nulls.
    says_null = all(any(not each.nullable for each in side.columns) for side in (left, right))
    keys = len(plan.left.key)
    pairs = zip((*plan.left.key, *plan.left.fields), (*plan.right.key, *plan.right.fields), strict=True)
    for at, (mine, theirs) in enumerate(pairs):
        a, b = left.column(mine.source), right.column(theirs.source)
        if a is not None and b is not None:
            yield from _column(a, b, says_null=says_null and at >= keys, collated=collated)


def _column(a: Column, b: Column, *, says_null: bool, collated: bool) -> Iterator[SchemaDifference]:
    def told(what: str, left: str, right: str) -> SchemaDifference:
        return SchemaDifference(a.name, b.name, what, left, right)

    if a.kind.name == b.kind.name == "decimal" and a.kind != b.kind:
        yield told("scale", _told(a), _told(b))
    elif a.kind != b.kind:
        yield told("type", _told(a), _told(b))
    elif a.kind.name in _TEXTUAL and _width(a) != _width(b) and a.declared and b.declared:
        yield told("width", _told(a), _told(b))
    if says_null and a.nullable != b.nullable:
        yield told("nullability", *("null allowed" if each.nullable else "not null" for each in (a, b)))
    if collated and a.collation and b.collation and a.collation != b.collation:
        yield told("collation", a.collation, b.collation)


def _told(column: Column | None) -> str:
    return "" if column is None else column.declared or str(column.kind)


def _width(column: Column) -> int | None:
    """Most characters, where the system's own words say so."""
    found = _WIDTH.search(column.declared)
    return int(found[1]) if found else None
