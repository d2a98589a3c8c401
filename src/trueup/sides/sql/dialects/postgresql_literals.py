"""Canonical texts as PostgreSQL reads them, and which of them its types can hold: it refuses to look for others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from trueup.model.canonical import canonical_text, is_odd, parse_json
from trueup.model.kinds import DECIMAL, Kind
from trueup.model.numbers import ODD
from trueup.model.times import US_PER_DAY, interval_text, parse_interval
from trueup.sides.sql.dialects import integer_value
from trueup.sides.sql.spelling import as_stored, signed_year

_INT4: Final = range(-(2**31), 2**31)
_INTEGERS: Final = {
    "int2": range(-(2**15), 2**15), "int4": _INT4, "int8": range(-(2**63), 2**63), "oid": range(2**32),
}  # fmt: skip
_NUMERIC: Final = re.compile(r"nan|-?(?:infinity|\d{1,131072}(?:\.\d{1,16383})?)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d:\d\d:\d\d(?:\.\d+)?)(?:[+-](\d\d:\d\d(?::\d\d)?))?", re.ASCII)
_LAST_TIME: Final = "24:00:00"
_FARTHEST_OFFSET: Final = "15:59:59"
# Julian day 0, which is the first day of dates and timestamps alike.
_FIRST_DAY: Final = (-4713, "-11-24")
_LAST_YEAR: Final = {"date": 5_874_897, "timestamp": 294_276}
_DIMENSIONS_MAX: Final = 6


def literal(text: str, kind: Kind) -> str:
    """A canonical text in the spelling that PostgreSQL reads."""
    if is_odd(text, kind):
        return text.removeprefix(ODD)
    match kind.name:
        case "bytes":
            return f"\\x{text}"
        case "date" | "timestamp":
            return _dated(text)
        case "array":
            return _array(json.loads(text), lambda item: literal(item, kind.element))
        case _:
            return text


def sought(text: str, base: str, kind: Kind) -> Any:
    """What to bind to find a canonical text in a column of this type and kind; None where it can't be there."""
    if is_odd(text, kind):
        return None
    match kind.name:
        case "integer":
            value = integer_value(text)
            return value if value is not None and value in _INTEGERS.get(base, ()) else None
        case "float":
            held = canonical_text(text, kind)  # in the column's own width, beyond which numbers are refused
            return None if is_odd(held, kind) else held
        case "interval":
            return _interval(text)
    return literal(text, kind) if _holds(text, kind) else None


def sought_array(text: str, asked: Kind, base: str, kind: Kind, zone: ZoneInfo | None) -> str | None:
    """The same of an array, whose elements are canonical texts of the kind that is asked for."""
    items = json.loads(text)
    sizes = _sizes(items)
    if sizes is None or len(sizes) > _DIMENSIONS_MAX or (items and 0 in sizes):
        return None
    found = {each: sought(as_stored(each, asked, kind, zone), base, kind) for each in _flat(items)}
    return None if None in found.values() else _array(items, lambda item: str(found[item]))


def sendable(text: str) -> bool:
    """Whether a text can hold it."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def _holds(text: str, kind: Kind) -> bool:
    match kind.name:
        case "decimal":
            return _NUMERIC.fullmatch(text) is not None
        case "text" | "enum":
            return sendable(text)
        case "time":
            found = _TIME.fullmatch(text)
            return found is not None and found[1] <= _LAST_TIME and (found[2] or "") <= _FARTHEST_OFFSET
        case "date" | "timestamp":
            if (parts := signed_year(text)) is None:
                return text in ("infinity", "-infinity")
            return parts[:2] >= _FIRST_DAY and parts[0] <= _LAST_YEAR[kind.name]
        case "json":
            return _holds_json(parse_json(text))
    return True


def _holds_json(value: object) -> bool:
    match value:
        case str():
            return sendable(value)
        case dict():
            return all(sendable(name) and _holds_json(each) for name, each in value.items())
        case list():
            return all(map(_holds_json, value))
        case None | bool():
            return True
    return _holds(canonical_text(value, DECIMAL) or "", DECIMAL)


def _interval(text: str) -> str | None:
    """In days, which count as 24 hours: the type holds more of them than of seconds."""
    months, us = parse_interval(text)
    days, of_day = divmod(us, US_PER_DAY)
    if months not in _INT4 or days not in _INT4:
        return None
    return f"P{months}M{days}D{interval_text(0, of_day).removeprefix('P')}"


def _dated(text: str) -> str:
    parts = signed_year(text)
    if parts is None:
        return text
    year, day, rest = parts
    return f"{year:04}{day}{rest}" if year > 0 else f"{1 - year:04}{day}{rest.replace('T', ' ')} BC"


def _array(items: Sequence[Any], spelled: Callable[[str], str]) -> str:
    return "{" + ",".join(_item(item, spelled) for item in items) + "}"


def _item(item: Any, spelled: Callable[[str], str]) -> str:
    if item is None:
        return "NULL"
    if isinstance(item, list):
        return _array(item, spelled)
    escaped = spelled(item).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _flat(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        elif item is not None:
            yield item


def _sizes(items: Sequence[Any]) -> tuple[int, ...] | None:
    """Of each dimension; None where the parts of one are not of one size."""
    inner = {_sizes(item) if isinstance(item, list) else () for item in items}
    if len(inner) > 1 or None in inner:
        return None
    return len(items), *(inner.pop() or () if inner else ())
