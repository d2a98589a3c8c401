"""The real clock's rhythm."""

from __future__ import annotations

import os
import threading
import time
import weakref

import pytest

from trueup.engine.clock import SystemClock
from trueup.errors import StateError


def test_a_rhythm_goes_on_after_trouble_that_passes() -> None:
    """Given a call that fails twice, as a renewal does while the store restarts, I expect the next beats to call it."""
    beats: list[int] = []
    enough = threading.Event()

    def call() -> bool:
        beats.append(len(beats))
        if len(beats) < 3:
            raise StateError("the state store does not answer.")
        enough.set()
        return False

    stop = SystemClock().every(0.01, call)
    assert enough.wait(20)
    stop()
    assert len(beats) == 3


def test_who_stops_a_rhythm_waits_for_the_call_under_way() -> None:
    """Given a call that is under way, I expect `stop` to return after it, and nothing to be called any more."""
    entered, go_on, calls = threading.Event(), threading.Event(), []

    def call() -> bool:
        calls.append("began")
        entered.set()
        go_on.wait(20)
        calls.append("ended")
        return True

    stop = SystemClock().every(0.01, call)
    assert entered.wait(20)
    stopping = threading.Thread(target=stop)
    stopping.start()
    stopping.join(0.05)
    assert stopping.is_alive()
    go_on.set()
    stopping.join(20)
    assert calls == ["began", "ended"]
    time.sleep(0.05)
    assert calls == ["began", "ended"]


def test_a_call_that_takes_long_holds_up_no_other_rhythm() -> None:
    """Given a renewal that waits for a store that is away, I expect the others to go on."""
    go_on, beats = threading.Event(), threading.Semaphore(0)

    def beat() -> bool:
        beats.release()
        return True

    slow = SystemClock().every(0.01, lambda: not go_on.wait(20))
    quick = SystemClock().every(0.01, beat)
    assert all(beats.acquire(timeout=20) for _ in range(5))
    quick()
    go_on.set()
    slow()


def test_a_rhythm_that_is_sooner_due_does_not_wait_for_those_before_it() -> None:
    """Given rhythms of an hour, I expect one of a hundredth of a second to beat at once."""
    beaten = threading.Event()
    late = [SystemClock().every(3_600, lambda: True) for _ in range(3)]
    sooner = SystemClock().every(0.01, lambda: not beaten.set())  # type: ignore[func-returns-value]
    assert beaten.wait(20)
    for stop in (*late, sooner):
        stop()


def test_a_rhythm_that_ended_before_its_first_beat_costs_no_thread_and_keeps_nothing() -> None:
    """Given a thousand batches of a worker, I expect no thread of their own, and their claims to be let go."""

    class Claims:
        def renew(self) -> bool:
            return True

    before, kept = threading.active_count(), []
    for _ in range(1_000):
        claims = Claims()
        kept.append(weakref.ref(claims))
        SystemClock().every(3_600, claims.renew)()
    del claims
    assert threading.active_count() <= before + 1
    assert not [each for each in kept if each() is not None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_fork_keeps_its_own_rhythms() -> None:
    """Given a process that had a rhythm when it forked, I expect those of the child to beat."""
    SystemClock().every(3_600, lambda: True)()
    child = os.fork()
    if child == 0:  # no assertion may leave it
        beaten = threading.Event()
        SystemClock().every(0.01, lambda: not beaten.set())  # type: ignore[func-returns-value]
        os._exit(0 if beaten.wait(20) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
