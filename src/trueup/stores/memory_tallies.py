"""Counts in memory: gone when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from trueup.model.metric import Count


class MemoryTallies:
    """Counts of this process."""

    def __init__(self) -> None:
        self._tallies: dict[Count, float] = {}
        self._tallies_lock = threading.Lock()

    def tally(self, added: Mapping[Count, float]) -> None:
        """Adds to each of these counts."""
        with self._tallies_lock:
            for count, more in added.items():
                self._tallies[count] = self._tallies.get(count, 0.0) + more

    def tallies(self) -> dict[Count, float]:
        """Every count that was ever added to."""
        with self._tallies_lock:
            return dict(self._tallies)
