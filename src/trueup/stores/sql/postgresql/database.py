"""A state store in one schema of a PostgreSQL database: connections, transactions, and who repeats them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import TupleRow, tuple_row

from trueup.ports import Clock
from trueup.stores.sql.postgresql.address import Address, parse
from trueup.stores.sql.postgresql.trouble import in_our_words, is_beaten, is_lost

CONNECTIONS_MAX: Final = 8
PATIENCE_S: Final = 30.0
# Less than what any operating system buffers for a connection.
_SOCKET_BYTES: Final = 4_096
_PAUSE_S: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
CLOCK: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_T = TypeVar("_T")
Connection: TypeAlias = psycopg.Connection[TupleRow]


class Overtaken(Exception):
    """Another transaction created a record that this one believed to be new: what it judged is void."""


class Session:
    """What one transaction does. Statements are sent without waiting; who fetches waits for what was sent so far.

    connection: whose transaction is open. pipeline: of a connection of ours; None on a caller's.
    """

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline | None = None) -> None:
        self.connection = connection
        self._pipeline = pipeline
        self._unread = 0

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[TupleRow]:
        """A cursor to fetch from, now or later."""
        self._unread += sum(len(value) for value in parameters if isinstance(value, str | bytes))
        # Not connection.cursor(): a caller's connection may make other rows than tuples.
        cursor = psycopg.Cursor(self.connection, row_factory=tuple_row)
        return cursor.execute(statement.encode(), parameters or None)

    def fetch(self, cursor: psycopg.Cursor[TupleRow]) -> list[TupleRow]:
        """All rows of a cursor; everything that was sent has happened when this returns."""
        self._unread = 0
        return cursor.fetchall()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[TupleRow]:
        """As `sqlite3.Connection.execute`, `?` included: it has happened when this returns."""
        cursor = self.send(statement.replace("?", "%s"), parameters)
        if self._pipeline is not None:
            self.arrive()
            self._pipeline.sync()
        return cursor

    def arrive(self) -> None:
        """Returns when the server has read what was sent, if that is more than a socket may hold.

        A synchronisation, and so a commit, would wait for an answer to what is still in the driver's buffer
        (psycopg issue 685); a fetch sends that first.
        """
        if self._pipeline is not None and self._unread > _SOCKET_BYTES:
            self.fetch(self.send("SELECT 1"))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """As `sqlite3.Connection.executemany`."""
        for row in rows:
            self.send(statement.replace("?", "%s"), row)


class _Pooled:
    """A connection of the pool. It stays in pipeline mode: to enter and to leave it costs a round trip each."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._mode = connection.pipeline()
        self.pipeline = self._mode.__enter__()

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):  # one that is broken can't even say that it leaves
            self._mode.__exit__(None, None, None)
        self.connection.close()


