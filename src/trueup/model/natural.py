"""From canonical text back to Python values: what handlers receive and writers bind."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from typing import Any

from trueup.model import kinds
from trueup.model.canonical import is_odd, parse_json
from trueup.model.kinds import Kind
from trueup.model.times import US_PER_DAY, parse_interval, parse_us


def natural(text: str | None, kind: Kind) -> Any:
    """The Python value of a canonical text.

    Values that Python has no type for (infinite or five-digit-year dates, intervals with months, times over
    24 hours with an offset) stay text, and so do oddities, without their mark.
    """
    if text is None:
        return None
    if is_odd(text, kind):
        return text[1:]
    try:
        return _natural(text, kind)
    except (ValueError, OverflowError):
        return text


def _natural(text: str, kind: Kind) -> Any:
    match kind.name:
        case "boolean":
            return text == "true"
        case "integer":
            return int(text) if len(text) < 4_000 else int(decimal.Decimal(text))
        case "decimal":
            return decimal.Decimal(text)
        case "float":
            return float(text)
        case "bytes":
            return bytes.fromhex(text)
        case "uuid":
            return uuid.UUID(text)
        case "date":
            return dt.date.fromisoformat(text)
        case "time":
            return dt.time.fromisoformat(text) if text[2:3] == ":" and text < "24" else _timedelta(text)
        case "timestamp":
            base = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if kind.aware else None)
            return base + dt.timedelta(microseconds=parse_us(text, kind.aware, None))
        case "interval":
            return _timedelta(text)
        case "json":
            return parse_json(text)
        case "array":
            return _items(json.loads(text), kind.element)
        case _:
            return text


def _timedelta(text: str) -> dt.timedelta:
    months, us = parse_interval(text)
    if months:
        raise ValueError("months have no fixed length")
    return dt.timedelta(days=us // US_PER_DAY, microseconds=us % US_PER_DAY)


def _items(items: list[Any], element: Kind) -> list[Any]:
    return [_items(each, element) if isinstance(each, list) else natural(each, element) for each in items]


def kind_of(value: object) -> Kind:
    """The kind that a Python value suggests by its type."""
    match value:
        case bool():
            return kinds.BOOLEAN
        case int():
            return kinds.INTEGER
        case float():
            return kinds.FLOAT
        case decimal.Decimal():
            return kinds.DECIMAL
        case bytes() | bytearray() | memoryview():
            return kinds.BYTES
        case uuid.UUID():
            return kinds.UUID
        case dt.datetime():
            return kinds.INSTANT if value.tzinfo is not None else kinds.TIMESTAMP
        case dt.date():
            return kinds.DATE
        case dt.time():
            return kinds.TIME
        case dt.timedelta():
            return kinds.INTERVAL
        case dict():
            return kinds.JSON
        case list() | tuple():
            return Kind("array", item=next((kind_of(each) for each in value if each is not None), kinds.TEXT))
        case _:
            return kinds.TEXT
