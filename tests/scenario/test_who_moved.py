"""Every row of the table of who moved, found by a whole run and treated by its default verdict."""

from __future__ import annotations

from dataclasses import replace

from school import School, key, person
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock


def test_missing_an_event_was_lost_is_repaired() -> None:
    school = School().adopted()
    school.authority.put(person(9, v=3))  # an old version: no sweep will find it
    report = school.pair.run()
    assert report.counts["drift_missing"] == 1
    assert school.replica.get(9)["name"] == "n9"
    assert report.exit_code == 0


def test_removed_by_hand_within_the_recency_time_is_repaired_not_dropped_as_fresh() -> None:
    school = School().adopted()
    school.replica.remove(2)
    assert school.row(2).verified_until > school.clock.now_us()
    report = school.pair.run()
    assert report.counts["drift_removed"] == 1
    assert school.replica.get(2) is not None


def test_orphaned_goes_to_review_and_is_not_deleted() -> None:
    school = School().adopted()
    school.authority.remove(3)
    report = school.pair.run()
    assert school.cases == {key(3): "orphaned"}
    assert school.replica.get(3) is not None
    assert report.exit_code == 1


def test_orphaned_is_deleted_where_the_pair_opts_in() -> None:
    school = School(on_drift={"orphaned": "repair"}).adopted()
    school.authority.remove(3)
    school.pair.run()
    assert school.replica.get(3) is None
    assert school.cases == {}


def test_an_empty_authority_never_deletes_even_where_the_pair_opts_in() -> None:
    school = School(on_drift={"orphaned": "repair"}).adopted()
    for at in range(1, 6):
        school.authority.remove(at)
    school.pair.run()
    assert len(school.replica.rows()) == 5
    assert set(school.cases.values()) == {"orphaned"}


def test_foreign_is_never_deleted() -> None:
    school = School(on_drift={"orphaned": "repair"}).adopted()
    stranger = {name: value for name, value in person(77).items() if name != "v"}
    school.replica.put(stranger)
    school.pair.run()
    assert school.cases == {key(77): "foreign"}
    assert school.replica.get(77) is not None


def test_behind_is_repaired() -> None:
    school = School().adopted()
    school.authority.put({"id": 4, "name": "renamed"})  # no new version: only the compare can see it
    report = school.pair.run()
    assert report.counts["drift_behind"] == 1
    assert school.replica.get(4)["name"] == "renamed"


def test_edited_goes_to_review_and_stays() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    assert school.cases == {key(1): "edited"}
    assert school.replica.get(1)["name"] == "by hand"


def test_edited_is_healed_where_the_pair_opts_in() -> None:
    school = School(on_drift={"edited": "repair"}).adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    report = school.pair.run()
    assert school.replica.get(1)["name"] == "n1"
    assert report.exit_code == 0


def test_conflict_both_moved_goes_to_review() -> None:
    school = School().adopted()
    school.authority.put({"id": 1, "name": "there"})
    school.replica.put({"id": 1, "name": "here"})
    school.pair.run()
    assert school.cases == {key(1): "conflict"}


def test_unknown_goes_to_review() -> None:
    school = School()
    school.replica.put({"id": 1, "name": "always was"})
    school.pair.adopt()
    assert school.cases == {key(1): "unknown"}


def test_duplicate_goes_to_review_and_nothing_is_written() -> None:
    school = School().adopted()
    school.replica.add({name: value for name, value in person(2).items() if name != "v"})
    school.pair.run()
    assert school.cases == {key(2): "duplicate"}
    assert len(school.replica.rows()) == 6


def test_unlike_is_one_case_for_the_pair() -> None:
    """A replica that stores in capitals what it is given can't be made equal by writing again."""
    school = School().adopted()
    apply = school.replica.apply

    def in_capitals(projection, writes):  # type: ignore[no-untyped-def]
        return apply(projection, [replace(each, values=capitals(each.values)) for each in writes])

    def capitals(values):  # type: ignore[no-untyped-def]
        return {**values, "name": values["name"].upper()}

    school.replica.apply = in_capitals  # type: ignore[method-assign]
    for at in (1, 2):
        school.authority.put({"id": at, "name": f"new{at}"})
    assert school.pair.run().counts["jobs_done"] == 2
    report = school.pair.run()
    assert report.counts["drift_unlike"] == 2
    assert school.cases == {"": "unlike"}
    assert report.counts["offered"] == 0


def test_a_case_closes_itself_when_the_sides_agree_again() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    school.replica.put({"id": 1, "name": "n1"})
    report = school.pair.run()
    assert school.cases == {}
    assert report.exit_code == 0


def test_a_state_that_means_absence_agrees_with_a_replica_that_lacks_the_record() -> None:
    school = School([person(1), person(2, status="dropped")], absent_when={"status": ["dropped"]})
    school.replica.remove(2)
    report = school.pair.adopt()
    assert (report.counts["same"], report.counts["cases"]) == (2, 0)


def test_a_record_dropped_at_the_authority_is_removed_from_the_replica() -> None:
    school = School(absent_when={"status": ["dropped"]}, action_field="status").adopted()
    school.authority.put({"id": 2, "status": "dropped"})
    report = school.pair.run()
    assert report.counts["drift_behind"] == 1
    assert school.replica.get(2) is None
    assert school.pair.run().counts["same"] == 5


def test_a_copy_of_the_version_at_the_replica_is_written_along_but_not_compared() -> None:
    clock = ManualClock()
    rows = [{"id": 1, "name": "n1", "v": 1}, {"id": 2, "name": "n2", "v": 2}]
    authority = Memory(rows, key="id", version="v", clock=clock)
    replica = Memory([{"id": 1, "name": "n1", "v": 0}], key="id", columns={"v": "integer"}, clock=clock)
    with Project(state="memory:", clock=clock, seed=1, threads=1) as project:
        pair = project.pair("people", authority=authority, replica=replica, settle=0)
        report = pair.adopt(backfill=True)
        assert (report.counts["same"], report.counts["drift_missing"]) == (1, 1)
        assert replica.get(2) == {"id": 2, "name": "n2", "v": 2}
        authority.put({"id": 1, "name": "renamed", "v": 9})
        pair.run()
        assert replica.get(1) == {"id": 1, "name": "renamed", "v": 9}
