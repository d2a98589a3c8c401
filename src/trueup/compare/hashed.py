"""Comparing by hashes: which function both sides share, which strategy fits, and what to do where it fails.

At least one side hashes its records where they are. The other one does too, or is read once and kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from trueup.compare import keyhash, sketch
from trueup.compare.expected import Expected
from trueup.compare.kept import Kept
from trueup.compare.keyhash import Hashed, Piece, Range, bits_of_blocks, match_ranges, ranges
from trueup.compare.placed import compare_placed, placed_hashes
from trueup.compare.plan import Plan
from trueup.compare.result import Comparison
from trueup.compare.sampled import Sample, pace, sampled
from trueup.compare.segments import at_once, differing, gate, rows_in_one
from trueup.compare.suspects import Suspects, Told, memory_for
from trueup.compare.watched import Traffic, Watched
from trueup.compare.workspace import Workspace
from trueup.model.digest import CANONICAL
from trueup.model.record import Projection
from trueup.ports import HashingSide, Side, Snapshot

# Tables up to this size are read as a whole as fast as they are hashed.
_SMALL_ROWS: Final = 20_000
# What a table is taken for that nobody has counted, such as a view.
_UNKNOWN_ROWS: Final = 1_000_000
# Above this share of ranges that differ, adding them up first would cost more than it saves: all rows of a range are
# passed over for the segments that do. Where the hash is of texts, which unlike systems share, it costs more than that,
# and the share of segments counts.
_SHARE_MAX: Final = 0.6
_SHARE_MAX_TEXTS: Final = 0.2
_KEPT_MB: Final = 16
_GAPS_SHOWN: Final = 3
_UNDECODED: Final = "the sketch does not decode"
_BOTH_HERE: Final = "both sides are in this process, where that is no slower than hashing alike"
_ARRIVING: Final = "they arrive while the other side is read as a whole"
_NO_RANGES: Final = "keys are no whole numbers that are surely unique"
# How likely both sides agree where a gate comes first: one that fails is a scan for nothing, and one that passes saves
# sending and matching the hashes of all records.
_LIKELY: Final = 0.5
# The same where it saves no more than a sample and the parts of a sum, or hashes cost more than sending records.
_LIKELY_DEAR: Final = 0.8
# So many records of each end of an index tell against a gate.
_END_ROWS: Final = 1_000
# Of differing records that the sketch is made for where nothing is known.
_SKETCH_RECORDS: Final = 20_000
_SKETCH_MAX: Final = 1_000_000
# Of records that differ anywhere, from this share on most blocks do.
_BLOCKS_SHARE_MAX: Final = 0.04
# Bytes a second from one side while both send, where blocks arrive as soon as key and hash of each record: they are a
# few bytes for a record instead of some ten, and cost the databases a grouping. On slower links they win by what is not
# sent, on faster ones they lose by the grouping.
_SLOW_LINK: Final = 14_000_000
# The same, where cells arrive as soon as blocks: a record that differs takes fewer bytes, and all of them a grouping in
# three ways. Where segments leave only a share of the records to send, the link has to be slower by that share.
_SKETCH_LINK: Final = 250_000
# Bytes a second from which on key and hash of each record arrive while the other side's records are read and hashed.
_KEPT_LINK: Final = 5_000_000
# Of fewer, key and hash are hardly more than what a trial of the link takes.
_MANY_ROWS: Final = 50_000
Tell = Callable[[Suspects], Told]


def compare_hashed(
    left: Side,
    right: Side,
    plan: Plan,
    strategy: str | None,
    expected: Expected,
    *,
    memory_mb: int,
    traffic: tuple[Traffic, Traffic],
) -> tuple[Comparison | None, str]:
    """The comparison, or None and why the records must be read."""
    estimates = [known for side in (left, right) if (known := side.describe().rows) is not None]
    rows = max(estimates) if estimates else _UNKNOWN_ROWS
    if strategy is None and rows <= _SMALL_ROWS and not all(isinstance(side, HashingSide) for side in (left, right)):
        return None, "records are read: so few are read as fast as they are hashed"
    opened = _opened(((left, plan.left), (right, plan.right)), strategy, traffic, memory_mb)
    if isinstance(opened, str):
        return None, opened
    try:
        found, reason = _Case(opened, plan, rows, strategy, expected, memory_mb).run()
    finally:
        for each, side in zip(traffic, (opened.left, opened.right), strict=True):
            each.statements = side.statements
        opened.close()
    return found, reason


def _opened(
    asked: Sequence[tuple[Side, Projection]], strategy: str | None, traffic: tuple[Traffic, Traffic], memory_mb: int
) -> Hashed | str:
    """Both sides under a function that they share, or why there is none. A side that has none is read and kept."""
    opened: list[Snapshot | None] = [None, None]
    speed = None

    def open_one(at: int) -> None:
        side, projection = asked[at]
        if isinstance(side, HashingSide):
            opened[at] = Watched(side.snapshot(projection), traffic[at])

    try:
        with ThreadPoolExecutor(2, thread_name_prefix="trueup-open") as pool:
            for opening in [pool.submit(open_one, at) for at in range(2)]:
                opening.result()
        functions = [() if each is None else each.functions for each in opened]
        common = [name for name in functions[0] if name in functions[1]]
        if common:
            function = common[0]
        elif any(CANONICAL in each for each in functions):
            function, at = CANONICAL, 0 if CANONICAL in functions[1] else 1
            other = opened[1 - at]
            if strategy is None and other is not None and other.here:
                _close(opened)
                return f"records are read: {_BOTH_HERE}"
            if (needless := opened[at]) is not None:
                needless.close()
            # Before anything else is done here, which would take from what is measured.
            speed = None if other is None or strategy else other.pace()
            opened[at] = Kept(*asked[at], traffic[at], min(memory_mb // 2, _KEPT_MB))
        else:
            _close(opened)
            lacking = next((each.gaps for each in opened if each is not None and each.gaps), ())
            more = f" and {len(lacking) - _GAPS_SHOWN} more" if len(lacking) > _GAPS_SHOWN else ""
            return f"records are read: no SQL gives the canonical text of {', '.join(lacking[:_GAPS_SHOWN])}{more}"
        left, right = opened
        assert left is not None
        assert right is not None
        return Hashed(left, right, function, speed)
    except BaseException:
        _close(opened)
        raise


def _close(opened: Sequence[Snapshot | None]) -> None:
    for each in opened:
        if each is not None:
            each.close()


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known before anything is read. rows: an estimate for the larger side."""

    sides: Hashed
    plan: Plan
    rows: int
    strategy: str | None
    expected: Expected
    memory_mb: int

    def run(self) -> tuple[Comparison | None, str]:
        """By the strategy asked for, else by the one that fits."""
        asked, failed = self.strategy, ""
        first = asked is None and self._gate_first()
        if first and self._ends_differ():
            failed = "records at the ends of an index seem to differ"
        if asked == "gate" or (first and not failed):
            told, reason = gate(self.sides)
            if told is not None:
                return self._agreeing(told, reason), reason
            failed = reason
        if asked == "gate":
            return None, f"records are read: {failed}"
        if asked is None and (why := self._records_because(failed)):
            return None, f"records are read: {why}"
        if asked is None and not failed and self._as_read():
            return self._by_keyhash(f"key and hash are read: {_ARRIVING}")
        if asked is None and not self._ranged():
            known = str(self.expected) if self.expected.compared else _NO_RANGES
            return self._by_keyhash(f"key and hash are read: {failed or known}")
        return self._by_ranges()

    def _by_ranges(self) -> tuple[Comparison | None, str]:
        span = self._span() if self._ranged() else None
        asked = self.strategy
        if span is None:
            if asked == "keyhash":
                return self._by_keyhash("asked for")
            return self._by_keyhash(f"key and hash are read: {_NO_RANGES}")
        if asked == "keyhash":
            return self._by_keyhash("asked for", span)
        if asked == "segments":
            return self._by_segments("asked for", span)
        if asked == "sketch":
            return self._by_sketch("asked for", span, _SKETCH_RECORDS) or self._by_segments(_UNDECODED, span)
        sample = sampled(self.sides, span, self.rows)
        return replace(self, rows=sample.fewer(self.rows))._by_sample(sample, span)

    def _by_sample(self, sample: Sample, span: Range) -> tuple[Comparison, str]:
        where = f"differences lie in {sample.ranges:.0%} of the ranges that were sampled"
        share = sample.segments(rows_in_one(self.sides, span, self.rows))
        of_ranges = sample.segments(keyhash.ROWS_WANTED)
        by_segments = of_ranges <= _SHARE_MAX if self.sides.native else share <= _SHARE_MAX_TEXTS
        found = self._over_a_slow_link(sample, share if by_segments else 1, where, span)
        return found or (self._by_segments(where, span) if by_segments else self._by_keyhash(where, span))

    def _over_a_slow_link(self, sample: Sample, sent: float, where: str, span: Range) -> tuple[Comparison, str] | None:
        """By blocks, or by a sketch, where that arrives before what else is sent; None where it would not.

        sent: the share of records whose key and hash are sent without them.
        """
        few = 0 < sample.odd <= _BLOCKS_SHARE_MAX * sample.records
        if not sent or not few or self.rows < _MANY_ROWS:
            return None
        if not (self.sides.left.sketches and self.sides.right.sketches):
            return None
        speed = self.sides.pace or pace(self.sides)
        if speed is None or speed >= (_SLOW_LINK if sent == 1 else _SKETCH_LINK * sent):
            return None
        reason = (
            f"{where}, in {sample.share:.1%} of their records; the slower link brings {speed / 1e6:.1f} MB a second"
        )
        expected, found = sample.expected(self.rows), None
        if speed < _SKETCH_LINK * sent and expected <= _SKETCH_MAX:
            found = self._by_sketch(reason, span, expected)
        if found is None and sent == 1:
            return self._by_blocks(reason, span, bits_of_blocks(span, self.rows, sample.share))
        return found

    # ── strategies ───────────────────────────────────────────────────────────────────────────────────

    def _by_keyhash(self, reason: str, span: Range | None = None) -> tuple[Comparison, str]:
        def tell(suspects: Suspects) -> Told:
            if span is None:
                return suspects.add_staged(self.sides.left, self.sides.right, self.sides.function)
            return match_ranges(self.sides, suspects, self._pieces([(span, None)], span))

        by_place = self._by_place(reason) if span is None and not self._kept and self.sides.unique else None
        return by_place or self._settled("keyhash", reason, tell), reason

    def _by_place(self, reason: str) -> Comparison | None:
        hashes = placed_hashes(self.sides)
        if hashes is None:
            return None
        workspace = Workspace(memory_for(0, self.memory_mb))
        found = None
        try:
            found = compare_placed(self.sides, hashes, workspace, self.plan, rows=self.rows, memory_mb=self.memory_mb)
        finally:
            if found is None:
                workspace.close()
        if found is None:
            return None
        return Comparison(found[0], self.plan.notes, "keyhash", reason, differing_fields=found[1], findings=found[2])

    def _by_segments(self, reason: str, span: Range) -> tuple[Comparison, str]:
        told, open_ = differing(self.sides, span, self.rows)
        if not open_:
            reason = f"count and hash sum of every segment are equal; {reason}"
            return self._agreeing(told, reason, "segments"), reason

        def tell(suspects: Suspects) -> Told:
            more = match_ranges(self.sides, suspects, self._pieces(open_, span))
            return Told(told.left + more.left, told.right + more.right, told.same + more.same)

        return self._settled("segments", reason, tell), reason

    def _by_blocks(self, reason: str, span: Range, bits: int) -> tuple[Comparison, str]:
        """By the smallest of segments, where all larger ones would differ. bits: of a block's keys."""

        def tell(suspects: Suspects) -> Told:
            asked = ((each, None) for each in ranges(span, self.rows, blocks=True))
            return match_ranges(self.sides, suspects, asked, bits)

        return self._settled("segments", reason, tell), reason

    def _pieces(self, open_: Sequence[Piece], span: Range) -> Iterator[Piece]:
        """Where all of a range is asked for, in ranges of the size that is wanted."""
        width = span[1] - span[0] + 1
        for range_, some in open_:
            if some is not None:
                yield range_, some
                continue
            rows = self.rows * (range_[1] - range_[0] + 1) // width
            yield from ((each, None) for each in ranges(range_, rows))

    def _by_sketch(self, reason: str, span: Range, expected: int) -> tuple[Comparison, str] | None:
        """None where it does not decode. expected: differing records, those of both sides counted."""
        if not (self.sides.left.sketches and self.sides.right.sketches):
            return None
        found = sketch.decoded(self.sides, sketch.sizes_for(expected))
        if found is None:
            return None
        told, keys = found

        def tell(suspects: Suspects) -> Told:
            suspects.add(keys)
            return told

        answer = self._settled("sketch", reason, tell)
        if (answer.counts.left, answer.counts.right) != (told.left, told.right):
            # It decoded keys that are none.
            answer.close()
            return None
        return answer, reason

    def _agreeing(self, told: Told, reason: str, strategy: str = "gate") -> Comparison:
        return Comparison(told.counts, self.plan.notes, strategy, reason)

    def _settled(self, strategy: str, reason: str, tell: Tell) -> Comparison:
        workspace = Workspace(memory_for(0, self.memory_mb))
        try:
            suspects = Suspects(workspace, self.plan)
            told = tell(suspects)
            workspace.allow(memory_for(suspects.records(), self.memory_mb))
            counts, differing, findings = suspects.settle(self.sides.left, self.sides.right, told)
        except BaseException:
            workspace.close()
            raise
        return Comparison(counts, self.plan.notes, strategy, reason, differing_fields=differing, findings=findings)

    # ── facts ────────────────────────────────────────────────────────────────────────────────────────

    def _gate_first(self) -> bool:
        """Whether both sides are first asked for one number each, which is all where it is equal."""
        likely, canonical = self.expected.agreement, self.sides.function == CANONICAL
        if self._dear_here:
            return likely is not None and likely >= _LIKELY
        small = self.rows <= _SMALL_ROWS
        if canonical and (small or self._here == (True, True)):
            return False
        # The fewer records a failed gate leaves unread, the surer it has to be.
        dear = canonical or (self._ranged() and not small)
        if likely is None:
            return not dear
        return likely >= (_LIKELY_DEAR if dear else _LIKELY)

    def _ends_differ(self) -> bool:
        """Whether a few records already tell that the sums of all will not be equal.

        They lie in one order only where both systems sort keys alike: where most of them are not the same, none tells.
        Of keys of other types, a few that unlike systems sort in their own way may be at an end of one side only.
        """
        likely = self.expected.agreement
        alike = self.sides.native or all(field.kind.name in ("integer", "uuid") for field in self.plan.left.key)
        if not alike or self.rows <= _SMALL_ROWS or (likely or 0) >= _LIKELY_DEAR:
            return False
        left, right = at_once(self.sides, lambda side: side.ends(self.sides.function, _END_ROWS))
        if left is None or right is None:
            return False
        a, b = set(left.to_pylist()), set(right.to_pylist())
        return 0 < len(a ^ b) < len(a & b)

    def _records_because(self, failed: str) -> str:
        """Why records are read, though both sides have hashes; "" where hashes cost less. failed: why the gate did."""
        small = self.rows <= _SMALL_ROWS
        if self._dear_here:
            return failed or _BOTH_HERE
        if self.sides.function != CANONICAL:
            return (failed or f"they are few, and {self.expected}") if small else ""
        if self._here == (True, True):
            return _BOTH_HERE
        # Canonical hashes save little for keys in no order between two servers.
        if small or not (any(self._here) or self._ranged()):
            return "hashing in both of these systems is no faster"
        return ""

    @property
    def _here(self) -> tuple[bool, bool]:
        return self.sides.left.here, self.sides.right.here

    @property
    def _dear_here(self) -> bool:
        """Whether hashing all records takes as long as reading them, and no ranges of them can be left out."""
        dear = self._here == (True, True) and (self.sides.left.dear or self.sides.right.dear)
        return dear and self.rows > _SMALL_ROWS and not self._ranged()

    @property
    def _kept(self) -> bool:
        """Whether a side is being read as a whole: whatever is asked of it waits for all of it."""
        return any(isinstance(side, Kept) for side in (self.sides.left, self.sides.right))

    def _as_read(self) -> bool:
        """Whether a side that is being read is best matched with key and hash of all records of the other one.

        They arrive meanwhile, unless the link is slow; then ranges that agree are left out.
        """
        return self._kept and (self.sides.pace or _KEPT_LINK) >= _KEPT_LINK

    def _ranged(self) -> bool:
        return self.sides.unique and len(self.plan.left.key) == 1 and self.plan.left.key[0].kind.name == "integer"

    def _span(self) -> Range | None:
        """All keys of both sides lie within; None where a side has no such keys, or they are too far apart to count."""
        left, right = at_once(self.sides, lambda side: side.span())
        if left is None or right is None:
            return None
        first, last = min(left[0], right[0]), max(left[1], right[1])
        return (first, last) if last - first < 2**62 else None
