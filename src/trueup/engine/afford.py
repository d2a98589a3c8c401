"""How many jobs the budget of a pair's system has room for, and on whose behalf they are worked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueup.model.budget import CallKind
from trueup.model.change import Origin
from trueup.model.health import Health, room, spend
from trueup.model.row import Claim, Finish
from trueup.pair import Pair
from trueup.ports import Budgets, Ledger


@dataclass(frozen=True, slots=True)
class Afforded:
    """How many jobs of a pair the budget of its system has room for; None for any number.

    wait_us: until there is room for the next, 0 where there is.
    """

    jobs: int | None = None
    wait_us: int = 0


def cost_of_job(pair: Pair) -> float:
    """What a job costs at most: the calls of a put, where the replica says them, else one write."""
    calls: Sequence[CallKind] = getattr(pair.replica, "calls_of_put", ("write",))
    return sum((pair.system.costs.of(kind) for kind in calls), 0.0)


def afforded(pair: Pair, budgets: Budgets, ledger: Ledger, *, urgent: bool) -> Afforded:
    """What may be begun now. A batch reads before it writes: if it took more, it could spend all on reads."""
    if not _counts(pair):
        return Afforded()
    return affordable(pair, budgets.health(pair.system.name), ledger.now_us(), urgent=urgent)


def affordable(pair: Pair, health: Health, now_us: int, *, urgent: bool) -> Afforded:
    """The same, where the health of the pair's system is at hand."""
    if not _counts(pair):
        return Afforded()
    system = pair.system
    may, cost = room(system, health, now_us, urgent=urgent), cost_of_job(pair)
    jobs = int(may // cost) if cost and may < math.inf else None
    if jobs:
        return Afforded(jobs)
    read = system.costs.read
    wait_us, _ = spend(system, replace(health, calls={}), read, now_us, urgent=urgent, call="", call_us=0)
    return Afforded(None if jobs is None else 0 if wait_us else 1, wait_us)


def _counts(pair: Pair) -> bool:
    return pair.system.counted and hasattr(pair.replica, "calls_of_put")


def in_turns(pair: Pair, claims: Sequence[Claim]) -> list[tuple[bool, Sequence[Claim]]]:
    """(whether urgent, claims): events apart from the rest where there is a budget, of which a part is theirs."""
    events = [claim for claim in claims if claim.row.priority == Origin.EVENT]
    if not pair.system.counted:
        return [(bool(events), claims)]
    rest = [claim for claim in claims if claim.row.priority != Origin.EVENT]
    return [(urgent, turn) for urgent, turn in ((True, events), (False, rest)) if turn]


def beyond(pair: Pair, budgets: Budgets, ledger: Ledger, claims: Sequence[Claim], *, urgent: bool) -> list[Finish]:
    """How the claims end that a batch has no budget for: they come back when there is room, and no try is charged."""
    if not claims:
        return []
    wait_us = afforded(pair, budgets, ledger, urgent=urgent).wait_us
    reason = f"the budget of {pair.system.name} is spent"
    return [Finish(claim, "retry", delay_us=wait_us, reason=reason, charge=False) for claim in claims]