class Database:
    """One schema, shared by the threads of this process and by other processes on any host.

    patience_s: how long to wait for a server that went away, so that its restart is a pause and not an error.
    """

    for_update = "FOR UPDATE"
    skip_locked = "FOR UPDATE SKIP LOCKED"

    def __init__(self, address: Address, patience_s: float = PATIENCE_S) -> None:
        self.address = address
        self._patience_s = patience_s
        self._slots = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._lock = threading.Lock()
        self._idle: list[_Pooled] = []
        self._all: list[_Pooled] = []
        self._process = os.getpid()
        # Connections of the process that this one was forked from: not ours to use, nor to close.
        self._inherited: list[_Pooled] = []

    def run(self, work: Callable[[Session], _T], *, repeatable: bool = True) -> _T:
        """What `work` answers in one transaction, which is committed when this returns.

        `work` runs again where the transaction was undone: another one was faster, or the server went away.
        repeatable: it may run again even where the server went away during the commit, so that it may be done
        already.
        """
        deadline = time.monotonic() + self._patience_s
        attempts = 0
        while True:
            connection: Connection | None = None
            committing = False
            try:
                with self._slots:
                    taken = self._take()
                    connection = taken.connection
                    try:
                        session = Session(connection, taken.pipeline)
                        answer = work(session)
                        session.arrive()
                        committing = True
                        connection.commit()
                    except BaseException:
                        self._undo(taken)
                        raise
                    self._give_back(taken)
                    return answer
            except Overtaken:
                continue
            except psycopg.Error as error:
                if is_beaten(error):
                    continue
                again = is_lost(error, connection) and (repeatable or not committing)
                if not again or time.monotonic() >= deadline:
                    with in_our_words(self.address.label):
                        raise
                self._drop_idle()  # they lost the same server
            time.sleep(_PAUSE_S[min(attempts, len(_PAUSE_S) - 1)])
            attempts += 1

    def read(self, work: Callable[[Session], _T]) -> _T:
        """What `work` answers; it sees the latest commit with every statement."""
        return self.run(work)

    def write(self, work: Callable[[Session], _T], *, repeatable: bool = True, durable: bool = True) -> _T:
        """As `run`; without `durable` the commit does not wait for the disk."""

        def hasty(session: Session) -> _T:
            session.send("SET LOCAL synchronous_commit TO off")
            return work(session)

        return self.run(work if durable else hasty, repeatable=repeatable)

    def inserted(self, session: Session, statement: str, parameters: Sequence[Any]) -> int:
        """The number that an INSERT gave its row."""
        found = session.execute(f"{statement} RETURNING number", parameters).fetchone()
        assert found is not None
        return int(found[0])

    def now_us(self, session: Session, clock: Clock | None) -> int:
        """The time by this clock, or by the database's."""
        if clock is not None:
            return clock.now_us()
        found = session.send(CLOCK).fetchone()
        assert found is not None
        return int(found[0])

    def connect(self) -> Connection:
        """A new connection, whose settings suit our statements; raises psycopg.Error."""
        connection = psycopg.connect(**self.address.parameters)
        try:
            connection.isolation_level = IsolationLevel.READ_COMMITTED
            connection.execute(_SETTINGS, (self.address.quoted_schema,))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Closes every connection; safe to call twice."""
        self._check_process()
        with self._lock:
            pooled, self._all, self._idle = self._all, [], []
        for each in pooled:
            each.close()

    def _take(self) -> _Pooled:
        self._check_process()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        pooled = _Pooled(self.connect())
        with self._lock:
            self._all.append(pooled)
        return pooled

    def _give_back(self, pooled: _Pooled) -> None:
        with self._lock:
            if pooled in self._all:
                self._idle.append(pooled)

    def _undo(self, pooled: _Pooled) -> None:
        """Ends the transaction as if it had never been; a connection that can't do that is dropped."""
        try:
            pooled.connection.rollback()
        except psycopg.Error:
            self._drop([pooled])
        else:
            self._give_back(pooled)

    def _drop(self, dropped: Sequence[_Pooled]) -> None:
        with self._lock:
            self._all = [each for each in self._all if each not in dropped]
        for each in dropped:
            each.close()

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        self._drop(idle)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            self._inherited += self._all
            self._all, self._idle, self._process = [], [], os.getpid()
            self._slots, self._lock = threading.BoundedSemaphore(CONNECTIONS_MAX), threading.Lock()


# Every statement of ours finds its rows by an index. Without these the planner may, on a table whose size it
# guesses wrong, read all of it. A program that stands still in the middle of a transaction must not make others stand
# still for ever. A commit that is acknowledged is on disk, whatever the server's default is.
_SETTINGS: Final = f"""
    SELECT set_config('search_path', %s, false), set_config('enable_seqscan', 'off', false),
           set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
           set_config('jit', 'off', false),
           set_config('lock_timeout', '{PATIENCE_S:.0f}s', false),
           CASE WHEN current_setting('synchronous_commit') = 'off'
                THEN set_config('synchronous_commit', 'on', false) END
"""


def check_server(url: str) -> None:
    """Whether the server takes writes of this user now; changes nothing. Raises StateError where not."""
    address = parse(url)
    with in_our_words(address.label), psycopg.connect(**address.parameters) as connection:
        found = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
        if found == ("on",):
            raise psycopg.errors.ReadOnlySqlTransaction
