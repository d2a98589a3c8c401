"""Schedules at work: downtime, overlaps, blackouts, pauses, trouble, stops, and several schedulers on one store."""

from __future__ import annotations

import datetime as dt
import logging
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import trueup
from trueup.engine.scheduler import Performed, Scheduler
from trueup.errors import Unreachable
from trueup.model.run import Run
from trueup.model.turn import BACKOFF_MAX_US, OCCUPIED_US, Turn
from trueup.testing.clock import ManualClock

MINUTE_US = 60_000_000


def us(*moment: int) -> int:
    return round(dt.datetime(*moment, tzinfo=dt.UTC).timestamp()) * 1_000_000  # type: ignore[misc, arg-type]


START_US = us(2026, 11, 30, 21, 59, 30)  # a Monday


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_US)


class Shop:
    """A project with one pair, adopted, and its scheduler."""

    def __init__(self, clock: ManualClock, state: str = "memory:", name: str = "orders", **options: Any) -> None:
        self.clock = clock
        self.project = trueup.Project(state, clock=clock, seed=1)
        records = [{"id": 1, "v": 1}]
        self.pair = self.project.pair(
            name, authority=trueup.Memory(records, key="id", version="v"),
            replica=trueup.Memory(records, key="id", version="v"), settle=0, **{"start_jitter": 0} | options,
        )  # fmt: skip
        self.pair.adopt()
        self.scheduler = self.project.scheduler()
        self.scheduler.declare()

    def once(self) -> Performed | None:
        return self.scheduler.once()

    def until(self, moment_us: int) -> list[Performed]:
        """All that is done until then, looking every ten seconds."""
        done = []
        while self.clock.now_us() < moment_us:
            while (performed := self.once()) is not None:
                done.append(performed)
            self.clock.advance(10)
        return done

    def turn(self, what: str = "sweep") -> Turn:
        return next(turn for turn in self.project.archive.turns([self.pair.name]) if turn.what == what)

    def runs(self, what: str = "sweep") -> int:
        return sum(run.what == what for run in self.project.archive.runs(self.pair.name, limit=1_000))


