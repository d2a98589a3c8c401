"""A state store in one SQLite file: connections, transactions, and what its errors mean."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from trueup.errors import StateError
from trueup.ports import Clock
from trueup.stores.sql.migrations import SQLITE as MIGRATIONS
from trueup.stores.sql.steps import check_needs, needs
from trueup.stores.sql.turn import Turn

BUSY_S: Final = 10.0
_T = TypeVar("_T")
_HINTS: Final = {
    sqlite3.SQLITE_BUSY: ("is locked by another program", "Try again, or find out which program holds it open."),
    sqlite3.SQLITE_LOCKED: ("is locked by another program", "Try again, or find out which program holds it open."),
    sqlite3.SQLITE_READONLY: ("can't be written", "Give this user the right to write the file and its directory."),
    sqlite3.SQLITE_PERM: ("can't be opened", "Give this user the right to write the file and its directory."),
    sqlite3.SQLITE_CANTOPEN: ("can't be opened", "Create its directory, or give this user the right to write there."),
    sqlite3.SQLITE_NOTADB: ("is not an SQLite database", "Name another file; trueup creates it."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Restore a copy, or name a new file and run `trueup adopt` again."),
    sqlite3.SQLITE_FULL: ("can't grow: the disk is full", "Free some space; nothing that was acknowledged is lost."),
    sqlite3.SQLITE_IOERR: ("can't be read or written", "Check the disk and the file system it is on."),
}


class SqliteFile:
    """One SQLite file, shared by the threads of this process and by other processes of this machine.

    durable: a commit reaches the disk before it is acknowledged (synchronous=FULL); without it, a crash of the
    machine may lose the last commits, but never damages the file.
    create: whether the file may be created. Raises StateError.
    """

    # There is one writer, and so no row to hold.
    for_update = ""
    skip_locked = ""

    def __init__(self, path: Path, *, create: bool = True, durable: bool = True, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._mode = "rwc" if create else "rw"
        self._synchronous = f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}"
        self._busy_s = busy_s
        self._idle: list[sqlite3.Connection] = []
        self._all: list[sqlite3.Connection] = []
        self._pool = threading.Lock()
        # SQLite's own wait for its lock polls and is not fair; threads of one process need not go through it.
        self._writer = threading.Lock()
        self._turn = Turn(path)
        self._watch = threading.Lock()
        self._watcher: sqlite3.Connection | None = None
        if not create and not path.exists():
            raise StateError(f"{path}: there is no state store.", hint="Run `trueup run` or `trueup adopt` first.")
        try:
            with self.reading() as connection:
                self._use_wal(connection)
                self._migrate(connection)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection on which every statement sees the latest commit."""
        connection = self._take()
        try:
            with _explained(self.path):
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction that nobody else writes beside; committed at the end of the block."""
        with self._writer, self.reading() as connection:
            if not durable:
                connection.execute("PRAGMA synchronous = NORMAL")
            with self._turn.waited():
                connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                if not durable:
                    connection.execute(self._synchronous)

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """What `work` answers; every statement sees the latest commit."""
        with self.reading() as connection:
            return work(connection)

    def write(self, work: Callable[[sqlite3.Connection], _T], *, repeatable: bool = True, durable: bool = True) -> _T:
        """What `work` answers in one transaction; a file is not lost as a server is, so nothing is repeated."""
        with self.writing(durable=durable) as connection:
            return work(connection)

    def inserted(self, session: sqlite3.Connection, statement: str, parameters: Sequence[Any]) -> int:
        """The number that an INSERT gave its row."""
        return session.execute(statement, parameters).lastrowid or 0

    def now_us(self, session: sqlite3.Connection, clock: Clock | None) -> int:
        """The time by this clock, or by this machine's, which all programs that share a file have in common."""
        return time.time_ns() // 1_000 if clock is None else clock.now_us()

    @contextmanager
    def joining(self, caller: Any) -> Iterator[sqlite3.Connection]:
        """The caller's connection in the caller's own transaction, which the caller commits or rolls back.

        caller: a sqlite3.Connection, or an SQLAlchemy Connection to the same file.
        """
        connection = self._of_caller(caller)
        with _explained(self.path):
            if not connection.in_transaction:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute("SAVEPOINT trueup")
            try:
                # Takes the write lock now, before anything is read on which the rules will judge.
                connection.execute("UPDATE trueup_pair SET settled = settled WHERE pair IS NULL")
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK TO trueup")
                    connection.execute("RELEASE trueup")
                raise
            connection.execute("RELEASE trueup")

    def data_version(self) -> int:
        """A number that changes with every commit of anybody."""
        with self._watch, _explained(self.path):
            if self._watcher is None:
                self._watcher = self._connect()
            return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Closes every connection; safe to call twice."""
        with self._pool:
            for connection in self._all:
                connection.close()
            self._all, self._idle, self._watcher = [], [], None
        self._turn.close()

    def _take(self) -> sqlite3.Connection:
        with self._pool:
            if self._idle:
                return self._idle.pop()
        with _explained(self.path):
            return self._connect()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._pool:
            if connection in self._all:
                self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = _opened(self.path, self._mode, self._busy_s)
        try:
            connection.execute(self._synchronous)
            connection.execute("PRAGMA cache_size = -16000")
            # A page that every batch touches is brought back into the file less often; the log grows to 16 MB.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
        except BaseException:
            connection.close()
            raise
        with self._pool:
            self._all.append(connection)
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Readers and the writer don't block each other. Changing the mode does not wait for locks: so we do."""
        deadline = time.monotonic() + self._busy_s
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if self._steps_done(connection) >= len(MIGRATIONS):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS trueup_schema (step INTEGER PRIMARY KEY, at INTEGER)")
            done = self._steps_done(connection)
            for number, step in enumerate(MIGRATIONS[done:], done + 1):
                for statement in step.statements:
                    connection.execute(statement)
                now_us = time.time_ns() // 1_000
                connection.execute("INSERT INTO trueup_schema (step, at) VALUES (?, ?)", (number, now_us))
                if needed := needs(number, step):
                    connection.execute("UPDATE trueup_schema SET needs = ? WHERE step = ?", (needed, number))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _steps_done(self, connection: sqlite3.Connection) -> int:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trueup_schema'").fetchone()
        done = connection.execute("SELECT max(step) FROM trueup_schema").fetchone()[0] if known else 0
        if done is not None and done > len(MIGRATIONS):
            needed = connection.execute("SELECT max(needs) FROM trueup_schema").fetchone()[0]
            check_needs(str(self.path), needed, done, MIGRATIONS)
        return done or 0

    def _of_caller(self, caller: Any) -> sqlite3.Connection:
        inner = getattr(getattr(caller, "connection", None), "driver_connection", None)
        connection = caller if isinstance(caller, sqlite3.Connection) else inner
        if not isinstance(connection, sqlite3.Connection) or not self._is_here(connection):
            raise StateError(
                f"connection= is not a connection to the database that holds the state, {self.path}.",
                hint="Leave out connection=, or keep the state in the same database.",
            )
        if connection is caller:
            if not connection.in_transaction and connection.isolation_level is None:
                raise StateError(
                    "connection= has no open transaction to join.", hint="Begin one before the offer, and commit it."
                )
        elif not caller.in_transaction():
            # Else the caller's commit() would find nothing to commit, and the offer would be lost.
            caller.begin()
        return connection

    def _is_here(self, connection: sqlite3.Connection) -> bool:
        main = next((row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"), "")
        return bool(main) and Path(main).exists() and Path(main).samefile(self.path)


def check_file(path: Path, busy_s: float = 1.0) -> None:
    """Whether a file can be written now, where there is one; changes nothing. Raises StateError where not."""
    if not path.exists():
        return
    with _explained(path), closing(_opened(path, "rw", busy_s)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("ROLLBACK")


def _opened(path: Path, mode: str, busy_s: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        known = _HINTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if known is None:
            raise
        raise StateError(f"{path}: the state store {known[0]}.", hint=known[1]) from error
