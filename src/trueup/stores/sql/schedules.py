"""Schedules in SQL. Whoever changes a turn holds its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, fields, replace
from typing import Any, Final

from trueup.model import turn as rules
from trueup.model.turn import Turn
from trueup.ports import Clock
from trueup.stores.sql.storage import Session, Storage, batches, marks, storable

_NAMES: Final = tuple(field.name for field in fields(Turn))
_COLUMNS: Final = ", ".join(_NAMES)
_INSERT: Final = f"""
    INSERT INTO trueup_schedule ({_COLUMNS}) VALUES ({marks(_NAMES)}) ON CONFLICT (pair, what) DO NOTHING
"""
_UPDATE: Final = f"""
    UPDATE trueup_schedule SET {", ".join(f"{name} = ?" for name in _NAMES[2:])} WHERE pair = ? AND what = ?
"""


class SqlSchedules:
    """Turns in a database. clock: of the leases; by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def declare_turns(self, turns: Sequence[Turn]) -> None:
        """Stores those that are new; one whose rule is another than the stored one gets the new times."""
        ordered = sorted(turns, key=lambda turn: (turn.pair, turn.what))

        def declare(session: Session) -> None:
            # Most are known and the same: what is there is read first, and rows are held only where they change.
            known = {(turn.pair, turn.what): turn for turn in self._of_pairs(session, [t.pair for t in ordered])}
            new = [turn for turn in ordered if (turn.pair, turn.what) not in known]
            session.executemany(_INSERT, [astuple(turn) for turn in new])
            for turn in ordered:
                seen = known.get((turn.pair, turn.what))
                if seen is not None and seen.rule != turn.rule:
                    self._save_turn(session, rules.declared(self._turn(session, turn), turn))

        self._storage.write(declare)

    def turns(self, pairs: Sequence[str]) -> list[Turn]:
        """All turns of these pairs, the longest due first."""
        found = self._storage.read(lambda session: self._of_pairs(session, pairs))
        return sorted(found, key=lambda turn: (turn.due_us, turn.pair, turn.what))

    def claim_turn(self, turn: Turn, owner: str, lease_us: int) -> Turn | None:
        """Takes a turn that is due and that nobody changed since it was read; None where somebody did."""
        taken: Turn | None = None

        def claim(session: Session) -> Turn | None:
            nonlocal taken
            stored = self._turn(session, turn)
            if taken is not None and rules.held(stored, taken):
                return taken  # this is a repetition: the answer to the commit was lost
            now_us = self._now_us(session)
            if stored is None or not rules.claimable(stored, turn, now_us):
                return None
            taken = rules.claim(stored, owner, now_us, lease_us)
            self._save_turn(session, taken)
            return taken

        return self._storage.write(claim)

    def keep_turn(self, turn: Turn, lease_us: int) -> bool:
        """Extends the lease; False where it was lost."""

        def keep(session: Session) -> bool:
            stored = self._turn(session, turn)
            if stored is None or not rules.held(stored, turn):
                return False
            self._save_turn(session, replace(stored, ready_us=self._now_us(session) + lease_us))
            return True

        return self._storage.write(keep)

    def end_turn(self, turn: Turn) -> bool:
        """Frees a turn and stores when it is due next; False where the fence is old."""

        def end(session: Session) -> bool:
            stored = self._turn(session, turn)
            if stored is None or not rules.held(stored, turn):
                return rules.has_ended(stored, turn)
            self._save_turn(session, rules.ended(stored, turn, self._now_us(session)))
            return True

        return self._storage.write(end)

    def pause_turns(self, pair: str, by: str, reason: str) -> int:
        """A person holds the schedules of a pair; answers how many there are."""
        by, reason = storable(by), storable(reason)
        return self._change(pair, None, lambda turn, now_us: replace(turn, paused_by=by, reason=reason))

    def resume_turns(self, pair: str) -> int:
        """Ends the pause."""
        return self._change(pair, None, lambda turn, now_us: replace(turn, paused_by=None, reason=""))

    def hasten_turns(self, pair: str, what: str | None = None) -> int:
        """Makes turns of a pair due now; answers how many."""
        return self._change(pair, what, rules.hastened)

    def _change(self, pair: str, what: str | None, change: Callable[[Turn, int], Turn | None]) -> int:
        def work(session: Session) -> int:
            statement = f"SELECT {_COLUMNS} FROM trueup_schedule WHERE pair = ? ORDER BY what"
            found = session.execute(f"{statement} {self._storage.for_update}", (pair,)).fetchall()
            now_us = self._now_us(session)
            changed = [change(turn, now_us) for turn in map(_turn, found) if what in (None, turn.what)]
            for turn in changed:
                if turn is not None:
                    self._save_turn(session, turn)
            return sum(turn is not None for turn in changed)

        return self._storage.write(work)

    # ── within a transaction ─────────────────────────────────────────────────────────────────────────

    def _of_pairs(self, session: Session, pairs: Sequence[str]) -> list[Turn]:
        found: list[Turn] = []
        for batch in batches(sorted(set(pairs))):
            statement = f"SELECT {_COLUMNS} FROM trueup_schedule WHERE pair IN ({marks(batch)})"
            found += map(_turn, session.execute(statement, tuple(batch)).fetchall())
        return found

    def _turn(self, session: Session, turn: Turn) -> Turn | None:
        """The turn as it is stored, held until the transaction ends."""
        statement = f"SELECT {_COLUMNS} FROM trueup_schedule WHERE pair = ? AND what = ? {self._storage.for_update}"
        found = session.execute(statement, (turn.pair, turn.what)).fetchone()
        return None if found is None else _turn(found)

    def _save_turn(self, session: Session, turn: Turn) -> None:
        session.execute(_UPDATE, (*astuple(turn)[2:], turn.pair, turn.what))

    def _now_us(self, session: Session) -> int:
        return self._storage.now_us(session, self._clock)


def _turn(values: Sequence[Any]) -> Turn:
    return Turn(*values)
