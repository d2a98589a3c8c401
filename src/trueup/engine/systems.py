"""How a system is: its pause, what was spent of its limits, and how long what is pending will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueup.engine.afford import cost_of_job
from trueup.model.budget import System
from trueup.model.forecast import forecast
from trueup.model.health import Account, Health, accounts
from trueup.pair import Pair
from trueup.ports import Budgets


@dataclass(frozen=True, slots=True)
class Spending:
    """What counts now of one limit. by_rest, most_of_rest: by all that is no event, and its share.

    resets_us: when a quota begins anew; None for a limit, which slides. frees_in_us: how long until a call may be made;
    None where one may be now.
    """

    limit: str
    spent: float
    most: float
    by_rest: float
    most_of_rest: float
    resets_us: int | None = None
    frees_in_us: int | None = None

    @property
    def used_up(self) -> bool:
        """Whether not even an event may call."""
        return self.spent + 1 > self.most


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """How one system is.

    paused_until_us: None where it is not paused, or until a person ends it (paused_by says who, where known).
    left, left_until_us: what the system itself said is left. lasts_us, pace: how long the pending records take, and
    what bounds it; None where nothing is known to. next_command: what ends the pause. troubled: calls of it fail, or
    it asked for a pause. since_us: when the trouble, or a person's pause, began.
    """

    system: str
    paused: bool
    paused_until_us: int | None
    paused_by: str | None
    reason: str
    spending: Sequence[Spending]
    left: float | None
    left_until_us: int | None
    under_way: int
    lasts_us: int | None
    pace: str | None
    next_command: str | None
    troubled: bool = False
    since_us: int | None = None


def system_status(system: System, health: Health, cost: float, now_us: int) -> SystemStatus:
    """How a system is. cost: of all calls that are still to be made of it; 0 for none."""
    paused = health.paused(now_us)
    allowance = health.allowed(now_us)
    expected = forecast(system, health, cost, now_us) if cost else None
    return SystemStatus(
        system=system.name,
        paused=paused,
        paused_until_us=health.paused_until_us if paused and not health.by_person else None,
        paused_by=(health.by or ("a person" if health.by_person else "trueup")) if paused else None,
        reason=health.reason if paused or health.probes else "",
        spending=[
            Spending(
                str(account.limit or system.quota),
                round(account.spent, 3),
                account.most,
                round(account.spent_by_rest, 3),
                round(account.most * (1 - system.reserve), 3),
                None if account.limit else max(account.slices),
                _frees_in_us(account, now_us),
            )
            for account in accounts(system, health, now_us)
        ],
        left=None if allowance is None else allowance.left,
        left_until_us=None if allowance is None else allowance.until_us,
        under_way=sum(until_us > now_us for until_us in health.calls.values()),
        lasts_us=None if expected is None else expected.lasts_us,
        pace=None if expected is None else expected.pace,
        next_command=f"trueup resume {'--all' if health.everything else system.name}" if paused else None,
        troubled=bool(health.probes) and not health.by_person,
        since_us=health.since_us or None,
    )


def _frees_in_us(account: Account, now_us: int) -> int | None:
    """Until an event may call; None where it may now."""
    excess = account.spent + 1 - account.most
    return account.until_free(0, excess, now_us) if excess > 0 else None


def systems_of(pair: Pair, budgets: Budgets, pending: int, now_us: int) -> list[SystemStatus]:
    """How the systems of a pair are: the one that is written first, then the authority's."""
    declared: System | None = getattr(pair.authority, "system", None)
    systems = {pair.system.name: pair.system}
    systems.setdefault(pair.authority_system, declared or System(pair.authority_system))
    healths = budgets.healths(list(systems))
    return [
        system_status(each, healths[name], pending * cost_of_job(pair) if name == pair.system.name else 0, now_us)
        for name, each in systems.items()
    ]
