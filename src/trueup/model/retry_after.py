"""What a system means by `Retry-After`, and the dates of HTTP (RFC 9110, 5.6.7 and 10.2.3)."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

# Whoever asks for more than a day has made a mistake, or is asked again in a day.
LONGEST_US: Final = 24 * 3600 * 1_000_000
_SECONDS = re.compile(r"\d+(?:\.\d+)?\Z", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_DATES = (
    re.compile(rf"[a-z]{{3}}, (?P<day>\d\d) (?P<month>[a-z]{{3}}) (?P<year>\d{{4}}) {_CLOCK} GMT\Z", re.I | re.A),
    re.compile(rf"[a-z]{{6,9}}, (?P<day>\d\d)-(?P<month>[a-z]{{3}})-(?P<year>\d\d) {_CLOCK} GMT\Z", re.I | re.A),
    re.compile(rf"[a-z]{{3}} (?P<month>[a-z]{{3}}) (?P<day>[ \d]\d) {_CLOCK} (?P<year>\d{{4}})\Z", re.I | re.A),
)


def retry_after_us(value: str | None, now_us: int) -> int | None:
    """Microseconds to wait from now, a whole number of seconds and at most a day; None where nothing readable is said.

    value: the header: seconds or an HTTP date. A date that has passed is no wait at all. Never raises: a pause
    that is lost to a strange header is a system that is called on at full rate.
    """
    text = (value or "").strip()
    if _SECONDS.match(text):
        # Thirteen digits are an absurd wait already; more could be too many for float.
        return LONGEST_US if len(text) > 12 and "." not in text else _whole_seconds_us(float(text[:20]) * 1e6)
    at_us = http_date_us(text)
    return None if at_us is None else _whole_seconds_us(at_us - now_us)


def _whole_seconds_us(us: float) -> int:
    return min(LONGEST_US, max(0, -int(-us // 1_000_000)) * 1_000_000)


def http_date_us(text: str | None) -> int | None:
    """An HTTP date, in any of its three forms, as microseconds UTC; None where it is not one."""
    found = next((match for form in _DATES if (match := form.match((text or "").strip()))), None)
    if found is None or found["month"].lower() not in _MONTHS:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year += 2000 if year < 70 else 1900
    clock = (int(found["hour"]), int(found["minute"]), min(int(found["second"]), 59))  # 60 is a leap second
    try:
        at = dt.datetime(year, _MONTHS.index(found["month"].lower()) + 1, int(found["day"]), *clock, tzinfo=dt.UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1_000_000
