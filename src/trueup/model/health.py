"""What is known of a system, and whether it may be called now: rules as pure functions, shared by every store.

A limit is kept over a sliding window that is counted in slices (as in sliding-window counters; Figma,
"An alternative approach to rate limiting", 2017), so that no window of that length ever holds more calls
than allowed. A quota is counted from reset to reset. A share of each is reserved for events: everything else, here
called the rest, may use only what is not. But the rest is not starved by events either: where it was kept out for a
whole period, events leave it a twentieth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from trueup.model.allowance import Allowance, Said, begun
from trueup.model.budget import DAY_US, Limit, System
from trueup.model.retry_after import LONGEST_US

SLICES: Final = 60
PROBE_FIRST_US: Final = 1_000_000
PROBE_MAX_US: Final = 300_000_000
CALL_POLL_US: Final = 50_000
REST_SHARE: Final = 1 / 20
# No day is longer than this, even where clocks are set back; a reset further away was noted by a clock that was wrong.
_RESET_MAX_US: Final = 2 * DAY_US
_CLOSE: Final = 1e-9
Spent = tuple[float, float]  # by all, and by the rest


@dataclass(frozen=True, slots=True)
class Kept:
    """Calls that are no events and that events kept out. since_us, until_us: as long as one of them comes back."""

    since_us: int = 0
    until_us: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a system: its pause, and what was spent.

    paused_until_us: nobody calls before; 0 for no pause. by_person: only a person ends it. by: who, where known.
    everything: it is the pause of everything that holds. probes: failed probes in a row; while there are any, one
    call at a time finds out whether the system is back. probing_until_us: somebody probes now. ok_at_us: the last
    call that succeeded.
    spent: cost by period and slice number, as {period_us: {slice: (all, rest)}}. day: cost of the day that ends at
    this reset, as (reset_us, all, rest). calls: calls under way, as {call: when it no longer counts}.
    allowance: what the system said is left. kept: the rest, where events kept it out. since_us: when the trouble, or a
    person's pause, began; 0 where there is none.
    """

    paused_until_us: int = 0
    by_person: bool = False
    reason: str = ""
    by: str = ""
    everything: bool = False
    probes: int = 0
    probing_until_us: int = 0
    ok_at_us: int = 0
    spent: Mapping[int, Mapping[int, Spent]] = field(default_factory=dict)
    day: tuple[int, float, float] = (0, 0.0, 0.0)
    calls: Mapping[str, int] = field(default_factory=dict)
    allowance: Allowance | None = None
    kept: Kept = Kept()
    since_us: int = 0

    def paused(self, now_us: int) -> bool:
        """Whether nobody may call now."""
        return self.by_person or self.paused_until_us > now_us

    @property
    def free(self) -> bool:
        """Whether nobody knows of any trouble: no pause, not even one that has passed, and no probe."""
        return not (self.by_person or self.paused_until_us or self.probes)

    def allowed(self, now_us: int) -> Allowance | None:
        """What the system said is left, while that counts."""
        return self.allowance if self.allowance is not None and self.allowance.until_us > now_us else None


HEALTHY: Final = Health()


@dataclass(frozen=True, slots=True)
class Account:
    """What was spent of one limit, or of the quota. slices: as in Health; a quota has one, the reset."""

    most: float
    period_us: int
    slices: Mapping[int, Spent]
    limit: Limit | None = None

    @property
    def spent(self) -> float:
        """By all."""
        return sum(both for both, _ in self.slices.values())

    @property
    def spent_by_rest(self) -> float:
        """By all that are no events."""
        return sum(rest for _, rest in self.slices.values())

    def until_free(self, which: int, excess: float, now_us: int) -> int:
        """Microseconds until `excess` of what was spent by all (0) or by the rest (1) no longer counts."""
        if self.limit is None:
            return max(self.slices) - now_us
        freed = 0.0
        for at in sorted(self.slices):
            freed += self.slices[at][which]
            if freed >= excess - _CLOSE:
                return max(1, leaves_us(self.limit, at) - now_us)
        # There is room only once the rest has had its turn.
        return self.period_us // SLICES


