"""Presence: a process that works, as it tells the store now and then, so that others know that it lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BEAT_S: Final = 5.0
MISSED_MAX: Final = 3
SILENT_US: Final = round(BEAT_S * MISSED_MAX * 1_000_000)
# How long one that fell silent is remembered, so that people see when it died.
REMEMBERED_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Presence:
    """One worker.

    name: unique among the store's workers, and the owner of its leases. pairs: those that it works. stays: it works
    until it is stopped; False for a run, which ends with its own jobs. ended: jobs that came to an end so far.
    started_us, beat_us: its first and its last word, by the store's clock, which the store sets.
    """

    name: str
    host: str
    pid: int
    threads: int
    pairs: tuple[str, ...]
    stays: bool
    ended: int = 0
    started_us: int = 0
    beat_us: int = 0

    def alive(self, now_us: int) -> bool:
        """Whether it has not missed more than three beats. now_us: by the store's clock."""
        return now_us - self.beat_us <= SILENT_US
