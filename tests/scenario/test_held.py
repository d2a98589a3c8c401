"""What a breaker holds stays held until somebody who saw as much says otherwise; what moves is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import trueup
from school import School, person
from trueup.model.case import HELD
from trueup.model.record import Found, Projection
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock

PEOPLE = [person(at) for at in range(1, 41)]


class Dated:
    """Two sides whose versions are times, so that the cheap comparison fits."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        columns = {"id": "integer", "name": "text", "at": "instant"}
        rows = [{"id": at, "name": f"n{at}", "at": self.now()} for at in range(40)]
        self.authority = Memory(rows, key="id", version="at", columns=columns, clock=self.clock)
        self.replica = Memory(rows, key="id", version="at", stamp=True, columns=columns, clock=self.clock)
        self.project = trueup.Project("memory:", clock=self.clock, seed=1, threads=1)
        self.pair = self.project.pair(
            "people", authority=self.authority, replica=self.replica, fields=["name"], settle=0, **options
        )
        self.pair.adopt()
        self.clock.advance(86_400)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_us() / 1e6, UTC)

    @property
    def held(self) -> list[str]:
        """What the open question about a held plan says; none where nothing is held."""
        return [case.cause for case in self.project.cases("people") if case.key == HELD]


def test_a_cheap_comparison_does_not_withdraw_the_question_of_a_full_one() -> None:
    """Given a held plan of deletions, I expect it held until it is approved, whatever the cheap comparison does."""
    world = Dated(on_drift={"orphaned": "repair"}, stop_at={"deletes": 3})
    for ident in range(10):
        world.authority.remove(ident)
    world.pair.run("compare")
    assert len(world.held) == 1
    world.authority.put({"id": 20, "name": "new", "at": world.now()})
    world.clock.advance(60)
    assert world.pair.run("changed").counts["offered"] == 1
    assert len(world.held) == 1
    [case] = [case for case in world.project.cases("people") if case.key == HELD]
    decision = world.pair.decide(case.number, "approve-plan", person="ann", reason="they are gone")
    assert decision.note.startswith("10 offered")
    assert [ident for ident in range(10) if world.replica.get(ident)] == []


def test_what_a_cheap_comparison_would_add_to_a_held_plan_is_left_to_the_next_full_one() -> None:
    world = Dated(on_drift={"orphaned": "repair"}, stop_at={"changes": 3})
    for ident in range(10):
        world.authority.remove(ident)
    world.pair.run("compare")
    for ident in range(20, 30):
        world.authority.put({"id": ident, "name": "new", "at": world.now()})
    world.clock.advance(60)
    report = world.pair.run("changed")
    assert (report.counts["held"], report.counts["offered"]) == (10, 0)
    assert world.held[0].endswith(" 10 repairs are held")
    world.pair.run("compare")
    assert world.held[0].endswith(" 20 repairs are held")


def test_an_authority_that_shows_nothing_is_one_question() -> None:
    """Given an authority that shows no record at all, I expect one case, and none once it shows them again."""
    for policy in ("repair", "review"):
        school = School(PEOPLE, on_drift={"orphaned": policy}).adopted()
        for row in PEOPLE:
            school.authority.remove(row["id"])
        school.pair.run("compare")
        assert school.cases == {HELD: "held"}
        assert len(school.replica.rows()) == len(PEOPLE)
        for row in PEOPLE:
            school.authority.put(row)
        school.pair.run("compare")
        assert school.cases == {}


def test_an_authority_that_really_is_empty_can_be_believed() -> None:
    school = School(PEOPLE).adopted()
    for row in PEOPLE:
        school.authority.remove(row["id"])
    school.pair.run("compare")
    [case] = school.project.cases("people")
    decision = school.pair.decide(case.number, "approve-plan", person="ann", reason="it is closed for good")
    assert decision.note.startswith("40 offered")
    assert school.replica.rows() == []


class Moving(Memory):
    """An authority some of whose records change, on both sides, right after they were read."""

    other: Memory
    moving = False

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        found = super().read(projection, keys)
        if self.moving:
            self.moving = False
            for side in (self, self.other):
                side.put({"id": 3, "name": "newest"})
        return found


def test_a_record_that_moves_between_the_two_reads_is_not_judged() -> None:
    """Given a change that reaches both sides between our reads of them, I expect no drift: it was never seen whole."""
    school = School(PEOPLE)
    rows = [{"id": at, "name": f"n{at}"} for at in range(1, 6)]
    authority = Moving(rows, key="id", columns={"id": "integer", "name": "text"}, clock=school.clock)
    authority.other = Memory(rows, key="id", columns={"id": "integer", "name": "text"}, clock=school.clock)
    with trueup.Project("memory:", clock=school.clock, seed=1, threads=1) as project:
        pair = project.pair("people", authority=authority, replica=authority.other, settle=0)
        pair.adopt()
        authority.put({"id": 3, "name": "newer"})  # its event is on its way
        authority.moving = True
        report = pair.run("compare")
        assert (report.counts["deferred"], report.plan, project.cases("people")) == (1, [], [])
        assert pair.run("compare").counts["differ"] == 0
