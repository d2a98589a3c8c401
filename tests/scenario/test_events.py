"""The event path: what arrives late, twice, or beside a worker, and what is never undone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from school import School, key, person
from trueup.model.change import Outcome
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql
from trueup.testing.clock import ManualClock


def test_a_newer_event_is_applied_and_an_older_one_is_dropped_as_stale() -> None:
    school = School().adopted()
    older = person(1, name="first", v=10)
    newer = person(1, name="second", v=11)
    school.authority.put(newer)
    assert school.pair.offer(newer) == [Outcome.PENDING]
    school.drain()
    assert school.pair.offer(older) == [Outcome.STALE]
    assert school.drain() == {}
    assert school.replica.get(1)["name"] == "second"


def test_an_enrol_that_is_overtaken_by_an_unenrol_never_runs() -> None:
    school = School(action_field="status", absent_when={"status": ["dropped"]}).adopted()
    ran = []

    @school.pair.on("registered", "dropped")
    def act(change, replica):  # type: ignore[no-untyped-def]
        ran.append(change.action)
        replica.delete(change) if change.action == "dropped" else replica.put(change)

    enrol, drop = person(1, name="again", v=20), person(1, status="dropped", v=21)
    school.authority.put(drop)
    assert school.pair.offer([enrol, drop]) == [Outcome.PENDING, Outcome.COALESCED]
    school.drain()
    assert school.pair.offer(enrol) == [Outcome.STALE]
    school.drain()
    assert ran == ["dropped"]
    assert school.replica.get(1) is None


def test_ten_events_that_wait_are_one_job_the_newest() -> None:
    school = School().adopted()
    events = [person(1, name=f"name {at}", v=100 + at) for at in range(10)]
    school.authority.put(events[-1])
    school.pair.offer(events)
    assert school.drain() == {"done": 1}
    assert school.replica.get(1)["name"] == "name 9"


def test_an_event_without_a_version_makes_the_worker_read_the_authority() -> None:
    school = School().adopted()
    school.authority.put(person(1, name="really", v=50))
    [outcome] = school.pair.offer({"id": 1, "name": "a rumour"})
    assert outcome is Outcome.REFETCH
    school.drain()
    assert school.replica.get(1)["name"] == "really"


def test_an_event_does_not_overwrite_a_hand_edit_of_the_replica() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    changed = person(1, name="from school", v=60)
    school.authority.put(changed)
    school.pair.offer(changed)
    assert school.drain() == {"parked": 1}
    assert school.replica.get(1)["name"] == "by hand"
    assert school.cases == {key(1): "conflict"}


def test_a_parked_conflict_ends_when_a_person_mends_the_replica() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    changed = person(1, name="from school", v=60)
    school.authority.put(changed)
    school.pair.offer(changed)
    school.drain()
    school.replica.put({"id": 1, "name": "n1"})
    report = school.pair.run()
    assert school.replica.get(1)["name"] == "from school"
    assert school.cases == {}
    assert report.exit_code == 0


def test_an_unversioned_delete_followed_by_a_late_older_event_leaves_the_record_deleted() -> None:
    school = School().adopted()
    school.authority.remove(2)
    school.pair.offer({"id": 2}, deleted=True)
    school.drain()
    assert school.replica.get(2) is None
    school.pair.offer(person(2, v=1))
    school.drain()
    assert school.replica.get(2) is None


def test_a_lagging_read_of_the_authority_is_repeated_before_it_is_believed() -> None:
    school = School().adopted()
    school.pair.offer({"id": 2}, deleted=True)  # the event is right, the reader has not seen it yet
    school.project.worker().once(school.project.chance())
    assert school.replica.get(2) is not None
    school.authority.remove(2)
    school.drain()
    assert school.replica.get(2) is None


def test_first_events_run_before_the_pair_is_adopted() -> None:
    school = School()
    changed = person(1, name="early", v=70)
    school.authority.put(changed)
    school.pair.offer(changed)
    assert school.drain() == {"done": 1}
    assert school.replica.get(1)["name"] == "early"


def test_a_first_run_before_adopt_reports_and_changes_nothing() -> None:
    school = School()
    school.replica.put({"id": 1, "name": "different"})
    school.replica.remove(2)
    before = school.replica.rows()
    report = school.pair.run()
    assert report.what == "report"
    assert {item.drift for item in report.plan} == {"unknown", "missing"}
    assert school.replica.rows() == before
    assert school.cases == {}
    assert school.row(3) is None
    assert report.exit_code == 1


def test_a_dry_run_shows_the_plan_and_writes_nothing() -> None:
    school = School().adopted()
    school.replica.remove(2)
    school.authority.put(person(3, name="newer", v=99))
    before = (school.replica.rows(), school.row(2), school.row(3), len(school.project.archive.runs("people")))
    report = school.pair.run(dry_run=True)
    assert {item.drift for item in report.plan} == {"removed", "behind"}
    assert before == (school.replica.rows(), school.row(2), school.row(3), len(school.project.archive.runs("people")))


def test_a_record_that_the_replica_refuses_does_not_hold_up_the_others(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "replica.db")) as db:
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'refused'))")
        db.commit()
    authority = Memory(
        [{"id": at, "name": "refused" if at == 3 else f"n{at}", "v": at} for at in range(1, 6)], key="id", version="v"
    )
    replica = Sql(f"sqlite:///{tmp_path / 'replica.db'}", table="people", key="id")
    with Project(state="memory:", clock=ManualClock(), seed=1, threads=1) as project:
        pair = project.pair("people", authority=authority, replica=replica, settle=0, tries=2)
        report = pair.adopt(backfill=True)
        assert (report.counts["jobs_done"], report.counts["jobs_parked"]) == (4, 1)
        assert project.ledger.rows("people", [key(3)])[key(3)].state == "parked"
    with closing(sqlite3.connect(tmp_path / "replica.db")) as db:
        assert db.execute("SELECT count(*) FROM people").fetchone() == (4,)
