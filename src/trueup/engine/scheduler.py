"""The scheduler: claims what is due and runs it, a few at a time, the longest due first.

Several schedulers may share a store: each turn is claimed by one of them. One process never starts two runs of a pair
at once; the second waits until the first has ended. Across processes the pair's slot sees to that.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from trueup.engine.report import Report
from trueup.engine.run import Phase
from trueup.engine.schedules import declare_schedules
from trueup.errors import RunStopped, RunUnderWay, StateError, TrueupError
from trueup.model import turn as rules
from trueup.model.schedule import CHANGED, COMPARE, SWEEP, Schedule
from trueup.model.turn import Turn
from trueup.pair import Handlers, Pair
from trueup.ports import Archive, Budgets, Clock, Ledger

TURN_LEASE_US: Final = 60_000_000
RELOAD_US: Final = 5_000_000
IDLE_S: Final = 0.5
STATE_PAUSE_S_MAX: Final = 30.0
ERROR_CHARACTERS_MAX: Final = 500
_log = logging.getLogger(__name__)

_PHASES: Final[Mapping[str, Phase]] = {SWEEP: "sweep", COMPARE: "compare", CHANGED: "changed"}
How = Literal["done", "refused", "stopped", "failed"]


def logged(performed: Performed) -> None:
    """Says what failed and what was missed."""
    if performed.error is not None:
        _log.error("pair %s: its %s failed: %s", performed.pair, performed.what, performed.error)
    if performed.passed:
        _log.warning(
            "pair %s: %d times of its %s had passed; one run stands for them",
            performed.pair, performed.passed, performed.what,
        )  # fmt: skip


class Runnable(Protocol):
    """A pair that can be run."""

    @property
    def pair(self) -> Pair:
        """What was declared."""

    @property
    def handlers(self) -> Handlers:
        """What acts on its changes."""

    def run(self, only: Phase, *, enqueue: bool, stop: Callable[[], bool]) -> Report:
        """Reconciles the pair. Raises RunUnderWay, RunStopped, and what a side raises."""


@dataclass(frozen=True, slots=True)
class Performed:
    """How a run that was due came to its end.

    late_us: from due to start. took_us: from start to end. passed: times that had passed and that it stands for; 0
    where it was just its own. report: of a run that was done. error: what a run said that failed.
    """

    pair: str
    what: str
    how: How
    late_us: int
    took_us: int
    passed: int = 0
    report: Report | None = None
    error: str | None = None


class Scheduler:
    """Starts the runs of some pairs when they are due; their jobs are left to workers.

    owner: its name in leases. runs_at_once: runs of different pairs at the same time. chance: spreads what is tried
    again. lease_us: after so long a turn is due again whose process died. Raises HandlerError where nothing would act
    on what a run finds.
    """

    def __init__(
        self,
        ledger: Ledger,
        archive: Archive,
        budgets: Budgets,
        clock: Clock,
        runnable: Mapping[str, Runnable],
        *,
        owner: str,
        chance: random.Random,
        runs_at_once: int = 2,
        lease_us: int = TURN_LEASE_US,
    ) -> None:
        self._ledger, self._archive, self._budgets, self._clock = ledger, archive, budgets, clock
        self._runnable = runnable
        self._pairs = {name: each.pair for name, each in runnable.items() if each.pair.schedules}
        for name, pair in self._pairs.items():
            runnable[name].handlers.check(pair)
        self._owner, self._chance = owner, chance
        self._runs_at_once, self._lease_us = runs_at_once, lease_us
        self._lock = threading.Lock()
        self._due: list[Turn] = []
        self._busy: set[str] = set()
        self._load_at_us, self._next_us, self._moved = 0, 0, True

    def declare(self) -> None:
        """Tells the store what is scheduled, so that what is new has its first time."""
        declare_schedules(self._pairs.values(), self._archive, self._ledger.now_us())

    def serve(self, stop: threading.Event, told: Callable[[Performed], None] = logged) -> None:
        """Starts what is due until `stop` is set; runs under way then stop at their next checkpoint.

        told: how each run ended; by default what failed or was missed is logged. Trouble of the state store is a pause.
        """

        def loop() -> None:
            pause_s, declared = 0.0, False
            while not stop.is_set():
                try:
                    if not declared:
                        self.declare()
                        declared = True
                    performed = self.once(stop.is_set)
                except StateError as error:
                    pause_s = min(STATE_PAUSE_S_MAX, max(1.0, 2 * pause_s))
                    _log.error("schedules wait for %.0f s: %s", pause_s, error)
                    stop.wait(pause_s)
                    continue
                except BaseException:
                    stop.set()  # the other threads must not hide that this one is gone
                    raise
                pause_s = 0.0
                if performed is None:
                    self._clock.sleep(self._idle_s())
                else:
                    told(performed)

        with ThreadPoolExecutor(self._runs_at_once, thread_name_prefix="trueup-run") as pool:
            for future in [pool.submit(loop) for _ in range(self._runs_at_once)]:
                future.result()

    def once(self, stop: Callable[[], bool] = lambda: False) -> Performed | None:
        """Runs what has been due the longest, to its end; None where nothing is due."""
        while (seen := self._take()) is not None:
            try:
                turn = self._archive.claim_turn(seen, self._owner, self._lease_us)
                if turn is not None:
                    return self._run(turn, seen, stop)
            finally:
                with self._lock:
                    self._busy.discard(seen.pair)
                    self._moved = True
        return None

    # ── which one ────────────────────────────────────────────────────────────────────────────────────

    def _take(self) -> Turn | None:
        """The turn that has been due the longest, of a pair that is not busy; it is from now on."""
        if self._must_load():
            self._load()
        with self._lock:
            for place, turn in enumerate(self._due):
                if turn.pair not in self._busy:
                    self._busy.add(turn.pair)
                    return self._due.pop(place)
        return None

    def _must_load(self) -> bool:
        now_us, elapsed_us = self._ledger.now_us(), self._clock.elapsed_us()
        with self._lock:
            # What became due since stands behind what is here, so the list may be worked to its end.
            exhausted = all(turn.pair in self._busy for turn in self._due)
            return elapsed_us >= self._load_at_us or (exhausted and (self._moved or now_us >= self._next_us))

    def _load(self) -> None:
        with self._lock:
            self._moved = False
        now_us = self._ledger.now_us()
        turns = [
            (turn, self._schedule(turn).opens_us(max(turn.ready_us, now_us)))
            for turn in self._archive.turns(list(self._pairs))
            if turn.paused_by is None and turn.what in self._pairs[turn.pair].schedules
        ]
        due = [turn for turn, starts_us in turns if starts_us <= now_us]
        held = self._held_by_people({turn.pair for turn in due})
        loaded_us = self._clock.elapsed_us()
        with self._lock:
            self._due = [turn for turn in due if turn.pair not in held]
            self._next_us = min((starts for _, starts in turns if starts > now_us), default=now_us + RELOAD_US)
            self._load_at_us = loaded_us + RELOAD_US

    def _held_by_people(self, pairs: set[str]) -> set[str]:
        """Those of these pairs of which a person paused a system; trouble of a system is left to the run to find."""
        systems = sorted({system for name in pairs for system in self._pairs[name].systems})
        healths = self._budgets.healths(systems) if systems else {}
        return {name for name in pairs if any(healths[system].by_person for system in self._pairs[name].systems)}

    def _schedule(self, turn: Turn) -> Schedule:
        return self._pairs[turn.pair].schedules[turn.what]

    def _idle_s(self) -> float:
        left_us = self._next_us - self._ledger.now_us()
        return min(IDLE_S, max(left_us / 1e6, 0.01))

    # ── one run ──────────────────────────────────────────────────────────────────────────────────────

    def _run(self, turn: Turn, seen: Turn, stop: Callable[[], bool]) -> Performed:
        schedule, began_us = self._schedule(turn), self._clock.elapsed_us()
        report, error = None, None
        end_rhythm = self._clock.every(self._lease_us / 3e6, lambda: self._archive.keep_turn(turn, self._lease_us))
        try:
            how, report = self._performed(turn, stop)
        except Exception as trouble:  # one pair's trouble must not end the others' schedules
            how, error = "failed", _said(trouble)
        finally:
            end_rhythm()
        now_us = self._ledger.now_us()
        if how == "failed":
            ended = rules.failed(turn, seen, schedule, now_us, self._chance.random())
        else:
            ended = {"done": rules.done, "refused": rules.occupied, "stopped": rules.stopped}[how](
                turn, seen, schedule, now_us
            )
        if not self._archive.end_turn(ended):
            _log.warning("pair %s: another process has taken over its %s", turn.pair, turn.what)
        late_us, passed = (turn.started_us or now_us) - seen.due_us, rules.passed(turn, seen, schedule)
        took_us = self._clock.elapsed_us() - began_us
        return Performed(turn.pair, turn.what, how, late_us, took_us, passed, report, error)

    def _performed(self, turn: Turn, stop: Callable[[], bool]) -> tuple[How, Report | None]:
        try:
            return "done", self._runnable[turn.pair].run(_PHASES[turn.what], enqueue=True, stop=stop)
        except RunUnderWay:
            return "refused", None
        except RunStopped:
            # Not told to: it lost its slot to another process, which goes on with it.
            return ("stopped" if stop() else "refused"), None


def _said(trouble: Exception) -> str:
    # The message of an error that is not ours may hold values of records.
    text = f"{type(trouble).__name__}: {trouble}" if isinstance(trouble, TrueupError) else type(trouble).__name__
    return text[:ERROR_CHARACTERS_MAX]
