"""Evidence in memory: the chain of this process, and where its anchors were given; gone when it ends."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from itertools import islice

from trueup.model.anchor import Anchored
from trueup.model.evidence import CUT, Entry, Fact, Head, append, cut_fact
from trueup.ports import Clock
from trueup.stores.memory_handovers import MemoryHandovers


class MemoryEvidence:
    """The chain of this process."""

    def __init__(self, clock: Clock | None) -> None:
        self._evidence_clock = clock
        self._evidence_lock = threading.RLock()
        self._entries: list[Entry] = []
        self._facts: dict[tuple[str, str], Entry] = {}
        self._cut_facts: set[tuple[str, str]] = set()
        self.places = MemoryHandovers(Anchored, self._evidence_now_us)
        self._redaction_key = secrets.token_hex(32)

    def put_on_record(self, fact: Fact) -> Entry:
        """Appends an entry, or answers the one that puts this very fact on record already."""
        with self._evidence_lock:
            known = self._facts.get((fact.kind, fact.about))
            if known is not None:
                return known
            entry = append(self.head(), fact, self._evidence_now_us())
            self._entries.append(entry)
            self._facts[fact.kind, fact.about] = entry
            return entry

    def entries(
        self, pairs: Sequence[str] | None = None, *, after: int = 0, limit: int | None = None, newest: bool = False
    ) -> list[Entry]:
        """Entries in order, behind the number `after`; newest: the last ones first."""
        with self._evidence_lock:
            found = self._entries[max(0, after - self._gone) :]
        wanted = (each for each in (found[::-1] if newest else found) if pairs is None or each.fact.pair in pairs)
        return list(islice(wanted, limit))

    def entry(self, number: int) -> Entry | None:
        """The entry of this number, or None."""
        with self._evidence_lock:
            at = number - self._gone - 1
            return self._entries[at] if 0 <= at < len(self._entries) else None

    def fact(self, kind: str, about: str) -> Entry | None:
        """The entry about this run or decision, or None."""
        with self._evidence_lock:
            return self._facts.get((kind, about))

    def head(self) -> Head:
        """The end of the chain."""
        with self._evidence_lock:
            return self._entries[-1].head if self._entries else Head()

    def cut_evidence(self, before_us: int) -> Entry | None:
        """Removes the entries up to the first of that time or later; answers the one that stands for them."""
        with self._evidence_lock:
            kept = next((at for at, each in enumerate(self._entries) if each.at_us >= before_us), len(self._entries))
            going = self._entries[:kept]
            if not going:
                return None
            former = next((each for each in reversed(self._entries) if each.fact.kind == CUT), None)
            cut = [(each.fact.kind, each.at_us) for each in going]
            entry = self.put_on_record(cut_fact(former, cut, going[-1].head, before_us))
            del self._entries[:kept]
            for each in going:
                del self._facts[each.fact.kind, each.fact.about]
                self._cut_facts.add((each.fact.kind, each.fact.about))
            return entry

    def redaction_key(self) -> str:
        """64 hex digits."""
        return self._redaction_key

    @property
    def _gone(self) -> int:
        """How many entries were cut."""
        return self._entries[0].number - 1 if self._entries else 0

    def _evidence_now_us(self) -> int:
        return time.time_ns() // 1_000 if self._evidence_clock is None else self._evidence_clock.now_us()
