"""Schedules in memory: turns of this process, gone when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from trueup.model import turn as rules
from trueup.model.turn import Turn
from trueup.ports import Clock


class MemorySchedules:
    """Turns of this process."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self._turns: dict[tuple[str, str], Turn] = {}
        self._turns_lock = threading.Lock()

    def declare_turns(self, turns: Sequence[Turn]) -> None:
        """Stores those that are new; one whose rule is another than the stored one gets the new times."""
        with self._turns_lock:
            for turn in turns:
                place = turn.pair, turn.what
                self._turns[place] = rules.declared(self._turns.get(place), turn)

    def turns(self, pairs: Sequence[str]) -> list[Turn]:
        """All turns of these pairs, the longest due first."""
        wanted = set(pairs)
        with self._turns_lock:
            found = [turn for turn in self._turns.values() if turn.pair in wanted]
        return sorted(found, key=lambda turn: (turn.due_us, turn.pair, turn.what))

    def claim_turn(self, turn: Turn, owner: str, lease_us: int) -> Turn | None:
        """Takes a turn that is due and that nobody changed since it was read; None where somebody did."""
        with self._turns_lock:
            now_us, stored = self._turns_now_us(), self._stored(turn)
            if stored is None or not rules.claimable(stored, turn, now_us):
                return None
            return self._kept_turn(rules.claim(stored, owner, now_us, lease_us))

    def keep_turn(self, turn: Turn, lease_us: int) -> bool:
        """Extends the lease; False where it was lost."""
        with self._turns_lock:
            stored = self._stored(turn)
            if stored is None or not rules.held(stored, turn):
                return False
            self._kept_turn(replace(stored, ready_us=self._turns_now_us() + lease_us))
            return True

    def end_turn(self, turn: Turn) -> bool:
        """Frees a turn and stores when it is due next; False where the fence is old."""
        with self._turns_lock:
            stored = self._stored(turn)
            if stored is None or not rules.held(stored, turn):
                return rules.has_ended(stored, turn)
            self._kept_turn(rules.ended(stored, turn, self._turns_now_us()))
            return True

    def pause_turns(self, pair: str, by: str, reason: str) -> int:
        """A person holds the schedules of a pair; answers how many there are."""
        return self._change(pair, None, lambda turn: replace(turn, paused_by=by, reason=reason))

    def resume_turns(self, pair: str) -> int:
        """Ends the pause."""
        return self._change(pair, None, lambda turn: replace(turn, paused_by=None, reason=""))

    def hasten_turns(self, pair: str, what: str | None = None) -> int:
        """Makes turns of a pair due now; answers how many."""
        return self._change(pair, what, lambda turn: rules.hastened(turn, self._turns_now_us()))

    def _change(self, pair: str, what: str | None, change: Callable[[Turn], Turn | None]) -> int:
        with self._turns_lock:
            chosen = [turn for turn in self._turns.values() if turn.pair == pair and what in (None, turn.what)]
            changed = [turn for turn in map(change, chosen) if turn is not None]
            for turn in changed:
                self._kept_turn(turn)
            return len(changed)

    def _stored(self, turn: Turn) -> Turn | None:
        return self._turns.get((turn.pair, turn.what))

    def _kept_turn(self, turn: Turn) -> Turn:
        self._turns[turn.pair, turn.what] = turn
        return turn

    def _turns_now_us(self) -> int:
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()
