"""A few connections that see one instant of a database, lent to whoever asks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa

from trueup.sides.sql.hashing import Hasher
from trueup.sides.sql.limits import Limits

# How often, and for how long, what still runs is told to end.
_ENDING_S: Final = 0.2
_ENDING_MAX_S: Final = 10.0


class Closed(Exception):
    """The snapshot was closed while it was asked; nobody waits for the answer."""


class Instant:
    """The database as it is when this is made. connect: opens a connection. Safe to share between threads.

    limits: how many connections may work at once, where the engine lets several see one instant, and how much they
    rest. Raises what connecting raises.
    """

    def __init__(self, connect: Callable[[], sa.Connection], hasher: Hasher, limits: Limits) -> None:
        self._connect, self._hasher = connect, hasher
        self._ready = threading.Condition()
        self._limits, self._max = limits, limits.connections
        self._closed = self._over = False
        self._busy: list[sa.Connection] = []
        first = connect()
        self._free: list[sa.Connection] = [first]
        try:
            self._name = hasher.begin(first)
        except BaseException:
            self.close()
            raise
        if not (hasher.shares_instant and self._name):
            self._max = 1

    @contextmanager
    def connection(self) -> Iterator[sa.Connection]:
        """One that nobody else uses meanwhile. Raises Closed."""
        connection = self._take()
        try:
            yield connection
        finally:
            with self._ready:
                self._busy.remove(connection)
                self._free.append(connection)
                self._ready.notify_all()
            if self._over:  # what would not end has, after nobody waited for it any more
                self._give_back()

    @contextmanager
    def working(self) -> Iterator[None]:
        """One piece of a connection's work, and the rest after it, which closing ends."""
        with self._limits.working(self._rest):
            yield

    def close(self) -> None:
        """Ends what still runs, then gives back all connections; safe to call twice."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        until = time.monotonic() + _ENDING_MAX_S
        while busy := self._at_work():
            # Repeated: a statement that is about to be sent can't be ended yet.
            for connection in busy:
                with contextlib.suppress(Exception):
                    self._hasher.cancel(connection)
            with self._ready:
                if self._ready.wait_for(lambda: not self._busy, timeout=_ENDING_S) or time.monotonic() > until:
                    break
        self._over = True
        self._give_back()

    def _give_back(self) -> None:
        with self._ready:
            free, self._free = self._free, []
        for connection in free:
            with contextlib.suppress(Exception):
                connection.close()

    def _at_work(self) -> list[sa.Connection]:
        with self._ready:
            return list(self._busy)

    def _rest(self, seconds: float) -> None:
        with self._ready:
            self._ready.wait_for(lambda: self._closed, timeout=seconds)

    def _take(self) -> sa.Connection:
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._free or len(self._busy) < self._max)
            if self._closed:
                raise Closed
            connection = self._free.pop() if self._free else None
            if connection is None:
                connection = self._connect()
                try:
                    self._hasher.join(connection, self._name)
                except BaseException:
                    connection.close()
                    raise
            self._busy.append(connection)
            return connection
