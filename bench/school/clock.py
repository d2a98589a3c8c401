"""Virtual time: one thread, greenlets, and a clock that moves only when everybody waits."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from trueup.testing.clock import START_US

_T = TypeVar("_T")


class VirtualTime:
    """A `trueup.ports.Clock` that all contestants and the API share; what happens at one time happens in order."""

    def __init__(self) -> None:
        self._now_us = START_US
        self._numbers = count()
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._dozing: list[Callable[[], object]] = []
        self._hub = getcurrent()

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""
        return self._now_us

    def elapsed_us(self) -> int:
        """The same: nobody sets this clock."""
        return self._now_us

    def at(self, when_us: int, call: Callable[[], object]) -> None:
        """Calls `call` at this time, in the order of calls for the same time; it must not wait."""
        heapq.heappush(self._due, (max(when_us, self._now_us), next(self._numbers), call))

    def start(self, function: Callable[[], object], after_s: float = 0.0) -> None:
        """Runs `function` beside all others; it may wait."""
        self.at(self._now_us + round(after_s * 1e6), greenlet(lambda: (function(), None)[1], parent=self._hub).switch)

    def sleep(self, seconds: float) -> None:
        """Waits."""
        self.sleep_until(self._now_us + max(1, round(seconds * 1e6)))

    def sleep_until(self, when_us: int) -> None:
        """Waits until this time."""
        self.at(when_us, getcurrent().switch)
        self._hub.switch()

    def doze(self, seconds: float) -> None:
        """Waits until `notify`, at most this long."""
        thread, woken = getcurrent(), False

        def wake() -> None:
            nonlocal woken
            if not woken:
                woken = True
                thread.switch()

        self._dozing.append(wake)
        self.at(self._now_us + round(seconds * 1e6), wake)
        self._hub.switch()

    def notify(self) -> None:
        """Wakes those who doze."""
        dozing, self._dozing = self._dozing, []
        for wake in dozing:
            self.at(self._now_us, wake)

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it."""
        stopped = False

        def beat() -> None:
            if not stopped and call():
                self.at(self._now_us + round(seconds * 1e6), beat)

        def stop() -> None:
            nonlocal stopped
            stopped = True

        self.at(self._now_us + round(seconds * 1e6), beat)
        return stop

    def run(self, until: Callable[[], bool]) -> None:
        """Goes on until the condition holds."""
        self._hub = getcurrent()
        while self._due and not until():
            when_us, _, call = heapq.heappop(self._due)
            self._now_us = max(self._now_us, when_us)
            call()


class InTurn:
    """Stands in for a pool of threads where time is virtual: what is submitted is done at once, in this thread."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, call: Callable[..., _T], *arguments: Any) -> Future[_T]:
        """A future that is done."""
        future: Future[_T] = Future()
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future
