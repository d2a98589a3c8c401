"""Accidents of real worker processes: frozen past their lease, killed under load, told to stop in mid-batch."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from chaos import (
    agreed,
    all_done,
    asked,
    change,
    held,
    is_frozen,
    leased_by,
    performed,
    prepare,
    stopped,
    story,
    until,
    worker,
)  # fmt: skip
from chaos_worker import LEASE_S, Plan, declare

from school import School
from trueup.bound import BoundPair
from trueup.model.presence import SILENT_US, Presence
from trueup.project import Project

pytestmark = pytest.mark.slow


POSTGRES = pytest.mark.postgres


@pytest.fixture
def state_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Gives the URL of an empty state store of this kind."""

    def state_of(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/state.db"
        return f"{request.getfixturevalue('postgres_url')}?schema=chaos_{uuid.uuid4().hex[:12]}"

    return state_of


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def state(request: pytest.FixtureRequest, state_of: Callable[[str], str]) -> str:
    return state_of(request.param)


@contextmanager
def adopted(plan: Plan, count: int = 1) -> Iterator[tuple[Project, BoundPair]]:
    """The project as another program than the workers has it open, after `trueup adopt`."""
    prepare(Path(plan.folder), count)
    with declare(Plan(plan.folder, plan.state, plan.writes, lease_s=plan.lease_s)) as project:
        pair = project.find("people")
        pair.adopt()
        yield project, pair


# SIGSTOP past the lease, and SIGCONT


@contextmanager
def overtaken(plan: Plan) -> Iterator[tuple[Project, BoundPair, int]]:
    """A worker froze just before it wrote `second`, and another has meanwhile written `third`; answers the frozen."""
    folder = Path(plan.folder)
    with adopted(plan) as (project, pair), worker(Plan(**{**vars(plan), "freeze": True})) as frozen:
        change(pair, folder, "second", 2)
        until(lambda: is_frozen(frozen), "the worker stops itself before its write")
        assert leased_by(project, frozen) == ['["1"]']
        change(pair, folder, "third", 3)
        with worker(Plan(**{**vars(plan), "die": False})) as other:
            until(lambda: held(folder) == ["third"] and all_done(project), "another worker takes the newer state")
            assert project.ledger.rows("people", ['["1"]'])['["1"]'].done_version == 3
            stopped(other)
        yield project, pair, frozen.pid


@pytest.mark.parametrize(("kind", "token"), [("sqlite", "digest"), pytest.param("postgres", "version", marks=POSTGRES)])
def test_frozen_past_its_lease_a_worker_lands_nothing_older_over_newer(
    tmp_path: Path, state_of: Callable[[str], str], kind: str, token: Literal["version", "digest"]
) -> None:
    plan = Plan(str(tmp_path), state_of(kind), token)
    with overtaken(plan) as (project, pair, frozen):
        os.kill(frozen, signal.SIGCONT)
        change(pair, tmp_path, "fourth", 4)  # what the thawed worker does next is its own again
        until(lambda: held(tmp_path)[-1] == "fourth" and all_done(project), "the thawed worker goes on")
        assert held(tmp_path) == ["third", "fourth"], "`second` was never seen"
        assert len(story(pair, "claimed")) == 3
        finished = story(pair, "finished")
        assert [detail.partition(" digest")[0] for detail in finished] == [
            "done upsert version 3", "done upsert version 4"
        ]  # fmt: skip
        agreed(project, {1: 4})


def test_frozen_past_its_lease_without_precondition_the_late_write_is_detected_and_repaired(
    tmp_path: Path, state: str
) -> None:
    with overtaken(Plan(str(tmp_path), state, "client")) as (project, pair, frozen):
        os.kill(frozen, signal.SIGCONT)
        until(lambda: held(tmp_path)[1:] == ["second", "third"], "the late write, and its repair")
        until(lambda: all_done(project), "the repair is finished")
        [refused] = story(pair, "refused")
        assert refused.startswith("done upsert version 2")
        events = [(what, detail) for _, what, detail in pair.explain('["1"]').events]
        after = [what for what, _ in events[events.index(("refused", refused)) + 1 :]]
        assert after == ["claimed", "finished"], "read again, and written again"
        assert performed(tmp_path) == {(1, 2): 1, (1, 3): 2}
        agreed(project, {1: 3})


def test_a_late_write_whose_worker_then_dies_is_found_by_the_next_compare(
    tmp_path: Path, state_of: Callable[[str], str]
) -> None:
    """Given nobody left who could have its finish refused, I expect `behind` and a repair, and no question."""
    with overtaken(Plan(str(tmp_path), state_of("sqlite"), "client", die=True)) as (project, pair, frozen):
        os.kill(frozen, signal.SIGCONT)
        until(lambda: held(tmp_path) == ["third", "second"], "the late write")
        assert story(pair, "refused") == []
        report = pair.run(enqueue=True)
        assert [item.drift for item in report.plan] == ["behind"]
        project.worker().drain(2_000_000)
        assert held(tmp_path) == ["third", "second", "third"]
        agreed(project, {1: 3})


def test_a_run_does_itself_what_a_worker_that_was_killed_will_not_do() -> None:
    """Given a worker that was alive a moment ago, I expect the run to wait for it, then to do its own repairs."""
    school = School().adopted()
    school.project.archive.beat(Presence("host:1:a", "host", 1, 1, ("people",), stays=True))
    school.replica.remove(1)
    began_us = school.clock.now_us()
    report = school.pair.run()
    assert SILENT_US < school.clock.now_us() - began_us < SILENT_US + 5_000_000
    assert (report.exit_code, report.counts["jobs_done"]) == (0, 1)
    assert school.replica.get(1)["name"] == "n1"


# kill -9 under load


RECORDS = 2_000
EVERYBODY = range(1, RECORDS + 1)


def test_killed_and_frozen_under_load_all_end_at_their_newest_version(tmp_path: Path, state: str) -> None:
    """Given three workers of which one is killed and one freezes with records in hand, I expect each to be done."""
    plan = Plan(str(tmp_path), state, "logged", slow_s=0.001)
    with adopted(plan, RECORDS) as (project, pair), ExitStack() as stack:
        change(pair, tmp_path, "second", 2, EVERYBODY)
        killed, frozen, _ = [stack.enter_context(worker(plan, threads=2)) for _ in range(3)]
        hold_with_records_in_hand(project, killed)
        killed.kill()
        change(pair, tmp_path, "third", 3, EVERYBODY[::2])
        hold_with_records_in_hand(project, frozen)
        # It may have stopped with the store's locks in hand, so that the offer waits until it goes on.
        with ThreadPoolExecutor(1) as pool:
            offering = pool.submit(change, pair, tmp_path, "fourth", 4, EVERYBODY[::4])
            until(lambda: leased_by(project, frozen) == [], "its leases run out")
            wait([offering], timeout=3)
            os.kill(frozen.pid, signal.SIGCONT)
            offering.result()
        until(lambda: all_done(project), "every record is done")
        newest = {ident: 4 if ident % 4 == 1 else 3 if ident % 2 == 1 else 2 for ident in EVERYBODY}
        agreed(project, newest)
        assert set(newest.items()) <= set(performed(tmp_path)), "at least once each"


def hold_with_records_in_hand(project: Project, process) -> None:  # type: ignore[no-untyped-def]
    """Freezes a worker at a moment when it holds records."""

    def holds() -> bool:
        if not leased_by(project, process):
            return False
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: is_frozen(process), "it stands still")
        if leased_by(project, process):
            return True
        os.kill(process.pid, signal.SIGCONT)
        return False

    until(holds, "it holds records")


