"""Calls of many threads that share one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from trueup.stores.gathering import Gathering


class Store:
    """Answers the square of each number; holds the first call until it is told to go on."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.busy = threading.Lock()

    def together(self, items):
        assert self.busy.acquire(blocking=False), "two calls at once"
        try:
            self.calls.append(list(items))
            if len(self.calls) == 1:
                self.entered.set()
                assert self.go_on.wait(10)
            if 13 in items:
                raise ValueError("thirteen")
            return [item * item for item in items]
        finally:
            self.busy.release()


def _while_the_first_is_under_way(gathering, store, lists):
    """The futures of a first call of [1], and of these calls, which arrive in their order meanwhile."""
    pool = ThreadPoolExecutor(len(lists) + 1)
    with pool:
        futures = [pool.submit(gathering, [1])]
        assert store.entered.wait(10)
        for number, items in enumerate(lists):
            futures.append(pool.submit(gathering, items))
            while len(gathering._calls) <= number:
                pass
        store.go_on.set()
    return futures


def test_calls_that_wait_are_answered_together_each_with_its_own():
    store = Store()
    futures = _while_the_first_is_under_way(Gathering(store.together, 100), store, [[2, 3], [4], [], [5]])
    assert [future.result() for future in futures] == [[1], [4, 9], [16], [], [25]]
    assert store.calls == [[1], [2, 3, 4, 5]]


def test_no_more_than_allowed_at_once_unless_one_alone_brings_more():
    store = Store()
    futures = _while_the_first_is_under_way(Gathering(store.together, 3), store, [[2, 3], [4, 5], [6, 7, 8, 9], [10]])
    assert [len(future.result()) for future in futures] == [1, 2, 2, 4, 1]
    assert store.calls == [[1], [2, 3], [4, 5], [6, 7, 8, 9], [10]]


def test_nobody_fails_because_of_another():
    store = Store()
    futures = _while_the_first_is_under_way(Gathering(store.together, 100), store, [[2], [13], [3]])
    assert [futures[n].result() for n in (0, 1, 3)] == [[1], [4], [9]]
    with pytest.raises(ValueError, match="thirteen"):
        futures[2].result()


def test_it_goes_on_after_a_failure():
    gathering = Gathering(Store().together, 10)
    gathering._together.__self__.go_on.set()
    with pytest.raises(ValueError, match="thirteen"):
        gathering([13])
    assert gathering([2]) == [4]


def test_many_threads_lose_and_mix_nothing():
    store = Store()
    store.go_on.set()
    gathering = Gathering(store.together, 10)

    def work(thread: int) -> None:
        for number in range(1_000 * (thread + 1), 1_000 * (thread + 1) + 300):
            assert gathering([number, -number]) == [number**2, number**2]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert sum(map(len, store.calls)) == 16 * 300 * 2
