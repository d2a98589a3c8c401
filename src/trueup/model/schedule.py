"""When runs are due: an interval or a cron line, a zone, a shift of its own, and blackout windows.

Times are computed from nothing but the declaration: whoever asks at whatever time gets the same ones.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from trueup.errors import ConfigError
from trueup.model.blackout import Blackout, blackout
from trueup.model.duration import duration_us

# What a schedule starts: look for changed records, compare everything, compare what changed.
SWEEP: Final = "sweep"
COMPARE: Final = "compare"
CHANGED: Final = "changed"
COUNT_MAX: Final = 10_000
_FIELDS: Final = 5
_SECOND_US: Final = 1_000_000
_OPEN: Final = Blackout()
_HINT: Final = 'Write an interval such as 10m or 1h, or a cron line such as "0 3 * * *".'


@dataclass(frozen=True, slots=True)
class Schedule:
    """When one kind of run of a pair is due.

    rule: as declared. every_us: the interval, or 0 where `rule` is a cron line. zone: of the cron line. shift_us: how
    much later than the rule says every time is. A time that falls into a blackout moves to its end.

    Cron lines (`cronsim`, as Debian's cron): a fixed time of day comes once on every day that the line names, at the
    first of two equal wall times in autumn, and as soon as the clock has jumped over it in spring. A line whose minute
    or hour begins with `*` follows real time.
    """

    rule: str
    every_us: int = 0
    zone: str = "UTC"
    shift_us: int = 0
    blackout: Blackout = _OPEN

    def next_due(self, after_us: int) -> int:
        """The first time after this one. Microseconds UTC, as all times."""
        # A time before this one may have moved behind it, to the end of the blackout that is now.
        start_us = self.blackout.start_us(after_us)
        due_us = self._next(start_us - 1 if start_us < after_us else after_us)
        return self.blackout.end_us(due_us)

    def first_due(self, now_us: int) -> int:
        """When a schedule that is new is due: an interval at once, a cron line at its next time."""
        return self.blackout.end_us(now_us) if self.every_us else self.next_due(now_us)

    def count(self, after_us: int, until_us: int) -> int:
        """How many times there are after `after_us`, up to and with `until_us`; counts to 10,000."""
        if self.every_us and not self.blackout.windows:
            return max(0, self._place(until_us) - self._place(after_us))
        found = 0
        while found < COUNT_MAX and (after_us := self.next_due(after_us)) <= until_us:
            found += 1
        return found

    def opens_us(self, now_us: int) -> int:
        """From when a run may start: now, or the end of the blackout."""
        return self.blackout.end_us(now_us)

    def _place(self, at_us: int) -> int:
        return (at_us - self.shift_us) // self.every_us

    def _next(self, after_us: int) -> int:
        """The next time by the rule and the shift alone."""
        if self.every_us:
            return (self._place(after_us) + 1) * self.every_us + self.shift_us
        after_s = (after_us - self.shift_us) // _SECOND_US
        zone = dt.UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        # In the second of two equal hours the line goes back to the first of them, which is over.
        for moment in CronSim(self.rule, dt.datetime.fromtimestamp(after_s, zone)):
            due_s = round(moment.timestamp())
            if due_s > after_s:
                return due_s * _SECOND_US + self.shift_us
        raise AssertionError(self.rule)

    def __str__(self) -> str:
        if self.every_us:
            return f"every {self.rule}"
        return f"{self.rule} {self.zone}"


def schedules(
    pair: str,
    replica: object | None,
    rules: Mapping[str, str | float | None],
    zone: str,
    start_jitter: str | float | None,
    windows: Sequence[str] | str,
) -> dict[str, Schedule]:
    """A pair's schedules, by what they start, of those that have a rule. Raises ConfigError.

    replica: the pair's; where there is none, nothing can be compared. windows: of blackouts.
    """
    closed = blackout_of(windows, zone, pair)
    found: dict[str, Schedule] = {}
    for what, rule in rules.items():
        if rule is None:
            continue
        option = "compare_changed" if what == CHANGED else what
        if what != SWEEP and replica is None:
            raise ConfigError(f"pair {pair}: {option} needs a replica.", hint="Give the pair one, or leave it out.")
        found[what] = schedule(rule, pair=pair, what=option, zone=zone, start_jitter=start_jitter, blackout_=closed)
    return found


def schedule(
    rule: str | float, *, pair: str, what: str, zone: str, start_jitter: str | float | None, blackout_: Blackout
) -> Schedule:
    """A checked schedule. The shift is drawn from the names, so that it is the same for everybody and for ever.

    start_jitter: the largest shift; by default the whole interval, and none for a cron line. Raises ConfigError.
    """
    named = f"pair {pair}: {what}"
    text = rule.strip() if isinstance(rule, str) else str(rule) if isinstance(rule, bool) else f"{rule:g}s"
    every_us = 0 if len(text.split()) > 1 else _interval_us(text, named)
    jitter_us = every_us if start_jitter is None else duration_us(start_jitter, f"pair {pair}: start_jitter")
    drawn = int.from_bytes(hashlib.blake2b(f"{pair} {what}".encode(), digest_size=8).digest(), "big")
    shift_us = (drawn * min(jitter_us, every_us or jitter_us) >> 64) // _SECOND_US * _SECOND_US
    found = Schedule(" ".join(text.split()), every_us, zone, shift_us, blackout_)
    if not every_us:
        _check_line(found, named)
    return found


def blackout_of(windows: Sequence[str] | str, zone: str, pair: str) -> Blackout:
    """A pair's blackout windows; ConfigError where the zone or one of them is none."""
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        raise ConfigError(
            f"pair {pair}: zone {zone!r} is not a time zone.", hint="Write one such as Europe/Berlin or UTC."
        ) from None
    return blackout([windows] if isinstance(windows, str) else windows, zone, f"pair {pair}: blackout")


def _interval_us(text: str, named: str) -> int:
    try:
        every_us = duration_us(text, named)
    except ConfigError:
        raise ConfigError(f"{named}: {text!r} is no schedule.", hint=_HINT) from None
    if every_us < _SECOND_US:
        raise ConfigError(f"{named}: {text!r} is too often.", hint="Let at least a second pass between two runs.")
    return every_us


def _check_line(found: Schedule, named: str) -> None:
    if len(found.rule.split()) != _FIELDS:
        raise ConfigError(f"{named}: {found.rule!r} is no schedule.", hint=_HINT)
    try:
        next(CronSim(found.rule, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)))
    except CronSimError as error:
        problem = str(error).removeprefix("Bad ")
        raise ConfigError(
            f"{named}: {found.rule!r} is not a cron line: its {problem} is wrong.",
            hint="Five fields: minute, hour, day of month, month, day of week, such as 30 2 * * Mon-Fri.",
        ) from None
    except StopIteration:
        raise ConfigError(
            f"{named}: {found.rule!r} never comes.", hint="Check its day of month and its month."
        ) from None
