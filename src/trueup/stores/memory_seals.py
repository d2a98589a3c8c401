"""Seals in memory, gone when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from trueup.model.window import Seal


class MemorySeals:
    """Seals of this process."""

    def __init__(self) -> None:
        self._seals: dict[tuple[str, int, int], Seal] = {}
        self._seals_lock = threading.Lock()

    def seals(self, pair: str) -> list[Seal]:
        """All seals of the pair, the earliest window first."""
        with self._seals_lock:
            return [seal for _, seal in sorted(self._seals.items(), key=lambda item: item[0]) if seal.pair == pair]

    def seal(self, seals: Sequence[Seal]) -> None:
        """Stores seals; one of the same window replaces the former."""
        with self._seals_lock:
            self._seals.update({_place(seal): seal for seal in seals})

    def break_seals(self, seals: Sequence[Seal]) -> int:
        """Forgets the seals of these windows; answers how many there were."""
        with self._seals_lock:
            return sum(self._seals.pop(_place(seal), None) is not None for seal in seals)


def _place(seal: Seal) -> tuple[str, int, int]:
    return seal.pair, seal.from_us, seal.to_us
