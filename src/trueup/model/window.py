"""Windows: time cut into half-open intervals by the calendar of one zone, and which of them are closed.

A window is closed for a side once the side's own clock has passed its end by the side's lag. What belongs to it stands
still from then on, or else somebody changed what was taken for final.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from zoneinfo import ZoneInfo

from trueup.errors import ConfigError
from trueup.model.digest import HashSum
from trueup.model.duration import duration_us
from trueup.model.kinds import Kind
from trueup.model.times import timedelta_us, timestamp_us

_LENGTH: Final = re.compile(r"([1-9]\d{0,2})(mo|w|d|h)\Z", re.ASCII)
_HOUR_US: Final = 3_600_000_000
# Such parts of a day that the first window of every day begins at midnight.
_HOURS: Final = (1, 2, 3, 4, 6, 8, 12)
_MONDAY: Final = dt.date(1970, 1, 5).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  wall-clock arithmetic
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
# No zone has put its clocks back by more.
_FOLD_US_MAX: Final = 24 * _HOUR_US
_OPTIONS: Final = ("column", "length", "zone", "replica_column", "lag", "replica_lag", "since", "recheck")


@dataclass(frozen=True, slots=True)
class Window:
    """One interval, `from_us` included and `to_us` not. name: how people call it, such as `2026-11-01` or `2026-11`."""

    from_us: int
    to_us: int
    name: str


@dataclass(frozen=True, slots=True)
class Span:
    """What a scan looks at: records whose `column` (the side's own name) lies in an interval; None for no bound.

    zone: in which dates, and times without a declared zone, are meant.
    """

    column: str
    from_us: int | None
    to_us: int | None
    zone: str

    def bounds(self, kind: Kind) -> tuple[int | None, int | None]:
        """The bounds in the column's own terms: UTC for instants, else the wall clock's, as microseconds since 1970."""
        if kind.name == "timestamp" and kind.aware:
            return self.from_us, self.to_us
        zone = ZoneInfo(self.zone)
        low, high = (None if at is None else _wall_us(at, zone) for at in (self.from_us, self.to_us))
        return low, high


@dataclass(frozen=True, slots=True)
class Seal:
    """What a window held, side by side, when both sides agreed or every difference was decided.

    left, right: count and sum of the hashes of the authority's and the replica's records. asked: which fields, in which
    form; a seal of another form says nothing. run: that sealed it. checked_us: when both sides were last found so.
    """

    pair: str
    from_us: int
    to_us: int
    left: HashSum
    right: HashSum
    asked: str
    run: int
    sealed_us: int
    checked_us: int


@dataclass(frozen=True, slots=True)
class Windows:
    """How a pair's time is cut.

    column, replica_column: the date or time that says to which window a record belongs. count, unit: the length, in
    hours, days, weeks (from Monday) or months. zone: whose calendar cuts. lag_us, replica_lag_us: how long after its
    end a window stays open at each side, by that side's clock. since_us: no window begins before; None for the newest
    that was closed when the pair first ran. recheck_us: how often a sealed window is read again where it can't be
    summed up in place.
    """

    column: str
    replica_column: str
    zone: str
    count: int = 1
    unit: str = "d"
    lag_us: int = 0
    replica_lag_us: int = 0
    since_us: int | None = None
    recheck_us: int = 7 * 24 * _HOUR_US

    def at(self, us: int) -> Window:
        """The window that holds this instant."""
        place = self._place(dt.datetime.fromtimestamp(us // 1_000_000, ZoneInfo(self.zone)).date())
        # Where clocks jump over midnight, an instant may lie beside the window of its date.
        while us < self._start_us(place):
            place -= 1
        while us >= self._start_us(place + 1):
            place += 1
        from_us, to_us = self._start_us(place), self._start_us(place + 1)
        if self.unit == "h":
            from_us += (us - from_us) // (self.count * _HOUR_US) * self.count * _HOUR_US
            to_us = min(from_us + self.count * _HOUR_US, to_us)
        return Window(from_us, to_us, self._name(from_us))

    def between(self, from_us: int, to_us: int) -> Iterator[Window]:
        """The windows from the one that holds `from_us`, as long as they end by `to_us`."""
        while (window := self.at(from_us)).to_us <= to_us:
            yield window
            from_us = window.to_us

    def cutoff_us(self, authority_us: int, replica_us: int) -> int:
        """Up to when windows are closed on both sides. Each by its own clock."""
        return min(authority_us - self.lag_us, replica_us - self.replica_lag_us)

    def newest_closed(self, cutoff_us: int) -> Window:
        """The last window that ends by the cutoff."""
        return self.at(self.at(cutoff_us).from_us - 1)

    def named(self, text: str, cutoff_us: int, pair: str) -> list[Window]:
        """The windows that a person means: `2026-11-01`, or `2026-11-01..2026-11-08`, whose second is not included.

        Times are of the zone; a month may be written `2026-11`. ConfigError where it is none, or not closed yet.
        """
        first, dots, last = text.partition("..")
        from_us = self._moment_us(first, text, pair)
        to_us = self._moment_us(last, text, pair) if dots else self.at(from_us).to_us
        if to_us <= from_us:
            raise ConfigError(f"pair {pair}: {text} holds no window.", hint="The end is not included: 11-01..11-02.")
        windows = [self.at(from_us)]
        while windows[-1].to_us < to_us:
            windows.append(self.at(windows[-1].to_us))
        if windows[-1].to_us > cutoff_us:
            raise ConfigError(
                f"pair {pair}: the window {windows[-1].name} is not closed yet.",
                hint=f"Ask for windows up to {self.newest_closed(cutoff_us).name}.",
            )
        return windows

    def span(self, from_us: int, to_us: int, *, replica: bool = False) -> Span:
        """The interval as a side is asked for it."""
        return Span(self.replica_column if replica else self.column, from_us, to_us, self.zone)

    def _place(self, day: dt.date) -> int:
        """The number of the stretch that holds a day; stretches follow each other without a gap."""
        match self.unit:
            case "mo":
                return (day.year * 12 + day.month - 1) // self.count
            case "w":
                return (day.toordinal() - _MONDAY) // (7 * self.count)
            case "d":
                return (day.toordinal() - _EPOCH_DAY) // self.count
        return day.toordinal()

    def _start_us(self, place: int) -> int:
        match self.unit:
            case "mo":
                year, month = divmod(place * self.count, 12)
                day = dt.date(year, month + 1, 1)
            case "w":
                day = dt.date.fromordinal(place * 7 * self.count + _MONDAY)
            case "d":
                day = dt.date.fromordinal(place * self.count + _EPOCH_DAY)
            case _:
                day = dt.date.fromordinal(place)
        return _midnight_us(day, ZoneInfo(self.zone))

    def _name(self, from_us: int) -> str:
        local = dt.datetime.fromtimestamp(from_us // 1_000_000, ZoneInfo(self.zone))
        if self.unit == "h":
            return local.isoformat(timespec="minutes")
        return f"{local:%Y-%m}" if self.unit == "mo" else f"{local:%Y-%m-%d}"

    def _moment_us(self, text: str, whole: str, pair: str) -> int:
        try:
            moment = dt.datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"\d{4}-\d\d", text) else text)
        except ValueError:
            raise ConfigError(
                f"pair {pair}: {whole!r} names no windows.", hint="Write 2026-11-01, or 2026-11-01..2026-11-08."
            ) from None
        return timestamp_us(moment, aware=True, zone=ZoneInfo(self.zone))


def windows_of(declared: Mapping[str, Any], pair: str) -> Windows:
    """The checked declaration of a pair; ConfigError says what is wrong with it."""
    what = f"pair {pair}: window"
    for name in declared:
        if name not in _OPTIONS:
            raise ConfigError(f"{what} has no option {name}.", hint=f"Options: {', '.join(_OPTIONS)}.")
    declared = {name: value for name, value in declared.items() if value is not None}
    column, zone = declared.get("column"), declared.get("zone")
    if not isinstance(column, str) or not column:
        raise ConfigError(f"{what} names no column.", hint='Name the date or time that decides: column = "paid_at".')
    if not isinstance(zone, str):
        raise ConfigError(f"{what} names no zone.", hint='Say whose days are meant: zone = "Europe/Berlin", or "UTC".')
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        raise ConfigError(f"{what}: zone {zone!r} is no time zone.", hint="Write one such as Europe/Berlin.") from None
    count, unit = _length(declared.get("length", "1d"), what)
    lag = declared.get("lag", "2h")
    windows = Windows(
        column=column,
        replica_column=str(declared.get("replica_column") or column),
        zone=zone,
        count=count,
        unit=unit,
        lag_us=duration_us(lag, f"{what}: lag"),
        replica_lag_us=duration_us(declared.get("replica_lag", lag), f"{what}: replica_lag"),
        recheck_us=duration_us(declared.get("recheck", "7d"), f"{what}: recheck"),
    )
    return _beginning(windows, declared.get("since"), what)


def _beginning(windows: Windows, since: object, what: str) -> Windows:
    if since is None:
        return windows
    try:
        moment = dt.datetime.fromisoformat(str(since))
    except ValueError:
        raise ConfigError(f"{what}: since {str(since)!r} is no date.", hint="Write one such as 2026-01-01.") from None
    at_us = timestamp_us(moment, aware=True, zone=ZoneInfo(windows.zone))
    return replace(windows, since_us=at_us)


def _length(length: object, what: str) -> tuple[int, str]:
    found = _LENGTH.match(length) if isinstance(length, str) else None
    if found is None:
        raise ConfigError(f"{what}: {length!r} is no length.", hint="Write 1h, 1d, 1w or 1mo.")
    count, unit = int(found[1]), found[2]
    if unit == "h" and count not in _HOURS:
        raise ConfigError(f"{what}: {count} hours do not divide a day.", hint=f"Hours: {', '.join(map(str, _HOURS))}.")
    return count, unit


def _midnight_us(day: dt.date, zone: ZoneInfo) -> int:
    """The first instant of a day; where midnight comes twice the first, where it is jumped over that of the jump."""
    return timestamp_us(dt.datetime(day.year, day.month, day.day), aware=True, zone=zone)  # noqa: DTZ001


def _wall_us(us: int, zone: ZoneInfo) -> int:
    """What a wall clock shows, so that times it shows later were never before. Of two equal times the first is meant.

    So where the hour is its second, the answer is the end of that hour: all that it shows has been before.
    """
    if not _second(us, zone):
        return us + _offset_us(us, zone)
    # The clocks were put back between these two.
    before_us, after_us = us - _FOLD_US_MAX, us
    while after_us - before_us > 1:
        middle_us = (before_us + after_us) // 2
        if _second(middle_us, zone) and _offset_us(middle_us, zone) == _offset_us(us, zone):
            after_us = middle_us
        else:
            before_us = middle_us
    return after_us + _offset_us(before_us, zone)


def _local(us: int, zone: ZoneInfo) -> dt.datetime:
    return (_EPOCH + dt.timedelta(microseconds=us)).replace(tzinfo=dt.UTC).astimezone(zone)


def _second(us: int, zone: ZoneInfo) -> bool:
    return bool(_local(us, zone).fold)


def _offset_us(us: int, zone: ZoneInfo) -> int:
    return timedelta_us(_local(us, zone).utcoffset() or dt.timedelta())
