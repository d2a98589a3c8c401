"""The ledger's values: one row for each record, the right to work on it, and how that work ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

from trueup.model.change import Change
from trueup.model.drift import Ancestors

NEVER_US: Final = 0


class State(enum.StrEnum):
    """idle: nothing wanted. pending: wanted and due at some time. parked: needs a person."""

    IDLE = "idle"
    PENDING = "pending"
    PARKED = "parked"


@dataclass(slots=True)
class Row:
    """All that is known of one record.

    wish: number of the newest accepted wish; `wish_*` describe it while the row is not idle.
    done_at: when the last job finished or an agreement was found; None where nothing is done yet.
    high: the highest version ever accepted. unordered: what is done may be older than `high`.
    attempted: (fence, digest) intended by a holder. revision: grows with every change of the row, last at touched_at.
    waits_for: (pair, key) as "pair key", where a handler waits for another record. lagging: what a read showed that
    contradicted what is known; seen again, it is believed. trace: the traceparent of the change that is wanted.
    """

    pair: str
    key: str
    state: State = State.IDLE
    wish: int = 0
    wish_action: str | None = None
    wish_version: int | None = None
    wish_digest: str | None = None
    wish_payload: str | None = None
    wish_origin: int = 0
    priority: int = 0
    queued_at: int = 0
    due_at: int = 0
    refetch: bool = False
    verify: bool = False
    unsynced: bool = False
    judged_replica: str | None = None
    done_action: str | None = None
    done_version: int | None = None
    done_digest: str | None = None
    done_replica: str | None = None
    done_at: int | None = None
    verified_until: int = NEVER_US
    high: int | None = None
    unordered: bool = False
    evicted: int = 0
    lease_owner: str | None = None
    lease_until: int = 0
    fence: int = 0
    revision: int = 0
    touched_at: int = 0
    tries: int = 0
    last_error: str | None = None
    park_reason: str | None = None
    rejected: bool = False
    waits_for: str | None = None
    lagging: str | None = None
    repairs: int = 0
    trace: str | None = None
    attempted: tuple[tuple[int, str], ...] = ()

    def copy(self) -> Row:
        """The same row, free to be changed."""
        return Row(*row_values(self))

    @property
    def ready_at(self) -> int:
        """When a pending row may be claimed: it is due, and nobody's lease runs."""
        return max(self.due_at, self.lease_until)

    def leased(self, now_us: int) -> bool:
        """Whether somebody may be working on the record."""
        return self.lease_owner is not None and self.lease_until > now_us

    def undisturbed(self, now_us: int, *, parked_too: bool = False) -> bool:
        """Whether a compare may judge the record: nothing wanted, nobody working on it."""
        calm = self.state is State.IDLE or (parked_too and self.state is State.PARKED)
        return calm and not self.leased(now_us)

    @property
    def ancestors(self) -> Ancestors:
        """What is known of the last agreement."""
        return Ancestors(self.done_digest, self.done_replica, frozenset(digest for _, digest in self.attempted))


# A record as it was just read: key; action and digest at the authority; digest at the replica. None of a side that was
# not looked at. A plain tuple, since there are hundreds of thousands.
Seen: TypeAlias = tuple[str, str | None, str | None, str | None]


def left_so(seen: Seen, row: Row | None) -> bool:
    """Whether the last finish or agreement left the record as it was seen."""
    _, action, digest, replica = seen
    if row is None:
        return False
    if digest is not None:
        known = row.done_at is not None and not row.unordered
        if not known or (row.done_action, row.done_digest) != (action, digest):
            return False
    return replica is None or row.done_replica == replica


ROW_FIELDS: Final = tuple(field.name for field in fields(Row))
# dataclasses.replace takes six times as long, and every rule copies its row.
row_values: Final[attrgetter[tuple[Any, ...]]] = attrgetter(*ROW_FIELDS)


# Not frozen, though nobody changes them: each job makes both, and a frozen one takes three times as long to make.
@dataclass(slots=True)
class Claim:
    """The right to work on one record, and what is wanted of it.

    row is the record's row as claimed (its `ancestors` do not include this claim's own intent).
    claimed_at: by the store's clock.
    """

    change: Change
    fence: int
    lease_until: int
    row: Row
    claimed_at: int = 0


@dataclass(slots=True)
class Finish:
    """How a job ended.

    result: `done` (performed: action, version, digest, replica), `verified` (checked and found equal),
    `retry` (again after delay_us; `charge` says whether the try counts), `parked`, or `waits`.
    absent: what was performed is an absence. verified_for_us: recheck with jitter.
    repaired: the job repaired a drift that a compare had found.
    """

    claim: Claim
    result: Literal["done", "verified", "retry", "parked", "waits"]
    action: str | None = None
    version: int | None = None
    digest: str | None = None
    replica: str | None = None
    absent: bool = False
    verified_for_us: int = 0
    delay_us: int = 0
    charge: bool = True
    reason: str = ""
    rejected: bool = False
    waits_for: str | None = None
    lagging: str | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Baseline:
    """An agreement that a compare found: ancestors for one record whose row has not moved meanwhile.

    revision: the row's when it was judged (0 = no row); where None, the row must not have been touched since
    `since_us` by the store's clock (taken before the compare began to read).

    digest, replica: of both sides, None where a side lacks it.
    """

    key: str
    revision: int | None
    digest: str | None
    replica: str | None
    action: str = "upsert"
    version: int | None = None
    verified_for_us: int = 0
    since_us: int = 0


def new_row(pair: str, key: str, now_us: int) -> Row:
    """A row for a record never seen, or purged: its fence and revision start above any ever issued."""
    return Row(pair, key, fence=now_us, revision=now_us + 1, touched_at=now_us)
