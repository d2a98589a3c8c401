"""What crosses from a side to here: rows and bytes, counted while they pass."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from trueup.model.digest import HashSum
from trueup.ports import Blocks, Segments, Snapshot

pc: Any = pyarrow.compute
# Of a number in an answer.
_NUMBER_BYTES = 8


class Traffic:
    """rows, bytes: what was read of a side so far, as it lies in memory here. statements: what it was asked.

    seen: called with the number of records that an answer accounts for, and none before it did.
    """

    def __init__(self, seen: Callable[[int], None] = lambda records: None) -> None:
        self.rows = self.bytes = 0
        self.statements: tuple[str, ...] = ()
        self._looks: Counter[str] = Counter()
        self._seen = seen
        self._lock = threading.Lock()

    def add(self, rows: int, size: int, records: int = 0, look: str = "scan") -> None:
        """An answer of so many rows and bytes, which accounts for so many records.

        look: what they were asked by. The same records may be asked for in several ways, so that the one that is the
        furthest tells how many have been accounted for.
        """
        with self._lock:
            self.rows += rows
            self.bytes += size
            before = max(self._looks.values(), default=0)
            self._looks[look] += records
            more = max(self._looks.values()) - before
        if more:
            self._seen(more)

    def records(
        self, batches: Iterator[pa.RecordBatch], look: str = "scan", *, again: bool = False
    ) -> Generator[pa.RecordBatch]:
        """The same batches of records, counted. look: as of `add`. again: these have been accounted for."""
        try:
            for batch in batches:
                self.add(batch.num_rows, batch.nbytes, 0 if again else batch.num_rows, look)
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()


class Watched:
    """A snapshot whose answers are counted."""

    def __init__(self, snapshot: Snapshot, traffic: Traffic) -> None:
        self._snapshot, self.traffic = snapshot, traffic
        self.functions, self.gaps = snapshot.functions, snapshot.gaps
        self.unique, self.here, self.sketches = snapshot.unique, snapshot.here, snapshot.sketches
        self.dear = snapshot.dear

    @property
    def statements(self) -> tuple[str, ...]:
        """As the snapshot's."""
        return self._snapshot.statements

    def span(self) -> tuple[int, int] | None:
        """As the snapshot's."""
        return self._snapshot.span()

    def total(self, function: str) -> HashSum | None:
        """As the snapshot's. Where it does not end the comparison, it accounts for no record."""
        answer = self._snapshot.total(function)
        self.traffic.add(1, 2 * _NUMBER_BYTES)
        return answer

    def segments(self, function: str, origin: int, bits: int) -> Segments:
        """As the snapshot's."""
        answer = self._snapshot.segments(function, origin, bits)
        records = sum(each.count for each in answer.values() if each is not None)
        self.traffic.add(len(answer), 3 * _NUMBER_BYTES * len(answer), records, "segments")
        return answer

    def hashes(self, function: str) -> Iterator[pa.RecordBatch]:
        """As the snapshot's."""
        for batch in self._snapshot.hashes(function):
            self.traffic.add(batch.num_rows, batch.nbytes, batch.num_rows, "hashes")
            yield batch

    def hashes_within(
        self, function: str, first: int, last: int, rows_max: int, among: Blocks | None = None
    ) -> pa.RecordBatch | None:
        """As the snapshot's; what was too much has crossed all the same."""
        batch = self._snapshot.hashes_within(function, first, last, rows_max, among)
        self._ranged(batch, rows_max)
        return batch

    def blocks(self, function: str, first: int, last: int, bits: int) -> pa.RecordBatch:
        """As the snapshot's."""
        batch = self._snapshot.blocks(function, first, last, bits)
        records = pc.sum(batch.column("n")).as_py() or 0
        self.traffic.add(batch.num_rows, 2 * _NUMBER_BYTES * batch.num_rows, records, "blocks")
        return batch

    def hashes_within_each(
        self, function: str, ranges: Sequence[tuple[int, int]], rows_max: int
    ) -> list[pa.RecordBatch | None]:
        """As the snapshot's; a sample, whose records are asked for again."""
        batches = self._snapshot.hashes_within_each(function, ranges, rows_max)
        for batch in batches:
            self._ranged(batch, rows_max, sample=True)
        return batches

    def _ranged(self, batch: pa.RecordBatch | None, rows_max: int, *, sample: bool = False) -> None:
        rows = rows_max + 1 if batch is None else batch.num_rows
        self.traffic.add(rows, 2 * _NUMBER_BYTES * rows, 0 if batch is None or sample else rows, "ranges")

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        """As the snapshot's."""
        answer = self._snapshot.cells(function, sizes)
        if answer is not None:
            self.traffic.add(answer.num_rows, answer.nbytes)
        return answer

    def pace(self) -> float | None:
        """As the snapshot's."""
        return self._snapshot.pace()

    def ends(self, function: str, rows: int) -> pa.Array[Any] | None:
        """As the snapshot's."""
        answer = self._snapshot.ends(function, rows)
        if answer is not None:
            self.traffic.add(len(answer), answer.nbytes)
        return answer

    def placed(self, function: str) -> Iterator[pa.RecordBatch] | None:
        """As the snapshot's."""
        batches = self._snapshot.placed(function)
        return None if batches is None else self.traffic.records(batches, "places")

    def placed_records(self, places: pa.Array[Any]) -> Iterator[pa.RecordBatch]:
        """As the snapshot's."""
        return self.traffic.records(self._snapshot.placed_records(places), again=True)

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        """As the snapshot's."""
        return self.traffic.records(self._snapshot.records(keys), again=True)

    def unusual(self) -> Iterator[pa.RecordBatch]:
        """As the snapshot's."""
        return self.traffic.records(self._snapshot.unusual(), again=True)

    def everything(self) -> Iterator[pa.RecordBatch]:
        """As the snapshot's."""
        return self.traffic.records(self._snapshot.everything(), again=True)

    def seeks(self, keys: int, records: int) -> bool:
        """As the snapshot's."""
        return self._snapshot.seeks(keys, records)

    def close(self) -> None:
        """As the snapshot's."""
        self._snapshot.close()