# SIGTERM in mid-batch


def test_told_to_stop_in_mid_batch_nothing_stays_leased(tmp_path: Path, state: str) -> None:
    plan = Plan(str(tmp_path), state, "client", slow_s=0.02, lease_s=60)
    with adopted(plan, 100) as (project, pair), worker(plan, threads=2) as process:
        change(pair, tmp_path, "second", 2, range(1, 101))
        until(lambda: len(performed(tmp_path)) > 5, "work has begun")
        code, said = stopped(process)
        assert code == 0, said
        done = len(performed(tmp_path))
        counts = project.ledger.counts("people")
        assert counts["leased"] == 0
        assert (counts["idle"], counts["pending"]) == (done, 100 - done)
        assert 5 < done < 100
        assert set(performed(tmp_path).values()) == {1}
        project.worker().drain(2_000_000)
        agreed(project, dict.fromkeys(range(1, 101), 2))


def test_a_grace_that_is_too_short_ends_the_worker_and_others_go_on(
    tmp_path: Path, state_of: Callable[[str], str]
) -> None:
    plan = Plan(str(tmp_path), state_of("sqlite"), "client", slow_s=2)
    with adopted(plan, 20) as (project, pair), worker(plan, grace_s=0.5) as process:
        change(pair, tmp_path, "second", 2, range(1, 21))
        until(lambda: leased_by(project, process), "work has begun")
        time.sleep(0.7)  # a handler takes two seconds, so one is at work now
        code, _ = stopped(process)
        assert code == 3
        assert len(performed(tmp_path)) < 20
        until(lambda: leased_by(project, process) == [], "leases end by themselves", LEASE_S + 1)
        project.worker().drain(5_000_000)
        agreed(project, dict.fromkeys(range(1, 21), 2))
        assert asked(tmp_path, "SELECT count(DISTINCT id) FROM performed") == [(20,)]
