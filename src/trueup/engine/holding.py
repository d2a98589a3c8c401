"""The leases of one batch: renewed as time passes, asked for before every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from trueup.errors import LeaseLost
from trueup.model.row import Claim
from trueup.ports import Clock, Ledger

FRESH_US_MAX: Final = 1_000_000


class Holding:
    """The right to work on some records, as the store last told this thread.

    An answer of the store, the claim itself included, counts for a second and at most a sixth of the lease: many
    quick jobs share one question, and whoever stood still asks again. A batch belongs to one thread.
    asked_us: when the claims were asked for, on the clock's `elapsed_us`.
    """

    def __init__(self, ledger: Ledger, clock: Clock, claims: Sequence[Claim], lease_us: int, asked_us: int) -> None:
        self._ledger, self._clock, self._claims, self._lease_us = ledger, clock, list(claims), lease_us
        self._fresh_us = min(FRESH_US_MAX, lease_us // 6)
        self._asked_us = asked_us
        self._lost: set[str] = set()

    def keep(self) -> Callable[[], None]:
        """Renews at a third of the lease, until what it returns is called."""
        return self._clock.every(self._lease_us / 3e6, self._renew)

    def _renew(self) -> bool:
        # No lock: renewing twice does no harm, and a lock must never be held over a call of a port.
        held = [claim for claim in self._claims if claim.change.key not in self._lost]
        kept = self._ledger.renew(held, self._lease_us) if held else []
        self._lost.update(claim.change.key for claim, still in zip(held, kept, strict=True) if not still)
        return any(kept)

    def intend(self, intents: Sequence[tuple[Claim, str]]) -> None:
        """Records what is about to be written, where the lease still holds."""
        kept = self._ledger.attempt(intents) if intents else []
        self._lost.update(claim.change.key for (claim, _), still in zip(intents, kept, strict=True) if not still)

    def ask(self) -> None:
        """Asks the store about every lease of the batch."""
        asked_us = self._clock.elapsed_us()
        self._renew()
        self._asked_us = asked_us

    def holds(self, claim: Claim) -> bool:
        """Whether a write may start; asks the store where its last answer is no longer fresh."""
        if self._clock.elapsed_us() - self._asked_us > self._fresh_us:
            self.ask()
        return not self.lost(claim)

    def lost(self, claim: Claim) -> bool:
        """Whether the store has said that this lease is gone; nobody is asked."""
        return claim.change.key in self._lost

    def check(self, claim: Claim) -> None:
        """Raises LeaseLost where the record may be somebody else's by now."""
        if not self.holds(claim):
            raise LeaseLost(
                f"pair {claim.change.pair}: the lease on {claim.change.key} ran out.",
                hint="Raise the pair's lease, or make the handler faster.",
            )
