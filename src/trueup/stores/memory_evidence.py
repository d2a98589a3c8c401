"""Evidence in memory: the chain of this process, gone when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import islice

from trueup.model.evidence import Entry, Fact, Head, append
from trueup.ports import Clock


class MemoryEvidence:
    """The chain of this process."""

    def __init__(self, clock: Clock | None) -> None:
        self._evidence_clock = clock
        self._evidence_lock = threading.RLock()
        self._entries: list[Entry] = []
        self._facts: dict[tuple[str, str], Entry] = {}

    def put_on_record(self, fact: Fact) -> Entry:
        """Appends an entry, or answers the one that puts this very fact on record already."""
        with self._evidence_lock:
            known = self._facts.get((fact.kind, fact.about))
            if known is not None:
                return known
            now_us = time.time_ns() // 1_000 if self._evidence_clock is None else self._evidence_clock.now_us()
            entry = append(self.head(), fact, now_us)
            self._entries.append(entry)
            self._facts[fact.kind, fact.about] = entry
            return entry

    def entries(
        self, pairs: Sequence[str] | None = None, *, after: int = 0, limit: int | None = None, newest: bool = False
    ) -> list[Entry]:
        """Entries in order, behind the number `after`; newest: the last ones first."""
        with self._evidence_lock:
            found = self._entries[after:]
        wanted = (each for each in (found[::-1] if newest else found) if pairs is None or each.fact.pair in pairs)
        return list(islice(wanted, limit))

    def entry(self, number: int) -> Entry | None:
        """The entry of this number, or None."""
        with self._evidence_lock:
            return self._entries[number - 1] if 0 < number <= len(self._entries) else None

    def fact(self, kind: str, about: str) -> Entry | None:
        """The entry about this run or decision, or None."""
        with self._evidence_lock:
            return self._facts.get((kind, about))

    def head(self) -> Head:
        """The end of the chain."""
        with self._evidence_lock:
            return self._entries[-1].head if self._entries else Head()
