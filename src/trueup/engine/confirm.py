"""Confirm before reporting: every difference is read again by key on both sides, then judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trueup.engine.records import Records, State
from trueup.model.change import Change, Origin
from trueup.model.drift import NO_ANCESTORS, Drift, Verdict, who_moved
from trueup.model.record import Found
from trueup.model.row import Baseline, Row
from trueup.ports import Ledger


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A drift: both sides as read again, the ledger's revision at that moment, and the verdict."""

    key: str
    drift: Drift
    verdict: Verdict
    state: State
    replica: Found | None
    revision: int
    replica_digest: str | None

    def change(self, records: Records, origin: Origin = Origin.COMPARE) -> Change:
        """The repair as an offer that is refused where the record has moved since."""
        return records.change(self.state, origin, judged_revision=self.revision, judged_replica=self.replica_digest)

    def fields(self, records: Records) -> dict[str, tuple[str | None, str | None]]:
        """Both texts of each field that differs; of all compared fields where a side lacks the record."""
        left: Mapping[str, str | None] = self.state.values or {}
        right: Mapping[str, str | None] = {} if self.replica is None else self.replica.values
        one_sided = self.state.values is None or self.replica is None
        names = [f.name for f in records.plan.left.fields] if one_sided else records.differing(self.state, self.replica)
        return {name: (left.get(name), right.get(name)) for name in names}


@dataclass(slots=True)
class Confirmation:
    """What became of a batch of differences.

    agreed: ancestors of records that agree now. converged: agree now. deferred: moving, judged next time.
    """

    drifts: list[Confirmed] = field(default_factory=list)
    agreed: list[Baseline] = field(default_factory=list)
    converged: int = 0
    deferred: int = 0


def confirm(records: Records, ledger: Ledger, keys: Sequence[str], cutoff_us: int | None) -> Confirmation:
    """Reads these records again on both sides and judges those that stood still.

    The ledger row is read before and after; a record is judged only if it was at the same revision both
    times, with nothing wanted and nobody working on it, and quiet since the cutoff.
    """
    pair = records.pair
    before = ledger.rows(pair.name, keys)
    states, replicas = records.read_authority(keys), records.read_replica(keys)
    after = ledger.rows(pair.name, keys)
    now_us = ledger.now_us()
    result = Confirmation()
    for key in keys:
        state, replica, row = states[key], replicas.get(key), after.get(key)
        if not _stood_still(before.get(key), row, now_us) or _still_moving(records, state, cutoff_us):
            result.deferred += 1
        elif records.agree(state, replica):
            result.converged += 1
            result.agreed.append(_agreement(records, state, replica, row))
        else:
            result.drifts.append(_judged(records, state, replica, row))
    return result


def _stood_still(before: Row | None, after: Row | None, now_us: int) -> bool:
    if before is None or after is None:
        return before is after
    return before.revision == after.revision and after.undisturbed(now_us)


def _still_moving(records: Records, state: State, cutoff_us: int | None) -> bool:
    asked = records.authority.version
    if cutoff_us is None or state.version is None or asked is None or asked.kind.name != "timestamp":
        return False
    return state.version > cutoff_us


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
    revision = 0 if row is None else row.revision
    return Confirmed(state.key, drift, records.pair.verdict(drift), state, replica, revision, digest)
