"""Likely causes of a difference in one column: one table, one small pure function for each.

A function takes the value that is whole and the value that suffered. A cause that has a direction is asked both
ways, so that it can be said on which side it happened.
"""

from __future__ import annotations

import html
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Final

from trueup.compare.analysis.spelled import number_of, places_of, us_of
from trueup.model.canonical import nfc
from trueup.model.numbers import ODD, WIDE, decimal_text

Text = str | None
# Values of the records that fit, whole and suffered.
Pairs = Sequence[tuple[Text, Text]]

_TEXT: Final = frozenset(("text", "enum"))
_NUMBER: Final = frozenset(("integer", "decimal", "float"))
_TIME: Final = frozenset(("timestamp", "date", "time"))
_ALL: Final = frozenset[str]()

_QUARTER_US: Final = 15 * 60 * 1_000_000
# Zones lie at most 14 hours from UTC.
_ZONE_US_MAX: Final = 14 * 4 * _QUARTER_US
# A zone has two offsets in a year; a few more are left to its history.
_SHIFTS_MAX: Final = 4
_UNITS: Final = (
    ("milliseconds", 1_000), ("seconds", 1_000_000), ("minutes", 60_000_000), ("hours", 3_600_000_000),
    ("days", 86_400_000_000),
)  # fmt: skip
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LOST: Final = re.compile(r"[?\ufffd]+")


@dataclass(frozen=True, slots=True)
class Cause:
    """One likely cause.

    name: stable, for programs. kinds: of columns that can suffer it; empty for all. said: for people; {side} and
    {other} are the side where it happened and the other, {more} what `more` tells. holds: whether a pair of values
    shows it. directed: whether `holds` must be asked both ways. more: what all pairs together tell; None where
    together they show something else. advice: an option of `diff`; {name} is the column, {more} as above.
    """

    name: str
    kinds: frozenset[str]
    said: str
    holds: Callable[[Text, Text], bool]
    directed: bool = True
    more: Callable[[Pairs], str | None] = lambda pairs: ""
    advice: str = ""


# ── any kind ─────────────────────────────────────────────────────────────────────────────────────────


def is_null(whole: Text, lost: Text) -> bool:
    """No value on one side."""
    return whole not in (None, "") and lost is None


def is_null_or_empty(empty: Text, null: Text) -> bool:
    """Empty text and null are not told apart."""
    return empty == "" and null is None


def is_unfit(fit: Text, unfit: Text) -> bool:
    """A value that is none of the column's kind."""
    return (unfit or "").startswith(ODD) and not (fit or "").startswith(ODD)


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────


def _texts(same: Callable[[str, str], bool]) -> Callable[[Text, Text], bool]:
    """A test of two texts that are not empty."""
    return lambda whole, lost: bool(whole and lost) and whole != lost and same(whole or "", lost or "")


def is_case(a: str, b: str) -> bool:
    """Only upper and lower case differ."""
    return a.casefold() == b.casefold()


def is_spaces(a: str, b: str) -> bool:
    """Only blanks around the text differ."""
    return a.strip() == b.strip()


def is_line_ends(a: str, b: str) -> bool:
    """Only line ends differ."""
    return ("\r" in a or "\r" in b) and _lines(a) == _lines(b)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_white_space(a: str, b: str) -> bool:
    """Only blanks between words differ, no-break spaces among them."""
    return a.strip() != b.strip() and not is_line_ends(a, b) and a.split() == b.split()


def is_unicode_form(a: str, b: str) -> bool:
    """Composed and decomposed characters."""
    return not (a.isascii() and b.isascii()) and nfc(a) == nfc(b)


def is_mojibake(whole: str, lost: str) -> bool:
    """UTF-8 that was read in a one-byte encoding."""
    if whole.isascii() or len(lost) <= len(whole):
        return False
    for encoding in ("latin-1", "cp1252"):
        try:
            if lost.encode(encoding).decode() == whole:
                return True
        except UnicodeError:
            continue
    return False


def is_replaced(whole: str, lost: str) -> bool:
    """Characters that an encoding lacked became ? or U+FFFD."""
    if whole.isascii() or _LOST.search(lost) is None:
        return False
    parts = [re.escape(each) for each in re.split(r"[^\x00-\x7f]+", whole)]
    return re.fullmatch(r"[?\ufffd]+".join(parts), lost) is not None


