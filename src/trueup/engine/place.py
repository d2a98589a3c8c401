"""The places of a pair that limits how many of its batches are worked at once, over all workers of the store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trueup.errors import TrueupError
from trueup.model.budget import System
from trueup.pair import Pair
from trueup.ports import Budgets, Clock, Ledger


@contextmanager
def placed(ledger: Ledger, budgets: Budgets, clock: Clock, pair: Pair, *, named: bool) -> Iterator[bool]:
    """Whether one batch of the pair may be worked now; its place is held until the end of the block.

    named: the caller asks for certain records, due or not; otherwise it knows that some are due. A place lasts as long
    as a lease and is renewed as a lease is, so that the place of a worker that died comes back when its leases do.
    """
    if pair.concurrency is None:
        yield True
        return
    # A place that is taken in vain is a write that wakes every worker, who would do the same.
    if not named and not _free(ledger, budgets, pair):
        yield False
        return
    places = System(f"pair/{pair.name}", concurrency=pair.concurrency)
    call = secrets.token_hex(8)

    def take() -> bool:
        return not budgets.take(places, 0, urgent=True, call=call, call_us=pair.lease_us)

    def renew() -> bool:
        with suppress(TrueupError):  # the next one may succeed, and until then the place lasts
            return take()
        return True

    if not take():
        yield False
        return
    stop = clock.every(pair.lease_us / 3e6, renew)
    try:
        yield True
    finally:
        stop()
        budgets.ended(places.name, call)


def _free(ledger: Ledger, budgets: Budgets, pair: Pair) -> bool:
    """Whether nothing holds up the pair's systems."""
    now_us = ledger.now_us()
    healths = [budgets.health(name) for name in pair.systems]
    return not any(health.paused(now_us) or health.probing_until_us > now_us for health in healths)
