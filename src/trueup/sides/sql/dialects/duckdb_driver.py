"""DuckDB's own driver, with the few words that SQLAlchemy's core needs of one; it brings no dialect for it.

A connection lives only while something is asked: a file that one program has open for writing can't be opened by
another, and one that is being read can't be opened for writing.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import duckdb
import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

if TYPE_CHECKING:
    import pyarrow as pa

_WAIT_S: Final = 0.05
# A scan of a large file would else keep as much of it as fits into memory.
_MEMORY: Final = "256MB"
# One writer at a time: two that change the same rows would not wait, but fail.
_WRITERS: Final[dict[str, threading.Lock]] = defaultdict(threading.Lock)
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE")


def engine(path: str, *, write: bool, wait_s: float) -> sa.Engine:
    """Opens the file anew for each connection. write: to change it; wait_s: how long for readers in this process."""
    words = _Words()
    connect: Any = partial(Connection, path, write=write, wait_s=wait_s)
    pool = sa.NullPool(connect, dialect=words)
    return sa.Engine(pool, words, sa.make_url("duckdb://"), hide_parameters=True)


class Connection:
    """One connection; its cursors see its transaction, which those of the driver itself would not."""

    def __init__(self, path: str, *, write: bool, wait_s: float) -> None:
        self._turn = _WRITERS[path] if write else None
        if self._turn is not None and not self._turn.acquire(timeout=wait_s):
            raise duckdb.ConnectionException("another thread is writing")
        try:
            self._driver = _opened(path, write, wait_s)
        except BaseException:
            self._release()
            raise
        self._began = False
        self._driver.execute("SET enable_progress_bar = false")
        # A name that is no table must not find a variable of this program.
        self._driver.execute("SET python_enable_replacements = false")
        self._driver.execute("SET TimeZone = 'UTC'")
        self._driver.execute(f"SET memory_limit = '{_MEMORY}'")

    def cursor(self) -> Cursor:
        """Of this connection."""
        return Cursor(self._driver)

    def batches(self, sql: str, values: Sequence[Any], rows: int) -> Iterator[pa.RecordBatch]:
        """What a query answers, in batches of at most `rows` rows, computed while they are asked for."""
        reader = self._driver.sql(sql, params=list(values)).to_arrow_reader(rows)
        try:
            yield from reader
        finally:
            reader.close()

    def begin(self) -> None:
        """Begins a transaction."""
        self._driver.execute("BEGIN TRANSACTION")
        self._began = True

    def commit(self) -> None:
        """Ends the transaction, where there is one."""
        if self._began:
            self._began = False
            self._driver.execute("COMMIT")

    def rollback(self) -> None:
        """Undoes the transaction, where there is one."""
        if self._began:
            self._began = False
            self._driver.execute("ROLLBACK")

    def interrupt(self) -> None:
        """Ends, from another thread, what runs."""
        self._driver.interrupt()

    def close(self) -> None:
        """Gives the file back."""
        try:
            self._driver.close()
        finally:
            self._release()

    def _release(self) -> None:
        if self._turn is not None:
            self._turn.release()
            self._turn = None


def _opened(path: str, write: bool, wait_s: float) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return duckdb.connect(path, read_only=not write)
        except duckdb.ConnectionException:
            # This process has the file open the other way round: a reader joins, a writer waits.
            if not write:
                return duckdb.connect(path)
            if time.monotonic() > deadline:
                raise
        time.sleep(_WAIT_S)


class Cursor:
    """One statement at a time, its answer held here."""

    def __init__(self, driver: duckdb.DuckDBPyConnection) -> None:
        self._driver = driver
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid = None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Runs it to its end."""
        self._driver.execute(sql, list(values))
        self._rows, self.description = self._driver.fetchall(), self._driver.description
        if sql.lstrip()[:6].upper() in _CHANGES:
            self.rowcount = int(self._rows[0][0])
            self._rows, self.description = [], None

    def executemany(self, sql: str, several: Sequence[Sequence[Any]]) -> None:
        """Runs it once for each, and adds up the rows."""
        count = 0
        for values in several:
            self.execute(sql, values)
            count += self.rowcount
        self.rowcount = count

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        """The next rows."""
        found, self._rows = self._rows[:size], self._rows[size:]
        return found

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        found, self._rows = self._rows, []
        return found

    def close(self) -> None:
        """Forgets the answer."""
        self._rows = []


class _Words(DefaultDialect):
    """What SQLAlchemy asks of a driver. A failed statement ends a transaction, and there are no savepoints."""

    name = "duckdb"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = False

    def __init__(self) -> None:
        super().__init__(dbapi=duckdb)  # type: ignore[arg-type]

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.begin()

    def do_commit(self, dbapi_connection: Any) -> None:
        dbapi_connection.commit()

    def do_rollback(self, dbapi_connection: Any) -> None:
        dbapi_connection.rollback()

    def do_savepoint(self, connection: Any, name: str) -> None:
        pass

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        pass

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        pass
