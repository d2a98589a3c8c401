"""Moments as people write them: a date, or a time with its zone."""

from __future__ import annotations

import datetime as dt

from trueup.errors import ConfigError
from trueup.model.times import timestamp_us

_DAY_US = 86_400_000_000


def moment_us(value: str | dt.date, what: str) -> int:
    """UTC microseconds; a date is the end of that day, so that it includes the day it names.

    ConfigError names `what` where it is none, or a time without a zone.
    """
    hint = "Write a date such as 2026-12-31, or a time with its zone such as 2026-12-31T18:00+01:00."
    if isinstance(value, str):
        try:
            value = (
                dt.date.fromisoformat(value) if len(value) <= len("2026-12-31") else dt.datetime.fromisoformat(value)
            )
        except ValueError:
            raise ConfigError(f"{what}: {value!r} is no date.", hint=hint) from None
    if not isinstance(value, dt.datetime):
        return (
            timestamp_us(dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC), aware=True, zone=None)
            + _DAY_US
        )
    if value.tzinfo is None:
        raise ConfigError(f"{what}: the time has no zone.", hint=hint)
    return timestamp_us(value, aware=True, zone=None)


def moment_text(us: int) -> str:
    """A time for people who may sit anywhere: `2026-11-29 12:00:01 UTC`."""
    return f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
