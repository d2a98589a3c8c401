"""What is logged of records, runs and cases: who greps for an id finds what happened, and no value."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from school import School, key, person
from trueup import Reject, Retry
from trueup.cli.logs import EVENTS, Objects
from trueup.errors import own_words

HIDDEN = '["(redacted)"]'


class Lines:
    """The log as programs read it, since it was last asked for."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog, self.text = caplog, ""

    def take(self) -> list[dict[str, Any]]:
        lines = [Objects().format(each) for each in self._caplog.records]
        self.text += "\n".join([*lines, *self._caplog.messages])
        self._caplog.clear()
        return [{name: said for name, said in json.loads(line).items() if name != "time"} for line in lines]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.take() if each["event"] == event]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.DEBUG, "trueup")
    return Lines(caplog)


def events(found: list[dict[str, Any]]) -> list[str]:
    return [each["event"] for each in found]


def behind(school: School, *idents: int, **changed: Any) -> None:
    """The authority changed these records, and no event tells."""
    for ident in idents:
        school.authority.put(person(ident, **({"name": "Canary Person", "v": 100} | changed)))


def test_a_run_says_its_start_its_phases_and_its_end_with_its_number(lines: Lines) -> None:
    """Given one record that drifted, I expect the run's whole way, and under it the repair and the record's job."""
    school = School().adopted()
    lines.take()
    behind(school, 2)
    report = school.pair.run("compare")
    found = lines.take()
    runs = [each for each in found if "run" in each]
    assert {each["run"] for each in runs} == {report.number}
    assert events(runs) == [
        "run_began",
        *["phase_ended"] * 3,
        "repair_offered",
        "phase_ended",
        "phase_ended",
        "run_ended",
    ]
    assert [each["phase"] for each in runs if "phase" in each] == ["compare", "settle", "confirm", "act", "repair"]
    (offered,) = [each for each in found if each["event"] == "repair_offered"]
    assert (offered["key"], offered["drift"], offered["action"]) == (key(2), "behind", "upsert")
    (done,) = [each for each in found if each["event"] == "job_done"]
    assert (done["level"], done["key"], done["origin"], done["attempt"]) == ("debug", key(2), "compare", 1)
    assert (runs[-1]["how"], runs[-1]["what"]) == ("done", "compare")
    assert "Canary" not in lines.text


def test_a_dry_run_has_no_number(lines: Lines) -> None:
    school = School().adopted()
    lines.take()
    school.pair.run(dry_run=True)
    found = lines.take()
    assert {each["what"] for each in found if "what" in each} == {"dry run"}
    assert not any("run" in each for each in found)


