"""The rules of one ledger row: queue, lock and memory at once.

Every store loads rows, lets these functions judge them, and saves them in one transaction. They were
model-checked; a change here must be checked again (docs/concepts/ledger.md, tests/simulation).

A row is pending where something newer is *wanted* than is *done* (as with Kubernetes' generation and
observedGeneration). Who may work on it now is a lease with a fencing token (M. Kleppmann, "How to do
distributed locking", 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trueup.model.change import DELETE, ORIGINS, VERIFY_PRIORITY, Change, Origin, Outcome
from trueup.model.row import NEVER_US, Baseline, Claim, Finish, Row, State, new_row

ATTEMPTED_KEPT: Final = 16
ERROR_CHARACTERS_MAX: Final = 500
WORKER_DIED: Final = "worker died: the job ended its process each time"


def offer(row: Row | None, change: Change, now_us: int, *, young: bool) -> tuple[Outcome, Row | None]:
    """Judges one change; the first rule that fits. Answers the outcome and the row to save, if it changed.

    row: the record's row or None. young: the pair has no complete baseline yet.
    """
    if change.judged_revision is not None:
        if _moved(row, change, now_us):
            return Outcome.OVERTAKEN, None
        return _refetch(row, change, now_us, decided=True)
    if change.unsynced and (row is None or row.undisturbed(now_us)):
        return _refetch(row, change, now_us, decided=True)
    if change.unsynced and row is not None and row.state is State.PARKED:
        return Outcome.SAME, None
    if row is None:
        return _refetch(None, change, now_us) if change.version is None or young else _newer(None, change, now_us)
    return _versioned(row, change, now_us, young=young)


def _versioned(row: Row, change: Change, now_us: int, *, young: bool) -> tuple[Outcome, Row | None]:
    wanted, leased = row.state is not State.IDLE, row.leased(now_us)
    equals_done = _equals_done(row, change)
    equals_wanted = wanted and _equals_wanted(row, change)
    if change.version is None or (row.unordered and not equals_done) or (row.done_at is None and young):
        return _refetch(row, change, now_us)
    if change.action != DELETE and _not_newer_than_delete(row, change.version, wanted):
        return _refetch(row, change, now_us)
    if _older(change.version, row.done_version) or (wanted and _older(change.version, row.wish_version)):
        return Outcome.STALE, None
    if leased and (equals_wanted or equals_done):
        return _refetch(row, change, now_us)
    if equals_wanted or (equals_done and row.state is State.PENDING):
        return _same(row, change, now_us)
    if equals_done and row.state is State.PARKED and change.version != row.wish_version:
        return Outcome.SAME, None  # what was done before says nothing about the wish that is parked
    if equals_done and row.state is State.IDLE:
        return (Outcome.FRESH, None) if now_us < row.verified_until else _verify(row, change, now_us)
    if change.version in (row.done_version, row.wish_version if wanted else None):
        return _refetch(row, change, now_us)
    return _newer(row, change, now_us)


def _touched(row: Row, now_us: int) -> Row:
    row = row.copy()
    row.revision += 1
    row.touched_at = now_us
    return row


def _moved(row: Row | None, change: Change, now_us: int) -> bool:
    if row is None:
        return change.judged_revision != 0
    parked_too = change.origin is not Origin.COMPARE
    return row.revision != change.judged_revision or not row.undisturbed(now_us, parked_too=parked_too)


def _older(version: int, other: int | None) -> bool:
    return other is not None and version < other


def _equals_done(row: Row, change: Change) -> bool:
    return row.done_at is not None and (change.action, change.version, change.digest) == (
        row.done_action, row.done_version, row.done_digest,
    )  # fmt: skip


def _equals_wanted(row: Row, change: Change) -> bool:
    return (change.action, change.version, change.digest) == (
        row.wish_action,
        row.wish_version,
        row.wish_digest,
    )


def _not_newer_than_delete(row: Row, version: int, wanted: bool) -> bool:
    deletes = [row.done_version] if row.done_at is not None and row.done_action == DELETE else []
    deletes += [row.wish_version] if wanted and row.wish_action == DELETE else []
    return any(at is not None and version <= at for at in deletes)


def _same(row: Row, change: Change, now_us: int) -> tuple[Outcome, Row | None]:
    if change.origin >= row.priority or row.state is State.PARKED:
        return Outcome.SAME, None
    row = _touched(row, now_us)
    row.priority = int(change.origin)
    return Outcome.SAME, row


def _verify(row: Row, change: Change, now_us: int) -> tuple[Outcome, Row]:
    row = _wish(row, change, now_us)
    row.verify, row.priority = True, VERIFY_PRIORITY
    return Outcome.VERIFY, row


def _newer(row: Row | None, change: Change, now_us: int) -> tuple[Outcome, Row]:
    coalesced = row is not None and row.state is not State.IDLE
    row = _wish(row, change, now_us)
    row.refetch = row.refetch or change.action == DELETE
    return (Outcome.COALESCED if coalesced else Outcome.PENDING), row


def _refetch(row: Row | None, change: Change, now_us: int, *, decided: bool = False) -> tuple[Outcome, Row]:
    row = _wish(row, change, now_us)
    row.refetch = True
    if decided:
        row.verified_until = NEVER_US
    return Outcome.REFETCH, row


def _wish(row: Row | None, change: Change, now_us: int) -> Row:
    """The row wanting `change`: due now, tries afresh, the place in the queue and the higher urgency kept."""
    row = new_row(change.pair, change.key, now_us) if row is None else _touched(row, now_us)
    waiting = row.state is not State.IDLE
    row.priority = min(row.priority, int(change.origin)) if waiting else int(change.origin)
    row.queued_at = row.queued_at if waiting else now_us
    # A wish that any other offer shares is no longer for the unsynced condition alone to withdraw.
    row.unsynced = change.unsynced and (row.unsynced or not waiting)
    if not (waiting and change.version is not None and _older(change.version, row.wish_version)):
        row.wish_action, row.wish_version = change.action, change.version
        row.wish_digest, row.wish_payload = change.digest, change.payload
        row.wish_origin, row.trace = int(change.origin), change.trace
    row.judged_replica = change.judged_replica
    row.state, row.due_at, row.tries, row.verify = State.PENDING, now_us, 0, False
    row.park_reason, row.rejected, row.waits_for, row.lagging = None, False, None, None
    row.wish += 1
    if change.version is not None:
        row.high = change.version if row.high is None else max(row.high, change.version)
    return row


def claimable(row: Row, now_us: int, *, named: bool = False) -> bool:
    """Whether the row may be claimed now; named: asked for by key, so that its due time does not matter."""
    return row.state is State.PENDING and (row.lease_until if named else row.ready_at) <= now_us


def claimed_together(due: Sequence[Row]) -> Sequence[Row]:
    """Which of these due rows one claim may take: all, but a suspect alone.

    A row whose holder died twice may be what killed it; alone it can't use up the tries of the others.
    """
    suspects = [row for row in due if row.lease_owner is not None and row.tries >= 2]
    return suspects[:1] or due


def claim(row: Row, owner: str, now_us: int, lease_us: int, tries_max: int) -> tuple[Claim | None, Row]:
    """Leases a due row to `owner`, or parks it where its tries are spent. The try counts before any work."""
    row = _touched(row, now_us)
    if row.tries >= tries_max:
        # A lease that its holder never ended: not even the holder could say what went wrong.
        row.park_reason = WORKER_DIED if row.lease_owner is not None else row.last_error or "out of tries"
        row.state, row.lease_owner, row.lease_until = State.PARKED, None, 0
        return None, row
    row.fence += 1
    row.tries += 1
    row.lease_owner, row.lease_until = owner, now_us + lease_us
    claimed = Claim(wanted(row), row.fence, row.lease_until, row.copy(), now_us)
    if not row.refetch and not row.verify and row.wish_digest is not None:
        _intend(row, row.wish_digest)
    return claimed, row


def wanted(row: Row) -> Change:
    """What the row wants, as a change."""
    # All fields at once: the constructor of what is frozen sets each by a call, for every job.
    change = object.__new__(Change)
    vars(change).update(
        pair=row.pair, key=row.key, action=row.wish_action or DELETE, version=row.wish_version,
        digest=row.wish_digest, payload=row.wish_payload, origin=ORIGINS[row.wish_origin], judged_revision=None,
        judged_replica=row.judged_replica, unsynced=row.unsynced, wish=row.wish, delivery=None,
        attempt=row.tries, trace=row.trace,
    )  # fmt: skip
    return change


def attempt(row: Row | None, held: Claim, digest: str, now_us: int) -> Row | None:
    """The row with one more intended digest, or None where the lease was lost."""
    if row is None or row.fence != held.fence or not row.leased(now_us):
        return None
    row = _touched(row, now_us)
    _intend(row, digest)
    return row


def _intend(row: Row, digest: str) -> None:
    if (row.fence, digest) in row.attempted:
        return
    intents = (*row.attempted, (row.fence, digest))
    row.evicted += max(0, len(intents) - ATTEMPTED_KEPT)
    row.attempted = intents[-ATTEMPTED_KEPT:]


def renew(row: Row | None, held: Claim, now_us: int, lease_us: int) -> Row | None:
    """The row with a longer lease, or None where it was lost. The revision stays: nothing was learned."""
    if row is None or row.fence != held.fence or not row.leased(now_us):
        return None
    row = row.copy()
    row.lease_until = now_us + lease_us
    return row


def finish(row: Row | None, ended: Finish, now_us: int) -> tuple[bool, Row]:
    """Ends a job: (accepted, the row to save). The fence decides: late but not reclaimed is accepted."""
    held = ended.claim
    if row is None or row.fence != held.fence or row.lease_owner is None:
        return False, _refused(row, held, now_us)
    row = _touched(row, now_us)
    row.lease_owner, row.lease_until = None, 0
    if ended.result in ("done", "verified"):
        _finish_done(row, ended, now_us)
    elif row.wish == held.change.wish:
        _finish_undone(row, ended, now_us)
    else:
        row.due_at = now_us  # a newer wish arrived meanwhile; it starts afresh
    return True, row


def _refused(row: Row | None, held: Claim, now_us: int) -> Row:
    """A late write may have landed: done stays as it is, and the record is read again."""
    if row is None:
        return _refetch(None, replace(held.change, version=None, judged_replica=None, unsynced=False), now_us)[1]
    row = _touched(row, now_us)
    row.verified_until, row.refetch = NEVER_US, True
    if row.state is State.IDLE:
        row.wish_action, row.wish_version = row.done_action or DELETE, row.done_version
        row.wish_digest, row.wish_payload, row.unsynced = row.done_digest, None, False
        row.wish_origin = row.priority = int(Origin.COMPARE)
        row.queued_at = now_us
        row.judged_replica = None
    if row.state is not State.PENDING:
        row.due_at, row.tries, row.park_reason, row.rejected = now_us, 0, None, False
    row.state, row.verify = State.PENDING, False
    row.wish += 1
    return row


def _finish_done(row: Row, ended: Finish, now_us: int) -> None:
    held = ended.claim
    row.attempted = tuple((fence, digest) for fence, digest in row.attempted if fence != held.fence)
    if ended.result == "done":
        row.done_action, row.done_digest, row.done_replica = ended.action, ended.digest, ended.replica
        if not ended.absent:
            row.done_version = ended.version
        elif held.change.action == DELETE:
            row.done_version = held.change.version
        row.repairs = row.repairs + 1 if ended.repaired else 0
    row.done_at = now_us
    row.verified_until = now_us + ended.verified_for_us
    row.last_error = row.waits_for = None
    if row.wish == held.change.wish:
        _clear_wish(row)
        # Only a delete that brought a version says when the record went; an absence that was merely found does not.
        undated = ended.absent and (held.change.action != DELETE or held.change.version is None)
        if undated or _below(row.done_version, row.high):
            row.unordered = True
    else:
        row.due_at, row.tries = now_us, 0
    if ended.result == "done" and row.done_version is not None and not _below(row.done_version, row.high):
        # Nor does it say that the absence is still the one that the version speaks of: what was unordered stays so.
        row.unordered = row.unordered and ended.absent
        row.high = row.done_version


def _below(version: int | None, high: int | None) -> bool:
    return high is not None and (version is None or version < high)


def _clear_wish(row: Row) -> None:
    row.state = State.IDLE
    row.wish_action = row.wish_version = row.wish_digest = row.wish_payload = row.judged_replica = None
    row.refetch = row.verify = row.unsynced = False
    row.lagging = row.trace = None
    row.tries, row.park_reason, row.rejected = 0, None, False


def _finish_undone(row: Row, ended: Finish, now_us: int) -> None:
    row.last_error = ended.reason[:ERROR_CHARACTERS_MAX] or row.last_error
    row.due_at = now_us + ended.delay_us
    row.waits_for, row.lagging = ended.waits_for, ended.lagging
    if not ended.charge:
        row.tries = max(0, row.tries - 1)
    if ended.result == "parked":
        row.state, row.park_reason, row.rejected = State.PARKED, row.last_error, ended.rejected


def revive(row: Row, now_us: int, tries_max: int) -> Row | None:
    """A parked record that was not rejected, with one more try; None where it stays parked."""
    if row.state is not State.PARKED or row.rejected:
        return None
    row = _touched(row, now_us)
    row.state, row.tries, row.due_at, row.park_reason = State.PENDING, tries_max - 1, now_us, None
    return row


def wake(row: Row, waits_for: str, now_us: int) -> Row | None:
    """A row that sleeps until the record `waits_for` is done, due now; None where it does not sleep for it."""
    if row.state is not State.PENDING or row.waits_for != waits_for:
        return None
    row = _touched(row, now_us)
    row.due_at, row.waits_for = min(row.due_at, now_us), None
    return row


def _known(row: Row, agreed: Baseline, now_us: int) -> bool:
    """Whether the row says all of this already, and stays verified for a while: no write is due."""
    return (
        (row.done_action, row.done_digest, row.done_replica) == (agreed.action, agreed.digest, agreed.replica)
        and (agreed.version is None or row.done_version == agreed.version)
        and row.done_at is not None
        and not row.repairs
        and not row.unordered
        and row.verified_until - now_us > agreed.verified_for_us // 4
    )


def baseline(row: Row | None, pair: str, agreed: Baseline, now_us: int) -> Row | None:
    """The row with both ancestors set, or None where it moved since the compare judged it, or nothing is new."""
    if row is None:
        if agreed.revision not in (None, 0):
            return None
        row = new_row(pair, agreed.key, now_us)
    elif (
        not row.undisturbed(now_us)
        or (row.touched_at >= agreed.since_us if agreed.revision is None else row.revision != agreed.revision)
        or _known(row, agreed, now_us)
    ):
        return None
    else:
        row = _touched(row, now_us)
    row.repairs = 0
    row.done_action, row.done_digest, row.done_replica = agreed.action, agreed.digest, agreed.replica
    row.done_version = agreed.version if agreed.version is not None else row.done_version
    row.done_at, row.verified_until = now_us, now_us + agreed.verified_for_us
    if agreed.version is None:
        # As at a finish: an older change that arrives later must be read again, not believed.
        row.unordered = row.unordered or agreed.digest is None
    else:
        row.unordered = row.high is not None and agreed.version < row.high
        row.high = agreed.version if row.high is None else max(row.high, agreed.version)
    return row
