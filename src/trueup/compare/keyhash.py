"""Strategy *keyhash*: both sides send key and hash of every record; only keys whose hashes differ are read in full.

Where keys are whole numbers, both sides are asked for the same range of keys at a time, packed into one row, so that
memory is bounded by a few ranges. Other keys come in any order and are matched on disk.

Over a slow link ranges are asked for twice: for the hashes of its blocks, which have a few keys each, and then for
key and hash of the records in those that differ. That costs the systems a grouping, and saves most of the bytes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute

from trueup.compare.suspects import Suspects, Told
from trueup.model.digest import of_texts
from trueup.ports import Blocks, Snapshot

pc: Any = pyarrow.compute
T = TypeVar("T")
# A range is expected to hold this many records, and is cut in two where it holds more than the bound.
ROWS_WANTED: Final = 32_768
ROWS_MAX: Final = 65_536
# The same of a range that is asked for its blocks: they are small, and each answer waits for a question to arrive.
BLOCKS_WANTED: Final = 4 * ROWS_WANTED
_BLOCK_ROWS_MIN: Final = 8
_BLOCK_ROWS_MAX: Final = 4_096
# From this share of its blocks on, all of a range is asked for.
_BLOCKS_MAX: Final = 0.5
# A key is looked up by its place among so many, which takes a third of the time that a hash table does.
_PLACES_MAX: Final = 4 * ROWS_MAX
# So many ranges are asked for ahead of the one that is being matched.
_AHEAD: Final = 4

Range = tuple[int, int]
# A range, and which blocks of it are asked for; None for all.
Piece = tuple[Range, Blocks | None]


@dataclass(frozen=True, slots=True)
class Hashed:
    """Both sides at one instant each, under a function that both have.

    pace: bytes a second from the one of which the other is kept here, where that was measured.
    """

    left: Snapshot
    right: Snapshot
    function: str
    pace: float | None = None

    @property
    def native(self) -> bool:
        """Whether the function is what one engine does fastest, and not of texts that unlike systems share."""
        return not of_texts(self.function)

    @property
    def unique(self) -> bool:
        """Whether no key repeats on either side."""
        return self.left.unique and self.right.unique

    def close(self) -> None:
        """Ends what still runs on both sides, at once: one may have to wait for its end."""
        with ThreadPoolExecutor(2, thread_name_prefix="trueup-close") as pool:
            for closing in [pool.submit(side.close) for side in (self.left, self.right)]:
                closing.result()


def ranges(span: Range, rows: int, *, blocks: bool = False) -> Iterator[Range]:
    """The span in pieces of about as many keys as are wanted, were they spread evenly."""
    first, last = span
    pieces = max(1, -(-rows // (BLOCKS_WANTED if blocks else ROWS_WANTED)))
    width = max(1, -(-(last - first + 1) // pieces))
    while first <= last:
        yield first, min(first + width - 1, last)
        first += width


def told(answers: Sequence[Future[T]]) -> list[T]:
    """Answers that are waited for; an error is raised as soon as there is one."""
    for answer in as_completed(answers):
        answer.result()
    return [answer.result() for answer in answers]


def piece(within: Range, bits: int, numbers: Sequence[int]) -> Piece:
    """The blocks of these numbers, which ascend: that of a key is `(key - first) >> bits`."""
    (first, last), least, most = within, numbers[0], numbers[-1]
    range_ = first + (least << bits), min(first + ((most + 1) << bits) - 1, last)
    whole = most - least + 1 == len(numbers)
    return range_, None if whole else (bits, [number - least for number in numbers])


def bits_of_blocks(span: Range, rows: int, share: float) -> int:
    """For blocks whose hashes are the fewest bytes together with those of the records in blocks that differ.

    share: of records that differ, anywhere among all.
    """
    # A block takes twice the bytes of a record.
    records = min(max(math.sqrt(2 / share), _BLOCK_ROWS_MIN), _BLOCK_ROWS_MAX)
    return max(1, round(math.log2(records * (span[1] - span[0] + 1) / max(rows, 1))))


def match_ranges(sides: Hashed, suspects: Suspects, asked: Iterable[Piece], bits: int = 0) -> Told:
    """Matches all keys within these pieces, which do not overlap. Keys must be unique.

    bits: whole ranges are first asked for blocks of `2 ** bits` keys; 0 for none.
    """
    matching = _Matching(sides, suspects, bits)
    with ThreadPoolExecutor(2 * _AHEAD, thread_name_prefix="trueup-hashes") as pool:
        try:
            return matching.run(pool, asked)
        except BaseException:
            # What still runs on the sides would be waited for.
            sides.close()
            raise


@dataclass(frozen=True, slots=True)
class _Question:
    """What both sides are asked about a range: its blocks, or its records.

    among: only those in these blocks. counted: whether its records have been counted.
    """

    range_: Range
    blocks: bool
    among: Blocks | None = None
    counted: bool = False
    answers: list[Future[pa.RecordBatch | None]] = field(default_factory=list)


class _Matching:
    def __init__(self, sides: Hashed, suspects: Suspects, bits: int) -> None:
        self._sides, self._suspects, self._bits = sides, suspects, bits
        self._left = self._right = 0

    def run(self, pool: ThreadPoolExecutor, asked: Iterable[Piece]) -> Told:
        before = self._suspects.records()
        todo = (_Question(range_, blocks=self._bits > 0 and not some, among=some) for range_, some in asked)
        again: deque[_Question] = deque()
        waiting: deque[_Question] = deque()
        while True:
            while len(waiting) < _AHEAD and (question := again.popleft() if again else next(todo, None)) is not None:
                sides = (self._sides.left, self._sides.right)
                question.answers.extend(pool.submit(self._answer, side, question) for side in sides)
                waiting.append(question)
            if not waiting:
                break
            again.extend(self._follow(waiting.popleft()))
        odd = self._suspects.records() - before
        return Told(self._left, self._right, (self._left + self._right - odd) // 2)

    def _answer(self, side: Snapshot, question: _Question) -> pa.RecordBatch | None:
        if question.blocks:
            return side.blocks(self._sides.function, *question.range_, self._bits)
        # A single key that repeats can't be cut in two.
        rows_max = ROWS_MAX if question.range_[0] < question.range_[1] else 2**31 - 1
        return side.hashes_within(self._sides.function, *question.range_, rows_max, question.among)

    def _follow(self, question: _Question) -> list[_Question]:
        """Takes the answers; what is to be asked next."""
        left, right = told(question.answers)
        if left is None or right is None:
            halves = _halves(question.range_, question.among)
            return [_Question(range_, blocks=False, among=some, counted=question.counted) for range_, some in halves]
        if question.blocks:
            return self._among(question.range_, left, right)
        if not question.counted:
            self._left += left.num_rows
            self._right += right.num_rows
        found = _unequal(left, right)
        if found is None:
            self._suspects.add_hashed(left, right)
        for keys, records in found or ():
            self._suspects.add(keys, records)
        return []

    def _among(self, range_: Range, left: pa.RecordBatch, right: pa.RecordBatch) -> list[_Question]:
        counts = [pc.sum(each.column("n")).as_py() or 0 for each in (left, right)]
        self._left, self._right = self._left + counts[0], self._right + counts[1]
        found = _unequal(left, right)
        numbers: list[Any] = sorted(key for keys, _ in found or () for key in keys.to_pylist())
        if found is None or len(numbers) > _BLOCKS_MAX * max(left.num_rows, right.num_rows):
            return [_Question(each, blocks=False, counted=True) for each in ranges(range_, max(counts))]
        if not numbers:
            return []
        some, among = piece(range_, self._bits, numbers)
        return [_Question(some, blocks=False, among=among, counted=True)]


def _unequal(left: pa.RecordBatch, right: pa.RecordBatch) -> list[tuple[pa.Array[Any], int]] | None:
    """Keys of one side alone, and of both where something else differs, each with how many sides have them.

    None where the keys that both sides have do not come in one order.
    """
    found: list[tuple[pa.Array[Any], int]] = []
    if not left.column("k0").equals(right.column("k0")):
        shared = _shared(left.column("k0"), right.column("k0"))
        found = [(a.column("k0").filter(pc.invert(of)), 1) for a, of in zip((left, right), shared, strict=True)]
        left, right = (a.filter(of) for a, of in zip((left, right), shared, strict=True))
        if not left.column("k0").equals(right.column("k0")):
            return None
    unequal = pa.repeat(pa.scalar(value=False), left.num_rows)
    for a, b in zip(left.columns[1:], right.columns[1:], strict=True):
        unequal = pc.or_(unequal, pc.fill_null(pc.not_equal(a, b), fill_value=True))
    return [*found, (left.column("k0").filter(unequal), 2)]


def _shared(left: pa.Array[Any], right: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Which keys the other side has too. Keys of a side are unique.

    They are looked up in a table of all that may lie between, where it is small.
    """
    ends = [pc.min_max(keys).as_py() for keys in (left, right) if len(keys)]
    first, last = min(each["min"] for each in ends), max(each["max"] for each in ends)
    if last - first > _PLACES_MAX:
        return pc.is_in(left, value_set=right), pc.is_in(right, value_set=left)
    origin = pa.scalar(first, pa.int64())
    places = _places(pc.subtract(right, origin), last - first + 1).take(pc.subtract(left, origin))
    return places.is_valid(), _places(places.drop_null(), len(right)).is_valid()


def _places(numbers: pa.Array[Any], size: int) -> pa.Array[Any]:
    """Where each number below a size is among these; null where it is not."""
    places: pa.Array[Any] = pc.inverse_permutation(numbers, max_index=size - 1, output_type=pa.int32())
    return places


def _halves(range_: Range, among: Blocks | None) -> tuple[Piece, Piece]:
    if among is not None:
        bits, numbers = among
        half = len(numbers) // 2
        return piece(range_, bits, numbers[:half]), piece(range_, bits, numbers[half:])
    first, last = range_
    middle = (first + last) // 2
    return ((first, middle), None), ((middle + 1, last), None)
