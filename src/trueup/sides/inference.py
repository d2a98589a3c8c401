"""Which kind a column of Python values has, where nobody declared it."""

from __future__ import annotations

from collections.abc import Iterable

from trueup.model import kinds
from trueup.model.kinds import Kind
from trueup.model.natural import kind_of

_NUMBERS = {"integer", "decimal", "float"}


def inferred(values: Iterable[object]) -> Kind:
    """The narrowest kind that holds every value without loss; text for none at all and for mixtures.

    Whole and broken numbers together are decimals; dates and wall-clock times are timestamps; objects and
    lists together are JSON.
    """
    return joined({kind_of(value) for value in values if value is not None})


def joined(found: set[Kind]) -> Kind:
    """The narrowest kind that holds all values of all these kinds; text where there is none."""
    names = {kind.name for kind in found}
    if len(found) == 1:
        return next(iter(found))
    if names == {"array"}:
        return Kind("array", item=joined({kind.item or kinds.TEXT for kind in found}))
    if names and names <= _NUMBERS:
        return kinds.DECIMAL
    if names == {"date", "timestamp"} and kinds.INSTANT not in found:
        return kinds.TIMESTAMP
    if names and names <= {"json", "array"}:
        return kinds.JSON
    return kinds.TEXT
