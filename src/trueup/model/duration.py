"""Durations as people write them: `10m`, `1h`, `24h`, `2d`, `10y`, `500ms`, or seconds as a number."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from trueup.errors import ConfigError

_DAY_US: Final = 86_400_000_000
# What must be kept for years is not kept for less, whichever years these are: so each counts as a leap year.
_YEAR_US: Final = 366 * _DAY_US
_UNITS_US: Final = {
    "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": _DAY_US, "y": _YEAR_US,
}  # fmt: skip
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|y)\Z", re.ASCII)


def duration_us(value: str | float, what: str = "duration") -> int:
    """Microseconds of a duration; ConfigError names `what` where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return round(value * 1_000_000)
    if isinstance(value, str) and (found := _DURATION.match(value.strip())):
        return int(Decimal(found[1]) * _UNITS_US[found[2]])
    raise ConfigError(f"{what}: {value!r} is not a duration.", hint="Write seconds as a number, or 500ms, 10m, 1h, 2d.")


def duration_text(us: int) -> str:
    """A duration for people, in its two largest units: `4.2 s`, `12 min`, `3 h`, `6 d`."""
    if us < 60_000_000:
        return f"{us / 1_000_000:.1f} s"
    for unit, size_us in (("d", _UNITS_US["d"]), ("h", _UNITS_US["h"]), ("min", _UNITS_US["m"])):
        if us >= size_us:
            return f"{us // size_us} {unit}"
    raise AssertionError(us)
