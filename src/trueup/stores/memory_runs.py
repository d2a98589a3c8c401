"""Runs in memory: slots, checkpoints, pieces and plans of this process, gone when it ends."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trueup.model import run as rules
from trueup.model.evidence import Fact, died
from trueup.model.plan import ItemState, PlanItem
from trueup.model.run import DONE, OPEN, Piece, Run, Slot
from trueup.model.trend import RunDrift
from trueup.ports import Clock
from trueup.stores.memory_evidence import MemoryEvidence
from trueup.stores.memory_trends import MemoryTrends


class MemoryRuns(MemoryEvidence, MemoryTrends):
    """Runs of this process."""

    def __init__(self, clock: Clock | None) -> None:
        MemoryEvidence.__init__(self, clock)
        MemoryTrends.__init__(self)
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[int, Run] = {}
        self._slots: dict[str, Slot] = {}
        self._cursors: dict[str, int] = {}
        self._pieces: dict[int, dict[int, Piece]] = {}
        self._suspects: dict[int, set[str]] = {}
        self._items: dict[int, dict[str, PlanItem]] = {}

    def begin_run(self, run: Run, owner: str, lease_us: int) -> Run | None:
        """Takes the slot of the run's pair, for this run or for the one that it goes on with; None where refused."""
        with self._lock:
            slot = self._slot(run.pair)
            begun = rules.begin(slot, self._runs.get(slot.run), run, owner, self._now_us(), lease_us)
            if begun.dead is not None:
                self._runs[begun.dead.number] = begun.dead
                self.put_on_record(died(begun.dead))
            if begun.run is None:
                self._slots[run.pair] = begun.slot
                return None
            taken = begun.run if begun.run.number else self._added(begun.run)
            self._slots[run.pair] = replace(begun.slot, run=taken.number)
            return taken

    def refusals(self, pair: str) -> int:
        """How many runs of the pair were refused because another one was under way."""
        with self._lock:
            return self._slot(pair).refusals

    def keep_run(self, run: Run, lease_us: int) -> bool:
        """Extends the lease of the slot; False where it was lost."""
        with self._lock:
            slot = self._slot(run.pair)
            if not rules.held(slot, run):
                return False
            self._slots[run.pair] = replace(slot, lease_until_us=self._now_us() + lease_us)
            return True

    def save_run(self, run: Run) -> bool:
        """A checkpoint; False, and nothing stored, where the fence is old."""
        with self._lock:
            if not rules.held(self._slot(run.pair), run):
                return False
            stored = self._runs[run.number]
            self._runs[run.number] = _plain(
                replace(stored, cutoff_us=run.cutoff_us, counts=run.counts, done=run.done, memo=run.memo)
            )
            return True

    def close_run(
        self,
        run: Run,
        cursors: Mapping[str, int] | None = None,
        fact: Fact | None = None,
        drift: RunDrift | None = None,
    ) -> bool:
        """Stores how it ended, frees the slot and moves cursors (by name); False where the fence is old."""
        with self._lock:
            slot = self._slot(run.pair)
            if not rules.held(slot, run):
                return rules.closed(slot, self._runs.get(run.number), run)
            self._runs[run.number] = _plain(run)
            self._cursors.update(cursors or {})
            self._slots[run.pair] = replace(slot, owner="", lease_until_us=0)
            if drift is not None:
                self._add_drift(drift)
            if fact is not None:
                self.put_on_record(fact)
            return True

    def run(self, number: int) -> Run | None:
        """The run of this number, or None."""
        with self._lock:
            return self._shown(self._runs[number]) if number in self._runs else None

    def runs(self, pair: str, limit: int = 20, what: Sequence[str] = ()) -> list[Run]:
        """The newest runs first; only these kinds of run, or all."""
        with self._lock:
            found = [run for _, run in sorted(self._runs.items(), reverse=True) if run.pair == pair]
            return [self._shown(run) for run in found if not what or run.what in what][:limit]

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved."""
        with self._lock:
            return self._cursors.get(name)

    # ── pieces ───────────────────────────────────────────────────────────────────────────────────────

    def cut(self, run: int, pieces: Sequence[Piece]) -> None:
        """Stores the pieces of a run; nothing where it has some already."""
        with self._lock:
            if pieces and run not in self._pieces:
                self._pieces[run] = {
                    piece.number: replace(piece, run=run, counts=dict(piece.counts))
                    for piece in sorted(pieces, key=lambda piece: piece.number)
                }

    def claim_piece(self, run: int, owner: str, lease_us: int) -> Piece | None:
        """The first piece that is open and that nobody works on, leased; None where there is none now."""
        with self._lock:
            now_us = self._now_us()
            if not self._under_way(run):
                return None
            for piece in self._pieces.get(run, {}).values():
                if rules.claimable(piece, now_us):
                    return self._kept(rules.claim(piece, owner, now_us, lease_us))
            return None

    def keep_piece(self, piece: Piece, lease_us: int) -> bool:
        """Extends the lease; False where it was lost."""
        with self._lock:
            stored = self._piece(piece)
            if stored is None or not (self._under_way(piece.run) and rules.claimed(stored, piece)):
                return False
            self._kept(replace(stored, lease_until_us=self._now_us() + lease_us))
            return True

    def finish_piece(self, piece: Piece, suspects: Sequence[str]) -> bool:
        """Stores what the piece counted and its differing keys; False, and nothing stored, where the fence is old."""
        with self._lock:
            stored = self._piece(piece)
            if stored is None or not (self._under_way(piece.run) and rules.claimed(stored, piece)):
                return rules.finished(stored, piece)
            self._kept(replace(stored, state=DONE, counts=dict(piece.counts), lease_until_us=0))
            self._suspects.setdefault(piece.run, set()).update(suspects)
            return True

    def pieces(self, run: int) -> list[Piece]:
        """All pieces of a run, by number."""
        with self._lock:
            return list(self._pieces.get(run, {}).values())

    def runs_with_pieces(self, pairs: Sequence[str]) -> list[Run]:
        """Open runs of these pairs with a piece that somebody could claim now."""
        with self._lock:
            now_us = self._now_us()
            return [
                self._shown(self._runs[run])
                for run, pieces in sorted(self._pieces.items())
                if self._under_way(run)
                and self._runs[run].pair in pairs
                and any(rules.claimable(piece, now_us) for piece in pieces.values())
            ]

    # ── the plan ─────────────────────────────────────────────────────────────────────────────────────

    def suspects(self, run: int, limit: int) -> list[str]:
        """Keys that differed and are not confirmed yet, in order; the first `limit`."""
        with self._lock:
            return sorted(self._suspects.get(run, ()))[:limit]

    def count_suspects(self, run: int) -> int:
        """How many keys are not confirmed yet."""
        with self._lock:
            return len(self._suspects.get(run, ()))

    def plan(self, run: int, items: Sequence[PlanItem], confirmed: Sequence[str]) -> None:
        """Stores items, but for those that something came of, and forgets the suspects that were confirmed."""
        with self._lock:
            planned = self._items.setdefault(run, {})
            for item in items:
                if item.key not in planned or planned[item.key].state is ItemState.PLANNED:
                    planned[item.key] = replace(item, run=run)
            self._suspects.get(run, set()).difference_update(confirmed)

    def items(
        self, run: int, *, state: ItemState | None = None, after: str = "", limit: int | None = None
    ) -> list[PlanItem]:
        """Items in key order, behind the key `after`."""
        with self._lock:
            found = sorted(self._items.get(run, {}).items())
        return [item for key, item in found if key > after and state in (None, item.state)][:limit]

    def count_items(self, run: int) -> dict[tuple[str, str, bool, str], int]:
        """How many items, by (drift, verdict, removes, state)."""
        with self._lock:
            items = self._items.get(run, {}).values()
            return dict(Counter((str(item.drift), str(item.verdict), item.removes, str(item.state)) for item in items))

    def move_items(self, run: int, keys: Sequence[str], state: ItemState) -> int:
        """Sets the state of these items; answers how many there were."""
        with self._lock:
            planned = self._items.get(run, {})
            found = [key for key in dict.fromkeys(keys) if key in planned]
            planned.update({key: replace(planned[key], state=state) for key in found})
            return len(found)

    def forget_plans(self, older_than_us: int) -> int:
        """Drops pieces, suspects and items of runs that ended before; answers of how many runs there were any."""
        with self._lock:
            of_runs = {*self._pieces, *self._suspects, *self._items}
            old = [run for run in of_runs if self._ended_before(run, older_than_us) and not self._holds(run)]
            forgotten = 0
            for run in old:
                forgotten += any([self._pieces.pop(run, {}), self._suspects.pop(run, ()), self._items.pop(run, {})])
            return forgotten

    # ── within ───────────────────────────────────────────────────────────────────────────────────────

    def _slot(self, pair: str) -> Slot:
        return self._slots.get(pair, Slot(pair))

    def _added(self, run: Run) -> Run:
        run = replace(run, number=len(self._runs) + 1)
        self._runs[run.number] = _plain(run)
        return run

    def _shown(self, run: Run) -> Run:
        """The run as it is stored, with the lease of its slot."""
        slot = self._slot(run.pair)
        return rules.holding(slot, run) if slot.owner and slot.run == run.number else run

    def _under_way(self, run: int) -> bool:
        return run in self._runs and self._runs[run].ended == OPEN

    def _ended_before(self, run: int, time_us: int) -> bool:
        ended_us = None if run not in self._runs or self._under_way(run) else self._runs[run].ended_us
        return ended_us is not None and ended_us < time_us

    def _holds(self, run: int) -> bool:
        return any(item.state is ItemState.HELD for item in self._items.get(run, {}).values())

    def _piece(self, piece: Piece) -> Piece | None:
        return self._pieces.get(piece.run, {}).get(piece.number)

    def _kept(self, piece: Piece) -> Piece:
        self._pieces[piece.run][piece.number] = piece
        return piece

    def _now_us(self) -> int:
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()


def _plain(run: Run) -> Run:
    """As a database would give it back: copied, and without a lease, which is the slot's."""
    return replace(
        run, counts=dict(run.counts), memo=json.loads(json.dumps(dict(run.memo))), owner="", fence=0, lease_until_us=0
    )
