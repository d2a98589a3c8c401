"""From when something is a condition: one table of thresholds for each pair, each with a default.

A threshold that is a time is the declared time of its condition: it is reported that long after it began, plus the
time between two looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from trueup.errors import ConfigError, did_you_mean
from trueup.model.duration import duration_us

_MINUTE_US: Final = 60_000_000
_HOUR_US: Final = 60 * _MINUTE_US
_DAY_US: Final = 24 * _HOUR_US


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when the conditions of a pair are conditions.

    overdue_us: how late a run may start; None for the length of its interval, 5 minutes at least and an hour at most.
    stuck_us: how long a run under way may give no sign of life. run_us: how long a run may take. trouble_us: how long
    runs may fail, or a system be in trouble. few: the share of the usual number of records below which a side holds
    few. parked, backlog: records that are parked, that wait. pending_us: how long a record may wait past its time.
    drift_us: how long a case may wait. event_us: how long no event may come; None for ever. paused_us: how long a pause
    may last. budget_us: how long calls may have to wait for a limit, and how long what waits may take. clock_us: how
    far clocks may be apart. growth: how many times as many rows as a side has records. deaths, deaths_within_us:
    so many workers may not die within this time. state_us: how long the state store may be away.
    """

    overdue_us: int | None = None
    stuck_us: int = 5 * _MINUTE_US
    run_us: int = 6 * _HOUR_US
    trouble_us: int = 2 * _MINUTE_US
    few: float = 0.5
    parked: int = 1
    backlog: int = 10_000
    pending_us: int = 15 * _MINUTE_US
    drift_us: int = 7 * _DAY_US
    event_us: int | None = None
    paused_us: int = _HOUR_US
    budget_us: int = _HOUR_US
    clock_us: int = 30_000_000
    growth: float = 3.0
    deaths: int = 3
    deaths_within_us: int = 30 * _MINUTE_US
    state_us: int = 2 * _MINUTE_US


DEFAULT: Final = Thresholds()
_DURATIONS: Final = {each.name.removesuffix("_us") for each in fields(Thresholds) if each.name.endswith("_us")}
_NUMBERS: Final = {each.name for each in fields(Thresholds) if not each.name.endswith("_us")}
OPTIONS: Final = tuple(each.name.removesuffix("_us") for each in fields(Thresholds))


def thresholds(declared: Mapping[str, Any] | None, what: str, base: Thresholds = DEFAULT) -> Thresholds:
    """The base with what is declared; ConfigError names `what` and the option that is wrong.

    declared: durations such as `10m` by name, shares and numbers. base: what holds for what is not declared.
    """
    found: dict[str, Any] = {}
    for name, value in (declared or {}).items():
        if value is None:
            continue
        if name in _DURATIONS:
            found[f"{name}_us"] = duration_us(value, f"{what}: health {name}")
        elif name not in _NUMBERS:
            raise ConfigError(f"{what}: there is no threshold {name}.", hint=did_you_mean(name, OPTIONS, "Thresholds"))
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"{what}: health {name} is {value!r}.", hint="Write a number of at least 0.")
        else:
            found[name] = value
    return replace(base, **found)
