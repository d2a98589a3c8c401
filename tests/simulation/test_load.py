"""Jitter: what was verified together is not verified again together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from trueup.engine import comparing, ending, plan
from trueup.testing.simulation.trace import Trace

RECORDS = 200
ROUNDS = 20


def adopted(trace: Trace) -> None:
    """All were found to agree in one compare."""


def worked(trace: Trace) -> None:
    """All were written by one batch of jobs."""
    trace.offer(*(trace.change(ident=at) for at in range(1, RECORDS + 1)))
    trace.go(trace.worker("worker"))


def converged(trace: Trace) -> None:
    """All differed when they were compared, and agreed when they were confirmed."""
    changes = [trace.change(ident=at) for at in range(1, RECORDS + 1)]
    compare = trace.run()
    trace.go(compare, before="ledger.rows")
    for at, change in enumerate(changes, 1):
        trace.edit(change.values["name"], ident=at)
    trace.go(compare)


def busiest_round(how: Callable[[Trace], None]) -> float:
    """The largest share of all records whose verification ends in one of the rounds between the first and last."""
    trace = Trace("opaque", records=RECORDS)
    how(trace)
    rows = next(trace.world.ledger.scan("people"))
    now_us = trace.world.scheduler.now_us
    left_us = sorted(row.verified_until - now_us for row in rows)
    trace.world.scheduler.close()
    assert len(left_us) == RECORDS
    assert left_us[0] > 0
    longest_us = 2 * 300_000_000
    return max(Counter(left * ROUNDS // longest_us for left in left_us).values()) / RECORDS


WAYS = [adopted, worked, converged]


@pytest.mark.parametrize("how", WAYS, ids=lambda how: how.__name__)
def test_verification_is_spread_over_time(how: Callable[[Trace], None]) -> None:
    assert busiest_round(how) < 0.2


@pytest.mark.parametrize("how", WAYS, ids=lambda how: how.__name__)
def test_without_jitter_it_would_come_due_at_once(how: Callable[[Trace], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for user in (ending, comparing, plan):
            patch.setattr(user, "recheck_us", lambda pair, chance: pair.recheck_us)
        assert busiest_round(how) == 1.0


def test_tries_that_failed_together_are_not_tried_again_together() -> None:
    trace = Trace("opaque")
    endings = ending.Endings(trace.nature.ingest.pair, trace.nature.ingest.chance)
    delays = sorted(endings.backoff_us(6) for _ in range(200))
    assert delays[0] < 2_000_000
    assert delays[-1] > 28_000_000
    assert max(later - sooner for sooner, later in pairwise(delays)) < 3_000_000
    trace.world.scheduler.close()
