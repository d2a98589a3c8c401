"""The ledger in SQL: how rows are loaded, saved and found. The rules are in `trueup.model.ledger`."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import is_not, ne
from typing import Any, Final, TypeVar

from trueup.model.change import VERIFY_PRIORITY, Change, Outcome
from trueup.model.row import Row, Seen
from trueup.model.urgency import Waiting, lowest_share
from trueup.ports import Clock
from trueup.stores.base import DELIVERIES_KEPT_US, OFFER_BATCH, RowLedger, Transaction
from trueup.stores.gathering import Gathering
from trueup.stores.history import ENTRIES_KEPT, Note
from trueup.stores.sql.schema import ABSENT, COLUMNS, counted, insert_of, kept, row_of, update_of
from trueup.stores.sql.sqlite import SqliteFile

SCAN_BATCH: Final = 1_000
# Each entry of a history whose number is a multiple of this prunes its record.
PRUNE_EVERY: Final = 64
PRUNE_BATCH: Final = 5_000

_NAMES = ", ".join(COLUMNS)
# CROSS JOIN keeps the order: for each key asked, one look into the index on (pair, key).
_ASKED = "(SELECT value AS asked FROM json_each(?)) CROSS JOIN trueup_row"
_LOAD = f"SELECT {_NAMES}, id FROM {_ASKED} WHERE pair = ? AND key = asked"
# By whether the authority and the replica were looked at. Each record comes as one text of lines, which is parsed far
# faster than an array; keys and digests hold no line breaks, and the action comes last.
_UNLIKE = {
    (authority, replica): f"""
        SELECT asked FROM (SELECT value, substr(value, 1, instr(value, char(10)) - 1) AS asked FROM json_each(?))
        WHERE NOT EXISTS (
            SELECT 1 FROM trueup_row WHERE pair = ? AND key = asked
            {"AND done_at IS NOT NULL AND NOT unordered" if authority else ""} AND value = key || char(10)
            {"|| done_replica" if replica else ""} {"|| char(10)" if authority and replica else ""}
            {"|| done_digest || char(10) || done_action" if authority else ""})
    """
    for authority in (False, True)
    for replica in (False, True)
}
_LOAD_IDS = f"SELECT {_NAMES} FROM {_ASKED} WHERE id = asked"
_SCAN = f"SELECT {_NAMES} FROM trueup_row WHERE pair = ? AND key > ? ORDER BY key LIMIT ?"
_IDS = {
    "pending": "SELECT id FROM trueup_row WHERE pair = ? AND ready_at IS NOT NULL ORDER BY key",
    "parked": "SELECT id FROM trueup_row WHERE pair = ? AND state = 'parked' ORDER BY key",
}
_WAITING = """
    SELECT priority, ready_at, queued_at, pair, key FROM trueup_row
    WHERE pair = ? AND priority = ? AND ready_at <= ? ORDER BY ready_at, queued_at, key LIMIT ?
"""
_PRIORITIES = range(VERIFY_PRIORITY + 1)
# By priority, because the index of the queue has it between the pair and the time.
_DUE_PAIRS = f"""
    SELECT asked.value FROM json_each(?1) AS asked WHERE {
    " OR ".join(
        f"EXISTS (SELECT 1 FROM trueup_row WHERE pair = asked.value AND priority = {priority} AND ready_at <= ?2)"
        for priority in _PRIORITIES
    )
}
"""
_NEXT_DUE = "SELECT min(ready_at) FROM trueup_row WHERE pair = ? AND priority = ? AND ready_at IS NOT NULL"
_SLEEPERS = f"SELECT pair, key FROM {_ASKED} WHERE waits_for = asked AND waits_for IS NOT NULL"
_BUSY = """
    SELECT (SELECT count(*) FROM trueup_row WHERE pair = :pair AND ready_at IS NOT NULL),
           (SELECT count(*) FROM trueup_row WHERE pair = :pair AND state = 'parked'),
           (SELECT count(*) FROM trueup_row WHERE pair = :pair AND ready_at > :now AND lease_until > :now),
           (SELECT min(due_at) FROM trueup_row WHERE pair = :pair AND ready_at IS NOT NULL)
"""
# Every row is counted for it.
_COUNTS = f"{_BUSY}, (SELECT count(*) FROM trueup_row WHERE pair = :pair)"
_PRUNE = f"""
    DELETE FROM trueup_history WHERE record = :record AND id <= (
        SELECT id FROM trueup_history WHERE record = :record ORDER BY id DESC LIMIT 1 OFFSET {ENTRIES_KEPT})
"""
_HISTORY = """
    SELECT at, what, detail FROM trueup_history
    WHERE record = (SELECT id FROM trueup_row WHERE pair = ? AND key = ?) ORDER BY id DESC LIMIT ?
