"""Strategy *keyhash*: both sides send key and hash of every record; only keys whose hashes differ are read in full.

Where keys are whole numbers, both sides are asked for the same range of keys at a time, packed into one row, so that
memory is bounded by a few ranges. Other keys come in any order and are matched on disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.compare.suspects import Suspects, Told
from trueup.ports import Snapshot

pc: Any = pyarrow.compute
# A range is expected to hold this many records, and is cut in two where it holds more than the bound.
ROWS_WANTED: Final = 32_768
ROWS_MAX: Final = 65_536
# So many ranges are asked for ahead of the one that is being matched.
_AHEAD: Final = 4

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hashed:
    """Both sides at one instant each, under a function that both have."""

    left: Snapshot
    right: Snapshot
    function: str

    @property
    def unique(self) -> bool:
        """Whether no key repeats on either side."""
        return self.left.unique and self.right.unique

    def close(self) -> None:
        """Ends what still runs on both sides."""
        self.left.close()
        self.right.close()


def ranges(span: Range, rows: int) -> Iterator[Range]:
    """The span in pieces of about ROWS_WANTED keys, were they spread evenly."""
    first, last = span
    pieces = max(1, -(-rows // ROWS_WANTED))
    width = max(1, -(-(last - first + 1) // pieces))
    while first <= last:
        yield first, min(first + width - 1, last)
        first += width


def match_ranges(sides: Hashed, suspects: Suspects, asked: Iterable[Range]) -> Told:
    """Matches all keys within these ranges, which do not overlap."""
    matching = _Matching(sides, suspects)
    with ThreadPoolExecutor(2 * _AHEAD, thread_name_prefix="trueup-hashes") as pool:
        try:
            return matching.run(pool, asked)
        except BaseException:
            # What still runs on the sides would be waited for.
            sides.close()
            raise


class _Matching:
    def __init__(self, sides: Hashed, suspects: Suspects) -> None:
        self._sides, self._suspects = sides, suspects
        self._unique = sides.unique
        self._left = self._right = 0

    def run(self, pool: ThreadPoolExecutor, asked: Iterable[Range]) -> Told:
        before = self._suspects.records()
        todo = iter(asked)
        again: deque[Range] = deque()
        waiting: deque[tuple[Range, list[Future[pa.RecordBatch | None]]]] = deque()
        while True:
            while len(waiting) < _AHEAD and (range_ := again.popleft() if again else next(todo, None)) is not None:
                waiting.append((range_, [pool.submit(self._hashes, side, range_) for side in self._both()]))
            if not waiting:
                break
            range_, futures = waiting.popleft()
            left, right = (future.result() for future in futures)
            if left is None or right is None:
                again.extend(_halves(range_))
            else:
                self._match(left, right)
        odd = self._suspects.records() - before
        return Told(self._left, self._right, (self._left + self._right - odd) // 2)

    def _both(self) -> tuple[Snapshot, Snapshot]:
        return self._sides.left, self._sides.right

    def _hashes(self, side: Snapshot, range_: Range) -> pa.RecordBatch | None:
        # A single key that repeats can't be cut in two.
        rows_max = ROWS_MAX if range_[0] < range_[1] else 2**31 - 1
        return side.hashes_within(self._sides.function, *range_, rows_max)

    def _match(self, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        self._left += left.num_rows
        self._right += right.num_rows
        if not (self._unique and self._match_in_order(left, right)):
            self._suspects.add_hashed(left, right)

    def _match_in_order(self, left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
        """False where the keys that both sides have do not come in one order."""
        if not left.column("k0").equals(right.column("k0")):
            alone = [_lacking(*each) for each in ((left, right), (right, left))]
            left, right = (batch.filter(pc.invert(mask)) for batch, (mask, _) in zip((left, right), alone, strict=True))
            if not left.column("k0").equals(right.column("k0")):
                return False
            for _, keys in alone:
                self._suspects.add(keys, records=1)
        unequal = pc.fill_null(pc.not_equal(left.column("h"), right.column("h")), fill_value=True)
        self._suspects.add(left.column("k0").filter(unequal))
        return True


def _lacking(batch: pa.RecordBatch, other: pa.RecordBatch) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Which records have keys that another batch lacks, and these keys."""
    mask = pc.invert(pc.is_in(batch.column("k0"), value_set=other.column("k0")))
    return mask, batch.column("k0").filter(mask)


def _halves(range_: Range) -> tuple[Range, Range]:
    middle = (range_[0] + range_[1]) // 2
    return (range_[0], middle), (middle + 1, range_[1])