def is_accents(whole: str, lost: str) -> bool:
    """Letters without their accents."""
    if whole.isascii() or nfc(whole) == nfc(lost):
        return False
    bare = "".join(each for each in unicodedata.normalize("NFD", whole) if not unicodedata.combining(each))
    return nfc(bare) == nfc(lost)


def is_escaped(whole: str, lost: str) -> bool:
    """Escaped as HTML once too often."""
    return "&" in lost and html.unescape(lost) == whole


def is_zeros(whole: str, lost: str) -> bool:
    """Leading zeros are gone: a code went through a number."""
    return whole.isascii() and whole.isdigit() and whole.startswith("0") and (whole.lstrip("0") or "0") == lost


def is_truncated(whole: str, lost: str) -> bool:
    """The beginning of the text, and nothing else."""
    return len(lost) < len(whole) and whole.startswith(lost) and bool(whole[len(lost) :].strip())


def _cut_at(pairs: Pairs) -> str:
    """Where texts were cut, if all at one place; a cut before a blank may have lost the blank too."""
    longest = max(len(lost or "") for _, lost in pairs)
    at_end = all(len(lost or "") in (longest, len((whole or "")[:longest].rstrip())) for whole, lost in pairs)
    return f" after {longest:,} characters" if at_end else ""


def is_notation(a: str, b: str) -> bool:
    """The same number or time, written otherwise."""
    x, y = number_of(a), number_of(b)
    if x is not None and y is not None:
        return x == y and not (is_zeros(a, b) or is_zeros(b, a))
    us = us_of(a) if _DAY.match(a) and _DAY.match(b) else None
    return us is not None and us == us_of(b)


def _meant(pairs: Pairs) -> str:
    if all(number_of(a) is not None for a, _ in pairs):
        return "decimal"
    zoned = any((each or "").endswith("Z") for pair in pairs for each in pair)
    return "instant" if zoned else "timestamp"


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────


def _rounds(whole: Text, lost: Text, *ways: str) -> bool:
    a, b = number_of(whole), number_of(lost)
    if a is None or b is None or places_of(b) >= places_of(a):
        return False
    # The lost text has no zeros at its end: 2.00 is 2, so more places than it shows may have been kept.
    return any(
        a.quantize(Decimal(1).scaleb(-places), rounding=way, context=WIDE) == b
        for places in range(places_of(b), places_of(a))
        for way in ways
    )


def is_rounded(whole: Text, lost: Text) -> bool:
    """Rounded to fewer places; ties either way."""
    return _rounds(whole, lost, ROUND_HALF_UP, ROUND_HALF_EVEN)


def is_cut_places(whole: Text, lost: Text) -> bool:
    """Places cut off, not rounded."""
    return _rounds(whole, lost, ROUND_DOWN)


def _places(pairs: Pairs) -> str:
    most = max(places_of(number_of(lost) or Decimal()) for _, lost in pairs)
    return f"{most}"


def is_single_precision(a: Text, b: Text) -> bool:
    """The same float of 32 bits."""
    x, y = number_of(a), number_of(b)
    if x is None or y is None or x == y or max(abs(x), abs(y)) > 3e38:
        return False
    return struct.pack("<f", float(x)) == struct.pack("<f", float(y))


def is_sign(a: Text, b: Text) -> bool:
    """The opposite sign."""
    x, y = number_of(a), number_of(b)
    return x is not None and y is not None and x != 0 and x == -y


# ── times ────────────────────────────────────────────────────────────────────────────────────────────


def is_time_zone(a: Text, b: Text) -> bool:
    """Apart by quarters of an hour, and at most as far as zones are; whether or not both say theirs."""
    x, y = _moment_us(a), _moment_us(b)
    return x is not None and y is not None and 0 < abs(y - x) <= _ZONE_US_MAX and (y - x) % _QUARTER_US == 0


def _moment_us(text: Text) -> int | None:
    return None if text is None else us_of(text.removeprefix(ODD))


