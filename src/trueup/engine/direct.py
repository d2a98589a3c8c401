"""Word of the state store itself: where it can't be used, each process that tells people says so from memory.

What people are told is looked up and noted in the state store; while that is away nobody would hear of anything. So
each process writes a sign of life there between its looks, and watches whether that, its looks and its notes succeed.
What has failed, or not answered, for the declared time is told to every target, once, and once more when it is over.
Nothing of this needs the store: several processes tell alike, under idents by which a receiver sees that they do.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from trueup.engine.handing import hand_over, said_of, waiting
from trueup.engine.health import condition_of_state
from trueup.model.alert import Message, News, Telling, delivered, news
from trueup.model.condition import STATE, Condition
from trueup.ports import Clock

LIMIT_MIN_US: Final = 1_000_000
PAUSE_S_MIN: Final = 0.1
# By so much a wait may last longer than it was asked to before it is taken that this process stood still.
LATE_S: Final = 10.0
_BEATS: Final = "signs of life"
_log = logging.getLogger(__name__)


class Direct:
    """Watches the use of the state store, and tells targets when it can't be used.

    beat: writes a sign of life; send: hands a message to a target, by name; both may raise. store: how messages name
    it. every_s: seconds between two signs of life. limit_us: for so long it may be away.
    """

    def __init__(
        self,
        clock: Clock,
        beat: Callable[[], None],
        send: Callable[[str, Message], None],
        targets: Sequence[str],
        *,
        store: str,
        project: str,
        every_s: float,
        limit_us: int,
        chance: random.Random,
    ) -> None:
        self._clock, self._beat, self._send, self._chance = clock, beat, send, chance
        self._store, self._project, self._every_s = store, project, every_s
        self._limit_us = max(limit_us, LIMIT_MIN_US)
        self._told = {name: Telling(name) for name in targets}
        self._awake_us = 0
        self._lock = threading.Lock()
        # What does not work: since when, and the latest error; None where it has not answered yet.
        self._failing: dict[str, tuple[int, Exception | None]] = {}

    def attempt(self, what: str, act: Callable[[], object], *, may_hang: bool = True) -> bool:
        """Uses the store, and answers whether that worked; where not, it is trouble until the same `what` works.

        may_hang: it may take as long as it likes. what: what waits meanwhile, for the log.
        """
        began_us = self._clock.elapsed_us()
        if not may_hang:
            with self._lock:
                self._failing.setdefault(what, (began_us, None))
        try:
            act()
        except Exception as error:  # a bug included: it must not end what this process is there for
            _log.error("%s wait: %s", what, said_of(error))
            with self._lock:
                since_us, _ = self._failing.get(what, (began_us, None))
                self._failing[what] = since_us, error
            return False
        with self._lock:
            self._failing.pop(what, None)
        return True

    def serve(self, stop: threading.Event) -> None:
        """Watches and tells until `stop` is set."""
        jobs: dict[str, Callable[[], object]] = {
            _BEATS: lambda: self.attempt(_BEATS, self._beat, may_hang=False),
            **{name: partial(waiting, f"alerts to {name}", partial(self.tell, name)) for name in self._told},
        }
        running: dict[str, Future[object]] = {}
        self._awake_us = self._clock.elapsed_us()
        with ThreadPoolExecutor(len(jobs), thread_name_prefix="trueup-direct") as pool:
            while not stop.is_set():
                for name, job in jobs.items():
                    if name not in running or running[name].done():
                        running[name] = pool.submit(job)
                self._wait(stop)

    def conditions(self) -> list[Condition]:
        """What is wrong with the store: nothing, or one condition."""
        now_us = self._clock.elapsed_us()
        with self._lock:
            since_us, error = min(self._failing.values(), key=lambda each: each[0], default=(now_us, None))
        if now_us - since_us < self._limit_us:
            return []
        return [condition_of_state(self._store, error, self._clock.now_us() - (now_us - since_us))]

    def _wait(self, stop: threading.Event) -> None:
        """Until the next sign of life, or until what fails has failed for as long as it may."""
        now_us = self._clock.elapsed_us()
        with self._lock:
            left = [since_us + self._limit_us - now_us for since_us, _ in self._failing.values()]
        pause_s = min([self._every_s, *(each / 1e6 for each in left if each > 0)])
        stop.wait(max(PAUSE_S_MIN, pause_s))
        self._awake_us, before_us = self._clock.elapsed_us(), self._awake_us
        if self._awake_us - before_us > (self._every_s + LATE_S) * 1e6:  # it was not the store that gave no answer
            with self._lock:
                self._failing = {what: (self._awake_us, error) for what, (_, error) in self._failing.items()}

    def tell(self, name: str) -> None:
        """One message to one target, where there is anything to tell it."""
        seen, now_us = self._told[name], self._clock.now_us()
        some = news(seen.known, self.conditions(), (STATE,))
        if seen.ready_us > now_us or (seen.outgoing is None and not any(some)):
            return
        message = seen.outgoing or Message(self._ident(name, some), now_us, *some)
        telling = replace(seen, outgoing=message)
        hand_over(
            telling, lambda: self._send(name, message), lambda at_us: delivered(telling, at_us), self._note,
            now_us=self._clock.now_us, share=self._chance.random(), what=f"alerts to {name}",
        )  # fmt: skip

    def _note(self, telling: Telling) -> bool:
        self._told[telling.name] = telling
        return True

    def _ident(self, name: str, some: News) -> str:
        """Equal for processes that saw the same begin, or nearly so; never that of an outage before or after it.

        Each lasted longer than the limit, so that no two of them began within the same stretch of that length.
        """
        began, ended = some
        stretch_us = ((began or ended)[0].since_us or 0) // self._limit_us * self._limit_us
        return f"{self._project}-{name}-state-{'began' if began else 'ended'}-{stretch_us}"
