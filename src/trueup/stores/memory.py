"""State in memory: for tests, demonstrations and the reference that other stores are compared with."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any, TypeVar

from trueup.errors import StateError
from trueup.model.decision import MADE
from trueup.model.evidence import DECISION, RUN
from trueup.model.ledger import claimable
from trueup.model.letter import BYTES_KEPT, LETTERS_KEPT, DeadLetter
from trueup.model.presence import REMEMBERED_US, Presence
from trueup.model.row import Row, Seen, State, left_so
from trueup.model.run import OPEN
from trueup.model.urgency import Waiting
from trueup.ports import Clock
from trueup.stores.base import DELIVERIES_KEPT_US, RowLedger, Transaction
from trueup.stores.history import ENTRIES_KEPT, Note
from trueup.stores.memory_alerts import MemoryAlerts
from trueup.stores.memory_cases import MemoryCases
from trueup.stores.memory_runs import MemoryRuns
from trueup.stores.memory_schedules import MemorySchedules
from trueup.stores.memory_seals import MemorySeals
from trueup.stores.memory_tallies import MemoryTallies

_T = TypeVar("_T")


class MemoryLedger(RowLedger):
    """A ledger of this process, gone when it ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._lock = threading.RLock()
        self._rows: dict[str, dict[str, Row]] = {}
        self._busy: dict[str, set[str]] = {}
        self._settled: set[str] = set()
        self._history: dict[tuple[str, str], deque[tuple[int, str, str]]] = {}
        self._changes = 0
        self._deliveries: dict[str, int] = {}

    @contextmanager
    def _transaction(self, connection: Any = None) -> Iterator[_MemoryTransaction]:
        if connection is not None:
            raise StateError(
                "connection= was given, but the state is kept in memory and can't join a transaction.",
                hint="Leave out connection=, or keep the state in the same database.",
            )
        with self._lock:
            transaction = _MemoryTransaction(self, self.now_us())
            yield transaction
            transaction.commit()

    def _transact(self, work: Callable[[Transaction], _T], connection: Any = None) -> _T:
        with self._transaction(connection) as transaction:
            return work(transaction)

    def _version(self) -> int:
        return self._changes

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; absent keys have no row."""
        with self._lock:
            of_pair = self._rows.get(pair, {})
            return {key: of_pair[key].copy() for key in keys if key in of_pair}

    def unlike(self, pair: str, seen: Sequence[Seen]) -> list[str]:
        """Keys of those that are not as the last finish or agreement left them, or have no row."""
        with self._lock:
            of_pair = self._rows.get(pair, {})
            return [each[0] for each in seen if not left_so(each, of_pair.get(each[0]))]

    def scan(self, pair: str, where: str = "all") -> Iterator[list[Row]]:
        """All rows of a pair in batches; where: `all`, `pending` or `parked`."""
        with self._lock:
            found = [
                row.copy() for _, row in sorted(self._rows.get(pair, {}).items()) if where in ("all", row.state.value)
            ]
        for start in range(0, len(found), 1_000):
            yield found[start : start + 1_000]

    def counts(self, pair: str) -> dict[str, int]:
        """Rows by state; `leased` are pending too; and `oldest_due_us` where any is pending."""
        with self._lock:
            idle = len(self._rows.get(pair, {})) - len(self._busy.get(pair, ()))
            return {"idle": idle, **self.busy(pair)}

    def busy(self, pair: str) -> dict[str, int]:
        """The same without `idle`."""
        with self._lock:
            rows, now_us = self._rows.get(pair, {}), self.now_us()
            busy = [rows[key] for key in self._busy.get(pair, ())]
            pending = [row for row in busy if row.state is State.PENDING]
            counted = {
                "pending": len(pending),
                "parked": len(busy) - len(pending),
                "leased": sum(row.leased(now_us) for row in pending),
            }
        return counted | ({"oldest_due_us": min(row.due_at for row in pending)} if pending else {})

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline (else it is young)."""
        return pair in self._settled

    def settle(self, pair: str) -> None:
        """Says that the pair has a complete baseline."""
        with self._lock:
            self._settled.add(pair)

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """(time, what, detail) of one record, oldest first."""
        with self._lock:
            return list(self._history.get((pair, key), ()))[-limit:]

    def prune(self, older_than_us: int) -> int:
        """Forgets histories before that time; answers how many entries."""
        with self._lock:
            pruned = 0
            for entries in self._history.values():
                while entries and entries[0][0] < older_than_us:
                    entries.popleft()
                    pruned += 1
            return pruned

    def _due(self, pairs: Sequence[str]) -> set[str]:
        with self._lock:
            now_us = self.now_us()
            return {
                pair
                for pair in pairs
                if any(claimable(self._rows[pair][key], now_us) for key in self._busy.get(pair, ()))
            }

    def next_due_us(self, pairs: Sequence[str]) -> int | None:
        """When the next record of these pairs is due, or None."""
        with self._lock:
            rows = (self._rows[pair][key] for pair in pairs for key in self._busy.get(pair, ()))
            return min((row.ready_at for row in rows if row.state is State.PENDING), default=None)

    def close(self) -> None:
        """Nothing to give back."""


