"""May this write happen? Every replica read is judged here before the write, and again after a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.engine.records import Records, State
from trueup.model.drift import Drift, Verdict, who_moved
from trueup.model.record import Found
from trueup.model.row import Claim


@dataclass(frozen=True, slots=True)
class Equal:
    """The replica already holds what is wanted: our own earlier attempt landed, or somebody did the same."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """The write may happen while the replica still answers to this token ("" = absent)."""

    expect: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Somebody else moved the replica; a person decides."""

    drift: Drift


Judgement = Equal | Permitted | Refused


def judge(records: Records, state: State, replica: Found | None, claim: Claim) -> Judgement:
    """Whether the wished state may be written over what the replica holds now.

    Absent, no ancestor known, equal to the ancestor, to an attempted digest, or to what a confirmed offer was
    judged on: yes. Otherwise the table of who moved gives the drift, and the pair's policy the verdict.
    """
    if records.agree(state, replica):
        return Equal()
    if replica is None:
        return Permitted("")
    if state.copies > 1 or replica.copies > 1:
        return Refused(Drift.DUPLICATE)
    row, digest = claim.row, records.replica_digest(replica)
    untouched = row.done_at is None or row.ancestors.ours(digest) or digest == claim.change.judged_replica
    if untouched:
        return Permitted(replica.token)
    drift = who_moved(state.digest, digest, row.ancestors)
    if records.pair.verdict(drift) is Verdict.REPAIR:
        return Permitted(replica.token)
    return Refused(drift)
