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
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

from trueup.engine.options import Phase
from trueup.engine.outages import through_outages
from trueup.engine.report import Report
from trueup.engine.schedules import declare_schedules
from trueup.errors import RunStopped, RunUnderWay, TrueupError
from trueup.model import turn as rules
from trueup.model.outcome import HandlerOutcome
from trueup.model.schedule import CHANGED, COMPARE, SWEEP, Schedule
from trueup.model.turn import Turn
from trueup.pair import Handlers, Pair
from trueup.ports import Archive, Budgets, Clock, Ledger

TURN_LEASE_US: Final = 60_000_000
RELOAD_US: Final = 5_000_000
IDLE_S: Final = 0.5
ERROR_CHARACTERS_MAX: Final = 500
_log = logging.getLogger(__name__)

_PHASES: Final[Mapping[str, Phase]] = {SWEEP: "sweep", COMPARE: "compare", CHANGED: "changed"}
Place: TypeAlias = tuple[str, str]
How = Literal["done", "refused", "stopped", "failed"]


def logged(performed: Performed) -> None:
    """Says what failed and what was missed; and, to who wants to know, how each ended."""
    about = {"pair": performed.pair, "what": performed.what}
    if performed.error is not None:
        _log.error(
            "pair %s: its %s failed: %s", performed.pair, performed.what, performed.error,
            extra={**about, "event": "run_failed", "error": performed.error},
        )  # fmt: skip
    if performed.passed:
        _log.warning(
            "pair %s: %d times of its %s had passed; one run stands for them",
            performed.pair, performed.passed, performed.what,
            extra={**about, "event": "runs_missed", "missed": performed.passed},
        )  # fmt: skip
    _log.info(
        "pair %s: its %s, %.3f s late, ended: %s",
        performed.pair, performed.what, performed.late_us / 1e6, performed.how,
        extra={
            **about, "event": "turn_ended", "how": performed.how, "late_us": performed.late_us,
            "took_us": performed.took_us, "run": None if performed.report is None else performed.report.number,
        },
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
        # What is known of turns that this process is not at, each with the time from which it may start.
        self._known: dict[Place, tuple[int, Turn]] = {}
        self._ended: dict[Place, tuple[int, Turn]] = {}
        self._busy: set[str] = set()
        self._load_at_us = 0

    def declare(self) -> None:
        """Tells the store what is scheduled, so that what is new has its first time."""
        declare_schedules(self._pairs.values(), self._archive, self._ledger.now_us())

    def serve(self, stop: threading.Event, told: Callable[[Performed], None] = logged) -> None:
        """Starts what is due until `stop` is set; runs under way then stop at their next checkpoint.

        told: how each run ended; by default what failed or was missed is logged. Trouble of the state store is a pause.
        """

        def loop() -> None:
            declared = False

            def start() -> Performed | None:
                nonlocal declared
                if not declared:
                    self.declare()
                    declared = True
                return self.once(stop.is_set)

            through_outages(stop, start, tell, "schedules wait")

        def tell(performed: Performed | None) -> None:
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
                turn = self._claimed(seen)
                if turn is not None:
                    return self._run(turn, seen, stop)
            finally:
                with self._lock:
                    self._busy.discard(seen.pair)
        return None

    # ── which one ────────────────────────────────────────────────────────────────────────────────────

    def _take(self) -> Turn | None:
        """The turn that has been due the longest, of a pair that is not busy; it is from now on."""
        if self._must_load():
            self._load()
        now_us = self._ledger.now_us()
        with self._lock:
            due = [
                turn for starts_us, turn in self._known.values() if starts_us <= now_us and turn.pair not in self._busy
            ]
            if not due:
                return None
            first = min(due, key=lambda turn: (turn.due_us, turn.pair, turn.what))
            self._busy.add(first.pair)
            del self._known[first.pair, first.what]
            return first

    def _must_load(self) -> bool:
        """Whether it is time to see what others did; one thread is told so."""
        elapsed_us = self._clock.elapsed_us()
        with self._lock:
            if elapsed_us < self._load_at_us:
                return False
            self._load_at_us = elapsed_us + RELOAD_US
            self._ended = {}
            return True

    def _load(self) -> None:
        try:
            turns = self._archive.turns(list(self._pairs))
        except BaseException:
            self._load_at_us = 0
            raise
        known = {
            (turn.pair, turn.what): (self._schedule(turn).opens_us(turn.ready_us), turn)
            for turn in turns
            if turn.paused_by is None and turn.what in self._pairs[turn.pair].schedules
        }
        with self._lock:
            # What this process ended since it began to read is newer than what it read.
            self._known = known | self._ended

    def _claimed(self, seen: Turn) -> Turn | None:
        """The turn, claimed, unless it may not start now, or somebody was faster: then the next reading tells."""
        now_us = self._ledger.now_us()
        if self._schedule(seen).opens_us(now_us) > now_us or self._held_by_person(seen.pair):
            return None
        return self._archive.claim_turn(seen, self._owner, self._lease_us)

    def _held_by_person(self, pair: str) -> bool:
        """Whether a person paused a system of the pair; trouble of a system is left to the run to find."""
        healths = self._budgets.healths(self._pairs[pair].systems)
        return any(health.by_person for health in healths.values())

    def _idle_s(self) -> float:
        now_us = self._ledger.now_us()
        with self._lock:
            next_us = min((starts_us for starts_us, _ in self._known.values() if starts_us > now_us), default=None)
        return IDLE_S if next_us is None else min(IDLE_S, max((next_us - now_us) / 1e6, 0.01))

    def _schedule(self, turn: Turn) -> Schedule:
        return self._pairs[turn.pair].schedules[turn.what]

    # ── one run ──────────────────────────────────────────────────────────────────────────────────────

    def _run(self, turn: Turn, seen: Turn, stop: Callable[[], bool]) -> Performed:
        schedule, began_us = self._schedule(turn), self._clock.elapsed_us()
        report, error = None, None
        end_rhythm = self._clock.every(self._lease_us / 3e6, lambda: self._archive.keep_turn(turn, self._lease_us))
        try:
            how, report = self._performed(turn, stop)
        except Exception as trouble:  # one pair's trouble must not end the others' schedules
            how, error = "failed", _said(trouble, self._pairs[turn.pair])
        finally:
            end_rhythm()
        now_us = self._ledger.now_us()
        if how == "failed":
            ended = rules.failed(turn, seen, schedule, now_us, self._chance.random())
        else:
            ended = {"done": rules.done, "refused": rules.occupied, "stopped": rules.stopped}[how](
                turn, seen, schedule, now_us
            )
        if self._archive.end_turn(ended):
            place, kept = (turn.pair, turn.what), (schedule.opens_us(ended.ready_us), replace(ended, owner=""))
            with self._lock:
                self._known[place] = self._ended[place] = kept
        else:
            _log.warning(
                "pair %s: another process has taken over its %s", turn.pair, turn.what,
                extra={"event": "run_taken_over", "pair": turn.pair, "what": turn.what},
            )  # fmt: skip
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


def _said(trouble: Exception, pair: Pair) -> str:
    # The message of an error that is not ours may hold values of records, and one of ours may hold a key.
    ours = isinstance(trouble, TrueupError | HandlerOutcome) and not {*pair.redact} & {*pair.key}
    text = f"{type(trouble).__name__}: {trouble}" if ours else type(trouble).__name__
    return text[:ERROR_CHARACTERS_MAX]
