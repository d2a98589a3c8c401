"""A run that dies at any of its steps is gone on with by another process, and nothing takes effect twice."""

from __future__ import annotations

from collections import Counter

import pytest

import trueup
from services import postgres_database
from trueup.engine import comparing
from trueup.engine import run as runs
from trueup.model.record import key_parts
from trueup.ports import Write
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock
from trueup.testing.simulation.comparison import compare_plainly

COLUMNS = {"id": "integer", "name": "text", "v": "integer"}
IDS = range(1, 241)
BEHIND, MISSING, REMOVED, EDITED, FOREIGN = range(10, 14), range(50, 53), range(90, 94), range(130, 133), (900, 901)


class Killed(BaseException):
    """The process is gone: nobody catches this."""


class Logged(Memory):
    """A replica that remembers which writes landed."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.landed = Counter()

    def apply(self, projection, writes: list[Write]):
        answers = super().apply(projection, writes)
        self.landed.update(each.key for each in answers if each.landed)
        return answers


class Dying:
    """A part of the state store whose process dies at its n-th call, before or after it took effect."""

    def __init__(self, part, deaths):
        self._part, self._deaths = part, deaths

    def __getattr__(self, name):
        found = getattr(self._part, name)
        if not callable(found) or name in ("now_us", "close"):
            return found

        def call(*args, **options):
            self._deaths.step(name, "before")
            answer = found(*args, **options)
            self._deaths.step(name, "after")
            return answer

        return call


class Deaths:
    """Counts calls; the process dies at one of them. at: None for never."""

    def __init__(self, at=None):
        self.at, self.steps = at, 0
        self.where = None

    def step(self, name, when):
        self.steps += 1
        if self.steps == self.at:
            self.where = f"{when} {name}"
            raise Killed(self.where)


class Story:
    """Two sides that drifted since they agreed, and a state store."""

    def __init__(self, state, monkeypatch):
        monkeypatch.setattr(comparing, "PIECE_ROWS", 60)
        # What dies here is the run; a join of a few rows does not need DuckDB.
        plainly = lambda left, right, of, progress: compare_plainly(left, right, of.records.plan)  # noqa: E731
        monkeypatch.setattr(runs, "by_rows", plainly)
        self.state, self.clock = state, ManualClock()
        rows = [{"id": number, "name": f"n{number}", "v": 1} for number in IDS]
        self.authority = Memory(rows, key="id", version="v", columns=COLUMNS, clock=self.clock, tokens="opaque")
        self.replica = Logged(rows, key="id", columns=COLUMNS, tokens="opaque", clock=self.clock)
        with self.project() as project:
            project.find("people").adopt()
        for number in (*BEHIND, *MISSING):
            self.authority.put({"id": number, "name": f"new{number}", "v": 2})
        for number in MISSING:
            self.authority.put({"id": number + 1_000, "name": "born", "v": 2})
        for number in REMOVED:
            assert self.replica.remove(number)
        for number in EDITED:
            self.replica.put({"id": number, "name": "by hand", "v": 1})
        for number in FOREIGN:
            self.replica.put({"id": number, "name": "theirs", "v": 1})

    def project(self, deaths=None):
        project = trueup.Project(self.state, clock=self.clock, seed=7, threads=1)
        project.pair(
            "people", authority=self.authority, replica=self.replica, fields=["name"], settle=0, stop_at={},
            # The event path is not what is told here: only the comparison finds these.
            overlap=0,
        )  # fmt: skip
        if deaths is not None:
            project._store = tuple(Dying(part, deaths) for part in project._open())
        return project

    def run(self, deaths=None):
        with self.project(deaths) as project:
            return project.find("people").run("compare")

    def check(self):
        with self.project() as project:
            cases = {case.key: case.drift for case in project.archive.cases("people")}
            assert Counter(cases.values()) == {"edited": len(EDITED), "foreign": len(FOREIGN)}
            assert project.ledger.counts("people")["pending"] == 0
            assert [run.ended for run in project.archive.runs("people")][:1] == ["done"]
        expected = {*BEHIND, *MISSING, *REMOVED, *(number + 1_000 for number in MISSING)}
        assert {int(key_parts(key)[0]) for key in self.replica.landed} == expected
        assert set(self.replica.landed.values()) == {1}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def state(request, tmp_path):
    """Names of new state stores."""
    if request.param == "sqlite":
        yield lambda name: f"sqlite:///{tmp_path}/{name}.db"
        return
    with postgres_database() as url:
        yield lambda name: f"{url}?schema={name}"


def test_a_run_killed_at_any_step_is_gone_on_with(state, monkeypatch):
    whole = Deaths()
    story = Story(state("whole"), monkeypatch)
    story.run(whole)
    story.check()
    assert whole.steps > 60, whole.steps
    resumed = 0
    # Every step on the fast store; on the other, a sample that walks through all of them over the pieces.
    stride = 1 if story.state.startswith("sqlite") else 7
    for at in range(1, whole.steps + 1, stride):
        story = Story(state(f"at{at}"), monkeypatch)
        deaths = Deaths(at)
        with pytest.raises(Killed):
            story.run(deaths)
        story.clock.advance(120)  # the leases of the dead run out
        resumed += story.run().resumed
        story.clock.advance(120)
        story.run()  # what a dead worker had in hand is due again by now
        try:
            story.check()
        except AssertionError as error:
            raise AssertionError(f"killed {deaths.where}, step {at}") from error
    assert resumed > whole.steps / stride / 3
