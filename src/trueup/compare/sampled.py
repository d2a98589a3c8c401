"""What a few small ranges of keys tell about all of them, and how fast what a side sends arrives here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from trueup.compare.keyhash import Hashed, Range
from trueup.compare.segments import at_once
from trueup.ports import Snapshot

# Enough ranges to see whether differences lie everywhere or almost nowhere.
_RANGES: Final = 24
_RANGE_ROWS: Final = 512
# Standard deviations of what chance may have kept out of the sample.
_MARGIN: Final = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """What was found in the ranges.

    asked: how many ranges. differ: those in which the sides differ. records: of both sides. among: those of them in
    ranges that differ. odd: those without an equal. full: ranges of which nothing is known but that they have too many.
    """

    asked: int
    differ: int
    records: int
    among: int
    odd: int
    full: int = 0

    @property
    def ranges(self) -> float:
        """The share of ranges in which the sides differ."""
        return self.differ / max(self.asked, 1)

    @property
    def share(self) -> float:
        """The share of records that have no equal on the other side."""
        return self.odd / max(self.records, 1)

    def segments(self, rows: float) -> float:
        """The share of segments of so many records in which the sides differ, were differences runs that lie anywhere.

        Runs of some length meet a range where they begin within it, or at most that much before it: the wider the
        range, the more of them. How long they are is told by how full of differences a range is that has any.
        """
        width = self.records / max(2 * self.asked, 1)
        full = self.odd / max(self.among, 1)
        if full >= 1 or not width:
            return self.ranges
        run = width * full / (1 - full)
        return float(1 - (1 - self.ranges) ** max((rows + run) / (width + run), 1))

    def fewer(self, rows: int) -> int:
        """Of so many records of a table, how many a side's own condition may let pass; all where it lets pass most."""
        passed = self.records / max(2 * self.asked * _RANGE_ROWS, 1)
        # Twice, since what is spread unevenly may be more elsewhere.
        return rows if self.full else min(rows, math.ceil(2 * passed * rows))

    def expected(self, rows: int) -> int:
        """How many of so many records of each side have none, at most. Differences may cluster elsewhere, though."""
        return math.ceil(2 * rows * (self.odd + _MARGIN * math.sqrt(self.odd)) / max(self.records, 1))


def sampled(sides: Hashed, span: Range, rows: int) -> Sample:
    """Asks both sides for the hashes in ranges spread over the span. rows: of the larger side, about."""
    first, last = span
    width = max(1, (last - first + 1) * _RANGE_ROWS // max(rows, 1))
    step = max(width, (last - first + 1) // _RANGES)
    ranges = [(at, min(at + width - 1, last)) for at in range(first, last + 1, step)[:_RANGES]]

    def ask(side: Snapshot) -> list[pa.RecordBatch | None]:
        return side.hashes_within_each(sides.function, ranges, 16 * _RANGE_ROWS)

    pairs = list(zip(*at_once(sides, ask), strict=True))
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    unequal = [(a, b) for a, b in known if not a.equals(b)]
    return Sample(
        len(pairs),
        len(pairs) - len(known) + len(unequal),
        sum(a.num_rows + b.num_rows for a, b in known),
        sum(a.num_rows + b.num_rows for a, b in unequal),
        sum(len({*_lines(a)} ^ {*_lines(b)}) for a, b in unequal),
        len(pairs) - len(known),
    )


def pace(sides: Hashed) -> float | None:
    """Bytes a second from the slower side while both send; None where nothing is between."""
    found = [each for each in at_once(sides, lambda side: side.pace()) if each is not None]
    return min(found, default=None)


def _lines(batch: pa.RecordBatch) -> Iterator[tuple[Any, Any]]:
    return zip(batch.column("k0").to_pylist(), batch.column("h").to_pylist(), strict=True)
