"""Accepted differences in runs: they hide what was accepted, until their time, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from school import School, key, person
from trueup.errors import DecisionRefused, HandlerError
from trueup.model.acceptance import Acceptance
from trueup.model.decision import Choice

VALUES = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["1.50", "2"]))
SIDE = st.one_of(st.none(), VALUES)
FAR = "2999-12-31"


def put(school: School, side: str, values: tuple[str, str] | None) -> None:
    """Makes record 1 of a side what it should be."""
    memory = getattr(school, side)
    if values is None:
        memory.remove(1)
    else:
        row = {"id": 1, "name": values[0], "fee": values[1], "status": "registered"}
        memory.put(row | ({"v": 1} if side == "authority" else {}))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SIDE, SIDE, SIDE, SIDE)
def test_an_acceptance_never_hides_another_difference(
    authority: tuple[str, str] | None,
    replica: tuple[str, str] | None,
    authority_now: tuple[str, str] | None,
    replica_now: tuple[str, str] | None,
) -> None:
    """Given an accepted difference and any states later, I expect silence only about that very difference."""
    policy = dict.fromkeys(("missing", "removed", "behind"), "review")
    with School([person(1), person(2)], on_drift=policy).adopted().project as project:
        school = School.__new__(School)
        pair = project.pairs["people"]
        school.authority, school.replica = pair.pair.authority, pair.pair.replica  # type: ignore[assignment]
        put(school, "authority", authority)
        put(school, "replica", replica)
        pair.run("compare")
        asked = project.cases("people")
        assert len(asked) == (authority != replica)
        for case in asked:
            pair.decide(case.number, "accept", person="ann", reason="known", until=FAR)
        assert pair.run("compare").exit_code == 0

        put(school, "authority", authority_now)
        put(school, "replica", replica_now)
        pair.run("compare")
        hidden = authority_now == replica_now or (authority_now, replica_now) == (authority, replica)
        assert len(project.cases("people")) == (not hidden)


def test_an_acceptance_ends_by_the_clock_of_the_store() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    [case] = school.project.cases("people")
    until_us = school.clock.now_us() + 60_000_000
    school.pair.review.decide(case.number, Choice.ACCEPT, person="ann", reason="known", until_us=until_us)
    school.clock.advance(59)
    assert school.pair.run().counts["accept"] == 1
    school.clock.advance(1)
    report = school.pair.run()
    assert (report.counts["accept"], school.cases) == (0, {key(1): "edited"})
    assert [each.person for each in school.project.archive.expired("people")] == ["ann"]


def test_copies_of_a_key_are_not_covered() -> None:
    """Given an acceptance of what one of two copies shows, I expect the duplicate to be asked about all the same."""
    school = School().adopted()
    school.replica.add({name: value for name, value in person(2).items() if name != "v"} | {"name": "twin"})
    school.pair.run()
    [case] = school.project.cases("people")
    assert case.drift == "duplicate"
    school.project.archive.accept(
        Acceptance("people", key(2), case.authority_digest, case.replica_digest, (), "ann", "known", 2**62)
    )
    assert school.pair.run().counts["accept"] == 0
    assert school.cases == {key(2): "duplicate"}


def test_an_accepted_gap_is_not_repaired_by_a_run() -> None:
    """Given a record that the replica need not have, I expect the run not to bring it, and the plan to say so."""
    school = School(on_drift={"removed": "review"}).adopted()
    school.replica.remove(3)
    school.pair.run()
    [case] = school.project.cases("people")
    school.pair.decide(case.number, "accept", person="ann", reason="closed account", until=FAR)
    object.__setattr__(school.pair, "pair", replace(school.pair.pair, on_drift={}))
    school.pair.records.pair = school.pair.pair
    report = school.pair.run()
    assert [(item.drift, item.verdict) for item in report.plan] == [("removed", "accept")]
    assert school.replica.get(3) is None


def test_a_decision_of_a_record_that_is_being_worked_on_waits() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    school.pair.offer({"id": 1, "name": "n1", "fee": "1.50", "status": "registered", "v": 50})
    [case] = school.project.cases("people")
    with pytest.raises(DecisionRefused, match="somebody is working on"):
        school.pair.decide(case.number, "take-authority", person="ann", reason="right")
    assert school.replica.get(1)["name"] == "by hand"


def test_nothing_is_written_to_an_authority_that_is_paused() -> None:
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    [case] = school.project.cases("people")
    school.project.budgets.pause("*", "maintenance")
    with pytest.raises(Exception, match="is paused: maintenance"):
        school.pair.decide(case.number, "take-replica", person="ann", reason="right")
    assert school.authority.get(1)["name"] == "n1"
    school.project.budgets.resume("*")
    school.pair.decide(case.number, "take-replica", person="ann", reason="right")
    assert school.authority.get(1)["name"] == "by hand"


def test_a_state_that_means_absence_is_written_instead_of_a_delete() -> None:
    """Given a pair whose authority says absence by a state, I expect take-replica to write that state."""
    school = School(absent_when={"status": ["dropped"]}, on_drift={"removed": "review"}).adopted()
    school.replica.remove(2)
    school.pair.run()
    [case] = school.project.cases("people")
    school.pair.decide(case.number, "take-replica", person="ann", reason="she left")
    assert school.authority.get(2)["status"] == "dropped"
    assert school.pair.run().exit_code == 0


def test_of_several_such_states_a_person_chooses() -> None:
    school = School(absent_when={"status": ["dropped", "expelled"]}, on_drift={"removed": "review"}).adopted()
    school.replica.remove(2)
    school.pair.run()
    [case] = school.project.cases("people")
    with pytest.raises(DecisionRefused, match="edit --set status=dropped"):
        school.pair.decide(case.number, "take-replica", person="ann", reason="she left")
    school.pair.decide(case.number, "edit", values={"status": "expelled"}, person="ann", reason="she left")
    assert school.pair.run().exit_code == 0


def test_nothing_is_decided_that_nobody_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a pair that only watches, I expect no decision that takes a job, and others to be made."""
    school = School().adopted()
    school.replica.put({"id": 1, "name": "by hand"})
    school.pair.run()
    [case] = school.project.cases("people")
    monkeypatch.setattr(type(school.replica), "apply", None)
    with pytest.raises(HandlerError, match="nothing would act"):
        school.pair.decide(case.number, "take-authority", person="ann", reason="right")
    assert school.project.archive.decisions(case.number) == []
    school.pair.decide(case.number, "accept", person="ann", reason="known", until=FAR)
    assert school.cases == {}
