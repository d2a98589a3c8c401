"""The leases of one batch: renewed as time passes, checked before every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trueup.errors import LeaseLost
from trueup.model.row import Claim
from trueup.ports import Clock, Ledger


class Holding:
    """The right to work on some records, as far as it is known here.

    Until a lease ends nobody else can have been given the record, so while half of it is left the store need not be
    asked. Its end is counted from before the claim was made, by this host's clock: only differences matter.
    began_us: when the claim was asked for.
    """

    def __init__(self, ledger: Ledger, clock: Clock, claims: Sequence[Claim], lease_us: int, began_us: int) -> None:
        self._ledger, self._clock, self._claims, self._lease_us = ledger, clock, list(claims), lease_us
        self._until_us = began_us + lease_us
        self._lost: set[int] = set()

    def keep(self) -> Callable[[], None]:
        """Renews at a third of the lease until what it returns is called."""
        return self._clock.every(self._lease_us / 3e6, self.renew)

    def renew(self) -> bool:
        """Extends the leases; answers whether any is still held."""
        # No lock: renewing twice does no harm, and a lock must never be held over a call of a port.
        began_us = self._clock.now_us()
        held = [claim for claim in self._claims if claim.fence not in self._lost]
        kept = self._ledger.renew(held, self._lease_us) if held else []
        self._lost.update(claim.fence for claim, still in zip(held, kept, strict=True) if not still)
        self._until_us = max(self._until_us, began_us + self._lease_us)
        return any(kept)

    def holds(self, claim: Claim) -> bool:
        """Whether a write may start: the lease holds, and at least half of it is left."""
        if self._until_us - self._clock.now_us() < self._lease_us // 2:
            self.renew()
        return claim.fence not in self._lost and self._clock.now_us() < self._until_us

    def lose(self, claim: Claim) -> None:
        """The store said that this lease is gone."""
        self._lost.add(claim.fence)

    def check(self, claim: Claim) -> None:
        """Raises LeaseLost where the record may be somebody else's by now."""
        if not self.holds(claim):
            raise LeaseLost(
                f"pair {claim.change.pair}: the lease on {claim.change.key} ran out.",
                hint="Raise the pair's lease, or make the handler faster.",
            )
