"""A change: a wish for one record, and what the ledger answers to it."""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from trueup.model.names import client_of
from trueup.model.record import Payload, key_parts

UPSERT: Final = "upsert"
DELETE: Final = "delete"


class Origin(enum.IntEnum):
    """Where a change came from; the value is its priority, most urgent first."""

    EVENT = 0
    REVIEW = 1
    SWEEP = 2
    COMPARE = 3
    BACKFILL = 4

    def __str__(self) -> str:
        return self.name.lower()


# By value; to call the enum takes ten times as long.
ORIGINS: Final = {int(origin): origin for origin in Origin}
VERIFY_PRIORITY: Final = 5


class Outcome(enum.StrEnum):
    """What the ledger did with an offered change (the offer table, docs/concepts/ledger.md)."""

    PENDING = "pending"  # accepted: the record will be worked on
    REFETCH = "refetch"  # accepted; the worker reads the authority and acts on what is there
    COALESCED = "coalesced"  # accepted; it replaced an older wish that was still waiting
    VERIFY = "verify"  # accepted; what is done is checked again at the lowest priority
    SAME = "same"  # already wanted
    FRESH = "fresh"  # already done and recently verified: dropped
    STALE = "stale"  # older than what is wanted or done: dropped
    REPEATED = "repeated"  # this very delivery was judged before: dropped
    OVERTAKEN = "overtaken"  # the record moved since it was judged: judged again later

    @property
    def accepted(self) -> bool:
        """Whether the record is to be worked on because of this offer."""
        return self in (Outcome.PENDING, Outcome.REFETCH, Outcome.COALESCED, Outcome.VERIFY)


def count_outcomes(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """How often each outcome occurred."""
    return dict(Counter(outcomes))


@dataclass(frozen=True)
class Change:
    """A wish for one record.

    pair, key: whose record; `key` is key text. action: `upsert`, `delete` or a value of the action field.
    version: int64 by the authority's own clock or counter; None where it is not known.
    digest: over the pair's fields; None where not all of them are known (then it also has no version).
    payload: typed canonical JSON of the values, or None.
    judged_revision: for confirmed offers, the ledger row's revision when it was judged (0 = no row).
    judged_replica: for confirmed offers, the replica digest that was judged.
    unsynced: selected by the pair's `unsynced` condition.
    wish: number of the wish in the ledger; 0 before it is accepted.
    delivery: names the part of a delivery that brought it, such as `shop/evt_9`; each is judged once.
    attempt: which try of its wish this is, from 1; tries that were not charged do not count. 0 before it is claimed.
    trace: the traceparent (W3C Trace Context) of what brought it, where that is traced.
    """

    pair: str
    key: str
    action: str = UPSERT
    version: int | None = None
    digest: str | None = None
    payload: str | None = None
    origin: Origin = Origin.EVENT
    judged_revision: int | None = None
    judged_replica: str | None = None
    unsynced: bool = False
    wish: int = 0
    delivery: str | None = None
    attempt: int = field(default=0, compare=False)
    trace: str | None = field(default=None, compare=False)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The record's values as Python values by field name."""
        return Payload.loads(self.payload).natural()

    @property
    def key_parts(self) -> tuple[str | None, ...]:
        """The canonical texts of the key in declared column order."""
        return key_parts(self.key)

    @property
    def client(self) -> str | None:
        """The client that the pair is of; None where it is not one of many."""
        return client_of(self.pair)

    @property
    def id(self) -> str:
        """Idempotency key: equal for equal work, whatever the attempt; 32 hex digits.

        Doing again what was done before, because a compare or a person found it undone, is other work: an API
        that remembers keys must not answer it from memory.
        """
        again = self.version is None or self.origin in (Origin.COMPARE, Origin.REVIEW, Origin.BACKFILL)
        unordered = f"{self.version}#{self.wish}" if again else str(self.version)
        parts = (self.pair, self.key, self.action, unordered, self.digest or "")
        return hashlib.md5("\0".join(parts).encode(), usedforsecurity=False).hexdigest()
