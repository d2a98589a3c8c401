"""How jobs end, and when they come back. Chance spreads what would otherwise come back together."""

from __future__ import annotations

import random
from typing import Final

from trueup.errors import TrueupError
from trueup.model.outcome import HandlerOutcome, RateLimited, Reject, Retry, WaitFor
from trueup.model.row import Claim, Finish
from trueup.pair import Pair

BACKOFF_FIRST_US: Final = 1_000_000
BACKOFF_MAX_US: Final = 3_600_000_000
WAIT_US: Final = 10_000_000
# Records whose handlers asked for the same pause come back over this share of it.
RETRY_SPREAD: Final = 0.2


class Endings:
    """The ends of one pair's jobs, but for those that were done."""

    def __init__(self, pair: Pair, chance: random.Random) -> None:
        self._pair, self._chance = pair, chance

    def recheck_us(self) -> int:
        """For how long what is done counts as verified."""
        return recheck_us(self._pair, self._chance)

    def backoff_us(self, tries: int) -> int:
        """Exponential with full jitter (M. Brooker, "Exponential Backoff And Jitter", 2015)."""
        ceiling = min(BACKOFF_MAX_US, BACKOFF_FIRST_US * 2 ** max(0, tries - 1))
        return int(self._chance.uniform(0, ceiling))

    def broke(self, claim: Claim, error: BaseException, said: str | None = None) -> Finish:
        """A try that counts; said: in whose words, where not in those of the error."""
        if said is None:
            said = f"{type(error).__name__}: {error}" if isinstance(error, TrueupError) else self.told(error)
        return Finish(claim, "retry", delay_us=self.backoff_us(claim.row.tries), reason=said)

    def told(self, error: BaseException) -> str:
        """An error in words; what is not ours begins with its type.

        Of a pair that redacts fields only the type of a foreign error is kept: its words may hold values of the record.
        """
        if isinstance(error, TrueupError | RateLimited):
            return str(error)
        kind = type(error).__name__
        return kind if self._pair.redact or not str(error) else f"{kind}: {error}"

    def moved(self, claim: Claim) -> Finish:
        """The replica moved between our read and our write: no try is charged."""
        reason = "the replica moved between our read and our write"
        return Finish(claim, "retry", charge=False, reason=reason, delay_us=self.backoff_us(1))

    def waits(self, claim: Claim, reason: str, waits_for: str) -> Finish:
        """Asleep until another record is done."""
        return Finish(claim, "waits", delay_us=WAIT_US, charge=False, reason=reason, waits_for=waits_for)

    def lags(self, claim: Claim, lag: str) -> Finish:
        """The read contradicts what is known: it is repeated once the reader may have caught up."""
        reason = "the read contradicts what is known; a lagging reader?"
        return Finish(claim, "retry", delay_us=self._pair.settle_us, charge=False, reason=reason, lagging=lag)

    def given_back(self, claim: Claim) -> Finish:
        """Not begun: any worker may take it now."""
        return Finish(claim, "retry", charge=False, reason="its worker was told to stop")

    def outcome(self, claim: Claim, outcome: HandlerOutcome) -> Finish:
        """What a handler asked for; raises what it did not mean for a record."""
        match outcome:
            case Reject(reason=reason):
                return Finish(claim, "parked", reason=f"rejected: {reason}", rejected=True)
            case WaitFor(pair=pair, key=key):
                return self.waits(claim, str(outcome), f"{pair} {key}")
            case Retry(after_s=seconds):
                return Finish(claim, "retry", delay_us=self._again_us(claim, seconds), reason=str(outcome))
        raise outcome

    def _again_us(self, claim: Claim, asked_s: float | None) -> int:
        if asked_s is None:
            return self.backoff_us(claim.row.tries)
        return int(asked_s * 1e6 * self._chance.uniform(1, 1 + RETRY_SPREAD))


def recheck_us(pair: Pair, chance: random.Random) -> int:
    """For how long an agreement counts as verified: jittered, so that rechecks are spread."""
    return int(pair.recheck_us * chance.uniform(1 - pair.jitter, 1 + pair.jitter))