"""
_OLDEST = "SELECT id, at FROM trueup_history ORDER BY id LIMIT ?"

_T = TypeVar("_T")


class SqlLedger(RowLedger):
    """A ledger in a database.

    clock: the store's clock; by default this machine's, which all programs that share the file have in common.
    """

    def __init__(self, file: SqliteFile, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._file = file
        self._offer_together = Gathering(super().offer, OFFER_BATCH)

    def offer(self, changes: Sequence[Change], *, connection: Any = None) -> list[Outcome]:
        """Judges each change by the offer table, in list order; offers of several threads share a transaction."""
        if connection is None and changes:
            return self._offer_together(changes)
        return super().offer(changes, connection=connection)

    @contextmanager
    def _transaction(self, connection: Any = None) -> Iterator[_SqlTransaction]:
        with self._file.writing() if connection is None else self._file.joining(connection) as inside:
            # The time is taken under the lock: transactions of one store are in the order of their times.
            yield _SqlTransaction(inside, self.now_us())

    def _transact(self, work: Callable[[Transaction], _T], connection: Any = None) -> _T:
        with self._transaction(connection) as transaction:
            return work(transaction)

    def _version(self) -> int:
        return self._file.data_version()

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; absent keys have no row."""
        with self._file.reading() as connection:
            loaded = connection.execute(_LOAD, (json.dumps(list(dict.fromkeys(keys))), pair))
            return {values[1]: row_of(values) for values in loaded}

    def unlike(self, pair: str, seen: Sequence[Seen]) -> list[str]:
        """Keys of those that are not as the last finish or agreement left them, or have no row."""
        with self._file.reading() as connection:
            # Sorted, so that neighbours in the index are looked for one after the other.
            return [
                key
                for looked_at, told in _told(seen).items()
                for (key,) in connection.execute(_UNLIKE[looked_at], (json.dumps(sorted(told)), pair))
            ]

    def scan(self, pair: str, where: str = "all") -> Iterator[list[Row]]:
        """All rows of a pair in batches, in the order of their keys; where: `all`, `pending` or `parked`."""
        return self._scan_all(pair) if where == "all" else self._scan_where(pair, where)

    def _scan_all(self, pair: str) -> Iterator[list[Row]]:
        last = ""
        while True:
            with self._file.reading() as connection:
                batch = [row_of(values) for values in connection.execute(_SCAN, (pair, last, SCAN_BATCH))]
            if not batch:
                return
            yield batch
            last = batch[-1].key

    def _scan_where(self, pair: str, where: str) -> Iterator[list[Row]]:
        with self._file.reading() as connection:
            ids = [found for (found,) in connection.execute(_IDS[where], (pair,))]
        for start in range(0, len(ids), SCAN_BATCH):
            with self._file.reading() as connection:
                loaded = connection.execute(_LOAD_IDS, (json.dumps(ids[start : start + SCAN_BATCH]),))
                batch = [row for row in map(row_of, loaded) if row.state.value == where]
            if batch:
                yield batch

    def counts(self, pair: str) -> dict[str, int]:
        """Rows by state; `leased` are pending too; and `oldest_due_us` where any is pending."""
        with self._file.reading() as connection:
            return counted(*connection.execute(_COUNTS, {"pair": pair, "now": self.now_us()}).fetchone())

    def busy(self, pair: str) -> dict[str, int]:
        """The same without `idle`."""
        with self._file.reading() as connection:
            return counted(*connection.execute(_BUSY, {"pair": pair, "now": self.now_us()}).fetchone())

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline (else it is young)."""
        with self._file.reading() as connection:
            return _settled(connection, pair)

    def settle(self, pair: str) -> None:
        """Says that the pair has a complete baseline."""
        with self._file.writing() as connection:
            connection.execute(
                "INSERT INTO trueup_pair (pair, settled) VALUES (?, 1) ON CONFLICT (pair) DO UPDATE SET settled = 1",
                (pair,),
            )

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """(time, what, detail) of one record, oldest first."""
        with self._file.reading() as connection:
            newest = connection.execute(_HISTORY, (pair, key, min(limit, ENTRIES_KEPT))).fetchall()
        return newest[::-1]

    def prune(self, older_than_us: int) -> int:
        """Forgets histories before that time; answers how many entries. The records stay."""
        pruned = 0
        while True:
            # In short transactions, between which others write. Entries are numbered in the order of their times.
            with self._file.writing() as connection:
                oldest = connection.execute(_OLDEST, (PRUNE_BATCH,)).fetchall()
                ids = [number for number, at in oldest if at < older_than_us]
                connection.executemany("DELETE FROM trueup_history WHERE id = ?", [(number,) for number in ids])
            pruned += len(ids)
            if len(ids) < PRUNE_BATCH:
                return pruned

    def _due(self, pairs: Sequence[str]) -> set[str]:
        with self._file.reading() as connection:
            found = connection.execute(_DUE_PAIRS, (json.dumps(pairs), self.now_us()))
            return {pair for (pair,) in found}

    def next_due_us(self, pairs: Sequence[str]) -> int | None:
        """When the next record of these pairs is due, or None."""
        with self._file.reading() as connection:
            times = [
                connection.execute(_NEXT_DUE, (pair, priority)).fetchone()[0]
                for pair in pairs
                for priority in _PRIORITIES
            ]
        return min((at for at in times if at is not None), default=None)

    def close(self) -> None:
        """Gives back connections."""
        self._file.close()


class _SqlTransaction:
    """One writing transaction. Only what changed of a row is written, so that few values cross into SQLite."""

    def __init__(self, connection: sqlite3.Connection, now_us: int) -> None:
        self.now_us = now_us
        self._cursor = connection.cursor()
        self._cursor.row_factory = None
        self._ids: dict[tuple[str, str], int] = {}
        self._loaded: dict[tuple[str, str], tuple[Any, ...]] = {}

    def load(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        rows = {}
        for values in self._cursor.execute(_LOAD, (json.dumps(keys), pair)):
            key = values[1]
            self._ids[pair, key] = values[-1]
            self._loaded[pair, key] = values
            rows[key] = row_of(values)
        return rows

    def save(self, rows: Iterable[Row]) -> None:
        inserts: dict[tuple[bool, ...], list[tuple[Any, ...]]] = defaultdict(list)
        updates: dict[tuple[bool, ...], list[tuple[Any, ...]]] = defaultdict(list)
        fresh = 0
        for row in rows:
            place, values = (row.pair, row.key), kept(row)
            before = self._loaded.get(place)
            self._loaded[place] = values
            if before is None:
                fresh = 1 + (fresh or self._last("trueup_row"))
                self._ids[place] = fresh
                # By identity, which costs a third of equality: an equal value that is written too does no harm.
                changed = tuple(map(is_not, ABSENT, values))
                inserts[changed].append((*compress(values, changed), fresh))
            else:
                changed = tuple(map(ne, before, values))
                updates[changed].append((*compress(values, changed), self._ids[place]))
        for changed, parameters in inserts.items():
            self._cursor.executemany(insert_of(changed), parameters)
        for changed, parameters in updates.items():
            if any(changed):
                self._cursor.executemany(update_of(changed), parameters)

    def note(self, notes: Sequence[Note]) -> None:
        number, now_us, ids = self._last("trueup_history"), self.now_us, self._ids
        entries = []
        for pair, key, what, detail in notes:
            record = ids.get((pair, key))
            if record is not None:
                number += 1
                entries.append((number, record, now_us, what, detail))
        self._cursor.executemany("INSERT INTO trueup_history VALUES (?, ?, ?, ?, ?)", entries)
        for entry in entries:
            if entry[0] % PRUNE_EVERY == 0:
                self._cursor.execute(_PRUNE, {"record": entry[1]})

    def settled(self, pair: str) -> bool:
        return _settled(self._cursor, pair)

    def waiting(self, pairs: Sequence[str], limit: int) -> list[Waiting]:
        return [each for pair in pairs for each in self._waiting(pair, limit)]

    def _waiting(self, pair: str, limit: int) -> list[Waiting]:
        found: list[Waiting] = []
        for priority in _PRIORITIES:
            if len(found) < limit:
                found += self._of_priority(pair, priority, limit - len(found))
        for priority in reversed(_PRIORITIES):
            if lowest := self._of_priority(pair, priority, lowest_share(limit)):
                return found + lowest
        return found

    def _of_priority(self, pair: str, priority: int, limit: int) -> list[Waiting]:
        return [Waiting(*values) for values in self._cursor.execute(_WAITING, (pair, priority, self.now_us, limit))]

    def sleepers(self, waits_for: Sequence[str]) -> list[tuple[str, str]]:
        if not waits_for:
            return []
        return self._cursor.execute(_SLEEPERS, (json.dumps(waits_for),)).fetchall()

    def parked(self, pair: str) -> list[str]:
        found = self._cursor.execute(
            "SELECT key FROM trueup_row WHERE pair = ? AND state = 'parked' ORDER BY key", (pair,)
        )
        return [key for (key,) in found]

    def first(self, deliveries: Sequence[str]) -> list[bool]:
        self._cursor.execute("DELETE FROM trueup_delivery WHERE at <= ?", (self.now_us - DELIVERIES_KEPT_US,))
        remember = "INSERT INTO trueup_delivery VALUES (?, ?) ON CONFLICT (delivery) DO NOTHING"
        return [self._cursor.execute(remember, (each, self.now_us)).rowcount == 1 for each in deliveries]

    def _last(self, table: str) -> int:
        return int(self._cursor.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])


def _told(seen: Sequence[Seen]) -> dict[tuple[bool, bool], list[str]]:
    """Each record as one text, by whether its authority and its replica were looked at."""
    told: dict[tuple[bool, bool], list[str]] = defaultdict(list)
    for key, action, digest, replica in seen:
        if digest is None:
            told[False, replica is not None].append(f"{key}\n{replica or ''}")
        elif replica is None:
            told[True, False].append(f"{key}\n{digest}\n{action}")
        else:
            told[True, True].append(f"{key}\n{replica}\n{digest}\n{action}")
    return told


def _settled(connection: sqlite3.Connection | sqlite3.Cursor, pair: str) -> bool:
    found = connection.execute("SELECT settled FROM trueup_pair WHERE pair = ?", (pair,)).fetchone()
    return found is not None and bool(found[0])
