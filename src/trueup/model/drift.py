"""Who moved: the table that turns a confirmed difference into a named drift and its default verdict."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class Verdict(enum.StrEnum):
    """What is done about a drift."""

    REPAIR = "repair"
    REVIEW = "review"
    ACCEPT = "accept"


class Drift(enum.StrEnum):
    """The confirmed ways in which a record can disagree; also the keys of `on_drift`."""

    MISSING = "missing"
    REMOVED = "removed"
    ORPHANED = "orphaned"
    FOREIGN = "foreign"
    BEHIND = "behind"
    EDITED = "edited"
    UNLIKE = "unlike"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"
    DUPLICATE = "duplicate"
    FLAPPING = "flapping"


DEFAULT_VERDICTS: Final[Mapping[Drift, Verdict]] = {
    Drift.MISSING: Verdict.REPAIR,
    Drift.REMOVED: Verdict.REPAIR,
    Drift.ORPHANED: Verdict.REVIEW,
    Drift.FOREIGN: Verdict.REVIEW,
    Drift.BEHIND: Verdict.REPAIR,
    Drift.EDITED: Verdict.REVIEW,
    Drift.UNLIKE: Verdict.REVIEW,
    Drift.CONFLICT: Verdict.REVIEW,
    Drift.UNKNOWN: Verdict.REVIEW,
    Drift.DUPLICATE: Verdict.REVIEW,
    Drift.FLAPPING: Verdict.REVIEW,
}
# So many repairs in a row without an agreement between them: one more would not hold either.
FLAPS: Final = 3
# What a person may opt in to; the rest is never repaired by a rule.
REPAIRABLE: Final = frozenset(
    {Drift.MISSING, Drift.REMOVED, Drift.ORPHANED, Drift.BEHIND, Drift.EDITED, Drift.CONFLICT, Drift.UNKNOWN}
)


@dataclass(frozen=True, slots=True)
class Ancestors:
    """What is known of a record's last agreement.

    authority, replica: the two digests of done; None where nothing or an absence is done.
    attempted: digests that a holder of the record intended to write and may have written.
    """

    authority: str | None = None
    replica: str | None = None
    attempted: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        """Whether the two sides are known to have agreed on a present record."""
        return self.replica is not None or self.authority is not None

    def ours(self, replica: str | None) -> bool:
        """Whether the replica holds what we wrote, or may have written."""
        return replica is not None and (replica == self.replica or replica in self.attempted)


NO_ANCESTORS: Final = Ancestors()


def who_moved(authority: str | None, replica: str | None, ancestors: Ancestors, *, duplicate: bool = False) -> Drift:
    """The drift of a record whose two sides were just confirmed to disagree.

    authority, replica: digests as read, None where the side lacks the record. The first row that fits.
    """
    if duplicate:
        return Drift.DUPLICATE
    if replica is None:
        return Drift.REMOVED if ancestors.replica is not None else Drift.MISSING
    if authority is None:
        return Drift.ORPHANED if ancestors.ours(replica) else Drift.FOREIGN
    authority_moved = authority != ancestors.authority
    replica_moved = replica != ancestors.replica
    if ancestors.ours(replica):
        return Drift.BEHIND if authority_moved or replica_moved else Drift.UNLIKE
    if not ancestors.known:
        return Drift.UNKNOWN
    return Drift.CONFLICT if authority_moved else Drift.EDITED
