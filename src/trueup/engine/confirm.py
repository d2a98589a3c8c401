"""Confirm before reporting: every difference is read again by key on both sides, then judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trueup.engine.records import Records, State
from trueup.model.acceptance import Acceptance
from trueup.model.drift import FLAPS, NO_ANCESTORS, Drift, Verdict, who_moved
from trueup.model.plan import PlanItem
from trueup.model.record import Found
from trueup.model.row import Baseline, Row
from trueup.ports import Ledger


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A drift: both sides as read again, the ledger's revision at that moment, and the verdict.

    regressed: the authority holds an older version than was once done: it was restored from a backup.
    """

    key: str
    drift: Drift
    verdict: Verdict
    state: State
    replica: Found | None
    revision: int
    replica_digest: str | None
    regressed: bool = False

    def accepted(self, known: Acceptance | None) -> bool:
        """Whether it is the very difference that a person accepted. known: what is accepted of this record."""
        # Of several copies only one was seen.
        covered = known is not None and known.covers(self.state.digest, self.replica_digest)
        return covered and self.drift is not Drift.DUPLICATE

    def item(self, records: Records, verdict: Verdict) -> PlanItem:
        """The drift as a run keeps it in its plan."""
        one_sided = self.state.values is None or self.replica is None
        names = [f.name for f in records.plan.left.fields] if one_sided else records.differing(self.state, self.replica)
        return PlanItem(
            key=self.key,
            drift=self.drift,
            verdict=verdict,
            action=self.state.action,
            authority=self.state.values,
            replica=None if self.replica is None else self.replica.values,
            fields=tuple(names),
            version=self.state.version,
            authority_digest=self.state.digest,
            replica_digest=self.replica_digest,
            revision=self.revision,
            removes=self.state.absent,
        )


@dataclass(slots=True)
class Confirmation:
    """What became of a batch of differences.

    agreed: ancestors of records that agree now. converged: agree now. deferred: moving, judged next time.
    """

    drifts: list[Confirmed] = field(default_factory=list)
    agreed: list[Baseline] = field(default_factory=list)
    converged: int = 0
    deferred: int = 0


def confirm(
    records: Records, ledger: Ledger, keys: Sequence[str], cutoff_us: int | None, *, parked_too: bool = False
) -> Confirmation:
    """Reads these records again on both sides and judges those that stood still.

    The ledger row is read before and after; a record is judged only if it was at the same revision both
    times, with nothing wanted and nobody working on it, and quiet since the cutoff. The authority is read once more
    where the replica differs: what moved while the other side was being read was never seen as it is. The replica is
    not asked about records that can't be judged: its calls may be few.
    """
    pair = records.pair
    before, now_us = ledger.rows(pair.name, keys), ledger.now_us()
    states = records.read_authority([key for key in keys if _undisturbed(before.get(key), now_us, parked_too)])
    quiet = [key for key, state in states.items() if not _still_moving(records, state, cutoff_us)]
    replicas = records.read_replica(quiet)
    again = records.read_authority([key for key in quiet if not records.agree(states[key], replicas.get(key))])
    after, now_us = ledger.rows(pair.name, quiet), ledger.now_us()
    result = Confirmation(deferred=len(keys) - len(quiet))
    for key in quiet:
        state, replica, row = states[key], replicas.get(key), after.get(key)
        if not _stood_still(before.get(key), row, now_us, parked_too) or _moved(state, again.get(key, state)):
            result.deferred += 1
        elif records.agree(state, replica):
            result.converged += 1
            result.agreed.append(_agreement(records, state, replica, row))
        else:
            result.drifts.append(_judged(records, state, replica, row))
    return result


def _undisturbed(row: Row | None, now_us: int, parked_too: bool) -> bool:
    return row is None or row.undisturbed(now_us, parked_too=parked_too)


def _stood_still(before: Row | None, after: Row | None, now_us: int, parked_too: bool) -> bool:
    if before is None or after is None:
        return before is after
    return before.revision == after.revision and after.undisturbed(now_us, parked_too=parked_too)


def _moved(state: State, again: State) -> bool:
    return (state.digest, state.version, state.copies) != (again.digest, again.version, again.copies)


def _still_moving(records: Records, state: State, cutoff_us: int | None) -> bool:
    return records.dated and cutoff_us is not None and state.version is not None and state.version > cutoff_us


def _agreement(records: Records, state: State, replica: Found | None, row: Row | None) -> Baseline:
    return Baseline(
        key=state.key,
        revision=0 if row is None else row.revision,
        digest=state.digest,
        replica=records.replica_digest(replica),
        action=state.action,
        version=state.version,
        verified_for_us=records.pair.recheck_us,
    )


def _judged(records: Records, state: State, replica: Found | None, row: Row | None) -> Confirmed:
    ancestors = NO_ANCESTORS if row is None else row.ancestors
    digest = records.replica_digest(replica)
    duplicate = state.copies > 1 or (replica is not None and replica.copies > 1)
    drift = who_moved(state.digest, digest, ancestors, duplicate=duplicate)
    verdict = records.pair.verdict(drift)
    if row is not None and row.repairs >= FLAPS and verdict is Verdict.REPAIR:
        drift, verdict = Drift.FLAPPING, Verdict.REVIEW
    revision = 0 if row is None else row.revision
    regressed = row is not None and _below(state.version, row.done_version)
    return Confirmed(state.key, drift, verdict, state, replica, revision, digest, regressed)


def _below(version: int | None, done: int | None) -> bool:
    return version is not None and done is not None and version < done
