"""A process that works until it is told to stop: signals, grace, and a line now and then."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Final

from trueup.cli.terminal import number, say

LINE_EVERY_S: Final = 10.0
GRACE_OVER: Final = 3


class Service:
    """Runs something in this thread until SIGTERM or SIGINT; the second signal, or the end of grace, ends it at once.

    grace_s: seconds between the first signal and the hard end.
    """

    def __init__(self, *, grace_s: float, quiet: bool) -> None:
        self._grace_s, self._quiet = grace_s, quiet
        self._stop = threading.Event()
        self._ends: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._said_at = time.monotonic()

    def run(self, work: Callable[[threading.Event], None]) -> int:
        """Answers the exit code: 0 after a graceful stop."""
        before = {each: signal.signal(each, self._signalled) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            if not self._quiet:
                say("working; stop with Ctrl-C")
            work(self._stop)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        self._say("stopped")
        return 0

    def ended(self, results: Counter[str]) -> None:
        """Counts how jobs ended; says so now and then."""
        with self._lock:
            self._ends += results
            due = time.monotonic() - self._said_at > LINE_EVERY_S
        if due:
            self._say("so far")

    def _say(self, what: str) -> None:
        self._said_at = time.monotonic()
        if not self._quiet:
            ends = ", ".join(f"{number(count)} {result}" for result, count in sorted(self._ends.items()))
            say(f"{what}: {ends or 'nothing was due'}")

    def _signalled(self, signum: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            os._exit(GRACE_OVER)
        self._stop.set()
        timer = threading.Timer(self._grace_s, os._exit, (GRACE_OVER,))
        timer.daemon = True
        timer.start()
