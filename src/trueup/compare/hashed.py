"""Comparing by hashes: which function both sides share, which strategy fits, and what to do where it fails.

At least one side hashes its records where they are. The other one does too, or is read once and kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from trueup.compare import sketch
from trueup.compare.kept import CANONICAL, Kept
from trueup.compare.keyhash import Hashed, Range, match_ranges, ranges
from trueup.compare.plan import Plan
from trueup.compare.result import Comparison
from trueup.compare.sampled import Sample, pace, sampled
from trueup.compare.segments import at_once, differing, gate
from trueup.compare.suspects import Suspects, Told
from trueup.compare.watched import Traffic, Watched
from trueup.compare.workspace import Workspace
from trueup.model.record import Projection
from trueup.ports import HashingSide, Side, Snapshot

# Tables up to this size are read as a whole as fast as they are hashed.
_SMALL_ROWS: Final = 20_000
# What a table is taken for that nobody has counted, such as a view.
_UNKNOWN_ROWS: Final = 1_000_000
# Above this share of segments that differ, adding them up first would cost more than it saves.
_SHARE_MAX: Final = 0.4
# Keys and hashes are small, and what does not fit goes to disk.
_HASHES_MB: Final = 64
_GAPS_SHOWN: Final = 3
_UNDECODED: Final = "the sketch does not decode"
_BOTH_HERE: Final = "records are read: both sides are in this process, where that is faster than hashing alike"
# Where more records than these are suspects, they are sorted and joined with all the memory that is allowed.
_SUSPECTS_MAX: Final = 1_000_000
# Of differing records that the sketch is made for where nothing is known.
_SKETCH_RECORDS: Final = 20_000
# A cell is larger than a key and a hash, and decoded by Python.
_SKETCH_SHARE_MAX: Final = 0.04
_SKETCH_MAX: Final = 1_000_000
# Where less arrives in a second, cells of a scan are there before key and hash of every record.
_SLOW_LINK: Final = 8_000_000
# Fewer come through a slow link as fast as anybody could measure it.
_MANY_ROWS: Final = 200_000
Tell = Callable[[Suspects], Told]


def compare_hashed(
    left: Side,
    right: Side,
    plan: Plan,
    strategy: str | None,
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
        found, reason = _Case(opened, plan, rows, strategy, memory_mb).run()
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
                return _BOTH_HERE
            if (needless := opened[at]) is not None:
                needless.close()
            opened[at] = Kept(*asked[at], traffic[at], memory_mb // 2)
        else:
            _close(opened)
            lacking = next((each.gaps for each in opened if each is not None and each.gaps), ())
            more = f" and {len(lacking) - _GAPS_SHOWN} more" if len(lacking) > _GAPS_SHOWN else ""
            return f"records are read: no SQL gives the canonical text of {', '.join(lacking[:_GAPS_SHOWN])}{more}"
        left, right = opened
        assert left is not None
        assert right is not None
        return Hashed(left, right, function)
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
    memory_mb: int

    def run(self) -> tuple[Comparison | None, str]:
        """By the strategy asked for, else by the one that fits."""
        sides, asked = self.sides, self.strategy
        if asked is None and sides.function == CANONICAL and not self._worthwhile():
            both_here = sides.left.here and sides.right.here
            return None, _BOTH_HERE if both_here else "records are read: hashing in both of these systems is no faster"
        if asked in (None, "gate"):
            small = self.rows <= _SMALL_ROWS
            # Canonical hashes cost more than sending them: a gate that does not pass would cost twice.
            if asked or small or not (self._ranged() or sides.function == CANONICAL):
                told, reason = gate(sides)
                if told is not None:
                    return self._agreeing(told, reason), reason
                if asked or small:
                    return None, f"records are read: {reason}"
                return self._by_keyhash(f"key and hash are read: {reason}")
        return self._by_ranges()

    def _by_ranges(self) -> tuple[Comparison | None, str]:
        span = self._span() if self._ranged() else None
        asked = self.strategy
        if span is None:
            if asked == "keyhash":
                return self._by_keyhash("asked for")
            return self._by_keyhash("key and hash are read: keys are no whole numbers that are surely unique")
        if asked == "keyhash":
            return self._by_keyhash("asked for", span)
        if asked == "segments":
            return self._by_segments("asked for", span)
        if asked == "sketch":
            return self._by_sketch("asked for", span, _SKETCH_RECORDS) or self._by_segments(_UNDECODED, span)
        sample = sampled(self.sides, span, self.rows)
        where = f"differences lie in {sample.ranges:.0%} of the ranges that were sampled"
        if sample.ranges <= _SHARE_MAX:
            return self._by_segments(where, span)
        return self._over_a_slow_link(sample, where, span) or self._by_keyhash(where, span)

    def _over_a_slow_link(self, sample: Sample, where: str, span: Range) -> tuple[Comparison, str] | None:
        """By a sketch, where that arrives before key and hash of every record would; None where it would not."""
        expected = max(sample.expected(self.rows), 1)
        few = sample.share <= _SKETCH_SHARE_MAX and expected <= _SKETCH_MAX and sample.records > 0
        if not few or self.rows < _MANY_ROWS or not (self.sides.left.sketches and self.sides.right.sketches):
            return None
        speed = pace(self.sides)
        if speed is None or speed >= _SLOW_LINK:
            return None
        reason = (
            f"{where}, in {sample.share:.1%} of their records; the slower link brings {speed / 1e6:.1f} MB a second"
        )
        return self._by_sketch(reason, span, expected)

    # ── strategies ───────────────────────────────────────────────────────────────────────────────────

    def _by_keyhash(self, reason: str, span: Range | None = None) -> tuple[Comparison, str]:
        def tell(suspects: Suspects) -> Told:
            if span is None:
                return suspects.add_staged(self.sides.left, self.sides.right, self.sides.function)
            return match_ranges(self.sides, suspects, ranges(span, self.rows))

        return self._settled("keyhash", reason, tell), reason

    def _by_segments(self, reason: str, span: Range) -> tuple[Comparison, str]:
        told, open_ = differing(self.sides, span, self.rows)
        if not open_:
            reason = f"count and hash sum of every segment are equal; {reason}"
            return self._agreeing(told, reason, "segments"), reason

        def tell(suspects: Suspects) -> Told:
            width = span[1] - span[0] + 1
            pieces = (piece for each in open_ for piece in ranges(each, self.rows * (each[1] - each[0] + 1) // width))
            more = match_ranges(self.sides, suspects, pieces)
            return Told(told.left + more.left, told.right + more.right, told.same + more.same)

        return self._settled("segments", reason, tell), reason

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
        workspace = Workspace(min(self.memory_mb, _HASHES_MB))
        try:
            suspects = Suspects(workspace, self.plan)
            told = tell(suspects)
            if suspects.records() > _SUSPECTS_MAX:
                workspace.allow(self.memory_mb)
            counts, differing_fields, findings = suspects.settle(self.sides.left, self.sides.right, told)
        except BaseException:
            workspace.close()
            raise
        return Comparison(
            counts, self.plan.notes, strategy, reason, differing_fields=differing_fields, findings=findings
        )

    # ── facts ────────────────────────────────────────────────────────────────────────────────────────

    def _worthwhile(self) -> bool:
        """Canonical hashes save nothing within this process, and little for keys in no order between two servers."""
        here = (self.sides.left.here, self.sides.right.here)
        return self.rows > _SMALL_ROWS and not all(here) and (any(here) or self._ranged())

    def _ranged(self) -> bool:
        return self.sides.unique and len(self.plan.left.key) == 1 and self.plan.left.key[0].kind.name == "integer"

    def _span(self) -> Range | None:
        """All keys of both sides lie within; None where a side has no such keys, or they are too far apart to count."""
        left, right = at_once(self.sides, lambda side: side.span())
        if left is None or right is None:
            return None
        first, last = min(left[0], right[0]), max(left[1], right[1])
        return (first, last) if last - first < 2**62 else None
