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

    ranges: the share of them in which the sides differ. records: of both sides. odd: those of them without an equal.
    """

    ranges: float
    records: int
    odd: int

    @property
    def share(self) -> float:
        """The share of records that have no equal on the other side."""
        return self.odd / max(self.records, 1)

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
    differ = sum(a is None or b is None or not a.equals(b) for a, b in pairs)
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return Sample(
        differ / max(len(pairs), 1),
        sum(a.num_rows + b.num_rows for a, b in known),
        sum(len({*_lines(a)} ^ {*_lines(b)}) for a, b in known if not a.equals(b)),
    )


def pace(sides: Hashed) -> float | None:
    """Bytes a second from the slower side while both send; None where nothing is between."""
    found = [each for each in at_once(sides, lambda side: side.pace()) if each is not None]
    return min(found, default=None)


def _lines(batch: pa.RecordBatch) -> Iterator[tuple[Any, Any]]:
    return zip(batch.column("k0").to_pylist(), batch.column("h").to_pylist(), strict=True)
