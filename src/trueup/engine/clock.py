"""The real clock."""

from __future__ import annotations

import heapq
import logging
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from trueup.errors import TrueupError

_log = logging.getLogger(__name__)
_ELAPSED: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Time of this host, real waiting, and one daemon thread that keeps every rhythm."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""
        return time.time_ns() // 1_000

    def elapsed_us(self) -> int:
        """Microseconds since some moment; nobody sets it back, and it counts while the host sleeps."""
        return time.clock_gettime_ns(_ELAPSED) // 1_000

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it, and waits for a call under way.

        Trouble that passes must not end the rhythm: an error of ours is logged, and the next beat tries again.
        """
        return _rhythms.keep(seconds, call)


class _Rhythm:
    """One rhythm; its lock is held while it beats."""

    __slots__ = ("call", "lock", "seconds")

    def __init__(self, seconds: float, call: Callable[[], bool]) -> None:
        self.seconds = seconds
        self.call: Callable[[], bool] | None = call
        self.lock = threading.RLock()

    def stop(self) -> None:
        # What it would have called is let go at once: it may hold all the claims of a batch.
        self.call = None
        with self.lock:
            pass

    def beat(self) -> bool:
        """Whether it goes on."""
        with self.lock:
            if (call := self.call) is None:
                return False
            try:
                return call()
            except TrueupError as error:
                _log.warning("%s", error, extra={"event": "rhythm_failed", "error": str(error)})
                return True


class _Rhythms:
    """One thread that knows when each rhythm is due, and starts another one only for a beat.

    A worker keeps a rhythm for each batch, and most end long before their first beat. To start a thread for each
    would cost more than the batch: it waits for the interpreter, which other threads keep for 5 ms at a time.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Rhythm]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def keep(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        rhythm = _Rhythm(seconds, call)
        self._add(rhythm)
        return rhythm.stop

    def _add(self, rhythm: _Rhythm) -> None:
        entry = (time.monotonic() + rhythm.seconds, next(self._numbers), rhythm)
        with self._changed:
            heapq.heappush(self._due, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="trueup-rhythms", daemon=True)
                self._thread.start()
            elif self._due[0] is entry:
                self._changed.notify()

    def _loop(self) -> None:
        while True:
            rhythm = self._next()
            threading.Thread(target=self._beat, args=(rhythm,), name="trueup-rhythm", daemon=True).start()

    def _next(self) -> _Rhythm:
        """Waits for the first one that is due."""
        with self._changed:
            while True:
                while self._due and self._due[0][2].call is None:
                    heapq.heappop(self._due)
                if not self._due:
                    self._changed.wait()
                elif (left_s := self._due[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left_s)
                else:
                    return heapq.heappop(self._due)[2]

    def _beat(self, rhythm: _Rhythm) -> None:
        if rhythm.beat():
            self._add(rhythm)


_rhythms = _Rhythms()


def _forget() -> None:
    global _rhythms  # noqa: PLW0603  a fork has none of its parent's threads
    _rhythms = _Rhythms()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
