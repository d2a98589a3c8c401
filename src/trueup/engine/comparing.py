"""The comparison of a run: in pieces, each claimed by one worker, each a checkpoint.

What a finished piece found is kept, so that a run that dies, or whose host does, reads again only the pieces that were
under way. Any worker may lend a hand.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trueup.compare.choose import compare, compare_in_place
from trueup.compare.result import Agreement, Comparison
from trueup.engine.ending import recheck_us
from trueup.engine.expecting import expected
from trueup.engine.past import Past, touched
from trueup.engine.records import Records
from trueup.engine.totals import ROLES, Roots, Totals, read_by
from trueup.engine.windows import FINAL, is_final, windows_known
from trueup.engine.windows import counted as counted_window
from trueup.model.change import UPSERT
from trueup.model.digest import HashSum
from trueup.model.digest_columns import hash_sum
from trueup.model.record import Found, Projection
from trueup.model.row import Baseline
from trueup.model.run import CHANGED, OPEN, REPORT, Piece, Run
from trueup.model.window import Span
from trueup.ports import (
    EVERYTHING,
    Archive,
    Capabilities,
    Cases,
    Clock,
    Description,
    DivisibleSide,
    Ledger,
    Runs,
    Scope,
    Side,
)

PIECE_ROWS: Final = 250_000
PIECES_MAX: Final = 1_000
PIECE_LEASE_US: Final = 60_000_000
BASELINE_BATCH: Final = 5_000
OTHERS_POLL_S: Final = 0.5
COUNTED: Final = ("left", "right", "same", "missing", "extra", "differ", "duplicate", "baseline")
# The highest version among the records that agree: where a sweep by integer versions begins after an adoption.
NEWEST: Final = "newest"

Compare = Callable[[Side, Side, "Comparing", Callable[[int, int | None], None]], Comparison]
Progress = Callable[[str, int, int | None], None]
# Raises where the run must not go on: it was told to stop, or has lost its slot.
Stop = Callable[[], None]


class Range:
    """A side as far as one piece goes. held: of a window, what the scan held that came to its end."""

    def __init__(self, side: Side, piece: Piece, totals: Totals, span: Span | None = None) -> None:
        self._side, self._piece, self._span, self.totals = side, piece, span, totals
        self.held = HashSum(0, 0)
        self.label, self.key, self.version = side.label, side.key, side.version

    @property
    def windowed(self) -> bool:
        """Whether the piece is a window."""
        return self._span is not None

    @property
    def capabilities(self) -> Capabilities:
        """The side's."""
        return self._side.capabilities

    def describe(self) -> Description:
        """The side's."""
        return self._side.describe()

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[Any]:
        """The records of the piece."""
        piece = Scope(scope.since, scope.where, self._piece.low, self._piece.high, self._span)
        batches = self.totals.watched(self._side.scan(projection, piece), projection)
        return batches if self._span is None else self._summed(batches, projection)

    def _summed(self, batches: Iterator[Any], projection: Projection) -> Iterator[Any]:
        count = total = 0
        for batch in batches:
            found = hash_sum([batch], projection)
            count, total = count + found.count, total + found.total
            yield batch
        self.held = HashSum(count, total)

    def read(self, projection: Projection, keys: Any) -> dict[str, Found]:
        """The side's."""
        return self._side.read(projection, keys)

    def now_us(self) -> int | None:
        """The side's."""
        return self._side.now_us()

    def close(self) -> None:
        """The side stays open for the other pieces."""