def slice_of(limit: Limit, at_us: int) -> int:
    """The number of the slice that this time is in."""
    return at_us * SLICES // limit.period_us


def leaves_us(limit: Limit, at: int) -> int:
    """When a slice no longer counts: one later than a window has, because the oldest may reach into it."""
    return -(-(at + SLICES + 1) * limit.period_us // SLICES)


def accounts(system: System, health: Health, now_us: int) -> Iterator[Account]:
    """What counts now of each limit, then of the quota."""
    for limit in system.limits:
        now = slice_of(limit, now_us)
        # Slices far ahead were written by a clock that was wrong: they must not close the system for long.
        recent = {
            at: cost for at, cost in health.spent.get(limit.period_us, {}).items() if now - SLICES <= at <= now + SLICES
        }
        yield Account(limit.calls, limit.period_us, recent, limit)
    if system.quota is not None:
        reset_us, both, rest = _day(system, health, now_us)
        yield Account(system.quota.calls, DAY_US, {reset_us: (both, rest)})


def _day(system: System, health: Health, now_us: int) -> tuple[int, float, float]:
    if now_us < health.day[0] <= now_us + _RESET_MAX_US:
        return health.day
    return (0 if system.quota is None else system.quota.reset_us(now_us)), 0.0, 0.0


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────


def spend(
    system: System, health: Health, cost: float, now_us: int, *, urgent: bool, call: str, call_us: int
) -> tuple[int, Health]:
    """(microseconds to wait, 0 where granted; the health to save).

    call, call_us: name of the call, and for how long it counts as under way unless it is ended before.
    """
    if health.paused_until_us > now_us:
        return health.paused_until_us - now_us, health
    wait_us, kept_out_us = 0, 0
    known = list(accounts(system, health, now_us))
    for account in known:
        # A call that is larger than its share has to be alone in it.
        share = max(account.most, cost) - (_left_to_rest(health.kept, account, now_us) if urgent else 0)
        share_of_rest = max(account.most * (1 - system.reserve), cost)
        by_all_us = _wait_us(account, account.spent + cost - share, 0, now_us)
        by_rest_us = 0 if urgent else _wait_us(account, account.spent_by_rest + cost - share_of_rest, 1, now_us)
        wait_us = max(wait_us, by_all_us, by_rest_us)
        if not urgent and by_all_us > by_rest_us:
            kept_out_us = max(kept_out_us, by_all_us + account.period_us)
    allowance = health.allowed(now_us)
    if allowance is not None:
        reserved = 0.0 if urgent else allowance.of * system.reserve
        if allowance.left - cost < reserved - _CLOSE:
            wait_us = max(wait_us, allowance.until_us - now_us)
    # A call that is taken again is extended.
    calls = {name: until_us for name, until_us in health.calls.items() if until_us > now_us and name != call}
    if system.concurrency is not None and len(calls) >= system.concurrency:
        wait_us = max(wait_us, CALL_POLL_US)
    if wait_us:
        return wait_us, _kept_out(health, cost, now_us, kept_out_us) if kept_out_us else health
    if system.concurrency is not None:
        calls[call] = now_us + call_us
    if allowance is not None:
        allowance = replace(allowance, left=allowance.left - cost)
    return 0, replace(_charged(health, known, cost, now_us, urgent), calls=calls, allowance=allowance)


def room(system: System, health: Health, now_us: int, *, urgent: bool) -> float:
    """What may be spent at once now; infinite where nothing is counted."""
    rooms = [math.inf]
    for account in accounts(system, health, now_us):
        rooms.append(account.most - account.spent)
        if not urgent:
            rooms.append(max(account.most * (1 - system.reserve), 1.0) - account.spent_by_rest)
    allowance = health.allowed(now_us)
    if allowance is not None:
        rooms.append(allowance.left - (0.0 if urgent else allowance.of * system.reserve))
    return 0.0 if health.paused(now_us) else max(0.0, min(rooms) + _CLOSE)


def _wait_us(account: Account, excess: float, which: int, now_us: int) -> int:
    return account.until_free(which, excess, now_us) if excess > _CLOSE else 0


def _left_to_rest(kept: Kept, account: Account, now_us: int) -> float:
    """What events leave to the rest, once they kept it out for a whole period."""
    if kept.until_us <= now_us or now_us - kept.since_us < account.period_us:
        return 0.0
    return max(0.0, max(account.most * REST_SHARE, kept.cost) - account.spent_by_rest)


def _kept_out(health: Health, cost: float, now_us: int, for_us: int) -> Health:
    known = health.kept if health.kept.until_us > now_us else Kept(now_us)
    return replace(health, kept=Kept(known.since_us, now_us + for_us, max(known.cost, cost)))


def _charged(health: Health, known: Sequence[Account], cost: float, now_us: int, urgent: bool) -> Health:
    if not cost:
        return health
    rest = 0.0 if urgent else cost
    spent, day = {}, health.day
    for account in known:
        if account.limit is not None:
            spent[account.period_us] = _added(account, account.limit, cost, rest, now_us)
        else:
            [(reset_us, (all_today, rest_today))] = account.slices.items()
            day = reset_us, max(0.0, all_today + cost), max(0.0, rest_today + rest)
    return replace(health, spent=spent, day=day)


def _added(account: Account, limit: Limit, cost: float, rest: float, now_us: int) -> dict[int, Spent]:
    """The slices with this cost. What is given back is taken from the oldest: no newer slice may count too little."""
    slices = dict(account.slices)
    if cost > 0:
        both, by_rest = slices.get(at := slice_of(limit, now_us), (0.0, 0.0))
        return {**slices, at: (both + cost, by_rest + rest)}
    for at in sorted(slices):
        both, by_rest = slices[at]
        back, back_by_rest = min(both, -cost), min(by_rest, -rest)
        slices[at] = both - back, by_rest - back_by_rest
        cost, rest = cost + back, rest + back_by_rest
    return slices


def ended(health: Health, call: str) -> Health:
    """The health after a call came to its end."""
    if call not in health.calls:
        return health
    return replace(health, calls={name: until_us for name, until_us in health.calls.items() if name != call})


def answered(
    system: System, health: Health, call: str, now_us: int, *, extra: float, urgent: bool, said: Said | None
) -> Health:
    """The health after the answer to a call told what it did cost, or what is left; it came to its end with that.

    extra: what it did cost beyond what was taken for it; below 0 where it cost less.
    """
    health = ended(health, call)
    health = _charged(health, list(accounts(system, health, now_us)), extra, now_us, urgent)
    if said is not None:
        known = health.allowed(now_us)
        health = replace(health, allowance=begun(said, now_us) if known is None else known.heard(said, now_us))
    return health


# ── pauses ───────────────────────────────────────────────────────────────────────────────────────────


def failed(health: Health, now_us: int, reason: str, *, pause_us: int | None = None) -> Health:
    """The health after trouble of the system: paused, twice as long each time a probe fails.

    pause_us: what the system asked for, where it did; more than a day is a mistake.
    """
    probes = health.probes + 1
    wait_us = min(PROBE_MAX_US, PROBE_FIRST_US * 2 ** min(probes - 1, 20)) if pause_us is None else pause_us
    until_us = max(health.paused_until_us, now_us + min(wait_us, LONGEST_US))
    since_us = health.since_us if health.probes else now_us
    return replace(
        health, paused_until_us=until_us, reason=reason, by="", probes=probes, probing_until_us=0, since_us=since_us
    )


def succeeded(health: Health, now_us: int) -> Health:
    """The health after a call that worked: the system is back, unless a person paused it."""
    if health.by_person:
        return replace(health, ok_at_us=now_us)
    return replace(
        health, probes=0, probing_until_us=0, ok_at_us=now_us, paused_until_us=0, since_us=0, reason="", by=""
    )


def probe(health: Health, now_us: int, for_us: int) -> tuple[bool, Health]:
    """(whether the caller is the one that probes, the health to save)."""
    if health.paused(now_us) or health.probing_until_us > now_us:
        return False, health
    return True, replace(health, probing_until_us=now_us + for_us)


def resumed(health: Health) -> Health:
    """The health after a person ended every pause; what the system said of its limits is forgotten too."""
    return succeeded(replace(health, by_person=False, allowance=None), health.ok_at_us)