class _MemoryTransaction:
    """Works on the ledger's own rows, which no rule changes in place; keeps what is new until the commit."""

    def __init__(self, ledger: MemoryLedger, now_us: int) -> None:
        self._ledger = ledger
        self.now_us = now_us
        self._saved: list[Row] = []
        self._notes: list[Note] = []
        self._delivered: dict[str, int] = {}

    def load(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        of_pair = self._ledger._rows.get(pair, {})
        return {key: of_pair[key] for key in keys if key in of_pair}

    def save(self, rows: Iterable[Row]) -> None:
        self._saved += rows

    def note(self, notes: Sequence[Note]) -> None:
        self._notes += notes

    def settled(self, pair: str) -> bool:
        return self._ledger.settled(pair)

    def waiting(self, pairs: Sequence[str], limit: int) -> list[Waiting]:
        rows = (row for pair in pairs for row in self._busy(pair) if claimable(row, self.now_us))
        return [Waiting(row.priority, row.ready_at, row.queued_at, row.pair, row.key) for row in rows]

    def sleepers(self, waits_for: Sequence[str]) -> list[tuple[str, str]]:
        wanted = set(waits_for)
        return [
            (row.pair, row.key) for pair in self._ledger._busy for row in self._busy(pair) if row.waits_for in wanted
        ]

    def parked(self, pair: str) -> list[str]:
        return sorted(row.key for row in self._busy(pair) if row.state is State.PARKED)

    def first(self, deliveries: Sequence[str]) -> list[bool]:
        known, found = self._ledger._deliveries, []
        # The oldest stand first.
        for each in [*takewhile(lambda each: known[each] <= self.now_us - DELIVERIES_KEPT_US, known)]:
            del known[each]
        for each in deliveries:
            found.append(each not in known and each not in self._delivered)
            if found[-1]:
                self._delivered[each] = self.now_us
        return found

    def _busy(self, pair: str) -> list[Row]:
        ledger = self._ledger
        return [ledger._rows[pair][key] for key in ledger._busy.get(pair, ())]

    def commit(self) -> None:
        ledger = self._ledger
        for row in self._saved:
            ledger._rows.setdefault(row.pair, {})[row.key] = row
            busy = ledger._busy.setdefault(row.pair, set())
            (busy.discard if row.state is State.IDLE else busy.add)(row.key)
        for pair, key, what, detail in self._notes:
            if key in ledger._rows.get(pair, ()):
                kept = ledger._history.setdefault((pair, key), deque(maxlen=ENTRIES_KEPT))
                kept.append((self.now_us, what, detail))
        ledger._deliveries |= self._delivered
        ledger._changes += bool(self._saved)


class MemoryLetters:
    """Dead letters of this process, gone when it ends."""

    def __init__(self) -> None:
        self._letters: list[DeadLetter] = []
        self._kept_ever = 0
        self._letters_lock = threading.Lock()

    def keep_letter(self, letter: DeadLetter) -> int:
        """Stores a letter; answers how many old ones of its source had to go for it."""
        with self._letters_lock:
            self._kept_ever += 1
            self._letters.append(replace(letter, number=self._kept_ever))
            newest = [each for each in reversed(self._letters) if each.source == letter.source]
            bytes_kept = list(accumulate(len(each.body) for each in newest))
            gone = {
                each.number
                for place, each in enumerate(newest)
                if place >= LETTERS_KEPT or (bytes_kept[place] > BYTES_KEPT and place > 0)
            }
            self._letters = [each for each in self._letters if each.number not in gone]
            return len(gone)

    def letters(self, source: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """The newest first, of one source or of all."""
        with self._letters_lock:
            return [each for each in reversed(self._letters) if source in (None, each.source)][:limit]

    def count_letters(self, source: str | None = None) -> int:
        """How many are kept."""
        with self._letters_lock:
            return sum(source in (None, each.source) for each in self._letters)

    def letter(self, number: int) -> DeadLetter | None:
        """The letter with this number, or None."""
        with self._letters_lock:
            return next((each for each in self._letters if each.number == number), None)

    def refuse_letter(self, number: int, status: int, reason: str) -> None:
        """Says why a letter was refused again."""
        with self._letters_lock:
            self._letters = [
                replace(each, status=status, reason=reason) if each.number == number else each for each in self._letters
            ]

    def drop_letters(self, numbers: Sequence[int]) -> int:
        """Forgets these; answers how many there were."""
        with self._letters_lock:
            before, dropped = len(self._letters), set(numbers)
            self._letters = [each for each in self._letters if each.number not in dropped]
            return before - len(self._letters)

    def forget_letters(self, older_than_us: int) -> int:
        """Forgets those that were received before that time; answers how many there were."""
        with self._letters_lock:
            before = len(self._letters)
            self._letters = [each for each in self._letters if each.received_us >= older_than_us]
            return before - len(self._letters)


class MemoryArchive(
    MemoryRuns, MemorySchedules, MemorySeals, MemoryCases, MemoryLetters, MemoryAlerts, MemoryTallies
):  # fmt: skip
    """Runs, schedules, seals, cases, evidence, letters, workers and alerts of this process, gone when it ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        MemoryRuns.__init__(self, clock)
        MemorySchedules.__init__(self, clock)
        MemorySeals.__init__(self)
        MemoryCases.__init__(self, clock)
        MemoryLetters.__init__(self)
        MemoryAlerts.__init__(self, clock)
        MemoryTallies.__init__(self)
        self._presences: dict[str, Presence] = {}

    def beat(self, presence: Presence) -> None:
        """Says that this worker lives now; forgets those that have long been silent."""
        with self._lock:
            now_us = self._now_us()
            known = self._presences.get(presence.name)
            started_us = now_us if known is None else known.started_us
            self._presences[presence.name] = replace(presence, started_us=started_us, beat_us=now_us)
            silent = [name for name, each in self._presences.items() if each.beat_us < now_us - REMEMBERED_US]
            for name in silent:
                del self._presences[name]

    def leave(self, name: str) -> None:
        """Says that this worker is gone."""
        with self._lock:
            self._presences.pop(name, None)

    def presences(self) -> list[Presence]:
        """Everybody who did not take their leave, by start and name."""
        with self._lock:
            return sorted(self._presences.values(), key=lambda each: (each.started_us, each.name))

    def unrecorded(self) -> list[tuple[str, str, str]]:
        """(kind, pair, about) of runs that ended and decisions that were made without an entry."""
        with self._lock, self._case_lock:
            runs = [(RUN, run.pair, str(run.number)) for run in self._runs.values() if run.ended != OPEN]
            decisions = [
                (DECISION, self._cases[each.case].pair, each.id)
                for several in self._decisions.values()
                for each in several.values()
                if each.state in MADE
            ]
        cut = self._cut_facts
        told = (each for each in (*runs, *decisions) if (each[0], each[2]) not in cut)
        return [each for each in told if self.fact(each[0], each[2]) is None]

    def close(self) -> None:
        """Nothing to give back."""
