"""Canonical texts as the numbers and times that they spell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from typing import Final

from trueup.model.kinds import DECIMAL, INTEGER, TIMESTAMP, Kind
from trueup.model.numbers import ODD
from trueup.model.times import parse_us

# Longer numbers are rare, and their arithmetic is slow.
_DIGITS_MAX: Final = 60
# Every cause looks at the same values again.
_KEPT: Final = 16_384
# Values of a text column that are looked at to see what they are.
_LOOKED_AT: Final = 500
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})\Z", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?\Z", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_OFFSET: Final = re.compile(r"(?:Z|:\d\d(?:\.\d+)?\s?[+-]\d\d(?::?\d\d)?)\Z", re.ASCII)


@lru_cache(maxsize=_KEPT)
def number_of(text: str | None) -> Decimal | None:
    """The finite number of at most 60 digits that a canonical text spells, or None."""
    if text is None or len(text) > _DIGITS_MAX or text.startswith(ODD):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


@lru_cache(maxsize=_KEPT)
def us_of(text: str | None) -> int | None:
    """Microseconds since 1970 (since midnight, of a time of day) that a canonical text spells, or None."""
    if text is None:
        return None
    moment = f"1970-01-01T{text}" if text[2:3] == ":" else text
    try:
        return parse_us(moment, _OFFSET.search(moment) is not None, None)
    except ValueError:
        return None


def spelled_kind(kind: Kind, texts: Iterable[str | None]) -> Kind:
    """What a column of text holds where all of some of its values are whole numbers, numbers or times; else its kind.

    A number with zeros in front is a code, and stays text.
    """
    if kind.name not in ("text", "enum"):
        return kind
    known = list(islice((text for text in texts if text), _LOOKED_AT))
    if not known:
        return kind
    if all(_INTEGER.match(text) for text in known):
        return INTEGER
    if all(_DECIMAL.match(text) and number_of(text) is not None for text in known):
        return DECIMAL
    if all(_TIME.match(text) and us_of(text) is not None for text in known):
        return TIMESTAMP
    return kind


def places_of(number: Decimal) -> int:
    """Digits after the point."""
    return max(-int(number.as_tuple().exponent), 0)
