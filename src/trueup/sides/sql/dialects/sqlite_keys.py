"""How SQLite's columns, which hold any value, may spell a key: in the usual ways, and where the others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from trueup.model.canonical import is_odd
from trueup.model.kinds import Kind
from trueup.model.natural import natural
from trueup.model.times import US_PER_DAY, parse_us, timestamp_text
from trueup.sides.sql.dialects import integer_value
from trueup.sides.sql.spelling import NUMBERS, signed_year, spellings

INT64: Final = range(-(2**63), 2**63)


def usual(text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
    """Values to bind for a canonical text: the usual spellings, each in the types that a program may have chosen."""
    texts: list[Any] = list(spellings(text, kind, zone))
    if is_odd(text, kind):
        return [*texts, *_numbers(texts[0], kind)]
    match kind.name:
        case "boolean":
            return [*texts, int(text == "true")]
        case "integer" | "decimal" | "float":
            return [*texts, *_numbers(text, kind)]
        case "bytes":
            return [*texts, bytes.fromhex(text)]
        case "uuid":
            return [*texts, natural(text, kind).bytes]
    return [each for each in texts if not any("\ud800" <= letter <= "\udfff" for letter in each)]


def _numbers(text: str, kind: Kind) -> list[int | float]:
    """The number that a text says, if the kind is one of numbers."""
    whole = integer_value(text)
    if kind.name not in (*NUMBERS, "boolean") or text == "nan":
        return []
    try:
        return [whole if whole is not None and whole in INT64 else float(text)]
    except ValueError:
        return []


def beyond(name: str, kind: Kind) -> Sequence[str]:
    """Conditions that spellings meet which are not listed; an empty one where they may be anywhere."""
    match kind.name:
        case "text" | "enum":
            return f"{name} < ''", f"{name} >= x''"
        case "integer":
            return (f"{name} >= '' AND {name} IS NOT CAST(CAST({name} AS INTEGER) AS TEXT)",)
        case "float" if kind.bits == 64:
            # Whole numbers that are no float are rounded to one.
            wide = [f"{name} {side} AND typeof({name}) = 'integer'" for side in (f"> {2**53}", f"< -{2**53}")]
            return f"{name} >= ''", *wide
        case "decimal" | "boolean" if kind.bits == 64:
            return (f"{name} >= ''",)
        case "bytes":
            return (f"{name} < x''",)
        case "uuid":
            spelled = f"length({name}) IN (32, 36) AND {name} IN (lower({name}), upper({name}))"
            return (f"NOT (typeof({name}) = 'text' AND {spelled} OR length({name}) = 16)",)
    return ("",)


def within_days(name: str, text: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Whatever the zone, a text of a time begins with a day near it, unless it begins with no digit at all.

    The bounds look like no number: to the columns' numeric affinity '0' would be one.
    """
    conditions: list[tuple[str, tuple[Any, ...]]] = [(f"{name} < '/~'", ()), (f"{name} >= ':'", ())]
    parts = signed_year(text)
    if parts is None or not 0 < parts[0] < 9999:
        return conditions
    us = parse_us(text[:10], aware=False, zone=None)
    near = [timestamp_text(us + days * US_PER_DAY, aware=False)[:10] for days in (-2, 3)]
    return [*conditions, (f"{name} >= ? AND {name} < ?", tuple(near))]


def is_utf8(text: bytes | None) -> bool:
    """Whether bytes are text in UTF-8; null is no other text."""
    try:
        return text is None or text.decode() is not None
    except UnicodeDecodeError:
        return False
