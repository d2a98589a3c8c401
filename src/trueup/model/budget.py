"""How much may be asked of a system: rules as pure functions, shared by every store.

A limit is kept over a sliding window that is counted in slices (as in sliding-window counters; Figma,
"An alternative approach to rate limiting", 2017), so that no window of that length ever holds more calls
than allowed. A share is reserved for events: everything else may use only the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from trueup.errors import ConfigError

SLICES: Final = 60
PROBE_FIRST_US: Final = 1_000_000
PROBE_MAX_US: Final = 300_000_000
CALL_POLL_US: Final = 50_000
_PERIODS_US: Final = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
_LIMIT = re.compile(r"(\d+)\s*/\s*(second|minute|hour|day)\Z")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `calls` (in units of cost) within any `period_us`."""

    calls: int
    period_us: int

    def __str__(self) -> str:
        named = {us: name for name, us in _PERIODS_US.items()}
        return f"{self.calls}/{named.get(self.period_us, f'{self.period_us} us')}"


@dataclass(frozen=True, slots=True)
class System:
    """Something that holds records, as far as trueup may burden it.

    limits: every one of them is kept. reserve: share that only events may use. concurrency: calls at once.
    """

    name: str
    limits: tuple[Limit, ...] = ()
    reserve: float = 0.4
    concurrency: int | None = None


def parse_limit(text: str, what: str) -> Limit:
    """`600/minute` as a Limit; ConfigError names `what` where it is none."""
    found = _LIMIT.match(text.strip())
    if found is None or int(found[1]) == 0:
        raise ConfigError(f"{what}: {text!r} is not a limit.", hint="Write calls per time, such as 600/minute.")
    return Limit(int(found[1]), _PERIODS_US[found[2]])


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a system: its pause, and what was spent.

    paused_until_us: nobody calls before; 0 for no pause. by_person: only a person ends it. probes: failed
    probes in a row; while there are any, one call at a time finds out whether the system is back.
    probing_until_us: somebody probes now. ok_at_us: the last call that succeeded.
    spent: cost by period and slice number, as {period_us: {slice: (all, not events)}}. calls: calls under way,
    as {call: when it no longer counts}.
    """

    paused_until_us: int = 0
    by_person: bool = False
    reason: str = ""
    probes: int = 0
    probing_until_us: int = 0
    ok_at_us: int = 0
    spent: Mapping[int, Mapping[int, tuple[float, float]]] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)

    def paused(self, now_us: int) -> bool:
        """Whether nobody may call now."""
        return self.by_person or self.paused_until_us > now_us


HEALTHY: Final = Health()


def spend(
    system: System, health: Health, cost: float, now_us: int, *, urgent: bool, call: str, call_us: int
) -> tuple[int, Health]:
    """(microseconds to wait, 0 where granted; the health to save).

    call, call_us: name of the call, and for how long it counts as under way unless it is ended before.
    """
    spent = {limit.period_us: _recent(health, limit, now_us) for limit in system.limits}
    wait_us = max((_wait_us(system, limit, spent[limit.period_us], cost, now_us, urgent) for limit in system.limits),
                  default=0)  # fmt: skip
    calls = {name: until_us for name, until_us in health.calls.items() if until_us > now_us}
    if system.concurrency is not None and len(calls) >= system.concurrency:
        wait_us = max(wait_us, CALL_POLL_US)
    if wait_us:
        return wait_us, health
    for limit in system.limits:
        slices, at = spent[limit.period_us], now_us * SLICES // limit.period_us
        both, low = slices.get(at, (0.0, 0.0))
        slices[at] = (both + cost, low if urgent else low + cost)
    if system.concurrency is not None:
        calls[call] = now_us + call_us
    return 0, replace(health, spent=spent, calls=calls)


def ended(health: Health, call: str) -> Health:
    """The health after a call under way came to its end."""
    return replace(health, calls={name: until_us for name, until_us in health.calls.items() if name != call})


def _wait_us(
    system: System, limit: Limit, slices: Mapping[int, tuple[float, float]], cost: float, now_us: int, urgent: bool
) -> int:
    excess = sum(both for both, _ in slices.values()) + cost - limit.calls
    wait_us = _until_free(limit, slices, 0, excess, now_us) if excess > 0 else 0
    if not urgent:
        excess = sum(low for _, low in slices.values()) + cost - limit.calls * (1 - system.reserve)
        wait_us = max(wait_us, _until_free(limit, slices, 1, excess, now_us) if excess > 0 else 0)
    return wait_us


def _recent(health: Health, limit: Limit, now_us: int) -> dict[int, tuple[float, float]]:
    """Slices that still count: one more than a window has, because the oldest may reach into it."""
    oldest = now_us * SLICES // limit.period_us - SLICES
    return {at: cost for at, cost in health.spent.get(limit.period_us, {}).items() if at >= oldest}


def _until_free(limit: Limit, slices: Mapping[int, tuple[float, float]], which: int, excess: float, now_us: int) -> int:
    """Until enough of the oldest slices have left the window to give back `excess`."""
    freed = 0.0
    for at in sorted(slices):
        freed += slices[at][which]
        if freed >= excess:
            leaves_us = -(-(at + SLICES + 1) * limit.period_us // SLICES)
            return max(1, leaves_us - now_us)
    return limit.period_us


def failed(health: Health, now_us: int, reason: str, *, pause_us: int | None = None) -> Health:
    """The health after trouble of the system: paused, twice as long each time a probe fails.

    pause_us: what the system asked for, where it did.
    """
    probes = health.probes + 1
    wait_us = min(PROBE_MAX_US, PROBE_FIRST_US * 2 ** min(probes - 1, 20)) if pause_us is None else pause_us
    until_us = max(health.paused_until_us, now_us + wait_us)
    return replace(health, paused_until_us=until_us, reason=reason, probes=probes, probing_until_us=0)


def succeeded(health: Health, now_us: int) -> Health:
    """The health after a call that worked: the system is back, unless a person paused it."""
    if health.by_person:
        return replace(health, ok_at_us=now_us)
    return replace(health, probes=0, probing_until_us=0, ok_at_us=now_us, paused_until_us=0, reason="")


def probe(health: Health, now_us: int, for_us: int) -> tuple[bool, Health]:
    """(whether the caller is the one that probes, the health to save)."""
    if health.paused(now_us) or health.probing_until_us > now_us:
        return False, health
    return True, replace(health, probing_until_us=now_us + for_us)
