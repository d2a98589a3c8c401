"""A process that works until it is told to stop: signals, grace, and what it shows meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.collector import collect_seldom
from trueup.cli.watch import Watch, line, lines, summary
from trueup.engine.clock import SystemClock
from trueup.errors import TrueupError

if TYPE_CHECKING:
    from rich.live import Live

REFRESH_S: Final = 1.0
GRACE_OVER: Final = 3


class Service:
    """Runs something in this thread until SIGTERM or SIGINT; the second signal, or the end of grace, ends it at once.

    grace_s: seconds between the first signal and the hard end.
    """

    def __init__(self, display: Display, *, grace_s: float) -> None:
        self._display, self._grace_s = display, grace_s
        self._stop = threading.Event()

    def run(self, work: Callable[[threading.Event], None]) -> int:
        """Answers the exit code: 0 after a graceful stop."""
        collect_seldom()  # once more, now that all is loaded
        before = {each: signal.signal(each, self._signalled) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            with self._display.shown():
                work(self._stop)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        self._display.stopped()
        return 0

    def _signalled(self, signum: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            os._exit(GRACE_OVER)
        self._stop.set()
        timer = threading.Timer(self._grace_s, os._exit, (GRACE_OVER,))
        timer.daemon = True
        timer.start()


def together(parts: Sequence[Callable[[threading.Event], None]]) -> Callable[[threading.Event], None]:
    """Work that is done side by side; where one part ends or fails all are stopped, and what it raised is raised."""

    def work(stop: threading.Event) -> None:
        failed: list[BaseException] = []

        def run(part: Callable[[threading.Event], None]) -> None:
            try:
                part(stop)
            except BaseException as error:  # it is raised where the others have ended
                failed.append(error)
            finally:
                stop.set()

        threads = [threading.Thread(target=run, args=(part,), name="trueup-part") for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    return work


class Display:
    """Says nothing; the base of what says something. A thread of its own calls `refresh`."""

    refresh_s = REFRESH_S

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows how work goes until the end of the block."""
        self.begin()
        stop = SystemClock().every(self.refresh_s, self._tick)
        try:
            yield
        finally:
            stop()
            self.end()

    def _tick(self) -> bool:
        with suppress(TrueupError):  # the store is away: the next look may find it back
            self.refresh()
        return True

    def begin(self) -> None:
        """Before work begins."""

    def refresh(self) -> None:
        """Now and then; may raise TrueupError."""

    def end(self) -> None:
        """After work ended."""

    def tell(self, text: str, **facts: Any) -> None:
        """Something that happened once, as text for people and as facts for programs."""

    def stopped(self) -> None:
        """The last word."""


class Lines(Display):
    """A line at an interval in which something ended, for logs."""

    def __init__(self, watch: Watch, every_s: float) -> None:
        super().__init__(watch)
        self._every_s, self.refresh_s = every_s, min(every_s, REFRESH_S)
        self._said, self._said_at = 0, time.monotonic()

    def begin(self) -> None:
        """The first line says how to end."""
        self.tell("working; stop with Ctrl-C")

    def refresh(self) -> None:
        """A line, where it is time and there is something new."""
        total = self.watch.total
        if total > self._said and time.monotonic() - self._said_at >= self._every_s:
            self._said, self._said_at = total, time.monotonic()
            self.tell(f"so far: {line(self.watch.look())}")

    def tell(self, text: str, **facts: Any) -> None:
        """A line, at once, whoever reads it."""
        print(text, flush=True)

    def stopped(self) -> None:
        """What became of it all."""
        self.tell(f"stopped: {summary(self.watch.ended_so_far())}")


class Screen(Lines):
    """A few lines at the foot of a terminal, drawn anew each second; what is said meanwhile scrolls above."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch, REFRESH_S)
        self._live: Live | None = None

    def begin(self) -> None:
        """From now on the lines stand at the foot."""
        from rich.console import Console  # noqa: PLC0415  slow to import
        from rich.live import Live  # noqa: PLC0415

        super().begin()
        self._live = Live(console=Console(file=sys.stdout), auto_refresh=False, transient=True)
        self._live.start()
        self._tick()

    def refresh(self) -> None:
        """The lines as they are now."""
        from rich.text import Text  # noqa: PLC0415

        if self._live is not None:
            self._live.update(Text("\n".join(lines(self.watch.look()))), refresh=True)

    def end(self) -> None:
        """The terminal as it was."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Objects(Display):
    """A JSON object a line, at every interval."""

    def __init__(self, watch: Watch, every_s: float) -> None:
        super().__init__(watch)
        self.refresh_s = every_s

    def refresh(self) -> None:
        """How things are."""
        self.tell("", **self.watch.look().as_json())

    def tell(self, text: str, **facts: Any) -> None:
        """The facts."""
        import json  # noqa: PLC0415

        print(json.dumps(facts, ensure_ascii=False), flush=True)

    def stopped(self) -> None:
        """What became of it all."""
        self.tell("", stopped=True, ended=dict(sorted(self.watch.ended_so_far().items())))


def display(watch: Watch, *, quiet: bool, json: bool, every_s: float) -> Display:
    """What suits the reader: a program, nobody, a person at a terminal, or a log."""
    if json:
        return Objects(watch, every_s)
    if quiet:
        return Display(watch)
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return Screen(watch)
    return Lines(watch, every_s)
