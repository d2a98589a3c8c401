"""Strategies *gate* and *segments*: databases are asked for count and hash sum, and only what differs is looked into.

The gate is one segment. It only ever says *agree*, and only when that is certain: both databases refuse a second
record with the same key. So do segments, for the ranges whose sums are equal; the others are left to *keyhash*.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Final, TypeVar

from trueup.compare import keyhash
from trueup.compare.keyhash import Hashed, Piece, Range, piece, told
from trueup.compare.suspects import Told
from trueup.ports import Segments, Snapshot

# A segment is to hold about so many records, and there are at most so many segments.
_ROWS_WANTED: Final = 2_048
# Each costs a line of the answer, and each that differs the hashes of its records once more. Where these are of texts,
# they cost so much that segments are smaller by this.
_SMALLER: Final = 8
_SEGMENTS_MAX: Final = 65_536
T = TypeVar("T")


def at_once(sides: Hashed, ask: Callable[[Snapshot], T]) -> tuple[T, T]:
    """Asks both sides at the same time: the closer, the less has changed between the answers."""
    with ThreadPoolExecutor(2, thread_name_prefix="trueup-sums") as pool:
        try:
            left, right = told([pool.submit(ask, side) for side in (sides.left, sides.right)])
        except BaseException:
            sides.close()
            raise
        return left, right


def gate(sides: Hashed) -> tuple[Told | None, str]:
    """What is told where both sums are equal, else None; and why."""
    left, right = at_once(sides, lambda side: side.total(sides.function))
    if left is None or right is None:
        return None, "a key that may repeat, or a value that can't surely be hashed in place"
    if left != right:
        return None, "count or hash sum of the two databases differ"
    return Told(left.count, right.count, left.count), "count and hash sum, taken inside both databases, are equal"


def bits_for(sides: Hashed, span: Range, rows: int) -> int:
    """Segments are `2 ** bits` keys wide."""
    rows_wanted = _ROWS_WANTED if sides.native else max(1, _ROWS_WANTED // _SMALLER)
    wanted = max(1, min(rows // rows_wanted, _SEGMENTS_MAX))
    return max(0, (span[1] - span[0]) // wanted).bit_length()


def rows_in_one(sides: Hashed, span: Range, rows: int) -> float:
    """How many records a segment holds, were they spread evenly."""
    return rows * 2.0 ** bits_for(sides, span, rows) / (span[1] - span[0] + 1)


def differing(sides: Hashed, span: Range, rows: int) -> tuple[Told, list[Piece]]:
    """What equal segments tell, and the others, by ranges that are asked for in one go. Keys must be unique."""
    origin, bits = span[0], bits_for(sides, span, rows)
    left, right = at_once(sides, lambda side: side.segments(sides.function, origin, bits))
    same = sum(sums.count for number, sums in left.items() if sums is not None and sums == right.get(number))
    in_one_go = max(1, int(keyhash.ROWS_WANTED / max(rows_in_one(sides, span, rows), 1)))
    near = groupby(_unequal(left, right), key=lambda number: number // in_one_go)
    return Told(same, same, same), [piece(span, bits, list(numbers)) for _, numbers in near]


def _unequal(left: Segments, right: Segments) -> list[int]:
    numbers = sorted({*left, *right})
    return [each for each in numbers if left.get(each) is None or left.get(each) != right.get(each)]
