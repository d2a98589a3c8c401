"""Runs in SQL: slots, checkpoints, pieces and cursors; the plan stands in a file of its own.

Concurrency: whoever changes a run holds the row of its slot, whoever changes a piece holds its row, and whoever puts
a run on record takes the chain of evidence last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trueup.model import run as rules
from trueup.model.evidence import Fact, died
from trueup.model.run import DONE, OPEN, Begun, Piece, Run, Slot
from trueup.model.trend import RunDrift
from trueup.ports import Clock
from trueup.stores.sql.evidence import recorded
from trueup.stores.sql.storage import Session, Storage, as_json, batches, marks, storable
from trueup.stores.sql.trends import add_drift

_RUN: Final = "pair, what, started_us, cutoff_us, number, ended_us, ended, error, counts, done, memo"
_LEASE: Final = "owner, fence, lease_until"
_RUNS: Final = f"""
    SELECT {", ".join(f"r.{name}" for name in _RUN.split(", "))}, s.owner, s.fence, s.lease_until
    FROM trueup_run r LEFT JOIN trueup_slot s ON s.pair = r.pair AND s.run = r.number AND s.owner <> ''
"""
_SLOT: Final = f"pair, run, {_LEASE}, refusals"
_PIECE: Final = f"run, number, low, high, state, counts, {_LEASE}, from_us, to_us"
_CUT: Final = f"INSERT INTO trueup_piece ({_PIECE}) VALUES ({marks(_PIECE.split())})"
_SUSPECT: Final = "INSERT INTO trueup_suspect (run, key) VALUES (?, ?) ON CONFLICT (run, key) DO NOTHING"


class SqlRuns:
    """Runs in a database. clock: of the leases; by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def begin_run(self, run: Run, owner: str, lease_us: int) -> Run | None:
        """Takes the slot of the run's pair, for this run or for the one that it goes on with; None where refused."""
        taken: Run | None = None

        def begin(session: Session) -> Run | None:
            nonlocal taken
            session.execute("INSERT INTO trueup_slot (pair) VALUES (?) ON CONFLICT (pair) DO NOTHING", (run.pair,))
            slot = self._slot(session, run.pair)
            if taken is not None and rules.held(slot, taken):
                return taken  # this is a repetition: the answer to the commit was lost
            last = self._run(session, slot.run)
            begun = rules.begin(slot, last, run, owner, self._now_us(session), lease_us)
            taken = self._save_begun(session, begun)
            return taken

        return self._storage.write(begin)

    def refusals(self, pair: str) -> int:
        """How many runs of the pair were refused because another one was under way."""
        found = self._all("SELECT refusals FROM trueup_slot WHERE pair = ?", (pair,))
        return int(found[0][0]) if found else 0

    def keep_run(self, run: Run, lease_us: int) -> bool:
        """Extends the lease of the slot; False where it was lost."""

        def keep(session: Session) -> bool:
            if not rules.held(slot := self._slot(session, run.pair), run):
                return False
            self._save_slot(session, replace(slot, lease_until_us=self._now_us(session) + lease_us))
            return True

        return self._storage.write(keep)

    def save_run(self, run: Run) -> bool:
        """A checkpoint; False, and nothing stored, where the fence is old."""

        def save(session: Session) -> bool:
            if not rules.held(self._slot(session, run.pair), run):
                return False
            session.execute(
                "UPDATE trueup_run SET cutoff_us = ?, counts = ?, done = ?, memo = ? WHERE number = ?",
                (run.cutoff_us, as_json(run.counts), as_json(run.done), as_json(run.memo), run.number),
            )
            return True

        return self._storage.write(save)

    def close_run(
        self,
        run: Run,
        cursors: Mapping[str, int] | None = None,
        fact: Fact | None = None,
        drift: RunDrift | None = None,
    ) -> bool:
        """Stores how it ended, frees the slot and moves cursors (by name); False where the fence is old."""

        def close(session: Session) -> bool:
            slot = self._slot(session, run.pair)
            if not rules.held(slot, run):
                return rules.closed(slot, self._run(session, run.number), run)
            self._save_run(session, run)
            self._save_slot(session, replace(slot, owner="", lease_until_us=0))
            session.executemany(
                "INSERT INTO trueup_cursor VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                sorted((cursors or {}).items()),
            )
            if drift is not None:
                add_drift(session, drift)
            if fact is not None:
                recorded(session, self._storage, self._clock, fact)
            return True

        return self._storage.write(close)

    def run(self, number: int) -> Run | None:
        """The run of this number, or None."""
        return self._storage.read(lambda session: self._run(session, number))

    def runs(self, pair: str, limit: int = 20, what: Sequence[str] = ()) -> list[Run]:
        """The newest runs first; only these kinds of run, or all."""
        kinds = f"AND r.what IN ({marks(what)})" if what else ""
        found = self._all(f"{_RUNS} WHERE r.pair = ? {kinds} ORDER BY r.number DESC LIMIT ?", (pair, *what, limit))
        return [_run(values) for values in found]

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved."""
        found = self._all("SELECT value FROM trueup_cursor WHERE name = ?", (name,))
        return int(found[0][0]) if found else None

    # ── pieces ───────────────────────────────────────────────────────────────────────────────────────

    def cut(self, run: int, pieces: Sequence[Piece]) -> None:
        """Stores the pieces of a run; nothing where it has some already."""

        def cut(session: Session) -> None:
            # Two that cut the same run do it one after the other.
            session.execute(f"SELECT number FROM trueup_run WHERE number = ? {self._storage.for_update}", (run,))
            if session.execute("SELECT 1 FROM trueup_piece WHERE run = ? LIMIT 1", (run,)).fetchone() is None:
                session.executemany(_CUT, [_kept(replace(piece, run=run)) for piece in pieces])

        self._storage.write(cut)

    def claim_piece(self, run: int, owner: str, lease_us: int) -> Piece | None:
        """The first piece that is open and that nobody works on, leased; None where there is none now."""
        taken: Piece | None = None

        def claim(session: Session) -> Piece | None:
            nonlocal taken
            if taken is not None and rules.claimed(self._piece(session, taken), taken):
                return taken  # this is a repetition: the answer to the commit was lost
            now_us = self._now_us(session)
            found = session.execute(
                f"SELECT {_PIECE} FROM trueup_piece WHERE run = ? AND state = '{OPEN}' AND lease_until <= ? "
                f"ORDER BY number LIMIT 1 {self._storage.skip_locked}",
                (run, now_us),
            ).fetchone()
            if found is None or not self._under_way(session, run):
                return None
            taken = rules.claim(_piece(found), owner, now_us, lease_us)
            self._save_piece(session, taken)
            return taken

        return self._storage.write(claim)

    def keep_piece(self, piece: Piece, lease_us: int) -> bool:
        """Extends the lease; False where it was lost."""

        def keep(session: Session) -> bool:
            stored = self._piece(session, piece)
            if stored is None or not (rules.claimed(stored, piece) and self._under_way(session, piece.run)):
                return False
            self._save_piece(session, replace(stored, lease_until_us=self._now_us(session) + lease_us))
            return True

        return self._storage.write(keep)

    def finish_piece(self, piece: Piece, suspects: Sequence[str]) -> bool:
        """Stores what the piece counted and its differing keys; False, and nothing stored, where the fence is old."""

        def finish(session: Session) -> bool:
            stored = self._piece(session, piece)
            if stored is None or not (rules.claimed(stored, piece) and self._under_way(session, piece.run)):
                return rules.finished(stored, piece)
            self._save_piece(session, replace(stored, state=DONE, counts=piece.counts, lease_until_us=0))
            rows = [(piece.run, key) for key in sorted(suspects)]
            session.executemany(_SUSPECT, rows)
            return True

        return self._storage.write(finish)

    def pieces(self, run: int) -> list[Piece]:
        """All pieces of a run, by number."""
        found = self._all(f"SELECT {_PIECE} FROM trueup_piece WHERE run = ? ORDER BY number", (run,))
        return [_piece(values) for values in found]

    def runs_with_pieces(self, pairs: Sequence[str]) -> list[Run]:
        """Open runs of these pairs with a piece that somebody could claim now."""

        def look(session: Session) -> list[Run]:
            now_us, found = self._now_us(session), []
            for batch in batches(sorted(set(pairs))):
                statement = f"""
                    {_RUNS} WHERE r.number IN (SELECT run FROM trueup_slot WHERE pair IN ({marks(batch)}))
                    AND r.ended = '{OPEN}' AND EXISTS (SELECT 1 FROM trueup_piece p
                        WHERE p.run = r.number AND p.state = '{OPEN}' AND p.lease_until <= ?)
                """
                found += [_run(values) for values in session.execute(statement, (*batch, now_us)).fetchall()]
            return sorted(found, key=lambda run: run.number)

        return self._storage.read(look)

    # ── within a transaction ─────────────────────────────────────────────────────────────────────────

    def _slot(self, session: Session, pair: str) -> Slot:
        """The slot of the pair, held until the transaction ends."""
        statement = f"SELECT {_SLOT} FROM trueup_slot WHERE pair = ? {self._storage.for_update}"
        found = session.execute(statement, (pair,)).fetchone()
        return Slot(pair) if found is None else Slot(*found)

    def _save_slot(self, session: Session, slot: Slot) -> None:
        session.execute(
            "UPDATE trueup_slot SET run = ?, owner = ?, fence = ?, lease_until = ?, refusals = ? WHERE pair = ?",
            (slot.run, slot.owner, slot.fence, slot.lease_until_us, slot.refusals, slot.pair),
        )

    def _save_begun(self, session: Session, begun: Begun) -> Run | None:
        taken = begun.run
        if begun.dead is not None:
            self._save_run(session, begun.dead)
            recorded(session, self._storage, self._clock, died(begun.dead))
        if taken is not None and not taken.number:
            taken = replace(taken, number=self._insert(session, taken))
        self._save_slot(session, begun.slot if taken is None else replace(begun.slot, run=taken.number))
        return taken

    def _run(self, session: Session, number: int) -> Run | None:
        found = session.execute(f"{_RUNS} WHERE r.number = ?", (number,)).fetchone()
        return None if found is None else _run(found)

    def _under_way(self, session: Session, number: int) -> bool:
        found = session.execute("SELECT ended FROM trueup_run WHERE number = ?", (number,)).fetchone()
        return found is not None and found[0] == OPEN

    def _insert(self, session: Session, run: Run) -> int:
        names = [name for name in _RUN.split(", ") if name != "number"]
        statement = f"INSERT INTO trueup_run ({', '.join(names)}) VALUES ({marks(names)})"
        return self._storage.inserted(session, statement, (run.pair, run.what, run.started_us, *_progress(run)))

    def _save_run(self, session: Session, run: Run) -> None:
        session.execute(
            "UPDATE trueup_run SET cutoff_us = ?, ended_us = ?, ended = ?, error = ?, counts = ?, done = ?, memo = ? "
            "WHERE number = ?",
            (*_progress(run), run.number),
        )

    def _piece(self, session: Session, piece: Piece) -> Piece | None:
        """The piece as it is stored, held until the transaction ends."""
        statement = f"SELECT {_PIECE} FROM trueup_piece WHERE run = ? AND number = ? {self._storage.for_update}"
        found = session.execute(statement, (piece.run, piece.number)).fetchone()
        return None if found is None else _piece(found)

    def _save_piece(self, session: Session, piece: Piece) -> None:
        session.execute(
            "UPDATE trueup_piece SET state = ?, counts = ?, owner = ?, fence = ?, lease_until = ? "
            "WHERE run = ? AND number = ?",
            (*_kept(piece)[4:9], piece.run, piece.number),
        )

    def _now_us(self, session: Session) -> int:
        return self._storage.now_us(session, self._clock)

    def _all(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        found: list[Any] = self._storage.read(lambda session: session.execute(statement, parameters).fetchall())
        return found


def _progress(run: Run) -> tuple[Any, ...]:
    return (
        run.cutoff_us, run.ended_us, run.ended, None if run.error is None else storable(run.error),
        as_json(run.counts), as_json(run.done), as_json(run.memo),
    )  # fmt: skip


def _run(values: Sequence[Any]) -> Run:
    named = dict(zip(_RUN.split(", "), values, strict=False))
    owner, fence, lease_until_us = values[-3:]
    for name in ("counts", "done", "memo"):
        named[name] = json.loads(named[name])
    lease = {"owner": owner or "", "fence": fence or 0, "lease_until_us": lease_until_us or 0}
    return Run(**named | lease | {"done": tuple(named["done"])})


def _kept(piece: Piece) -> tuple[Any, ...]:
    # As JSON, because the text of a key may hold what a database does not take.
    low, high = (None if bound is None else json.dumps(bound) for bound in (piece.low, piece.high))
    counts = as_json(piece.counts)
    return (
        piece.run, piece.number, low, high, piece.state, counts, piece.owner, piece.fence, piece.lease_until_us,
        piece.from_us, piece.to_us,
    )  # fmt: skip


def _piece(values: Sequence[Any]) -> Piece:
    run, number, low, high, state, counts, *rest = values
    low, high = (None if bound is None else json.loads(bound) for bound in (low, high))
    return Piece(run, number, low, high, state, json.loads(counts), *rest)
