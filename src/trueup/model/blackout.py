"""Blackout windows: wall-clock times of the week in which no run starts.

A window is written `[DAYS] [HH:MM-HH:MM]`: `22:00-06:00` (every day), `Sat` (all of it), `Mon-Fri 08:00-18:00`,
`Sat,Sun 20:00-24:00`. One that passes midnight belongs to the day on which it begins.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from trueup.errors import ConfigError

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MIN: Final = 1_440
_WEEK_MIN: Final = 7 * _DAY_MIN
_ONE_DAY: Final = "|".join(_DAYS)
_SPAN: Final = rf"(?:{_ONE_DAY})(?:-(?:{_ONE_DAY}))?"
_WINDOW: Final = re.compile(rf"(?P<days>{_SPAN}(?:,{_SPAN})*)?\s*(?:(\d\d):(\d\d)-(\d\d):(\d\d))?\Z", re.ASCII)
_HINT: Final = "Write days, times or both: Sat, 22:00-06:00, Mon-Fri 08:00-18:00."


@dataclass(frozen=True, slots=True)
class Window:
    """One window. days: 0 for Monday. start_min, end_min: minutes since the midnight that begins the day."""

    days: frozenset[int]
    start_min: int
    end_min: int


@dataclass(frozen=True, slots=True)
class Blackout:
    """All windows of a pair, by the wall clock of a zone."""

    windows: tuple[Window, ...] = ()
    zone: str = "UTC"

    def end_us(self, at_us: int) -> int:
        """When the blackout that is at this time ends; the same time where there is none."""
        while (found := self._covering(at_us)) is not None:
            at_us = found[1]
        return at_us

    def start_us(self, at_us: int) -> int:
        """When the blackout that is at this time began; the same time where there is none."""
        found = self._covering(at_us)
        while found is not None:
            at_us = found[0]
            found = self._covering(at_us - 1)
        return at_us

    def _covering(self, at_us: int) -> tuple[int, int] | None:
        """Start and end of a window around this time."""
        if not self.windows:
            return None
        zone = ZoneInfo(self.zone)
        today = dt.datetime.fromtimestamp(at_us // 1_000_000, zone).date()
        # The next day too: where clocks are set back at midnight, its first hour comes before the end of this day.
        for days in (-1, 0, 1):
            date = today + dt.timedelta(days=days)
            for window in self.windows:
                if date.weekday() in window.days:
                    start_us = _instant_us(date, window.start_min, zone, fold=0)
                    end_us = _instant_us(date, window.end_min, zone, fold=1)
                    if start_us <= at_us < end_us:
                        return start_us, end_us
        return None


def _instant_us(date: dt.date, minute: int, zone: ZoneInfo, *, fold: int) -> int:
    """When the clock on the wall shows this; where it never does, the first time after that it shows."""
    wall = dt.datetime.combine(date, dt.time()) + dt.timedelta(minutes=minute)
    while (found := wall.replace(tzinfo=zone, fold=fold)).astimezone(dt.UTC).astimezone(zone) != found:
        wall += dt.timedelta(minutes=1)
    return round(found.timestamp()) * 1_000_000


def blackout(windows: Sequence[str], zone: str, what: str) -> Blackout:
    """The windows as people write them; ConfigError names `what` where one is none, or nothing is left of the week."""
    parsed = tuple(_window(text, what) for text in windows)
    if len({minute for window in parsed for minute in _minutes(window)}) == _WEEK_MIN:
        raise ConfigError(f"{what} leaves no time at all.", hint="Leave at least a minute of the week open.")
    return Blackout(parsed, zone)


def _window(text: str, what: str) -> Window:
    found = _WINDOW.fullmatch(text.strip().lower())
    if found is None or not found[0]:
        raise ConfigError(f"{what}: {text!r} is not a window.", hint=_HINT)
    days = frozenset(range(7)) if found["days"] is None else frozenset(_days(found["days"]))
    if found[2] is None:
        return Window(days, 0, _DAY_MIN)
    (start_h, start_m), (end_h, end_m) = (int(found[2]), int(found[3])), (int(found[4]), int(found[5]))
    start_min, end_min = start_h * 60 + start_m, end_h * 60 + end_m
    if start_m > 59 or end_m > 59 or start_min >= _DAY_MIN or end_min > _DAY_MIN or start_min == end_min:
        raise ConfigError(f"{what}: {text!r} has times that are no window.", hint=_HINT)
    return Window(days, start_min, end_min if end_min > start_min else end_min + _DAY_MIN)


def _days(text: str) -> Iterator[int]:
    for span in text.split(","):
        first, _, last = span.partition("-")
        start = _DAYS.index(first)
        for day in range(start, start + (_DAYS.index(last or first) - start) % 7 + 1):
            yield day % 7


def _minutes(window: Window) -> Iterator[int]:
    """The minutes of a week that it covers."""
    for day in window.days:
        for minute in range(window.start_min, window.end_min):
            yield (day * _DAY_MIN + minute) % _WEEK_MIN
