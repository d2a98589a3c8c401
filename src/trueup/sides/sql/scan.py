"""A scan under way: its batches, a way to end it from another thread, and a thread that reads ahead."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from trueup.errors import IncompleteScan

if TYPE_CHECKING:
    import pyarrow as pa
    import sqlalchemy as sa

# So many batches wait for whoever asked for them.
_AHEAD: Final = 8
# How often what still runs is told to end.
_STOPPING_S: Final = 0.2


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


class Ahead(Generator["pa.RecordBatch", None, None]):
    """The batches of a scan, which a thread begins to read at once, and reads ahead."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trueup-ahead")
        self._closing: Future[None] | None = None
        self._ready: deque[Future[pa.RecordBatch | None]] = deque(self._next() for _ in range(_AHEAD))

    def _next(self) -> Future[pa.RecordBatch | None]:
        return self._thread.submit(next, self._scan, None)

    def send(self, value: None) -> pa.RecordBatch:
        """As any generator's."""
        if not self._ready:
            raise StopIteration
        try:
            batch = self._ready.popleft().result()
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            raise StopIteration
        self._ready.append(self._next())
        return batch

    def throw(self, *error: Any) -> pa.RecordBatch:
        """As any generator's."""
        self.close()
        return super().throw(*error)

    def close(self) -> None:
        """Ends the reading. A scan that came to its end has nothing to be told."""
        if self._closing is None:
            while self._ready:
                self._ready.pop().cancel()
            self._closing = self._thread.submit(self._scan.close)
            while wait([self._closing], timeout=_STOPPING_S).not_done:
                self._scan.stop()
            self._thread.shutdown()
