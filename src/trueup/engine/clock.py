"""The real clock."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from trueup.errors import TrueupError

_log = logging.getLogger(__name__)
_ELAPSED: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Time of this host, real waiting, and a daemon thread for each rhythm."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""
        return time.time_ns() // 1_000

    def elapsed_us(self) -> int:
        """Microseconds since some moment; nobody sets it back, and it counts while the host sleeps."""
        return time.clock_gettime_ns(_ELAPSED) // 1_000

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it.

        Trouble that passes must not end the rhythm: an error of ours is logged, and the next beat tries again.
        """
        stopped = threading.Event()

        def loop() -> None:
            while not stopped.wait(seconds):
                try:
                    if not call():
                        return
                except TrueupError as error:
                    _log.warning("%s", error, extra={"event": "rhythm_failed", "error": str(error)})

        thread = threading.Thread(target=loop, name="trueup-rhythm", daemon=True)
        thread.start()

        def stop() -> None:
            stopped.set()
            thread.join()

        return stop
