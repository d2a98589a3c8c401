"""How engines hold values: types, the values that each can hold, and how they go in.

What each engine holds is one table a file, in `trueup.testing.pairs.engines`: MariaDB has no infinity, PostgreSQL no
NUL in texts, Parquet's nanoseconds end in 2262.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from zoneinfo import ZoneInfo

from trueup.model.canonical import canonical_text
from trueup.model.kinds import INSTANT, TIMESTAMP
from trueup.model.numbers import ODD
from trueup.sides.sql.spelling import sql_timestamp, wall_clock
from trueup.testing.pairs import spelled
from trueup.testing.pairs.values import FAMILIES

Holds = Callable[[str], bool]
Spell = Callable[[str, random.Random], Any]
NOT_TEXT: Final = tuple(each for each in FAMILIES if each not in ("text", "enum"))


@dataclass(frozen=True)
class Type:
    """A type of an engine, for values of one kind.

    declared: in the engine's words. holds: whether a value (canonical text) fits. told: the side has to be told the
    kind; it would take the column for text, or for another kind. mistakes: it may hold what is no value of the kind.
    spell: what is handed to the engine; by default the Python value. hashed: the engine can say canonical texts of all
    its values in SQL. indexed: it can be part of an index. wall: it holds wall-clock times, which a zone turns into
    instants. zero_dates: what is no value in it is a zero date, which may be read as null.
    """

    declared: str
    family: str
    holds: Holds = lambda text: True
    told: bool = False
    mistakes: bool = False
    spell: Spell | None = None
    hashed: bool = True
    indexed: bool = True
    wall: bool = False
    zero_dates: bool = False

    def __repr__(self) -> str:
        return f"<{self.declared} for {self.family}>"

    def fits(self, text: str) -> bool:
        """Whether a value of the kind, or a mistake, can be held."""
        return (self.mistakes or not spelled.is_mistake(text, self.family)) and self.holds(text)

    def stored(self, text: str | None, chance: random.Random) -> Any:
        """What is handed to the engine."""
        if text is None:
            return None
        return spelled.value(text, self.family) if self.spell is None else self.spell(text, chance)


def wall(type_: Type, zone: ZoneInfo) -> Type:
    """A type of wall-clock times as it holds instants: by the clocks of a zone, without the hours they show twice."""

    def shown(text: str) -> str:
        return canonical_text(wall_clock(text, zone), TIMESTAMP) or ""

    def holds(text: str) -> bool:
        return text[:1].isdigit() and type_.holds(shown(text)) and canonical_text(shown(text), INSTANT, zone) == text

    def spell(text: str, chance: random.Random) -> Any:
        return type_.stored(shown(text), chance)

    return replace(type_, family="instant", holds=holds, spell=spell, mistakes=False)


def told(declared: str, most: int, *, nul: bool) -> tuple[Type, ...]:
    """A column of texts for each kind that is not text; most: letters that it holds."""
    holds = letters(most, nul=nul)
    return tuple(
        Type(declared, each, holds, told=True, mistakes=True, spell=written(each), hashed=False) for each in NOT_TEXT
    )


# What fits. Texts are canonical, of the kind that a type is for.


def whole(low: int, high: int) -> Holds:
    """Integers of a range."""
    return lambda text: not text.startswith(ODD) and low <= int(text) <= high


def signed(bits: int) -> Holds:
    """Integers of so many bits."""
    return whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def unsigned(bits: int) -> Holds:
    """Integers of so many bits, from 0."""
    return whole(0, 2**bits - 1)


def numeric(precision: int, scale: int, *, nan: bool = False) -> Holds:
    """Decimals of so many digits, and so many of them after the point."""

    def holds(text: str) -> bool:
        if not finite(text):
            return nan and text == "nan"
        before, _, after = text.lstrip("-").partition(".")
        return len(after) <= scale and len(before.lstrip("0")) <= precision - scale

    return holds


def finite(text: str) -> bool:
    """Numbers."""
    return text[-1:].isdigit()


def letters(most: int, *, nul: bool = True, padded: bool = False, encoding: str = "utf-8") -> Holds:
    """Texts of so many letters. padded: blanks at the end are not kept."""

    def holds(text: str) -> bool:
        if len(text) > most or (padded and text.endswith(" ")) or (not nul and "\0" in text):
            return False
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return False
        # MariaDB's latin1 has other letters there than Python's.
        return encoding != "latin-1" or not any("\x80" <= letter <= "\x9f" for letter in text)

    return holds


def octets(most: int, least: int = 0) -> Holds:
    """So many bytes."""
    return lambda text: 2 * least <= len(text) <= 2 * most


def years(low: str, high: str, digits: int = 6, *, infinite: bool = False) -> Holds:
    """Dates and times of years with four digits, which compare as texts; digits: of a fraction of seconds."""

    def holds(text: str) -> bool:
        if not text[:1].isdigit():
            return infinite
        return low <= text <= high and len(text.partition(".")[2].removesuffix("Z")) <= digits

    return holds


def known_days(text: str) -> bool:
    """Dates and times of years with four digits."""
    return text[:1].isdigit() and text >= "0001"


def clock(low: str, high: str, digits: int = 6) -> Holds:
    """Times of day without an offset."""

    def holds(text: str) -> bool:
        offset = "+" in text or "-" in text
        return not offset and text[:1].isdigit() and low <= text <= high and len(text.partition(".")[2]) <= digits

    return holds


def hours(digits: int) -> Holds:
    """Times of any length and sign without an offset."""
    return lambda text: "+" not in text and len(text.partition(".")[2]) <= digits


def is_object(text: str) -> bool:
    """JSON that is no mere number or text."""
    return text[:1] in ("{", "[")


# How a value goes in.


def plain(family: str) -> Spell:
    """As its canonical text."""
    return lambda text, chance: spelled.plain(text, family)


def written(family: str) -> Spell:
    """As any text that means it."""
    return lambda text, chance: spelled.written(text, family, chance)


def day(text: str, chance: random.Random) -> str:
    """A date, or date and time, as SQL writes it."""
    return sql_timestamp(text[1:] if text.startswith(ODD) else text)


def narrow(text: str, chance: random.Random) -> float:
    """As a float of 32 bits: the widest one's shortest text is a double beyond it."""
    number: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    return number


def packed_uuid(text: str, chance: random.Random) -> bytes:
    """As 16 bytes."""
    return bytes.fromhex(text.replace("-", ""))
