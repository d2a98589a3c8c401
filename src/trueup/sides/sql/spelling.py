"""Canonical texts as engines spell them: in a column of another kind, or as text that people wrote."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from typing import Final
from zoneinfo import ZoneInfo

from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import JSON, Kind
from trueup.model.natural import natural
from trueup.model.numbers import ODD
from trueup.model.times import parse_us, timedelta_us, timestamp_text

TEXTUAL: Final = ("text", "enum")
NUMBERS: Final = ("integer", "decimal", "float")
_INFINITE: Final = ("infinity", "-infinity")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BOOLEANS: Final = {
    "true": ("true", "t", "1", "True", "TRUE", "T"),
    "false": ("false", "f", "0", "False", "FALSE", "F"),
}
_SIGNED_YEAR = re.compile(r"([+-]?\d{4,7})(-\d\d-\d\d)(.*)\Z", re.ASCII | re.DOTALL)


def as_stored(text: str, kind: Kind, stored: Kind, zone: ZoneInfo | None) -> str:
    """A canonical text of `kind` as the canonical text of the column's own kind; odd where it does not fit.

    zone: the zone whose wall clock the column shows, where it holds wall-clock times.
    """
    if stored.name in TEXTUAL:
        return text[1:] if is_odd(text, kind) else text
    if is_odd(text, kind) or (kind.name == stored.name and kind.aware == stored.aware):
        return text
    if kind.name == "boolean" and stored.name in NUMBERS:
        return "1" if text == "true" else "0"
    if kind.name == "timestamp" and kind.aware and not stored.aware:
        text = wall_clock(text, zone)
    if kind.name == "array" and stored.name == "json":
        return canonical_text(natural(text, kind), JSON) or ODD
    return canonical_text(text.replace("-", "") if kind.name == "uuid" else text, stored, zone) or ""


def wall_clock(instant: str, zone: ZoneInfo | None) -> str:
    """What a clock of `zone` (UTC where none is declared) shows at a canonical instant."""
    if instant in _INFINITE or zone is None:
        return instant.removesuffix("Z")
    try:
        shown = (_EPOCH + dt.timedelta(microseconds=parse_us(instant, aware=True, zone=None))).astimezone(zone)
    except OverflowError:
        return ODD + instant
    return timestamp_text(timedelta_us(shown.replace(tzinfo=dt.UTC) - _EPOCH), aware=False)


def signed_year(text: str) -> tuple[int, str, str] | None:
    """(year, the rest of the date, what follows) of a canonical date or timestamp; None for an infinity."""
    found = _SIGNED_YEAR.match(text)
    return None if found is None else (int(found[1]), found[2], found[3])


def sql_timestamp(text: str) -> str:
    """A canonical timestamp with a blank for the T and without the Z."""
    return text.removesuffix("Z").replace("T", " ")


def spellings(text: str, kind: Kind, zone: ZoneInfo | None) -> tuple[str, ...]:
    """Texts that people write for a canonical text; the canonical one is among them."""
    if is_odd(text, kind):
        return (text[1:],)
    match kind.name:
        case "boolean":
            return _BOOLEANS[text]
        case "uuid":
            plain = text.replace("-", "")
            return text, text.upper(), plain, plain.upper()
        case "bytes":
            return text, text.upper(), f"\\x{text}", f"0x{text}"
        case "date":
            return text, f"{text} 00:00:00", f"{text}T00:00:00"
        case "timestamp" if text not in _INFINITE:
            return tuple(_timestamps(text, kind, zone))
        case _:
            return (text,)


def _timestamps(text: str, kind: Kind, zone: ZoneInfo | None) -> dict[str, None]:
    """As a dict for its order without repeats: blank or T; a fraction of 0, 3 or 6 digits; Z or +00:00."""
    shown = [(text.removesuffix("Z"), suffix) for suffix in (("Z", "+00:00", "+00") if kind.aware else ("",))]
    if kind.aware and zone is not None:
        shown.append((wall_clock(text, zone), ""))
    spelled = dict.fromkeys([text])
    for (wall, suffix), separator in itertools.product(shown, (" ", "T")):
        whole, _, fraction = wall.partition(".")
        widths = {len(fraction), 6, *([3] if len(fraction) <= 3 else [])}
        for width in sorted(widths):
            dot = f".{fraction.ljust(width, '0')}" if width else ""
            spelled[f"{whole.replace('T', separator)}{dot}{suffix}"] = None
        if not fraction and whole.endswith(":00") and not suffix:
            spelled[whole.replace("T", separator).removesuffix(":00")] = None
    return spelled
