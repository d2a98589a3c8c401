"""Named traces: stories that once went wrong somewhere, played exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from seams import without

from trueup.engine.options import RunOptions
from trueup.model.change import Outcome
from trueup.testing.simulation.scene import KINDS
from trueup.testing.simulation.trace import Trace

READABLE = ["opaque", "digest", "none"]


def ends_well(trace: Trace) -> None:
    broken = trace.end()
    assert broken is None, f"{trace.story}\n{broken}"


def compare_that_races_a_worker() -> Trace:
    """The compare sees both sides at one state; before it looks at the ledger again, a worker has done the next."""
    trace = Trace("opaque")
    first = trace.change()
    worker, compare = trace.worker("worker"), trace.run()
    trace.go(compare, before="ledger.rows")  # it has found a difference and begins to confirm
    trace.offer(first)
    trace.go(worker)
    trace.go(compare, before="authority.read")
    trace.go(compare, before="replica.read")
    trace.go(compare, before="ledger.rows")  # both sides agree on the first change
    trace.offer(trace.change())
    trace.go(worker)
    trace.go(compare)
    return trace


def test_a_compare_that_races_a_worker_concludes_nothing() -> None:
    trace = compare_that_races_a_worker()
    assert trace.row().done_version == trace.world.authority.get(1)["v"]
    ends_well(trace)


def test_without_the_guard_of_confirm_it_would_set_the_ledger_back() -> None:
    with without("guard_of_confirm"):
        trace = compare_that_races_a_worker()
        assert trace.end() == "the ledger went back from n3 to n2"


@pytest.mark.parametrize("kind", KINDS)
def test_two_changes_with_one_timestamp_of_which_one_arrives_mid_job(kind: Any) -> None:
    trace = Trace(kind)
    first = trace.change()
    trace.offer(first)
    worker = trace.worker("worker")
    trace.go(worker, before="replica.push" if kind == "unreadable" else "replica.apply")
    second = trace.change(version=first.version)
    assert trace.offer(second) == [Outcome.REFETCH]
    trace.go(worker)
    assert trace.held() == "n3"
    assert trace.offer(first) == [Outcome.REFETCH]  # equal versions can't be told apart: it is read again
    trace.go(worker)
    assert trace.held() == "n3"
    ends_well(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unversioned_delete_followed_by_a_late_older_event(kind: Any) -> None:
    trace = Trace(kind)
    older = trace.change()
    trace.offer(trace.delete())
    worker = trace.worker("worker")
    trace.go(worker)
    assert trace.held() is None
    assert trace.offer(older) == [Outcome.REFETCH]
    trace.go(worker)
    assert trace.held() is None
    ends_well(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_an_absence_found_by_a_job_that_was_to_write_followed_by_a_late_event(kind: Any) -> None:
    """The delete's own event is late too: nothing but the read says that the record is gone, and not since when."""
    trace = Trace(kind)
    hint, later = trace.change(), trace.change()
    deleted = trace.delete()
    trace.offer(replace(hint, version=None))
    worker = trace.worker("worker")
    trace.go(worker)
    trace.go(worker)  # the absence contradicts the wish: it is read twice
    assert trace.held() is None
    assert trace.offer(later) == [Outcome.REFETCH]
    trace.go(worker)
    trace.go(worker)
    assert trace.held() is None
    trace.offer(deleted)
    ends_well(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_between_write_and_finish_with_a_newer_wish_waiting(kind: Any) -> None:
    trace = Trace(kind)
    trace.offer(trace.change())
    dying, next_one = trace.worker("dying"), trace.worker("next")
    trace.go(dying, before="ledger.finish")
    assert trace.held() == "n2"
    trace.offer(trace.change())
    trace.crash(dying)
    trace.later()
    trace.go(next_one)
    assert (trace.held(), trace.cases) == ("n3", {})  # what the dead one wrote is known to be ours
    ends_well(trace)


def frozen_between_check_and_write(kind: Any) -> tuple[Trace, Any, Any]:
    """A holder stands still with its write in hand, past its lease."""
    trace = Trace(kind)
    trace.offer(trace.change())
    frozen, other = trace.worker("frozen"), trace.worker("other")
    trace.go(frozen, before="replica.push" if kind == "unreadable" else "replica.apply")
    trace.later()
    return trace, frozen, other


def late_write() -> Trace:
    """A holder wakes after a newer write; the replica has no precondition, so its own lands on top."""
    trace, frozen, other = frozen_between_check_and_write("none")
    trace.offer(trace.change())
    trace.go(other)
    trace.go(frozen, before="ledger.due")
    assert trace.held() == "n2"
    return trace


def removed_by_hand() -> Trace:
    """A person removes a record that was verified a moment ago; a compare finds it."""
    trace = Trace("opaque")
    key = trace.row().key
    trace.world.put_replica(key, None)
    trace.world.promises.edited(key, None)
    trace.go(trace.run())
    return trace


def test_a_record_removed_by_hand_is_written_again() -> None:
    trace = removed_by_hand()
    trace.go(trace.worker("worker"))
    assert trace.held() == "n1"
    ends_well(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_frozen_past_its_lease_wakes_after_a_newer_write(kind: Any) -> None:
    trace, frozen, other = frozen_between_check_and_write(kind)
    trace.offer(trace.change())
    trace.go(other)
    trace.go(frozen, before="ledger.due")
    stale = kind in ("none", "unreadable")
    assert trace.held() == ("n2" if stale else "n3")
    assert trace.cases == {}  # whoever has lost the lease asks nobody about what it found
    trace.go(other)  # the refused finish has it read again
    assert trace.held() == "n3"
    assert trace.cases == {}
    ends_well(trace)


@pytest.mark.parametrize("kind", READABLE)
def test_a_b_a_while_a_holder_is_frozen(kind: Any) -> None:
    """The replica goes from A to B and back to A; only an opaque token tells."""
    trace, frozen, other = frozen_between_check_and_write(kind)
    before = trace.world.replica.get(1)["name"]
    trace.offer(trace.change())
    trace.go(other)
    row = {"id": 1, "name": before, "status": "in", "v": trace.world.next_version(None)}
    trace.nature._becomes(row)
    trace.offer(trace.nature.ingest.records.change_of(row, deleted=False, origin=0))  # type: ignore[arg-type]
    trace.go(other)
    assert trace.held() == before
    trace.go(frozen, before="ledger.due")
    assert trace.held() == (before if kind == "opaque" else "n2")
    trace.go(other)
    assert trace.held() == before
    ends_well(trace)


@pytest.mark.parametrize("handler", [False, True])
@pytest.mark.parametrize("kind", READABLE)
def test_a_hand_edit_right_after_our_write_is_a_persons_not_ours(kind: Any, handler: bool) -> None:
    trace = Trace(kind, handler=handler)
    trace.offer(trace.change())
    worker = trace.worker("worker")
    trace.go(worker, before="budgets.succeeded")
    trace.go(worker, before="replica.apply")
    trace.go(worker, before="budgets.succeeded")
    assert trace.held() == "n2"
    trace.edit("by hand")
    trace.go(worker)
    trace.offer(trace.change())
    trace.go(worker)
    assert trace.held() == "by hand"
    assert set(trace.cases.values()) == {"conflict"}
    ends_well(trace)


@pytest.mark.parametrize("kind", READABLE)
def test_a_replica_that_normalises_what_it_is_given(kind: Any) -> None:
    """What it made of our write is our ancestor: the next change is written over it, and nobody is blamed."""
    trace = Trace(kind)
    apply = trace.world.replica.apply

    def in_capitals(projection: Any, writes: Any) -> Any:
        return apply(projection, [replace(each, values=capitals(each.values)) for each in writes])

    def capitals(values: Any) -> Any:
        return None if values is None else {**values, "name": values["name"].upper()}

    trace.world.replica.apply = in_capitals  # type: ignore[method-assign]
    worker = trace.worker("worker")
    for name in ("N2", "N3"):
        trace.offer(trace.change())
        trace.go(worker)
        assert (trace.held(), trace.cases) == (name, {})
    trace.go(trace.run())
    assert trace.cases == {"": "unlike"}
    assert trace.held() == "N3"
    trace.world.scheduler.close()


@pytest.mark.parametrize("kind", READABLE)
def test_an_authority_restored_to_an_older_version(kind: Any) -> None:
    trace = Trace(kind)
    backup = trace.world.authority.rows()
    worker = trace.worker("worker")
    trace.offer(trace.change())
    trace.go(worker)
    trace.world.history.restore(backup, trace.world.scheduler.now_us)
    trace.go(trace.run(RunOptions()))
    trace.go(worker)
    trace.go(worker)
    assert trace.held() == "n1"
    row = trace.row()
    assert (row.done_version, row.unordered) == (1, True)
    late = trace.change(version=5)  # newer than what was restored, older than what once was
    assert trace.offer(late) == [Outcome.REFETCH]
    trace.go(worker)
    trace.go(worker)
    assert trace.held() == late.values["name"]
    for truth in trace.world.promises.truth.values():
        truth.excused = True
    ends_well(trace)


@pytest.mark.parametrize("kind", READABLE)
def test_a_late_event_after_the_ledger_was_lost(kind: Any) -> None:
    """A ledger that knows nothing believes no event: it reads the authority."""
    trace = Trace(kind)
    older = trace.change()
    trace.change()
    worker = trace.worker("worker")
    trace.offer(trace.rumour())
    trace.go(worker)
    trace.world.lose_ledger()
    assert trace.offer(older) == [Outcome.REFETCH]
    trace.go(worker)
    assert trace.held() == "n3"
    ends_well(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_worker_writes_after_the_ledger_was_lost(kind: Any) -> None:
    trace, frozen, other = frozen_between_check_and_write(kind)
    trace.change()
    trace.world.lose_ledger()
    trace.go(trace.run(RunOptions(adopt=kind != "unreadable", trust_authority=True)))
    trace.go(frozen)
    trace.go(other)
    ends_well(trace)
