"""How long the calls that are left will take: a pure function over limits, quota, reserve and what was spent.

It is for calls that are no events, made as fast as the budget lets them. How long a call itself takes, and how many
are made at once, is not known here. Events are taken to go on at the rate of the present window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trueup.model.budget import DAY_US, Limit, System
from trueup.model.health import REST_SHARE, SLICES, Account, Health, accounts, leaves_us, slice_of


@dataclass(frozen=True, slots=True)
class Forecast:
    """lasts_us: time until the last call. pace: what bounds it, such as `360/minute`."""

    lasts_us: int
    pace: str


def forecast(system: System, health: Health, cost: float, now_us: int) -> Forecast | None:
    """When calls of this cost in all will be made, or None where nothing bounds them or a person paused the system.

    Within a quarter, and a period of the longest limit, of what comes true while events keep their rate.
    """
    known = list(accounts(system, health, now_us))
    if health.by_person or not known:
        return None
    limits = [_Window.of(account, system.reserve) for account in known if account.limit is not None]
    begins_us = max(now_us, health.paused_until_us)
    left = cost
    allowance = health.allowed(begins_us)
    if allowance is not None:
        may = max(0.0, allowance.left - system.reserve * allowance.of)
        if left > may:
            left, begins_us = left - may, allowance.until_us
    quota = next((account for account in known if account.limit is None), None)
    if quota is None:
        ends_us, pace = _by_limits(limits, left, begins_us)
    else:
        ends_us, pace = _by_quota(system, quota, limits, left, begins_us)
    return Forecast(max(0, ends_us - now_us), pace)


@dataclass(frozen=True, slots=True)
class _Window:
    """One limit as the rest sees it: its share in each period, and when it gets which part of it first."""

    limit: Limit
    share: float
    slices: Sequence[tuple[int, float]]

    @classmethod
    def of(cls, account: Account, reserve: float) -> _Window:
        assert account.limit is not None
        by_events = account.spent - account.spent_by_rest
        share = min(account.most * (1 - reserve), account.most - by_events)
        share = _whole(max(share, account.most * REST_SHARE))
        return cls(account.limit, share, [(at, rest) for at, (_, rest) in sorted(account.slices.items()) if rest])

    @property
    def pace(self) -> str:
        """The share for people."""
        return f"{self.share:.0f}/{self.limit.unit}"

    @property
    def cycle_us(self) -> int:
        """What is spent in a slice is free again after so long."""
        return self.limit.period_us * (SLICES + 1) // SLICES

    def ends_us(self, cost: float, begins_us: int) -> int:
        """When this cost is spent, by this limit alone."""
        if cost <= 0:
            return begins_us
        counted = [(at, rest) for at, rest in self.slices if leaves_us(self.limit, at) > begins_us]
        free = max(0.0, self.share - sum(rest for _, rest in counted))
        portions = [(begins_us, free)] + [(leaves_us(self.limit, at), rest) for at, rest in counted]
        # Each portion comes again a cycle later: whole cycles first, then the portion that has the last call.
        cycles = max(0, math.ceil(cost / self.share) - 1)
        rest = cost - cycles * self.share
        for at_us, portion in portions:
            rest -= portion
            if rest <= 1e-9:
                return self._again_us(at_us, cycles)
        return self._again_us(portions[-1][0], cycles)

    def _again_us(self, at_us: int, cycles: int) -> int:
        if not cycles:
            return at_us
        return leaves_us(self.limit, slice_of(self.limit, at_us)) + (cycles - 1) * self.cycle_us

    def within(self, period_us: int) -> float:
        """What can be spent in so long a time."""
        return self.share * math.ceil(period_us / self.cycle_us)


def _whole(share: float) -> float:
    """As much of a share as calls that cost one can use; one call always may."""
    return max(1.0, math.floor(share + 1e-9))


def _by_limits(limits: Sequence[_Window], cost: float, begins_us: int) -> tuple[int, str]:
    """(when this cost is spent, the limit that is last to allow it; of several the slowest)."""
    ends = [(window.ends_us(cost, begins_us), -window.share / window.limit.period_us, window) for window in limits]
    ends_us, _, window = max(ends, key=lambda each: each[:2])
    return ends_us, window.pace


def _by_quota(
    system: System, quota: Account, limits: Sequence[_Window], cost: float, begins_us: int
) -> tuple[int, str]:
    """(when this cost is spent, day by day; what bounds it)."""
    assert system.quota is not None
    reset_us = max(quota.slices)
    share = _whole(quota.most * (1 - system.reserve))
    today = share
    if begins_us < reset_us:
        today = max(0.0, min(share - quota.spent_by_rest, quota.most - quota.spent))
    else:
        reset_us = system.quota.reset_us(begins_us)
    pace = f"{share:.0f}/day"
    if cost <= today:
        return _by_limits(limits, cost, begins_us) if limits else (begins_us, pace)
    done = min([today, *(window.within(reset_us - begins_us) for window in limits)])
    daily = min([share, *(window.within(DAY_US) for window in limits)])
    if daily < share and done < today:
        return _by_limits(limits, cost, begins_us)
    days = math.ceil((cost - done) / daily) - 1
    last = cost - done - days * daily
    fresh = [_Window(window.limit, window.share, ()) for window in limits]
    begins_us = reset_us + days * DAY_US
    return (_by_limits(fresh, last, begins_us)[0] if fresh else begins_us), pace