def test_a_run_that_fails_says_so(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    school = School().adopted()
    lines.take()
    monkeypatch.setattr(school.replica, "scan", None)
    monkeypatch.setattr(school.replica, "inputs", None, raising=False)
    with pytest.raises(Exception, match="NoneType"):
        school.pair.run("compare")
    (ended,) = lines.of("run_ended")
    assert (ended["how"], ended["run"]) == ("failed", 2)


@pytest.mark.parametrize(
    ("raised", "event", "why"),
    [
        (Retry("the partner is busy", after_s=5), "job_retried", "the partner is busy"),
        (Reject("unknown SKU"), "job_parked", "rejected: unknown SKU"),
        (ValueError("nobody knows Canary Person"), "job_retried", "ValueError"),
    ],
)
def test_a_job_that_did_not_end_well_says_why(lines: Lines, raised: Exception, event: str, why: str) -> None:
    """Given a handler that asks, rejects or breaks, I expect a line at `info`; of what broke only its type."""
    school = School().adopted()

    @school.pair.on_change
    def act(change):  # type: ignore[no-untyped-def]
        raise raised

    lines.take()
    behind(school, 3)
    school.pair.offer(person(3, name="Canary Person", v=100))
    school.project.worker().once(school.project.chance())
    (ended,) = [each for each in lines.take() if each["event"].startswith("job_")]
    assert (ended["event"], ended["level"], ended["key"], ended["why"]) == (event, "info", key(3), why)
    assert "Canary" not in lines.text


def test_a_last_try_parks_the_record(lines: Lines) -> None:
    school = School(tries=1).adopted()

    @school.pair.on_change
    def act(change):  # type: ignore[no-untyped-def]
        raise ValueError("no")

    lines.take()
    school.pair.offer(person(3, name="new", v=100))
    school.project.worker().once(school.project.chance())
    (parked,) = lines.of("job_parked")
    assert (parked["key"], parked["why"], parked["attempt"]) == (key(3), "ValueError", 1)


def test_a_worker_that_stood_still_says_that_it_lost_the_record(lines: Lines) -> None:
    """Given a handler that takes longer than the lease, and another worker meanwhile, I expect the first to say so."""
    school = School(lease=10).adopted()
    calls = []

    @school.pair.on_change
    def act(change):  # type: ignore[no-untyped-def]
        calls.append(change.key)
        if len(calls) == 1:
            school.clock.advance(60)
            school.project.worker().once(school.project.chance())

    lines.take()
    behind(school, 3)
    school.pair.offer(person(3, name="Canary Person", v=100))
    school.project.worker().once(school.project.chance())
    found = [each for each in lines.take() if each["event"].startswith("job_")]
    assert {(each["event"], each["key"]) for each in found} >= {("job_lost", key(3))}


def test_a_case_is_opened_once_and_closed_with_its_number(lines: Lines) -> None:
    """Given a hand edit that two runs see, I expect one line as it is asked about, and one as it went away."""
    school = School().adopted()
    lines.take()
    school.replica.put({"id": 4, "name": "Canary Person", "fee": "1.50", "status": "registered"})
    first = school.pair.run("compare")
    school.pair.run("compare")
    (opened,) = lines.of("case_opened")
    (case,) = school.project.archive.cases("people")
    assert (opened["case"], opened["key"], opened["drift"]) == (case.number, key(4), "edited")
    assert opened["run"] == first.number
    school.replica.put({"id": 4, "name": "n4", "fee": "1.50", "status": "registered"})
    school.pair.run("compare")
    (closed,) = lines.of("case_closed")
    assert (closed["case"], closed["key"], closed["why"]) == (case.number, key(4), "the sides agree")
    assert "Canary" not in lines.text


def test_a_decision_is_said_with_its_case(lines: Lines) -> None:
    school = School().adopted()
    school.replica.put({"id": 4, "name": "Canary Person", "fee": "1.50", "status": "registered"})
    school.pair.run("compare")
    (case,) = school.project.archive.cases("people")
    lines.take()
    school.pair.decide(case.number, "take-authority", person="ana", reason="Canary asked")
    (decided,) = lines.of("case_decided")
    assert (decided["case"], decided["choice"], decided["how"]) == (case.number, "take-authority", "done")
    assert "Canary" not in lines.text


def test_a_redacted_key_is_in_no_line(lines: Lines) -> None:
    """Given a pair that redacts its key, I expect every kind of line without it, and no handler's words."""
    school = School([person(at) for at in range(470_001, 470_006)], redact=["id"], tries=1).adopted()

    @school.pair.on_change
    def act(change, replica):  # type: ignore[no-untyped-def]
        if change.key == key(470_002):
            raise Reject(f"{change.key} is unknown")
        if change.key == key(470_003):
            raise ValueError(change.key)
        replica.put(change)

    behind(school, 470_001, 470_002, 470_003, v=470_100)
    school.replica.put({"id": 470_004, "name": "Canary Person", "fee": "1.50", "status": "registered"})
    school.pair.run("compare")
    school.drain()
    found = lines.take()
    assert {each["key"] for each in found if "key" in each} == {HIDDEN}
    assert {"repair_offered", "job_done", "job_parked", "case_opened"} <= set(events(found))
    assert [each.get("why") for each in found if each["event"] == "job_parked"] in (
        [None, "rejected"],
        ["rejected", None],
    )
    assert "47000" not in lines.text
    assert "Canary" not in lines.text


def test_where_nobody_listens_nothing_is_built(caplog: pytest.LogCaptureFixture) -> None:
    school = School().adopted()
    caplog.set_level(logging.WARNING, "trueup")
    caplog.clear()
    behind(school, 2)
    school.pair.run()
    assert caplog.records == []


def test_a_system_that_fails_and_comes_back_is_said_twice(lines: Lines) -> None:
    """Given a handler that cannot reach its system, I expect word of it, a warning once it lasts, and the end."""
    school = School().adopted()
    down = True

    @school.pair.on_change
    def act(change, replica):  # type: ignore[no-untyped-def]
        if down:
            raise ConnectionError("no route to Canary Person")
        replica.put(change)

    lines.take()
    behind(school, 3)
    school.pair.offer(person(3, name="Canary Person", v=100))
    worker = school.project.worker()
    worker.once(school.project.chance())
    (paused,) = lines.of("system_paused")
    assert (paused["level"], paused["system"], paused["why"]) == ("info", "people", "ConnectionError")
    assert paused["pause_s"] == 1.0
    school.clock.advance(2)
    worker.once(school.project.chance())
    (paused,) = lines.of("system_paused")
    assert (paused["level"], paused["pause_s"]) == ("warning", 2.0)
    down = False
    school.clock.advance(3)
    worker.once(school.project.chance())
    (back,) = lines.of("system_back")
    assert (back["level"], back["system"]) == ("warning", "people")
    assert "Canary" not in lines.text


def test_a_person_s_pause_is_said(lines: Lines) -> None:
    budgets = School().project.budgets
    budgets.failed("erp", "it does not answer")
    lines.take()
    budgets.pause("erp", "an upgrade", "ana")
    budgets.resume("erp")
    budgets.resume("erp")
    found = lines.take()
    assert [(each["event"], each["system"]) for each in found] == [("system_held", "erp"), ("system_resumed", "erp")]
    assert found[0]["by"] == "ana"


def test_every_fact_of_an_event_is_declared(lines: Lines) -> None:
    """Given a world in which much happens, I expect no line with a fact that its event does not declare."""
    school = School().adopted()
    behind(school, 2)
    school.replica.put({"id": 4, "name": "edited", "fee": "1.50", "status": "registered"})
    school.pair.run()
    usual = {"level", "logger", "event", "message"}
    for each in lines.take():
        assert set(each) - usual <= set(EVENTS[each["event"]]), each


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ValueError: Canary", "ValueError"),
        ("gaierror: Canary", "gaierror"),
        ("Unreachable: erp does not answer", "Unreachable: erp does not answer"),
        ("erp_orders: it does not answer", "erp_orders: it does not answer"),
        ("the replica moved", "the replica moved"),
        ("ValueError", "ValueError"),
        ("", ""),
    ],
)
def test_only_words_of_ours_are_told_of_an_error(said: str, told: str) -> None:
    assert own_words(said) == told
