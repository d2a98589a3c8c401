"""Handovers in memory: gone when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic

from trueup.model import handover as rules
from trueup.model.handover import H


class MemoryHandovers(Generic[H]):
    """Places of one kind, of this process. new: a place that nobody was at."""

    def __init__(self, new: Callable[[str], H], now_us: Callable[[], int]) -> None:
        self._new, self._now_us = new, now_us
        self._places: dict[str, H] = {}
        self._lock = threading.Lock()

    def known(self, names: Sequence[str]) -> dict[str, H]:
        """How it stands with each of these places."""
        with self._lock:
            return {name: self._places[name] if name in self._places else self._new(name) for name in names}

    def claim(self, seen: H, take: Callable[[H, int], H]) -> H | None:
        """Takes a place that nobody changed since it was read; None where somebody did."""
        with self._lock:
            stored, now_us = self._places.get(seen.name), self._now_us()
            if not rules.claimable(stored, seen, now_us):
                return None
            taken = self._places[seen.name] = take(stored or seen, now_us)
            return taken

    def end(self, ended: H) -> bool:
        """Frees a place and stores what it has now; False where the fence is old."""
        with self._lock:
            stored = self._places.get(ended.name)
            if not rules.held(stored, ended):
                return stored == ended
            self._places[ended.name] = ended
            return True
