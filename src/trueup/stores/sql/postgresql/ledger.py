"""The ledger on PostgreSQL: how rows are loaded, saved and found. The rules are in `trueup.model.ledger`."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from operator import is_not, ne
from typing import Any, Final, TypeVar

from trueup.model.change import VERIFY_PRIORITY, Change, Outcome
from trueup.model.row import Row, Seen, State
from trueup.model.urgency import Waiting, most_urgent
from trueup.ports import Clock
from trueup.stores.base import DELIVERIES_KEPT_US, OFFER_BATCH, RowLedger, Transaction, batches_of
from trueup.stores.gathering import Gathering
from trueup.stores.history import ENTRIES_KEPT, Note
from trueup.stores.sql.postgresql.database import CLOCK, Database, Overtaken, Session
from trueup.stores.sql.postgresql.joining import Joining
from trueup.stores.sql.postgresql.listening import Listener, channel_of
from trueup.stores.sql.postgresql.statements import (
    PRUNE_BATCH,
    Statements,
    arrays_of,
    insert_of,
    numbers,
    texts,
    update_of,
)
from trueup.stores.sql.schema import ABSENT, counted, kept, row_of

SCAN_BATCH: Final = 1_000
NUMBERS_BLOCK: Final = 1_000
# One in so many entries of a history prunes its record.
PRUNE_EVERY: Final = 64
_FORGET_EVERY_US: Final = 60_000_000
_OFFERED_AT_ONCE: Final = 2

_T = TypeVar("_T")


class PostgresqlLedger(RowLedger):
    """A ledger in one schema of a PostgreSQL database, for processes on any number of hosts.

    clock: the store's clock, for tests; by default the database's, which all hosts have in common.
    """

    # Others call; the look at an idle store is only there in case that a call got lost.
    _poll_s = 1.0

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._database = database
        self._statements = Statements(database.address.quoted_schema)
        self._numbers = Numbers()
        self._changes = 0
        self._channel = channel_of(database.address.schema)
        self._listener = Listener(database.connect, self._channel, self._wake)
        self._joining = Joining(database)
        self._offer_together = Gathering(self._offer_many, OFFER_BATCH)

    def offer(self, changes: Sequence[Change], *, connection: Any = None) -> list[Outcome]:
        """Judges each change by the offer table, in list order; offers of several threads share a transaction."""
        if connection is None and changes:
            return self._offer_together(changes)
        return super().offer(changes, connection=connection)

    def _offer_many(self, changes: Sequence[Change]) -> list[Outcome]:
        """Offers; of many, one batch is prepared here while the server works on the one before.

        Not where two of them are about one record, or came with a delivery that may be there twice: these are judged in
        their order.
        """
        batches = list(batches_of(changes, OFFER_BATCH))
        apart = len({(each.pair, each.key) for each in changes}) == len(changes)
        if len(batches) == 1 or not apart or any(each.delivery for each in changes):
            return super().offer(changes)
        pool = ThreadPoolExecutor(_OFFERED_AT_ONCE, thread_name_prefix="trueup-offer")
        try:
            return [outcome for judged in pool.map(super().offer, batches) for outcome in judged]
        finally:
            pool.shutdown(cancel_futures=True)

    def _transact(self, work: Callable[[Transaction], _T], connection: Any = None) -> _T:
        # Every operation may be done twice, which is why a connection that breaks during the commit is no error.
        # An offer finds itself wanted already; an attempt and a renewal find what they would write; a claim whose
        # answer was lost comes back when its lease ends; a finish is refused, so the record is read again.
        if connection is None:
            return self._database.run(lambda session: self._worked(work, session, self._listener.token))
        # Its caller commits later, and nobody wakes the workers of this process then: so it calls them too.
        return self._joining.run(lambda session: self._worked(work, session, ""), connection)

    def _worked(self, work: Callable[[Transaction], _T], session: Session, token: str) -> _T:
        transaction = _PostgresqlTransaction(session, self._statements, self._numbers, self._clock)
        answer = work(transaction)
        transaction.complete(self._channel, token)
        return answer

    def _version(self) -> int:
        self._listener.start()
        return self._changes

    def _wake(self) -> None:
        with self._offered:
            self._changes += 1
            self._offered.notify_all()

    def now_us(self) -> int:
        """The store's clock."""
        if self._clock is not None:
            return self._clock.now_us()
        return self._database.read(lambda session: self._database.now_us(session, None))

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; absent keys have no row."""
        return {row.key: row for row in self._rows(self._statements.rows, (pair, texts(list(dict.fromkeys(keys)))))}

    def unlike(self, pair: str, seen: Sequence[Seen]) -> list[str]:
        """Keys of those that are not as the last finish or agreement left them, or have no row."""
        columns = map(texts, zip(*seen, strict=True))
        return [key for (key,) in self._all(self._statements.unlike, (*columns, pair))] if seen else []

    def scan(self, pair: str, where: str = "all") -> Iterator[list[Row]]:
        """All rows of a pair in batches, in the order of their keys; where: `all`, `pending` or `parked`."""
        return self._scan_pending(pair) if where == "pending" else self._scan(pair, self._statements.scan[where])

    def _scan(self, pair: str, statement: str) -> Iterator[list[Row]]:
        last = ""
        while batch := self._rows(statement, (pair, last, SCAN_BATCH)):
            yield batch
            last = batch[-1].key

    def _scan_pending(self, pair: str) -> Iterator[list[Row]]:
        keys = [key for (key,) in self._all(self._statements.pending_keys, (pair,))]
        for start in range(0, len(keys), SCAN_BATCH):
            found = self.rows(pair, keys[start : start + SCAN_BATCH])
            if batch := [found[key] for key in sorted(found) if found[key].state is State.PENDING]:
                yield batch

    def counts(self, pair: str) -> dict[str, int]:
        """Rows by state; `leased` are pending too; and `oldest_due_us` where any is pending."""
        now_us = None if self._clock is None else self._clock.now_us()
        return counted(*self._all(self._statements.counts, (pair, now_us))[0])

    def busy(self, pair: str) -> dict[str, int]:
        """The same without `idle`."""
        now_us = None if self._clock is None else self._clock.now_us()
        return counted(*self._all(self._statements.busy, (pair, now_us))[0])

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline (else it is young)."""
        return bool(self._all(self._statements.settled, (pair,)))

    def settle(self, pair: str) -> None:
        """Says that the pair has a complete baseline."""
        self._database.run(lambda session: session.send(self._statements.settle, (pair,)))

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """(time, what, detail) of one record, oldest first."""
        newest = self._all(self._statements.history, (pair, key, min(limit, ENTRIES_KEPT)))
        return [(at, what, detail) for at, what, detail in reversed(newest)]

    def prune(self, older_than_us: int) -> int:
        """Forgets the history before that time; answers how many entries. The records stay."""
        pruned, batch = 0, PRUNE_BATCH
        while batch == PRUNE_BATCH:
            batch = self._database.run(
                lambda session: session.execute(self._statements.prune_older, (older_than_us,)).rowcount
            )
            pruned += batch
        return pruned

    def _due(self, pairs: Sequence[str]) -> set[str]:
        now_us = None if self._clock is None else self._clock.now_us()
        return {pair for (pair,) in self._all(self._statements.due_pairs, (texts(pairs), now_us))}

    def next_due_us(self, pairs: Sequence[str]) -> int | None:
        """When the next record of these pairs is due, or None."""
        ((due_us,),) = self._all(self._statements.next_due, (texts(pairs),))
        return None if due_us is None else int(due_us)

    def close(self) -> None:
        """Gives back connections."""
        self._listener.close()
        self._database.close()

    def _rows(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        return [row_of(values) for values in self._all(statement, parameters)]

    def _all(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._database.read(lambda session: session.send(statement, parameters).fetchall())


class Numbers:
    """Numbers for new records, fetched from the database a block at a time and shared by the threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[int] = []
        self.noted = 0
        self.forgot_us = 0

    def take(self, count: int, fetch: Callable[[int], list[int]]) -> list[int]:
        """So many new numbers; fetch: answers that many numbers of blocks."""
        with self._lock:
            taken, self._free = self._free[:count], self._free[count:]
        if (lacking := count - len(taken)) > 0:
            blocks = fetch(-(-lacking // NUMBERS_BLOCK))
            fresh = [block * NUMBERS_BLOCK + place for block in blocks for place in range(NUMBERS_BLOCK)]
            taken += fresh[:lacking]
            with self._lock:
                self._free += fresh[lacking:]
        return taken


class _PostgresqlTransaction:
    """One writing transaction. Only what changed of a row is written; what need not be waited for is only sent."""

    def __init__(self, session: Session, statements: Statements, fresh: Numbers, clock: Clock | None) -> None:
        self.now_us = 0 if clock is None else clock.now_us()
        self._session, self._statements, self._fresh, self._clock = session, statements, fresh, clock
        self._ids: dict[tuple[str, str], int] = {}
        self._loaded: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._inserted: list[tuple[Any, int]] = []
        self._left_work = False

    def load(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        wanted = [key for key in keys if (pair, key) not in self._loaded]
        if wanted:
            self._keep(self._statements.load, (pair, texts(wanted)))
        found = ((key, self._loaded.get((pair, key))) for key in keys)
        return {key: row_of(values) for key, values in found if values is not None}

    def _keep(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows that are ours until the end, and the time when they had become so."""
        rows = self._session.send(statement, parameters)
        # Taken when the locks are held, so that the transactions of a row are in the order of their times.
        clock = self._session.send(CLOCK) if self._clock is None else None
        found = self._session.fetch(rows)
        for values in found:
            self._ids[values[0], values[1]] = values[-1]
            self._loaded[values[0], values[1]] = values[:-1]
        if clock is not None:
            self.now_us = self._session.fetch(clock)[0][0]
        return found

    def save(self, rows: Iterable[Row]) -> None:
        inserts: dict[tuple[bool, ...], list[tuple[Any, ...]]] = defaultdict(list)
        updates: dict[tuple[bool, ...], list[tuple[Any, ...]]] = defaultdict(list)
        # New keys too are locked in their order.
        for row in sorted(rows, key=lambda row: (row.pair, row.key)):
            place, values = (row.pair, row.key), kept(row)
            before = self._loaded.get(place)
            self._loaded[place] = values
            self._left_work = self._left_work or (row.state is State.PENDING and row.lease_owner is None)
            if before is None:
                # By identity, which costs a third of equality: an equal value that is written too does no harm.
                inserts[tuple(map(is_not, ABSENT, values))].append(values)
            else:
                updates[tuple(map(ne, before, values))].append(values)
        for changed, found in updates.items():
            if any(changed):
                places = texts([values[0] for values in found]), texts([values[1] for values in found])
                columns = (*_columns(changed, found), *places)
                self._session.send(update_of(self._statements.row, changed), columns)
        for changed, found in inserts.items():
            self._insert(changed, found)

    def _insert(self, changed: tuple[bool, ...], rows: Sequence[tuple[Any, ...]]) -> None:
        ids = self._fresh.take(len(rows), self._blocks)
        self._ids.update(((values[0], values[1]), number) for values, number in zip(rows, ids, strict=True))
        columns = (*_columns(changed, rows), numbers(ids))
        self._inserted.append((self._session.send(insert_of(self._statements.row, changed), columns), len(rows)))

    def _blocks(self, count: int) -> list[int]:
        return [number for (number,) in self._session.send(self._statements.numbers, (count,)).fetchall()]

    def note(self, notes: Sequence[Note]) -> None:
        told = [(self._ids[pair, key], what, detail) for pair, key, what, detail in notes if (pair, key) in self._ids]
        if not told:
            return
        records, whats, details = zip(*told, strict=True)
        self._session.send(self._statements.note, (self.now_us, numbers(records), texts(whats), texts(details)))
        first = PRUNE_EVERY - 1 - self._fresh.noted % PRUNE_EVERY
        self._fresh.noted += len(told)
        if chosen := sorted(set(records[first::PRUNE_EVERY])):
            self._session.send(self._statements.prune_records, (numbers(chosen),))

    def complete(self, channel: str, token: str) -> None:
        """Sends what is left, and waits for all that was sent; raises Overtaken where a new row is not new."""
        if self._left_work:
            self._session.send("SELECT pg_notify(%s, %s)", (channel, token))
        for cursor, count in self._inserted:
            if len(self._session.fetch(cursor)) != count:
                raise Overtaken

    def settled(self, pair: str) -> bool:
        return self._session.send(self._statements.settled, (pair,)).fetchone() is not None

    def waiting(self, pairs: Sequence[str], limit: int) -> list[Waiting]:
        now_us = self.now_us or None
        found = self._session.send(self._statements.queues, (texts(pairs), now_us, limit)).fetchall()
        quotas = Counter((each.pair, each.priority) for each in most_urgent([Waiting(*each) for each in found], limit))
        if not quotas:
            return []
        # Others may hold just those; then all that waits is asked, and who comes later waits for what is left.
        return self._lock_due(quotas, now_us) or self._lock_due(
            {(pair, priority): limit for pair in pairs for priority in range(VERIFY_PRIORITY + 1)}, now_us
        )

    def _lock_due(self, quotas: dict[tuple[str, int], int], now_us: int | None) -> list[Waiting]:
        pairs, priorities = zip(*quotas, strict=True)
        arrays = (texts(pairs), numbers(priorities), numbers(list(quotas.values())))
        rows = map(row_of, self._keep(self._statements.lock_due, (*arrays, now_us)))
        return [Waiting(row.priority, row.ready_at, row.queued_at, row.pair, row.key) for row in rows]

    def sleepers(self, waits_for: Sequence[str]) -> list[tuple[str, str]]:
        if not waits_for:
            return []
        found = self._session.send(self._statements.sleepers, (texts(waits_for),)).fetchall()
        return [(pair, key) for pair, key in found]

    def parked(self, pair: str) -> list[str]:
        return [key for (key,) in self._session.send(self._statements.parked, (pair,)).fetchall()]

    def first(self, deliveries: Sequence[str]) -> list[bool]:
        if self.now_us - self._fresh.forgot_us > _FORGET_EVERY_US:
            self._session.send(self._statements.forget, (self.now_us - DELIVERIES_KEPT_US,))
            self._fresh.forgot_us = self.now_us
        asked = texts(sorted(set(deliveries)))
        new = {each for (each,) in self._session.send(self._statements.first, (self.now_us, asked)).fetchall()}
        found = []
        for each in deliveries:
            found.append(each in new)
            new.discard(each)
        return found


def _columns(changed: tuple[bool, ...], rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """The values of the changed columns of these rows, an array for each column."""
    columns = zip(*(compress(values, changed) for values in rows), strict=True)
    return [array(column) for array, column in zip(arrays_of(changed), columns, strict=True)]
