"""A pair's `concurrency`: never more of its batches at once, over all workers of the store, and the rest goes on."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import trueup
from services import postgres_database
from trueup.errors import ConfigError
from trueup.model.budget import System

RECORDS = [{"id": number, "v": 1} for number in range(100)]


class Gauge:
    """How many handlers run at once, in all projects together."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most, self.done = seconds, 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self, change: trueup.Change) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self._lock:
            self.now -= 1
            self.done += 1


def project(state: str, slow: Gauge, quick: Gauge | None = None, **options: object) -> trueup.Project:
    made = trueup.Project(state, seed=1)
    side = trueup.Memory(RECORDS, key="id", version="v")
    made.pair("slow", authority=side, settle=0, **options).on_change(slow)
    if quick is not None:
        made.pair("quick", authority=side, settle=0).on_change(quick)
    return made


@contextmanager
def working(*projects: trueup.Project, threads: int = 4) -> Iterator[None]:
    """Workers of each project, until the end of the block."""
    stop = threading.Event()
    serving = [threading.Thread(target=each.worker(threads=threads).serve, args=(stop,)) for each in projects]
    for each in serving:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in serving:
            each.join()


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/state.db"
        return
    with postgres_database() as url:
        yield url


def test_never_more_batches_at_once_over_all_workers_and_the_rest_goes_on(state: str) -> None:
    slow, quick = Gauge(0.02), Gauge(0.001)
    with ExitStack() as stack:
        first, second = (stack.enter_context(project(state, slow, quick, concurrency=2)) for _ in range(2))
        first.find("slow").offer(RECORDS)
        with working(first, second):
            until(lambda: slow.done > 0)
            first.find("quick").offer(RECORDS)
            until(lambda: quick.done == len(RECORDS))
            assert slow.done < len(RECORDS)
            until(lambda: slow.done == len(RECORDS))
    assert slow.most == 2


def test_without_a_limit_more_run_at_once(tmp_path: Path) -> None:
    slow = Gauge(0.02)
    with project(f"sqlite:///{tmp_path}/state.db", slow) as only:
        only.find("slow").offer(RECORDS)
        with working(only):
            until(lambda: slow.done == len(RECORDS))
    assert slow.most > 2


def test_a_place_is_kept_longer_than_a_lease_where_the_batch_is(tmp_path: Path) -> None:
    slow, state = Gauge(0.1), f"sqlite:///{tmp_path}/state.db"
    with ExitStack() as stack:
        both = [stack.enter_context(project(state, slow, concurrency=1, lease="600ms")) for _ in range(2)]
        both[0].find("slow").offer(RECORDS[:40])
        with working(*both):
            until(lambda: slow.done == 40)
    assert slow.most == 1


def test_the_place_of_a_worker_that_died_comes_back_with_its_leases(tmp_path: Path) -> None:
    slow = Gauge(0)
    with project(f"sqlite:///{tmp_path}/state.db", slow, concurrency=1, lease="500ms") as only:
        dead = System("pair/slow", concurrency=1)
        assert only.budgets.take(dead, 0, urgent=True, call="of the dead", call_us=500_000) == 0
        only.find("slow").offer(RECORDS[:1])
        worker = only.worker()
        assert worker.once(random.Random(1)) == []
        time.sleep(0.6)
        assert [each.result for each in worker.once(random.Random(1))] == ["done"]


def test_a_drain_waits_for_its_place_until_nothing_is_due(tmp_path: Path) -> None:
    slow, state = Gauge(0.01), f"sqlite:///{tmp_path}/state.db"
    with ExitStack() as stack:
        both = [stack.enter_context(project(state, slow, concurrency=1)) for _ in range(2)]
        both[0].find("slow").offer(RECORDS)
        with working(both[0]):
            until(lambda: slow.now == 1)
            both[1].worker().drain(1_000_000)
            left = both[1].ledger.counts("slow")
            assert left["pending"] == left["leased"]  # what the other worker holds is left to it
            until(lambda: slow.done == len(RECORDS))
    assert slow.most == 1


def test_who_has_nothing_to_do_takes_no_place() -> None:
    with project("memory:", Gauge(0), concurrency=1) as only:
        worker = only.worker()
        assert worker.once(random.Random(1)) == []
        only.find("slow").offer(RECORDS[:1])
        only.budgets.pause("slow", "upgrade")
        assert worker.once(random.Random(1)) == []
        assert "pair/slow" not in only.budgets.names()
        only.budgets.resume("slow")
        assert len(worker.once(random.Random(1))) == 1
        assert only.budgets.health("pair/slow").calls == {}


def test_a_named_record_needs_a_place_too() -> None:
    with project("memory:", Gauge(0), concurrency=1) as only:
        slow = only.find("slow")
        slow.offer(RECORDS[:1])
        taken = only.budgets.take(System("pair/slow", concurrency=1), 0, urgent=True, call="x", call_us=60_000_000)
        assert taken == 0
        assert slow.perform('["0"]').total() == 0
        only.budgets.ended("pair/slow", "x")
        assert slow.perform('["0"]')["done"] == 1


def test_none_at_once_is_no_limit() -> None:
    with pytest.raises(ConfigError, match="concurrency is 0"):
        project("memory:", Gauge(0), concurrency=0)