def _shifts(pairs: Pairs) -> str | None:
    """The few shifts that zones explain; many different ones are something else."""
    found = Counter((_moment_us(b) or 0) - (_moment_us(a) or 0) for a, b in pairs)
    if len(found) > _SHIFTS_MAX:
        return None
    return " or ".join(_hours(shift) for shift, _ in found.most_common())


def _hours(us: int) -> str:
    return f"{decimal_text(Decimal(abs(us)) / 3_600_000_000)} h {'later' if us > 0 else 'earlier'}"


def is_time_precision(whole: Text, lost: Text) -> bool:
    """Cut or rounded to a coarser unit of time."""
    return _unit(whole, lost) is not None


def _unit(whole: Text, lost: Text) -> int | None:
    """Number of the finest unit that explains it."""
    x, y = us_of(whole), us_of(lost)
    if x is None or y is None:
        return None
    for at, (_, size) in enumerate(_UNITS):
        if x % size and y % size == 0 and (y == x - x % size or abs(y - x) * 2 <= size):
            return at
    return None


def _unit_name(pairs: Pairs) -> str:
    return _UNITS[max(unit for whole, lost in pairs if (unit := _unit(whole, lost)) is not None)][0]


def is_day_month(a: Text, b: Text) -> bool:
    """Day and month in each other's place."""
    x, y = a or "", b or ""
    return x != y and len(x) >= 10 and (x[:4], x[5:7], x[8:10], x[10:]) == (y[:4], y[8:10], y[5:7], y[10:])


# In the order in which they are believed where several explain as many records.
CAUSES: Final = (
    Cause("null", _ALL, "null at {side}", is_null),
    Cause("null-or-empty", _ALL, "null at {side}, empty at {other}", is_null_or_empty),
    Cause("case", _TEXT, "only upper and lower case", _texts(is_case), False, advice="--fold {name}=case"),
    Cause("spaces", _TEXT, "only blanks around the text", _texts(is_spaces), False, advice="--fold {name}=trim"),
    Cause("line-ends", _TEXT, "only line ends", _texts(is_line_ends), False),
    Cause("white-space", _TEXT, "only blanks between words", _texts(is_white_space), False),
    Cause("unicode-form", _TEXT, "only Unicode form: composed, decomposed", _texts(is_unicode_form), False,
          advice="--fold {name}=nfc"),
    Cause("mojibake", _TEXT, "UTF-8 read in a one-byte encoding at {side}", _texts(is_mojibake)),
    Cause("replaced", _TEXT, "characters replaced by ? or \ufffd at {side}", _texts(is_replaced)),
    Cause("accents", _TEXT, "accents lost at {side}", _texts(is_accents)),
    Cause("escaped", _TEXT, "escaped as HTML at {side}", _texts(is_escaped)),
    Cause("zeros", _TEXT, "leading zeros lost at {side}", _texts(is_zeros)),
    Cause("notation", _TEXT, "the same number or time, written otherwise", _texts(is_notation), False, more=_meant,
          advice="--type {name}={more}"),
    Cause("rounded", _NUMBER, "rounded to {more} places at {side}", is_rounded, more=_places,
          advice="--places {name}={more}"),
    Cause("cut-places", _NUMBER, "cut, not rounded, to {more} places at {side}", is_cut_places, more=_places),
    Cause("single-precision", _NUMBER, "equal as 32-bit floats", is_single_precision, False),
    Cause("sign", _NUMBER, "opposite signs", is_sign, False),
    Cause("time-zone", _TIME, "{more} at right: a time zone", is_time_zone, False, more=_shifts,
          advice="--zone SIDE=ZONE"),
    Cause("time-precision", _TIME, "only whole {more} at {side}", is_time_precision, more=_unit_name),
    Cause("day-month", _TIME, "day and month swapped", is_day_month, False),
    # Last: text may spell a number that was rounded, and no value of a kind may be one all the same.
    Cause("truncated", _TEXT, "cut off at {side}{more}", _texts(is_truncated), more=_cut_at),
    Cause("unfit", frozenset(("boolean", "uuid", "bytes", "json", "interval")) | _NUMBER | _TIME,
          "no value of the column's kind at {side}", is_unfit),
)  # fmt: skip
