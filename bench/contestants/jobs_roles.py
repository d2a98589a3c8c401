"""What a contestant of jobs.py can be told: ENGINE.py ROLE URL COUNT SECONDS [VARIANT]. Needs no libraries.

    prepare   lays out what the engine needs in an empty store
    one       enqueues up to COUNT jobs, each durable before the next
    many      enqueues COUNT jobs in batches of 1,000, or by whatever the engine has for many
    low       the same, less urgent than events
    work      one worker process, until COUNT jobs were entered
    latency   the same for SECONDS, and measures each event from when it was due until its handler is entered
    events    enqueues urgent jobs, RATE (given as COUNT) a second, once it reads a line

Each role prints one line of JSON at its end and stops after SECONDS; `latency` and `events` also print a line once
they are ready. Workers are not asked to end: engines differ in how they do, and nothing is measured of it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, NoReturn

BATCH: Final = 1_000
# Versions below this are no events; an event's version is the moment at which it was due.
EVENT: Final = 1_000_000
# entered(version of the first, how many): a handler was called for these jobs.
Entered = Callable[[int, int], None]


def record(number: int, version: int) -> dict[str, Any]:
    """What every job carries, whatever the engine."""
    return {"id": number, "status": "open", "amount": "12.50", "v": version}


class Engine(ABC):
    """A job engine, as far as this benchmark needs it."""

    def __init__(self, url: str, variant: str) -> None:
        self.url, self.variant = url, variant

    @abstractmethod
    def prepare(self) -> None:
        """Lays out what the engine needs in an empty store."""

    @abstractmethod
    def produce(self) -> None:
        """Connects, to enqueue."""

    @abstractmethod
    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        """Enqueues one job; durable when this returns."""

    @abstractmethod
    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        """Enqueues these; durable when this returns. low: less urgent than events."""

    @abstractmethod
    def work(self, entered: Entered) -> None:
        """Works what is queued, for ever."""

    def counters(self) -> dict[str, int]:
        """What the engine counted while it worked."""
        return {}


def main(engine: Callable[[str, str], Engine]) -> NoReturn:
    """Plays the role that the command line names."""
    role, url, count, seconds, *variant = sys.argv[1:]
    playing = engine(url, variant[0] if variant else "")
    match role:
        case "prepare":
            playing.prepare()
            _answer({})
        case "one" | "many" | "low":
            _answer(_enqueue(playing, role, int(count), float(seconds)))
        case "work" | "latency":
            watch = Watch(int(count), float(seconds), events=role == "latency", counters=playing.counters)
            threading.Thread(target=watch.end, daemon=True).start()
            playing.work(watch.entered)
        case "events":
            _answer(_events(playing, int(count), float(seconds)))
    raise SystemExit(f"there is no role {role}")


def _answer(figures: dict[str, Any]) -> NoReturn:
    _say(figures)
    os._exit(0)


def _say(figures: dict[str, Any]) -> None:
    # Celery takes sys.stdout for its log.
    print(json.dumps(figures), file=sys.__stdout__, flush=True)


def _enqueue(engine: Engine, role: str, count: int, seconds: float) -> dict[str, Any]:
    engine.produce()
    size = 1 if role == "one" else BATCH
    # Connections and statements are made by the first; numbers of these are not used again.
    engine.one(record(-1, 1), urgent=False)
    done, began, cpu_s = 0, time.perf_counter(), _cpu_s()
    while done < count and time.perf_counter() < began + seconds:
        numbers = range(done, min(done + size, count))
        if role == "one":
            engine.one(record(1_000_000_000 + done, 2), urgent=False)
        else:
            engine.many([record(number, 2) for number in numbers], low=role == "low")
        done += len(numbers)
    seconds_taken = time.perf_counter() - began
    return {"count": done, "seconds": seconds_taken, "cpu_us_each": (_cpu_s() - cpu_s) * 1e6 / max(1, done)}


def _events(engine: Engine, rate: int, seconds: float) -> dict[str, Any]:
    engine.produce()
    _say({})
    sys.stdin.readline()
    began, calls_ms = time.monotonic_ns(), []
    moments = [began + number * 1_000_000_000 // rate for number in range(int(rate * seconds))]
    for number, due in enumerate(moments):
        if (wait_ns := due - time.monotonic_ns()) > 0:
            time.sleep(wait_ns / 1e9)
        called = time.monotonic_ns()
        engine.one(record(2_000_000_000 + number, due), urgent=True)
        calls_ms.append((time.monotonic_ns() - called) / 1e6)
    return {"due": moments, "calls_ms": calls_ms}


class Watch:
    """Counts jobs and measures events, in the worker's process; says so once, and ends the process.

    count: jobs that are no events. The first call of a handler starts the clock, so that starting is not measured.
    """

    def __init__(
        self, count: int, seconds: float, *, events: bool, counters: Callable[[], dict[str, int]] = dict
    ) -> None:
        self._count, self._seconds, self._events, self._counters = count, seconds, events, counters
        self._lock = threading.Lock()
        self._began, self._last, self._first, self._done = 0, 0, 0, 0
        self._cpu_s = 0.0
        # (moment it was due, ms until its handler was entered)
        self._entered: list[tuple[int, float]] = []
        self._started, self._enough = threading.Event(), threading.Event()

    def entered(self, version: int, jobs: int = 1) -> None:
        """A handler was called for so many jobs."""
        now = time.monotonic_ns()
        if version > EVENT:
            self._entered.append((version, (now - version) / 1e6))
            return
        with self._lock:
            if not self._began:
                self._began, self._first, self._cpu_s = now, jobs, _cpu_s()
                self._started.set()
            if self._done < self._count:
                self._done, self._last = self._done + jobs, now
        if self._done >= self._count:
            self._enough.set()

    def end(self) -> NoReturn:
        """Waits until it is over, and says what was measured."""
        self._started.wait()
        if self._events:
            _say({})
            time.sleep(self._seconds)
        else:
            self._enough.wait(self._seconds)
        with self._lock:
            cpu_s, jobs = _cpu_s() - self._cpu_s, self._done - self._first
            seconds = (self._last - self._began) / 1e9
        figures = {"count": jobs, "seconds": seconds, "cpu_us_each": cpu_s * 1e6 / max(1, jobs), **self._counters()}
        _answer({**figures, "empty_at": self._last if self._enough.is_set() else None, "events": self._entered})


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
