"""Counting: what this process did is added up here, and handed to the state store every few seconds.

Counts are kept in the store because a project is many processes: workers that come and go, a run that cron starts, a
web application that offers. None of them has to be found and asked, and none takes its counts along when it ends.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from trueup.engine.journal import run_ended
from trueup.engine.report import Report
from trueup.engine.run import Reconciliation
from trueup.errors import RunStopped, RunUnderWay, TrueupError
from trueup.model import metric as m
from trueup.model.change import Change, Origin, Outcome
from trueup.model.metric import Count
from trueup.model.row import Finish
from trueup.ports import Clock, Observer, Tallies

FLUSH_S: Final = 5.0
_BOUNDS: Final = (*map(str, m.BUCKETS), m.BEYOND)


def observed(observer: Observer, run: Reconciliation) -> Report:
    """Performs a run, and tells how it ended. Raises what it raises."""
    outcome, began_us = "failed", run.clock.elapsed_us()
    try:
        report = run.perform()
        outcome = "done"
    except RunUnderWay:
        outcome = "refused"
        raise
    except RunStopped:
        outcome = "stopped"
        raise
    finally:
        run_ended(run.report, outcome, run.clock.elapsed_us() - began_us)
        observer.ran(run.pair.name, run.report.what, outcome, run.report.seconds)
    return report


class Tally:
    """An observer that adds up. store: asked for when there is something to hand over.

    A process that is killed loses what it did not hand over yet.
    """

    def __init__(self, store: Callable[[], Tallies], clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._added: dict[Count, float] = {}
        self._stop: Callable[[], None] | None = None

    def offered(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        """Counts offers by outcome."""
        found = Counter(zip([change.pair for change in changes], outcomes, strict=True))
        self._add([(m.OFFERS.count(pair, outcome.value), number) for (pair, outcome), number in found.items()])

    def finished(self, finishes: Sequence[Finish], accepted: Sequence[bool], now_us: int) -> None:
        """Counts jobs by how they ended, and how long events took to be done."""
        ends: Counter[tuple[str, str]] = Counter()
        buckets: Counter[tuple[str, int]] = Counter()
        waited_us: Counter[str] = Counter()
        for ended, held in zip(finishes, accepted, strict=True):
            row = ended.claim.row
            ends[row.pair, ended.result if held else "refused"] += 1
            if held and ended.result == "done" and row.wish_origin == Origin.EVENT:
                took_us = max(0, now_us - row.queued_at)
                buckets[row.pair, bisect_left(m.BUCKETS, took_us / 1e6)] += 1
                waited_us[row.pair] += took_us
        self._add([
            *((m.JOBS.count(*labels), number) for labels, number in ends.items()),
            *((m.LATENCY.count(pair, _BOUNDS[at]), number) for (pair, at), number in buckets.items()),
            *((m.LATENCY.count(pair, m.TOTAL), total / 1e6) for pair, total in waited_us.items()),
        ])  # fmt: skip

    def ran(self, pair: str, what: str, outcome: str, seconds: Mapping[str, float]) -> None:
        """Counts runs, and what their phases took."""
        added = [(m.RUNS.count(pair, m.WINDOW if what.startswith(m.WINDOW) else what, outcome), 1.0)]
        for phase, took_s in seconds.items():
            added += [(m.PHASES.count(pair, phase, m.NUMBER), 1.0), (m.PHASES.count(pair, phase, m.TOTAL), took_s)]
        self._add(added)

    def received(self, source: str, status: int) -> None:
        """Counts deliveries."""
        self._add([(m.REQUESTS.count(source, str(status)), 1.0)])

    def flush(self) -> None:
        """Hands over what was added up; where the store is away, that is tried again."""
        with self._lock:
            added, self._added = self._added, {}
        if not added:
            return
        try:
            self._store().tally(added)
        except TrueupError:
            self._keep(added.items())
            raise

    def close(self) -> None:
        """Hands over what is left; raises nothing."""
        with self._lock:
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        with suppress(TrueupError):
            self.flush()

    def _add(self, added: Collection[tuple[Count, float]]) -> None:
        if not added:
            return
        self._keep(added)
        if self._stop is None:
            with self._lock:
                if self._stop is None:
                    self._stop = self._clock.every(FLUSH_S, self._beat)

    def _keep(self, added: Iterable[tuple[Count, float]]) -> None:
        with self._lock:
            kept = self._added
            for count, more in added:
                kept[count] = kept.get(count, 0.0) + more

    def _beat(self) -> bool:
        with self._lock:
            if not self._added:  # nothing happens: the next count begins a new rhythm
                self._stop = None
                return False
        with suppress(TrueupError):  # the store is away: whoever needs it says so
            self.flush()
        return True