@pytest.fixture
def shop(clock: ManualClock) -> Iterator[Callable[..., Shop]]:
    opened: list[Shop] = []

    def make(**options: Any) -> Shop:
        opened.append(Shop(clock, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.project.close()


# ── times ────────────────────────────────────────────────────────────────────────────────────────────


def test_each_schedule_of_a_pair_starts_at_its_times(shop: Callable[..., Shop]) -> None:
    found = shop(sweep="10m", compare="0 * * * *", compare_changed="30m")
    done = found.until(START_US + 3_600_000_000)
    assert {each.how for each in done} == {"done"}
    assert Counter(each.what for each in done) == {"sweep": 7, "changed": 3, "compare": 1}  # intervals begin at once
    assert Counter(run.what for run in found.project.archive.runs("orders")) == {
        "sweep": 7, "changed": 3, "compare": 1, "adopt": 1,
    }  # fmt: skip
    assert max(each.late_us for each in done) < 10 * 1_000_000


def test_C098_after_a_night_of_downtime_one_run_makes_up_for_all(shop: Callable[..., Shop], clock: ManualClock) -> None:
    """Given a run every minute, and nobody there from 22:00 to 06:00, I expect one run, and 480 missed."""
    found = shop(sweep="* * * * *")
    clock.advance(30)
    assert found.once() is not None
    assert found.runs() == 1
    clock.advance(8 * 3_600 + 5)
    performed = found.once()
    assert performed is not None
    assert (performed.how, performed.passed) == ("done", 480)
    assert found.once() is None
    assert (found.runs(), found.turn().missed) == (2, 480)
    assert found.turn().due_us == us(2026, 12, 1, 6, 1)
    clock.advance(55)
    assert found.once() is not None
    assert found.turn().missed == 480


def test_what_was_missed_is_logged(
    shop: Callable[..., Shop], clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    found = shop(sweep="* * * * *")
    clock.advance(3_600)
    stop = threading.Event()
    found.project.clock = clock
    clock.sleep = lambda seconds: stop.set()  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        found.scheduler.serve(stop)
    assert "pair orders: 60 times of its sweep had passed; one run stands for them" in caplog.text


def test_a_single_time_that_passed_is_late_and_not_missed(shop: Callable[..., Shop], clock: ManualClock) -> None:
    found = shop(compare="0 3 * * *")
    clock.advance(8 * 3_600 + 30)
    performed = found.once()
    assert performed is not None
    assert (performed.late_us, performed.passed, found.turn("compare").missed) == (3 * 3_600_000_000, 0, 0)


def test_in_a_blackout_nothing_starts_and_afterwards_one(shop: Callable[..., Shop]) -> None:
    found = shop(sweep="10m", blackout=["22:00-06:00"])
    assert [each.how for each in found.until(us(2026, 11, 30, 22))] == ["done"]
    assert found.until(us(2026, 12, 1, 6)) == []
    [performed] = found.until(us(2026, 12, 1, 6, 5))
    assert (performed.how, performed.passed) == ("done", 0)


def test_what_was_late_already_waits_for_the_end_of_a_blackout_too(
    shop: Callable[..., Shop], clock: ManualClock
) -> None:
    """Given a run due before the blackout that nobody started, I expect that it does not start inside."""
    found = shop(sweep="* * * * *", blackout=["22:00-06:00"])
    clock.advance(3_600)
    assert found.until(us(2026, 12, 1, 5, 59)) == []
    [performed] = found.until(us(2026, 12, 1, 6, 0, 50))
    assert performed.how == "done"


# ── overlaps ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_by_hand_is_waited_for_and_counted_once(shop: Callable[..., Shop], clock: ManualClock) -> None:
    found = shop(sweep="10m")
    archive = found.project.archive
    by_hand = archive.begin_run(Run("orders", "compare", clock.now_us()), "a person", 3_600_000_000)
    assert by_hand is not None
    performed = found.once()
    assert performed is not None
    assert performed.how == "refused"
    assert found.once() is None
    clock.advance(OCCUPIED_US / 1e6)
    assert getattr(found.once(), "how", None) == "refused"
    assert found.turn().refused == 1
    archive.close_run(replace(by_hand, ended="done", ended_us=clock.now_us()))
    clock.advance(OCCUPIED_US / 1e6)
    assert getattr(found.once(), "how", None) == "done"
    assert (found.runs(), found.turn().refused) == (1, 1)


class Slow(trueup.Memory):
    """A side whose scans take their time; what happens meanwhile is up to the test."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def scan(self, *arguments: Any, **options: Any) -> Any:
        self.meanwhile()
        return super().scan(*arguments, **options)


def test_times_that_come_while_the_run_is_under_way_are_refused_and_not_queued(
    shop: Callable[..., Shop], clock: ManualClock
) -> None:
    """Given a run of 25 minutes every 10, I expect that the two that came meanwhile never run."""
    found = shop(name="slow", sweep="10m")
    slow = Slow([{"id": 1, "v": 1}], key="id", version="v")
    pair = found.project.pair("very-slow", authority=slow, settle=0, sweep="10m", start_jitter=0)
    pair.on_change(lambda change: None)
    slow.meanwhile = lambda: clock.advance(25 * 60)  # type: ignore[method-assign]
    scheduler = found.project.scheduler(["very-slow"])
    scheduler.declare()
    assert getattr(scheduler.once(), "how", None) == "done"
    assert scheduler.once() is None
    [turn] = found.project.archive.turns(["very-slow"])
    # 21:59:30 and 25 minutes: 22:00, 22:10 and 22:20 passed.
    assert (turn.refused, turn.missed, turn.due_us) == (3, 0, us(2026, 11, 30, 22, 30))


def test_two_schedules_of_a_pair_run_one_after_the_other(shop: Callable[..., Shop], clock: ManualClock) -> None:
    found = shop(sweep="0 3 * * *", compare="0 3 * * *")
    clock.advance(6 * 3_600)
    done = [found.once(), found.once(), found.once()]
    assert [each and (each.what, each.how) for each in done] == [("compare", "done"), ("sweep", "done"), None]
    assert found.turn().refused == found.turn("compare").refused == 0


def test_C102_a_run_longer_than_its_claim_is_renewed_and_started_by_one(tmp_path: Any) -> None:
    """Given a sweep of 1 s under a claim of 0.3 s, and two schedulers, I expect one sweep."""
    began: list[str] = []

    class Recording(trueup.Memory):
        def scan(self, *arguments: Any, **options: Any) -> Any:
            began.append("scan")
            time.sleep(1.0)
            return super().scan(*arguments, **options)

    schedulers = []
    projects = [trueup.Project(f"sqlite:///{tmp_path}/state.db", seed=at) for at in range(2)]
    for project in projects:
        side = Recording([{"id": 1, "v": 1}], key="id", version="v")
        bound = project.pair("orders", authority=side, settle=0, sweep="1d")
        bound.on_change(lambda change: None)
        schedulers.append(
            Scheduler(
                project.ledger,
                project.archive,
                project.budgets,
                project.clock,
                {"orders": bound},
                owner=f"s{len(schedulers)}",
                chance=project.chance(),
                lease_us=300_000,
            )
        )
    stop, done = threading.Event(), []
    threads = [threading.Thread(target=each.serve, args=(stop, done.append)) for each in schedulers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while not done and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.7)
    stop.set()
    for thread in threads:
        thread.join()
    assert [each.how for each in done] == ["done"]
    assert sum(run.what == "sweep" for run in projects[0].archive.runs("orders")) == 1
    assert [turn.refused for turn in projects[0].archive.turns(["orders"])] == [0]
    for project in projects:
        project.close()


# ── people ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_schedule_that_a_person_holds_starts_nothing_and_then_once(
    shop: Callable[..., Shop], clock: ManualClock
) -> None:
    found = shop(sweep="10m")
    assert found.once() is not None
    found.project.archive.pause_turns("orders", "zoë", "month's end")
    assert found.until(START_US + 3_600_000_000) == []
    found.project.archive.resume_turns("orders")
    clock.advance(5)
    [performed] = found.until(START_US + 3_620_000_000)
    assert (performed.how, performed.passed) == ("done", 6)


@pytest.mark.parametrize("system", ["orders", "*"])
def test_a_system_that_a_person_paused_holds_the_runs_of_its_pairs(shop: Callable[..., Shop], system: str) -> None:
    found = shop(sweep="10m")
    found.project.budgets.pause(system, "maintenance", "zoë")
    assert found.until(START_US + 3_600_000_000) == []
    assert not found.pair.status().overdue
    found.project.budgets.resume(system)
    assert [each.how for each in found.until(START_US + 3_630_000_000)] == ["done"]


def test_a_run_can_be_made_due_now(shop: Callable[..., Shop]) -> None:
    found = shop(compare="0 3 * * *")
    assert found.once() is None
    assert found.project.archive.hasten_turns("orders") == 1
    found.clock.advance(5)
    assert getattr(found.once(), "what", None) == "compare"
    assert found.turn("compare").due_us == us(2026, 12, 1, 3)


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────


class Down(trueup.Memory):
    """A side that does not answer while it is down."""

    down = True

    def scan(self, *arguments: Any, **options: Any) -> Any:
        if self.down:
            raise Unreachable("shop: no connection.")
        return super().scan(*arguments, **options)


def test_trouble_is_told_and_tried_again_later_each_time(shop: Callable[..., Shop], clock: ManualClock) -> None:
    found = shop(sweep="1d")
    side = Down([{"id": 1, "v": 1}], key="id", version="v")
    pair = found.project.pair("down", authority=side, settle=0, sweep="1m", start_jitter=0)
    pair.on_change(lambda change: None)
    found.scheduler = found.project.scheduler(["down", "orders"])
    found.scheduler.declare()
    done = found.until(START_US + 3_600_000_000)
    failed = [each for each in done if each.pair == "down"]
    assert {each.how for each in failed} == {"failed"}
    assert {each.error for each in failed} == {"Unreachable: shop: no connection."}
    assert 5 <= len(failed) <= 11  # each wait is twice the last, to a quarter of an hour
    assert [each.how for each in done if each.pair == "orders"] == ["done"]
    [turn] = found.project.archive.turns(["down"])
    assert turn.failures == len(failed)
    side.down = False
    again = [each.how for each in found.until(clock.now_us() + BACKOFF_MAX_US + MINUTE_US) if each.pair == "down"]
    assert again[0] == "done"
    [turn] = found.project.archive.turns(["down"])
    assert (turn.failures, len(again) >= 1) == (0, True)


def test_every_time_is_done_missed_or_refused(shop: Callable[..., Shop], clock: ManualClock) -> None:
    """Given downtimes of all lengths, I expect that the counts add up to the times that there were."""
    found = shop(sweep="* * * * *")
    done, started_us = 0, clock.now_us()
    for pause_s in (30, 61, 59, 600, 45, 3_600, 90, 120, 7, 7, 7):
        clock.advance(pause_s)
        while (performed := found.once()) is not None:
            done += performed.passed == 0
    schedule = found.pair.pair.schedules["sweep"]
    assert done + found.turn().missed == schedule.count(started_us, clock.now_us())


def test_a_value_of_a_record_is_never_in_what_is_told(shop: Callable[..., Shop]) -> None:
    found = shop(sweep="1d")

    class Broken(trueup.Memory):
        def scan(self, *arguments: Any, **options: Any) -> Any:
            raise ValueError("4111 1111 1111 1111")

    pair = found.project.pair("broken", authority=Broken([{"id": 1, "v": 1}], key="id", version="v"), sweep="1h")
    pair.on_change(lambda change: None)
    scheduler = found.project.scheduler(["broken"])
    scheduler.declare()
    performed = scheduler.once()
    assert performed is not None
    assert (performed.how, performed.error) == ("failed", "ValueError")


def test_a_run_that_is_told_to_stop_is_gone_on_with_by_the_next(shop: Callable[..., Shop], clock: ManualClock) -> None:
    found = shop(compare="0 3 * * *")
    clock.advance(6 * 3_600)
    performed = found.scheduler.once(lambda: True)
    assert performed is not None
    assert performed.how == "stopped"
    due = found.turn("compare")
    assert (due.due_us, due.owner) == (us(2026, 12, 1, 3), "")
    clock.advance(1)
    other = found.project.scheduler()
    again = other.once()
    assert again is not None
    assert (again.how, again.report is not None and again.report.number) == ("done", performed_number(found))
    assert found.runs("compare") == 1


def performed_number(found: Shop) -> int:
    return max(run.number for run in found.project.archive.runs("orders"))


# ── many pairs ───────────────────────────────────────────────────────────────────────────────────────


def test_the_longest_due_starts_first_whoever_it_is(clock: ManualClock) -> None:
    with trueup.Project("memory:", clock=clock, seed=1) as project:
        for at in range(50):
            side = trueup.Memory([{"id": 1, "v": 1}], key="id", version="v")
            project.pair(f"tenant-{at:02}", authority=side, settle=0, sweep="1h").on_change(lambda change: None)
        scheduler = project.scheduler()
        scheduler.declare()
        started: list[tuple[int, str]] = []
        for _ in range(500):
            performed = scheduler.once()
            if performed is not None:
                started.append((clock.now_us() - performed.late_us, performed.pair))
            clock.advance(75)  # a little slower than all of them together are due
        dues = [due_us for due_us, _ in started]
        assert dues == sorted(dues)
        counts = Counter(pair for _, pair in started)
        assert max(counts.values()) - min(counts.values()) <= 2


def test_equal_pairs_that_are_due_together_wait_at_most_twice_the_median(clock: ManualClock) -> None:
    """Given 200 pairs due at one moment, each run as long as the others, I expect nobody to wait much longer."""
    with trueup.Project("memory:", clock=clock, seed=1) as project:
        for at in range(200):
            side = Slow([{"id": 1, "v": 1}], key="id", version="v")
            side.meanwhile = lambda: clock.advance(0.05)  # type: ignore[method-assign]
            pair = project.pair(f"tenant-{at:03}", authority=side, settle=0, sweep="0 * * * *")
            pair.on_change(lambda change: None)
        scheduler = project.scheduler()
        scheduler.declare()
        clock.advance(30)
        waits_us = []
        while (performed := scheduler.once()) is not None:
            waits_us.append(performed.late_us)
        assert len(waits_us) == 200
        assert max(waits_us) <= 2 * statistics.median(waits_us)


def test_a_rule_that_changed_counts_from_now_on(clock: ManualClock, tmp_path: Any) -> None:
    state = f"sqlite:///{tmp_path}/state.db"
    first = Shop(clock, state, compare="0 3 * * *")
    assert first.turn("compare").due_us == us(2026, 12, 1, 3)
    first.project.close()
    second = Shop(clock, state, compare="0 23 * * *")
    assert second.turn("compare").due_us == us(2026, 11, 30, 23)
    second.project.close()
