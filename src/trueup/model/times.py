"""Dates, times and intervals as integers and canonical text, for any year and for infinity.

Python's own types stop at year 9999 and know no infinity; PostgreSQL holds both. Calendar arithmetic after
Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (https://howardhinnant.github.io/date_algorithms.html).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import Final
from zoneinfo import ZoneInfo

US_PER_DAY: Final = 86_400_000_000
_INFINITE = {"infinity": "infinity", "-infinity": "-infinity"}
_DATE = r"(?P<year>[+-]?\d{4,7})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_OFFSET = r"(?P<offset>Z|z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)"
_BC = r"(?P<bc> BC)?"
_DATE_TEXT = re.compile(rf"{_DATE}{_BC}\Z", re.ASCII)
_TIME_TEXT = re.compile(
    rf"(?P<sign>-?)(?P<hours>\d{{2,11}}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?\s?{_OFFSET}?\Z",
    re.ASCII,
)
_TIMESTAMP_TEXT = re.compile(rf"{_DATE}(?:[T ]{_TIME}\s?{_OFFSET}?)?{_BC}\Z", re.ASCII)
# What most systems write. datetime, which is written in C, takes and gives these by the same rules.
_USUAL_TEXT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?(?P<offset>Z|[+-]\d\d:\d\d)?\Z", re.ASCII
)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  wall-clock arithmetic
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_WHOLE_SECONDS = len("YYYY-MM-DDTHH:MM:SS")
# From 0001-01-01 until 10000-01-01.
_USUAL_US = range(-719_162 * US_PER_DAY, 2_932_897 * US_PER_DAY)
_INTERVAL_TEXT = re.compile(
    r"(?P<sign>-?)P(?:(?P<years>-?\d+)Y)?(?:(?P<months>-?\d+)M)?(?:(?P<weeks>-?\d+)W)?(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>-?\d+)H)?(?:(?P<minutes>-?\d+)M)?(?:(?P<seconds>-?\d+(?:\.\d+)?)S)?)?\Z",
    re.ASCII,
)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; ValueError where the day does not exist."""
    if not 1 <= month <= 12 or not 1 <= day <= _month_days(year, month):
        raise ValueError("no such day")
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def date_text(days: int) -> str:
    """Days since 1970-01-01 as `YYYY-MM-DD`; years outside 0..9999 carry a sign (ISO 8601)."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    year = year_of_era + era * 400 + (month <= 2)
    day = of_year - (153 * shifted + 2) // 5 + 1
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return f"{shown}-{month:02}-{day:02}"


def timestamp_text(us: int, aware: bool) -> str:
    """Microseconds since 1970-01-01T00:00 as `YYYY-MM-DDTHH:MM:SS[.ffffff]`, with `Z` for an instant."""
    if us in _USUAL_US:
        text = (_EPOCH + dt.timedelta(microseconds=us)).isoformat()
        if len(text) > _WHOLE_SECONDS:
            text = text.rstrip("0")
        return text + "Z" if aware else text
    days, of_day = divmod(us, US_PER_DAY)
    seconds, fraction = divmod(of_day, 1_000_000)
    text = f"{date_text(days)}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text = f"{text}.{fraction:06}".rstrip("0")
    return text + "Z" if aware else text


def timestamp_us(value: dt.datetime, aware: bool, zone: ZoneInfo | None) -> int:
    """Microseconds since 1970-01-01T00:00; ValueError for a wall-clock time without a declared zone."""
    if aware and value.tzinfo is None:
        if zone is None:
            raise ValueError("no zone")
        value = value.replace(tzinfo=zone)
    # Not by astimezone, which fails where UTC lies before year 1 or after year 9999.
    offset = value.utcoffset() or dt.timedelta()
    return timedelta_us(value.replace(tzinfo=None) - _EPOCH) - timedelta_us(offset)


def timedelta_us(value: dt.timedelta) -> int:
    """A timedelta in whole microseconds."""
    return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds


def parse_date(text: str) -> str:
    """Canonical date text from ISO 8601, PostgreSQL's BC form, or a midnight timestamp."""
    if text in _INFINITE:
        return text
    if (found := _DATE_TEXT.match(text)) is None:
        us = parse_us(text, aware=False, zone=None)
        if us % US_PER_DAY:
            raise ValueError("not at midnight")
        return date_text(us // US_PER_DAY)
    return date_text(_days(found))


def _days(found: re.Match[str]) -> int:
    year = int(found["year"])
    if found["bc"]:
        if year < 1:
            raise ValueError("no such year")
        year = 1 - year
    return days_from_civil(year, int(found["month"]), int(found["day"]))


def parse_timestamp(text: str, aware: bool, zone: ZoneInfo | None) -> str:
    """Canonical timestamp text from ISO 8601 or SQL forms."""
    return text if text in _INFINITE else timestamp_text(parse_us(text, aware, zone), aware)


def parse_us(text: str, aware: bool, zone: ZoneInfo | None) -> int:
    """Microseconds since 1970-01-01T00:00 (UTC for an instant); further digits are rounded half up."""
    if (usual := _USUAL_TEXT.match(text)) is not None and (usual["offset"] is None) is not aware:
        with contextlib.suppress(ValueError):  # 24:00, a leap second, the year 0
            moment = dt.datetime.fromisoformat(text)
            return timedelta_us(moment - (_EPOCH_UTC if aware else _EPOCH))
    found = _TIMESTAMP_TEXT.match(text)
    if found is None:
        raise ValueError("not a timestamp")
    us = _days(found) * US_PER_DAY
    if found["hour"]:
        of_day = _clock_us(int(found["hour"]), found["minute"], found["second"], found["fraction"])
        # 24:00 is the next midnight; nothing of that hour lies beyond.
        if int(found["hour"]) > 23 and of_day != US_PER_DAY:
            raise ValueError("no such time of day")
        us += of_day
    if found["offset"]:
        if not aware:
            raise ValueError("an offset on a wall-clock time")
        return us - _offset_us(found["offset"])
    if not aware:
        return us
    if zone is None:
        raise ValueError("no zone")
    wall = _EPOCH + dt.timedelta(microseconds=us)
    return timestamp_us(wall, aware, zone)


def _clock_us(hour: int, minute: str, second: str | None, fraction: str | None) -> int:
    minutes, seconds = int(minute), int(second or 0)
    if minutes > 59 or seconds > 60:
        raise ValueError("no such time")
    digits = (fraction or "").ljust(7, "0")
    return ((hour * 60 + minutes) * 60 + seconds) * 1_000_000 + int(digits[:6]) + (digits[6] >= "5")


def _offset_us(text: str) -> int:
    if text in ("Z", "z"):
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return (-seconds if text[0] == "-" else seconds) * 1_000_000


def time_text(us: int) -> str:
    """Microseconds as `[-]HH:MM:SS[.ffffff]`; more than 24 hours and less than none are values."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    seconds, fraction = divmod(us, 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def interval_text(months: int, us: int) -> str:
    """`P{months}MT{seconds}S` without zero parts; a day is 24 hours, a month stays a month."""
    whole, fraction = divmod(abs(us), 1_000_000)
    seconds = f"{'-' if us < 0 else ''}{whole}" + (f".{fraction:06}".rstrip("0") if fraction else "")
    parts = (f"{months}M" if months else "") + (f"T{seconds}S" if us or not months else "")
    return f"P{parts}"


def parse_time(text: str) -> str:
    """Canonical time text; a time with an offset keeps it, as `+HH:MM`."""
    found = _TIME_TEXT.match(text)
    if found is None:
        raise ValueError("not a time")
    us = _clock_us(int(found["hours"]), found["minute"], found["second"], found["fraction"])
    shown = time_text(-us if found["sign"] else us)
    if not found["offset"]:
        return shown
    minutes, seconds = divmod(abs(_offset_us(found["offset"])) // 1_000_000, 60)
    offset = f"{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return f"{shown}{'-' if found['offset'][0] == '-' and offset != '00:00' else '+'}{offset}"


def parse_interval(text: str) -> tuple[int, int]:
    """(months, microseconds) from ISO 8601 (`P1Y2M3DT4H5M6.5S`) or clock form (`-12:30:00`)."""
    if found := _TIME_TEXT.match(text):
        if found["offset"]:
            raise ValueError("an offset in an interval")
        us = _clock_us(int(found["hours"]), found["minute"], found["second"], found["fraction"])
        return 0, -us if found["sign"] else us
    found = _INTERVAL_TEXT.match(text)
    if found is None or text.endswith(("P", "T")):
        raise ValueError("not an interval")
    number = {name: int(found[name] or 0) for name in ("years", "months", "weeks", "days", "hours", "minutes")}
    months = number["years"] * 12 + number["months"]
    days = number["weeks"] * 7 + number["days"]
    us = days * US_PER_DAY + (number["hours"] * 60 + number["minutes"]) * 60_000_000 + _seconds_us(found["seconds"])
    return (-months, -us) if found["sign"] else (months, us)


def _seconds_us(text: str | None) -> int:
    if not text:
        return 0
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = fraction.ljust(7, "0")
    us = int(whole) * 1_000_000 + int(digits[:6]) + (digits[6] >= "5")
    return -us if text.startswith("-") else us
