"""How a waiting process learns at once that others left work: LISTEN on one connection, in one thread."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable
from typing import Final

import psycopg

from trueup.stores.sql.postgresql.database import Connection

RECONNECT_S: Final = 1.0
_READY_S: Final = 5.0


def channel_of(schema: str) -> str:
    """The name under which processes of one schema call each other; names have at most 63 bytes."""
    return f"trueup_{hashlib.md5(schema.encode(), usedforsecurity=False).hexdigest()}"


class Listener:
    """Calls `called` when another process left work, and whenever that may have been missed.

    connect: makes a connection; raises psycopg.Error. Without a connection `called` is called once a second.
    token: what this process sends along; it does not call itself.
    """

    def __init__(self, connect: Callable[[], Connection], channel: str, called: Callable[[], None]) -> None:
        self.token = secrets.token_hex(8)
        self._connect, self._channel, self._called = connect, channel, called
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = 0
        self._ready = threading.Event()
        self._ends: tuple[socket.socket, socket.socket] | None = None

    def start(self) -> None:
        """Listens when this returns, or tries to. Costs nothing where it does already."""
        if self._thread is not None and self._process == os.getpid():
            return
        with self._lock:
            if self._thread is None or self._process != os.getpid():  # threads do not survive a fork
                self._ready.clear()
                self._process = os.getpid()
                self._ends = socket.socketpair()
                self._thread = threading.Thread(
                    target=self._listen, args=[self._ends[1]], name="trueup-listen", daemon=True
                )
                self._thread.start()
        self._ready.wait(_READY_S)

    def close(self) -> None:
        """Ends the thread; safe to call twice."""
        with self._lock:
            if self._thread is None or self._ends is None or self._process != os.getpid():
                return
            self._ends[0].send(b".")
            self._thread.join()
            self._thread = None
            for end in self._ends:
                end.close()

    def _listen(self, stop: socket.socket) -> None:
        while True:
            with contextlib.suppress(psycopg.Error, OSError), self._connect() as connection:
                connection.autocommit = True
                connection.execute(f'LISTEN "{self._channel}"'.encode())
                self._ready.set()
                self._called()
                if self._pump(connection, stop):
                    return
            self._ready.set()
            self._called()
            if select.select([stop.fileno()], [], [], RECONNECT_S)[0]:
                return

    def _pump(self, connection: Connection, stop: socket.socket) -> bool:
        """Passes calls on until the connection breaks, which raises, or until it is to stop: True."""
        while True:
            heard, _, _ = select.select([connection.fileno(), stop.fileno()], [], [])
            if stop.fileno() in heard:
                return True
            connection.pgconn.consume_input()
            foreign = False
            while (notice := connection.pgconn.notifies()) is not None:
                foreign = foreign or notice.extra != self.token.encode()
            if foreign:
                self._called()
