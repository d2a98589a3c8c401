"""Drift over time in memory, gone when the process ends."""

from __future__ import annotations

import threading

from trueup.model.trend import Bucket, RunDrift, Streak, added


class MemoryTrends:
    """What the runs of this process found."""

    def __init__(self) -> None:
        self._trends_lock = threading.Lock()
        self._buckets: dict[str, list[Bucket]] = {}
        self._streaks: dict[str, list[Streak]] = {}

    def trend(self, pair: str) -> list[Bucket]:
        """What the runs of the pair found, in order of time, cause and field."""
        with self._trends_lock:
            return list(self._buckets.get(pair, ()))

    def streaks(self, pair: str) -> list[Streak]:
        """What drifts run after run, by cause and field."""
        with self._trends_lock:
            return list(self._streaks.get(pair, ()))

    def _add_drift(self, drift: RunDrift) -> None:
        with self._trends_lock:
            self._buckets[drift.pair] = added(self._buckets.get(drift.pair, ()), drift)
            self._streaks[drift.pair] = sorted(drift.streaks, key=lambda each: (each.cause, each.field))
