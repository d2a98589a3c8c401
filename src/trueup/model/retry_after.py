"""Retry-After, as servers really send it."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_US: Final = 3_600_000_000
_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?\Z", re.ASCII)


def retry_after_us(value: str | None, now_us: int) -> int | None:
    """Microseconds to wait by a Retry-After header (RFC 9110, 10.2.3): seconds, or an HTTP date.

    A past date is 0, more than an hour is an hour; None where there is no header or it can't be read.
    """
    text = (value or "").strip()
    if _SECONDS.match(text):
        return min(LONGEST_US, int(float(text) * 1_000_000))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    at_us = int(at.timestamp() * 1_000_000)
    return min(LONGEST_US, max(0, at_us - now_us))
