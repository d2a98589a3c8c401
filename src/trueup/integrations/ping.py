"""Pings to an outside watcher that notices when they stop, such as healthchecks.io.

Its protocol (https://healthchecks.io/docs/http_api/): a POST to the address is a success, to `/start` a start, to
`/fail` a failure; `rid` is the run, so that a start and its end belong together. A thread of its own sends them from a
bounded queue: no run ever waits, and a ping that finds no room, or no answer, is counted.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from trueup.environment import expand
from trueup.errors import TrueupError
from trueup.integrations.posting import host_of, post

TIMEOUT_S: Final = 5.0
ROOM: Final = 1_000
# What a process that ends waits for its last pings.
LAST_S: Final = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ping:
    pair: str
    who: str
    address: str
    said: bytes


class Pinger:
    """Sends the pings of a project. note: told of each how it went: (pair, why not, or None)."""

    def __init__(self, note: Callable[[str, str | None], None], timeout_s: float = TIMEOUT_S) -> None:
        self._note, self._timeout_s = note, timeout_s
        self._waiting: queue.Queue[_Ping | None] = queue.Queue(ROOM)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._dropped: deque[str] = deque()
        self._failing: set[str] = set()

    def put(self, ping: _Ping) -> None:
        """Takes it, or counts it as failed where too many wait."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._send, name="trueup-pings", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(ping)
        except queue.Full:
            self._dropped.append(ping.pair)  # counted by the thread: nobody waits for the store here

    def _send(self) -> None:
        while (ping := self._waiting.get()) is not None:
            error = None
            try:
                post(ping.who, ping.address, ping.said, {"content-type": "text/plain"}, self._timeout_s)
            except TrueupError as trouble:
                error = trouble.message
            except Exception as trouble:  # the pings after it must not be lost with it
                error = type(trouble).__name__
            self._log_change(ping.pair, error)
            with suppress(TrueupError):  # the store is away: then this ping is not counted
                self._note(ping.pair, error)
                while self._dropped:
                    self._note(self._dropped.popleft(), f"{ROOM:,} pings waited already")

    def _log_change(self, pair: str, error: str | None) -> None:
        """The first of failures in a row, and their end."""
        if error is not None and pair not in self._failing:
            self._failing.add(pair)
            _log.warning("pair %s: a ping did not arrive: %s", pair, error)
        elif error is None and pair in self._failing:
            self._failing.discard(pair)
            _log.warning("pair %s: pings arrive again", pair)

    def close(self) -> None:
        """Ends the thread, once it has sent what waits, or after a while without that."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        with suppress(queue.Full):
            self._waiting.put(None, timeout=LAST_S)
        thread.join(LAST_S)


class PairPings:
    """The pings of one pair; see `trueup.ports.Pings`. url: text in which `${VARIABLE}` stands for a variable."""

    def __init__(self, pair: str, url: str, pinger: Pinger) -> None:
        what = f"pair {pair}: its ping"
        self._pair, self._pinger = pair, pinger
        self._url = expand(url, what)
        self._who = f"the watcher at {host_of(self._url, what)}"

    def started(self, run: str) -> None:
        """A run began."""
        self._ping("/start", run, "")

    def succeeded(self, run: str, said: str) -> None:
        """It ended well."""
        self._ping("", run, said)

    def failed(self, run: str, said: str) -> None:
        """It ended in trouble."""
        self._ping("/fail", run, said)

    def _ping(self, what: str, run: str, said: str) -> None:
        parts = urlsplit(self._url)
        query = "&".join(each for each in (parts.query, f"rid={run}" if run else "") if each)
        address = urlunsplit(parts._replace(path=parts.path.rstrip("/") + what, query=query))
        self._pinger.put(_Ping(self._pair, self._who, address, said.encode()))


class NoPings:
    """Tells nobody."""

    def started(self, run: str) -> None:
        """Nobody is told."""

    def succeeded(self, run: str, said: str) -> None:
        """Nobody is told."""

    def failed(self, run: str, said: str) -> None:
        """Nobody is told."""
