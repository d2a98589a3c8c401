"""One event loop in the background, for handlers that are `async def`. The engine itself stays sync."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from trueup.errors import LeaseLost


class _Background:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started at the first use."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._loop.run_forever, name="trueup-handlers", daemon=True)
                thread.start()
                atexit.register(self._stop, self._loop, thread)
            return self._loop

    @staticmethod
    def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        if not loop.is_running():
            loop.close()


_BACKGROUND = _Background()


def wait_for(coroutine: Coroutine[Any, Any, Any], check: Callable[[], None], every_s: float) -> Any:
    """Runs the coroutine on the one loop while this thread waits; answers or raises what it does.

    check: raises LeaseLost where the right to go on was lost; then the coroutine is cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _BACKGROUND.loop())
    while True:
        try:
            return future.result(every_s)
        except TimeoutError:
            if future.done():  # the handler's own timeout, not ours
                raise
            try:
                check()
            except LeaseLost:
                future.cancel()
                raise
