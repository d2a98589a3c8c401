"""A scan under way: its batches, and a way to end it from another thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trueup.errors import IncompleteScan

if TYPE_CHECKING:
    import pyarrow as pa
    import sqlalchemy as sa


class Running:
    """The connection of a scan while it works. cancel: ends, from another thread, what a connection is doing."""

    def __init__(self, label: str, cancel: Callable[[sa.Connection], None]) -> None:
        self._label, self._cancel = label, cancel
        self._lock = threading.Lock()
        self._connection: sa.Connection | None = None
        self._stopped = threading.Event()

    @contextmanager
    def on(self, connection: sa.Connection) -> Iterator[None]:
        """The scan works on this connection until the context ends. Raises IncompleteScan where it was stopped."""
        with self._lock:
            self._connection = connection
        try:
            self.going()
            yield
        finally:
            # Under the lock: a connection that was given back must not be told to stop.
            with self._lock:
                self._connection = None

    def going(self) -> None:
        """Raises IncompleteScan where the scan was stopped."""
        if self._stopped.is_set():
            raise IncompleteScan(f"{self._label}: the enumeration was stopped.", hint="Run it again.")

    def rest(self, seconds: float) -> None:
        """Waits so long, or until the scan is stopped."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """Ends what the connection is doing."""
        self._stopped.set()
        with self._lock, contextlib.suppress(Exception):
            if self._connection is not None:
                self._cancel(self._connection)


class Scan(Generator["pa.RecordBatch", None, None]):
    """Batches of records, read while they are asked for."""

    def __init__(self, batches: Generator[pa.RecordBatch, None, None], running: Running) -> None:
        self._batches, self._running = batches, running

    def send(self, value: None) -> pa.RecordBatch:
        """As any generator's."""
        return self._batches.send(value)

    def throw(self, *error: Any) -> pa.RecordBatch:
        """As any generator's."""
        return self._batches.throw(*error)

    def close(self) -> None:
        """As any generator's: by the thread that reads."""
        self._batches.close()

    def stop(self) -> None:
        """Ends the statement in the database, by any thread. May be repeated: it may come before the statement."""
        self._running.stop()