class Comparing:
    """Compares the pieces of a pair's runs. It belongs to one thread.

    owner: who claims. remember: whether agreements become ancestors; not before a pair is adopted. cases: knows which
    differences a person accepted.
    """

    def __init__(
        self,
        records: Records,
        ledger: Ledger,
        runs: Runs,
        clock: Clock,
        chance: random.Random,
        *,
        owner: str,
        memory_mb: int,
        cases: Cases,
        compare: Compare | None = None,
    ) -> None:
        self.records, self.pair = records, records.pair
        self.memory_mb, self._cases = memory_mb, cases
        self._ledger, self._runs, self._clock, self._chance = ledger, runs, clock, chance
        self._owner, self._compare = owner, compare or by_rows

    def cut(self, run: Run) -> None:
        """Divides the comparison; nothing where that was done before."""
        bounds = self._bounds()
        lows, highs = [None, *bounds], [*bounds, None]
        self._runs.cut(
            run.number,
            [Piece(run.number, at, low, high) for at, (low, high) in enumerate(zip(lows, highs, strict=True))],
        )

    def cut_windows(self, run: Run, windows: Sequence[tuple[int, int, str]]) -> None:
        """Each window (from, to, name) is a piece; nothing where that was done before."""
        pieces = [Piece(run.number, at, from_us=each[0], to_us=each[1]) for at, each in enumerate(windows)]
        self._runs.cut(run.number, pieces)

    def _bounds(self) -> list[str]:
        """Where to cut: by the fuller side, and only where both can be asked for ranges."""
        sides = []
        for side, asked in ((self.pair.authority, self.records.authority), (self.pair.replica, self.records.replica)):
            if not isinstance(side, DivisibleSide):
                return []
            sides.append((side.describe().rows or 0, side, asked))
        rows, fuller, asked = max(sides, key=lambda each: each[0])
        pieces = min(PIECES_MAX, -(-rows // PIECE_ROWS))
        bounds = fuller.cut(asked, pieces) if pieces > 1 else []
        return bounds if bounds and all(side.cut(of, 2) for _, side, of in sides if side is not fuller) else []

    def work(self, run: Run, progress: Progress, stop: Stop, *, remember: bool) -> dict[str, int]:
        """Compares every piece that nobody else compares, waits for those; answers what all of them counted."""
        while True:
            stop()
            if self.one(run, progress, remember=remember):
                continue
            pieces = self._runs.pieces(run.number)
            if all(piece.state != OPEN for piece in pieces):
                return counted(pieces)
            self._clock.sleep(OTHERS_POLL_S)

    def in_place(self, run: Run, archive: Archive, progress: Progress) -> str:
        """Compares everything by hashes taken where the records are; answers how, or "" where records must be read.

        Only for a run that remembers nothing: no digest of what agrees comes here, and no amount.
        """
        pair = self.pair
        assert pair.replica is not None
        if pair.totals or self._runs.pieces(run.number):
            return ""
        found = compare_in_place(
            pair.authority, pair.replica, self.records.plan, expected=expected(archive, pair.name),
            memory_mb=self.memory_mb, progress=lambda done, total: progress("compare", done, total),
        )  # fmt: skip
        if found is None:
            return ""
        with found:
            counts = {name: getattr(found.counts, name) for name in COUNTED if name != "baseline"}
            suspects = [each.key for each in found.differences()]
        self._runs.cut(run.number, [Piece(run.number, 0)])
        piece = self._runs.claim_piece(run.number, self._owner, PIECE_LEASE_US)
        if piece is not None:  # else somebody who lends a hand reads the records of it
            self._runs.finish_piece(replace(piece, counts=counts), suspects)
        return found.strategy

    def touched(self, run: Run, past: Past, progress: Progress, stop: Stop, *, remember: bool) -> dict[str, int]:
        """Looks only at what was touched since the last comparison; answers what it counted."""
        since_us = self._ledger.now_us()
        self._runs.cut(run.number, [Piece(run.number, 0)])
        piece = self._runs.claim_piece(run.number, self._owner, PIECE_LEASE_US)
        if piece is not None:
            counts = dict.fromkeys(COUNTED, 0)
            suspects: dict[str, None] = {}
            renewing = self._clock.every(PIECE_LEASE_US / 3e6, lambda: self._runs.keep_piece(piece, PIECE_LEASE_US))
            try:
                for found in touched(self.records, self._ledger, past, remember=remember):
                    stop()
                    suspects |= dict.fromkeys(found.suspects)
                    counts["left"], counts["right"] = counts["left"] + found.left, counts["right"] + found.right
                    counts["baseline"] += self._store(found.agreed, since_us)
                    progress("compare", counts["left"] + counts["right"], None)
            finally:
                renewing()
            counts["differ"] = len(suspects)
            self._runs.finish_piece(replace(piece, counts=counts), list(suspects))
        return counted(self._runs.pieces(run.number))

    def one(self, run: Run, progress: Progress, *, remember: bool) -> bool:
        """Compares one piece of the run; False where there is none to claim."""
        piece = self._runs.claim_piece(run.number, self._owner, PIECE_LEASE_US)
        if piece is None:
            return False
        stop = self._clock.every(PIECE_LEASE_US / 3e6, lambda: self._runs.keep_piece(piece, PIECE_LEASE_US))
        try:
            self._piece(piece, progress, remember=remember)
        finally:
            stop()
        return True

    def _piece(self, piece: Piece, progress: Progress, *, remember: bool) -> None:
        assert self.pair.replica is not None
        since_us = self._ledger.now_us()
        before = counted(self._runs.pieces(piece.run))
        known = [side.describe().rows for side in (self.pair.authority, self.pair.replica)]
        expected = None if None in known else sum(rows or 0 for rows in known)

        def tell(done: int, total: int | None) -> None:
            progress("compare", before["left"] + before["right"] + done, expected)

        left, right = ranges(self.records, piece)
        found = self._compare(left, right, self, tell)
        roots = Roots()
        with found:
            counts = {name: getattr(found.counts, name) for name in COUNTED if name != "baseline"}
            if remember:
                counts |= self._remember(found, since_us, before.get("baseline", 0), progress, roots)
            suspects = differing(found, self.records, roots)
        # Only who asks for the agreements has read the digests of all records.
        counts |= left.totals.counts | right.totals.counts | (roots.counts if remember else {})
        if left.windowed and remember:
            held = left.held, right.held
            final = is_final(self.records, self._ledger, self._cases, piece, held, suspects)
            counts |= {FINAL: int(final), **counted_window(held)}
        self._runs.finish_piece(replace(piece, counts=counts), suspects)

    def _remember(
        self, found: Comparison, since_us: int, before: int, progress: Progress, roots: Roots
    ) -> dict[str, int]:
        """Stores what agrees as the ancestor of what comes."""
        stored = 0
        newest: list[int] = []
        for batch in found.agreements():
            roots.add_agreed(batch)
            newest = [max([*newest, *(each.version for each in batch if each.version is not None)], default=0)]
            for at in range(0, len(batch), BASELINE_BATCH):
                stored += self._store(batch[at : at + BASELINE_BATCH], since_us)
                progress("baseline", before + stored, None)
        return {"baseline": stored, NEWEST: max(newest, default=0)}

    def _store(self, agreed: Sequence[Agreement], since_us: int) -> int:
        items = [self._ancestor(each, since_us) for each in agreed]
        return self._ledger.baseline(self.pair.name, items) if items else 0

    def _ancestor(self, agreed: Agreement, since_us: int) -> Baseline:
        return Baseline(
            key=agreed.key,
            revision=None,
            digest=agreed.left,
            replica=agreed.right,
            action=agreed.action or UPSERT,
            version=agreed.version,
            verified_for_us=recheck_us(self.pair, self._chance),
            since_us=since_us,
        )


class Lending:
    """Lends a hand to runs of other processes: compares a piece of theirs, one at a time in this process.

    pairs: those with a replica.
    """

    def __init__(
        self,
        pairs: Mapping[str, Records],
        ledger: Ledger,
        archive: Archive,
        clock: Clock,
        chance: random.Random,
        *,
        owner: str,
        memory_mb: int,
    ) -> None:
        self._pairs = dict(pairs)
        self._ledger, self._archive, self._clock, self._chance = ledger, archive, clock, chance
        self._owner, self._memory_mb = owner, memory_mb
        self._busy = threading.Lock()

    def __call__(self) -> bool:
        """Compares a piece where there is one to claim; answers whether there was."""
        if not self._pairs or not self._busy.acquire(blocking=False):
            return False
        try:
            return any(self._lend(run) for run in self._archive.runs_with_pieces(list(self._pairs)))
        finally:
            self._busy.release()

    def _lend(self, run: Run) -> bool:
        if run.what == CHANGED:
            return False
        comparing = Comparing(
            self._pairs[run.pair], self._ledger, self._archive, self._clock, self._chance,
            owner=self._owner, memory_mb=self._memory_mb, cases=self._archive,
        )  # fmt: skip
        return comparing.one(run, lambda phase, done, total: None, remember=run.what != REPORT)


def ranges(records: Records, piece: Piece) -> tuple[Range, Range]:
    """Both sides as far as a piece goes."""
    pair = records.pair
    assert pair.replica is not None
    spans = windows_known(pair.windows, piece)
    totals = [Totals(pair, records.plan, role) for role in ROLES]
    return Range(pair.authority, piece, totals[0], spans[0]), Range(pair.replica, piece, totals[1], spans[1])


def differing(found: Comparison, records: Records, roots: Roots) -> list[str]:
    """The keys that differ; their records are added to the roots."""
    keys, plan = [], records.plan
    for each in found.differences():
        keys.append(each.key)
        left = None if not each.left_copies else "" if each.left is None else plan.left.digest(each.left)
        right = None if not each.right_copies else "" if each.right is None else plan.right.digest(each.right)
        roots.add(each.key, left, right)
    return keys


def by_rows(left: Side, right: Side, comparing: Comparing, progress: Callable[[int, int | None], None]) -> Comparison:
    """Every record of both sides is read: only so each agreement becomes an ancestor."""
    return compare(
        left, right, comparing.records.plan, strategy="rows", memory_mb=comparing.memory_mb, progress=progress
    )


def counted(pieces: list[Piece]) -> dict[str, int]:
    """What all pieces counted together."""
    sums = {name: sum(piece.counts.get(name, 0) for piece in pieces) for name in COUNTED}
    read = read_by(piece.counts for piece in pieces)
    return sums | read | {NEWEST: max((piece.counts.get(NEWEST, 0) for piece in pieces), default=0)}
