"""Drift over time: how many records of a pair drifted, by cause and field, and when that is a defect upstream.

What runs found is added up by day. Older days become weeks and older weeks months, so that a pair keeps few rows
however long it lives. Every store loads, lets these functions merge, and saves in the transaction that closes a run.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from trueup.errors import ConfigError

# A cause is the name of a drift. This one stands for all that runs looked at, whatever they found.
EVERY: Final = ""
# The records themselves, whichever of their fields differ; also where a side lacks the record.
RECORD: Final = ""
# Fields that have no rows of their own: of each cause those with the most records have.
OTHERS: Final = "…"
FIELDS_MAX: Final = 50
EXAMPLES_MAX: Final = 5
# Days are kept for this week and those before it, weeks for this month and those before it; then months.
WEEKS_BY_DAY: Final = 2
MONTHS_BY_WEEK: Final = 3
MONTHS_KEPT: Final = 36
# So many days, weeks and months of a pair there are at most, each with at most `FIELDS_MAX` fields of a cause.
BUCKETS_MAX: Final = 75
# Fewer records in a run are noise, whatever their share.
RECORDS_MIN: Final = 10
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = dt.date(1970, 1, 1)


class Length(enum.StrEnum):
    """How many days a bucket holds. Weeks begin on Monday, and belong to the month in which they begin."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What the runs of some days, by the calendar of UTC, found of one cause and field.

    from_us: the beginning of its first day. cause, field: see `EVERY`, `RECORD` and `OTHERS`. runs: that found any, or
    of `EVERY` all of them. records: that drifted anew, once for each run that found so. compared: by these runs.
    """

    pair: str
    length: Length
    from_us: int
    cause: str
    field: str
    runs: int
    records: int
    compared: int

    @property
    def place(self) -> tuple[Length, int, str, str]:
        """What there is one bucket of."""
        return self.length, self.from_us, self.cause, self.field

    def plus(self, other: Bucket | None) -> Bucket:
        """Both together, at this one's place."""
        if other is None:
            return self
        return replace(
            self,
            runs=self.runs + other.runs,
            records=self.records + other.records,
            compared=self.compared + other.compared,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """What one run found of one cause and field.

    records: that drifted anew. waiting: that drifted before, and about which a person has been asked since. examples:
    key texts of the first.
    """

    cause: str
    field: str
    records: int
    waiting: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Streak:
    """Runs running that found the same cause in the same field, and now.

    runs: how many. since_us: when the first of them started. run: the last one, which found that many `records` among
    those it `compared`. total: records of all of them. examples: key texts of the last, without redacted parts.
    """

    pair: str
    cause: str
    field: str
    runs: int
    since_us: int
    run: int
    records: int
    compared: int
    total: int
    examples: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Of the records compared by the last run, those that drifted."""
        return self.records / self.compared if self.compared else 1.0


@dataclass(frozen=True, slots=True)
class RunDrift:
    """What one run found, as it is stored when the run closes.

    at_us: when it started. whole: it looked at everything, so that what it did not find is not there. tallies: one of
    each cause with `RECORD`, and of each field that differed. streaks: all of the pair, as they are with this run.
    """

    pair: str
    run: int
    at_us: int
    compared: int
    whole: bool
    tallies: tuple[Tally, ...] = ()
    streaks: tuple[Streak, ...] = ()

    def buckets(self) -> list[Bucket]:
        """The run as it is added to what is known."""
        from_us = self.at_us // _DAY_US * _DAY_US
        records = sum(each.records for each in self.tallies if each.field == RECORD)
        every = Bucket(self.pair, Length.DAY, from_us, EVERY, RECORD, 1, records, self.compared)
        return [every] + [
            Bucket(self.pair, Length.DAY, from_us, each.cause, each.field, 1, each.records, self.compared)
            for each in self.tallies
            if each.records
        ]


# ── kept small ───────────────────────────────────────────────────────────────────────────────────────


def added(known: Iterable[Bucket], drift: RunDrift) -> list[Bucket]:
    """What is known, with one more run. known: all buckets of its pair."""
    return folded([*known, *drift.buckets()], drift.at_us)


def folded(known: Iterable[Bucket], now_us: int) -> list[Bucket]:
    """The buckets by now: days merged into weeks, weeks into months, the oldest forgotten. In order of time.

    Whether it is done every day or once makes no difference, but for which fields are among `OTHERS`.
    """
    merged: dict[tuple[Length, int, str, str], Bucket] = {}
    for each in known:
        place = placed(each.length, each.from_us, now_us)
        if place is not None:
            moved = replace(each, length=place[0], from_us=place[1])
            merged[moved.place] = moved.plus(merged.get(moved.place))
    return sorted(_few_fields(merged.values()), key=lambda each: (each.from_us, each.cause, each.field, each.length))


def placed(length: Length, from_us: int, now_us: int) -> tuple[Length, int] | None:
    """To which days a bucket of these days belongs by now; None where it is forgotten. What lies ahead stays."""
    day, today = _day(from_us), _day(now_us)
    if length is Length.DAY and _monday(day) < _monday(today) - dt.timedelta(weeks=WEEKS_BY_DAY):
        length, day = Length.WEEK, _monday(day)
    if length is Length.WEEK and _month(day) < _month(today) - MONTHS_BY_WEEK:
        length, day = Length.MONTH, day.replace(day=1)
    if length is Length.MONTH and _month(day) < _month(today) - MONTHS_KEPT:
        return None
    return length, (day - _EPOCH).days * _DAY_US


def _day(us: int) -> dt.date:
    return _EPOCH + dt.timedelta(days=us // _DAY_US)


def _monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())


def _month(day: dt.date) -> int:
    return day.year * 12 + day.month


def _few_fields(known: Iterable[Bucket]) -> list[Bucket]:
    """Of each days and cause the fields with the most records; the rest of them together."""
    kept: list[Bucket] = []
    by_cause: dict[tuple[Length, int, str], list[Bucket]] = {}
    for each in known:
        if each.field == RECORD:
            kept.append(each)
        else:
            by_cause.setdefault(each.place[:3], []).append(each)
    for fields in by_cause.values():
        fields.sort(key=lambda each: (each.field == OTHERS, -each.records, each.field))
        named = [each for each in fields[:FIELDS_MAX] if each.field != OTHERS]
        others: Bucket | None = None
        for each in fields[len(named) :]:
            others = replace(each, field=OTHERS).plus(others)
        kept += named if others is None else [*named, others]
    return kept


# ── defects ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DefectRule:
    """When drift that recurs is a defect upstream.

    after: so many runs running that find the same cause in the same field; 0 for never. share: of the records that a
    run compared, at least so many must drift anew, and `RECORDS_MIN` of them.
    """

    after: int = 3
    share: float = 0.001

    def counts(self, tally: Tally, compared: int) -> bool:
        """Whether a run found enough of it."""
        return tally.records >= max(RECORDS_MIN, self.share * compared)

    def asks(self, streak: Streak) -> bool:
        """Whether a person is asked anew. Where the answer was to ignore it, as many runs must follow once more."""
        return self.names(streak) and streak.runs % self.after == 0

    def names(self, streak: Streak) -> bool:
        """Whether it is a defect."""
        return 0 < self.after <= streak.runs


DEFAULT: Final = DefectRule()


def defect_rule(pair: str, after: int, share: float) -> DefectRule:
    """The rule as declared; ConfigError says what is wrong."""
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise ConfigError(f"pair {pair}: defect_after is {after!r}.", hint="Give a number of runs, or 0 for never.")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ConfigError(f"pair {pair}: defect_share is {share!r}.", hint="Give a share between 0 and 1.")
    return DefectRule(after, float(share))


def streaks(former: Sequence[Streak], drift: RunDrift, rule: DefectRule) -> tuple[Streak, ...]:
    """All streaks of a pair after one more run. former: those before it.

    A run that finds enough of it makes a streak longer. One that finds less ends it, unless all that it finds waits for
    a person, or it did not look at everything: such a run can't tell that there is no more.
    """
    if not rule.after:
        return ()
    known = {(each.cause, each.field): each for each in former}
    found = {(each.cause, each.field): each for each in drift.tallies if each.field not in (RECORD, OTHERS)}
    after: list[Streak] = []
    for place in sorted({*known, *found}):
        streak, tally = known.get(place), found.get(place)
        if tally is not None and rule.counts(tally, drift.compared):
            after.append(_longer(streak, tally, drift))
        elif streak is not None and (not drift.whole or _only_waits(tally)):
            after.append(streak)
    return tuple(after)


def _longer(streak: Streak | None, tally: Tally, drift: RunDrift) -> Streak:
    return Streak(
        drift.pair, tally.cause, tally.field,
        runs=1 if streak is None else streak.runs + 1,
        since_us=drift.at_us if streak is None else streak.since_us,
        run=drift.run, records=tally.records, compared=drift.compared,
        total=tally.records + (0 if streak is None else streak.total),
        examples=tally.examples[:EXAMPLES_MAX],
    )  # fmt: skip


def _only_waits(tally: Tally | None) -> bool:
    return tally is not None and not tally.records and tally.waiting > 0
