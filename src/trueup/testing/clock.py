"""A clock that tests move by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

START_US: Final = 1_800_000_000_000_000


class ManualClock:
    """Stands still until it is moved; sleeping moves it."""

    def __init__(self, now_us: int = START_US) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""
        return self._now_us

    def elapsed_us(self) -> int:
        """Microseconds since some moment."""
        return self._now_us

    def advance(self, seconds: float) -> None:
        """Moves the clock."""
        self._now_us += round(seconds * 1_000_000)

    def sleep(self, seconds: float) -> None:
        """Moves the clock by what would have been waited."""
        self.advance(seconds)

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Never calls: nothing happens at a time that the test does not say."""
        return lambda: None
