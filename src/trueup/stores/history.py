"""What a record's history says: one short line for each offer, claim and finish; never a value."""

from __future__ import annotations

from typing import Final, NamedTuple

from trueup.model.change import Change, Origin, Outcome
from trueup.model.row import Claim, Finish, Row

# The newest entries of a record that are shown; stores prune older ones from time to time.
ENTRIES_KEPT: Final = 200


class Note(NamedTuple):
    """One entry of one record's history."""

    pair: str
    key: str
    what: str
    detail: str


def offered(change: Change, outcome: Outcome) -> Note:
    """What was offered, by whom, and what the ledger answered."""
    origin = _ORIGINS[change.origin]
    delivery = f", delivery {change.delivery}" if change.delivery else ""
    return Note(
        change.pair, change.key, "offered",
        f"{_OUTCOMES[outcome]}: {_named(change.action, change.version, change.digest)} from {origin}{delivery}",
    )  # fmt: skip


def claimed(claim: Claim) -> Note:
    """Who works on the record now."""
    row = claim.row
    return Note(row.pair, row.key, "claimed", f"try {row.tries} by {row.lease_owner}, fence {claim.fence}")


def parked(row: Row) -> Note:
    """That the record was parked at a claim, because its tries are spent."""
    return Note(row.pair, row.key, "parked", f"after {row.tries} tries: {row.park_reason}")


def finished(ended: Finish, *, accepted: bool, now_us: int) -> Note:
    """How a job ended, after how long, and whether its right to say so still held."""
    claim = ended.claim
    seconds = max(0, now_us - claim.claimed_at) / 1_000_000
    performed = f" {_named(ended.action, ended.version, ended.digest)}" if ended.action else ""
    reason = f": {ended.reason}" if ended.reason else ""
    detail = f"{ended.result}{performed} after {seconds:.3f} s, fence {claim.fence}{reason}"
    return Note(claim.change.pair, claim.change.key, "finished" if accepted else "refused", detail)


def revived(row: Row) -> Note:
    """That a parked record gets one more try."""
    return Note(row.pair, row.key, "revived", "one more try")


# Formatting an enum costs more than the rest of the line.
_OUTCOMES = {outcome: outcome.value for outcome in Outcome}
_ORIGINS = {int(origin): str(origin) for origin in Origin}


def _named(action: str, version: int | None, digest: str | None) -> str:
    named = action if version is None else f"{action} version {version}"
    return f"{named} digest {digest[:8]}" if digest else named
