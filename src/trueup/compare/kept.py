"""A side that can't hash its records where they are: read once, kept on disk, and asked like a database that can.

Its hashes are the canonical ones, so that it can be compared with any database that computes these. That side then
sends a key and a hash for each record, or only sums, instead of all its records.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import cached_property
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute

from trueup.compare.stage import Shape, chunks
from trueup.compare.watched import Traffic
from trueup.compare.workspace import BATCH_ROWS, Spool, Workspace
from trueup.errors import TrueupError
from trueup.model.columns import text_array
from trueup.model.digest import CANONICAL, CANONICAL_DIGITS, CHECK_MODULUS, HashSum
from trueup.model.record import Projection
from trueup.ports import Blocks, Segments, Side, StoppableScan

pc: Any = pyarrow.compute
# So many keys are counted at once for each MB of memory.
_KEYS_A_MB: Final = 8_000
# So many times the memory for keeping is allowed to what does not get by with it.
_MORE: Final = 4
# How often what still reads is told to end.
_ENDING_S: Final = 0.2
T = TypeVar("T")


class Kept:
    """The records of a side as they were when it was read; the reading begins at once, in a thread of its own.

    traffic: counts what is read. memory_mb: for keys and hashes. Errors of the side are raised by whatever is asked
    first.
    """

    functions: tuple[str, ...] = (CANONICAL,)
    gaps: tuple[str, ...] = ()
    here = True
    dear = False
    sketches = True
    statements: tuple[str, ...] = ()

    def __init__(self, side: Side, asked: Projection, traffic: Traffic, memory_mb: int) -> None:
        self._shape = Shape(asked)
        self._workspace, self._memory_mb = Workspace(memory_mb), memory_mb
        self._spool = Spool(self._workspace.path, "kept")
        self._stopped = threading.Event()
        self._closed = threading.Lock()
        self._keys = ", ".join(self._shape.keys)
        try:
            self._scan = side.scan(asked)
        except BaseException:
            self._workspace.close()
            raise
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="trueup-kept")
        self._reading: Future[None] = self._pool.submit(self._fill, traffic.records(self._scan))

    @cached_property
    def unique(self) -> bool:
        """Whether no key repeats and every key is whole: counted, for a part of the keys at a time.

        To count all of them at once, the database needs memory that grows with them.
        """
        rows = self._number("SELECT count(*) FROM kept")
        parts = -(-rows // (_KEYS_A_MB * self._memory_mb))
        whole = " AND ".join(f"{name} IS NOT NULL" for name in self._shape.keys)
        distinct = (
            f"SELECT count(*) FROM (SELECT DISTINCT {self._keys} FROM kept WHERE {whole} AND hash({self._keys}) %"
        )
        return sum(self._number(f"{distinct} {parts} = {part})") for part in range(parts)) == rows

    def span(self) -> tuple[int, int] | None:
        """First and last key where it is one column of whole numbers."""
        if self._keys != "k0" or not pa.types.is_integer(self._shape.schema.field("k0").type):
            return None
        if not self._number("SELECT count(k0) FROM kept"):
            return None
        return self._number("SELECT min(k0) FROM kept"), self._number("SELECT max(k0) FROM kept")

    def total(self, function: str) -> HashSum | None:
        """Count and hash sum."""
        return self.segments(function, 0, 63, "0").get(0, HashSum(0, 0)) if self.unique else None

    def segments(self, function: str, origin: int, bits: int, number: str = "") -> Segments:
        """Count and hash sum of each. number: of a record's segment, in SQL."""
        number = number or f"(k0 - CAST({origin} AS BIGINT)) >> {bits}"
        # 60 bits of up to 2^62 records: the sum is wider than Arrow's integers, its halves are not.
        halves = "sum(h >> 30)::BIGINT AS high, sum(h & 1073741823)::BIGINT AS low"
        sql = f"SELECT {number} AS s, count(*) AS n, {halves} FROM kept GROUP BY 1"
        return {
            each["s"]: HashSum(each["n"], (each["high"] << 30) + each["low"])
            for batch in self._batches(sql)
            for each in batch.to_pylist()
        }

    def hashes(self, function: str) -> Iterator[pa.RecordBatch]:
        """Every record's key and hash, once they are asked for one by one."""
        yield from self._batches(f"SELECT {self._keys}, h FROM kept")

    def hashes_within(
        self, function: str, first: int, last: int, rows_max: int, among: Blocks | None = None
    ) -> pa.RecordBatch | None:
        """In key order; None where they are more."""
        within = f"FROM kept WHERE k0 BETWEEN CAST({first} AS BIGINT) AND CAST({last} AS BIGINT)"
        if among is not None:
            bits, numbers = among
            within += f" AND (k0 - CAST({first} AS BIGINT)) >> {bits} IN ({', '.join(map(str, numbers))})"
        if self._number(f"SELECT count(*) {within}") > rows_max:
            return None
        return self._whole(f"SELECT k0, h {within} ORDER BY k0", ("k0", "h"))

    def blocks(self, function: str, first: int, last: int, bits: int) -> pa.RecordBatch:
        """By their numbers."""
        sql = f"""SELECT (k0 - CAST({first} AS BIGINT)) >> {bits} AS k0, count(*) AS n, bit_xor(h) AS h FROM kept
                  WHERE k0 BETWEEN CAST({first} AS BIGINT) AND CAST({last} AS BIGINT) GROUP BY 1 ORDER BY 1"""
        return self._whole(sql, ("k0", "n", "h"))

    def hashes_within_each(
        self, function: str, ranges: Sequence[tuple[int, int]], rows_max: int
    ) -> list[pa.RecordBatch | None]:
        """One after the other: they are here."""
        return [self.hashes_within(function, *each, rows_max) for each in ranges]

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        """One table of cells for each size."""
        tables = [
            f"""SELECT {which} AS t, (h & {2**62 - 1}) % {size} AS c, count(*) AS n, bit_xor(k0) AS k,
                bit_xor(h) AS h, bit_xor((h & {2**62 - 1}) % {CHECK_MODULUS}) AS q FROM kept GROUP BY 2"""
            for which, size in enumerate(sizes)
        ]
        found = list(self._batches(" UNION ALL ".join(tables)))
        names = ("t", "c", "n", "k", "h", "q")
        empty = pa.schema([(name, pa.int64()) for name in names]).empty_table()
        return pa.Table.from_batches(found).cast(empty.schema) if found else empty

    def pace(self) -> float | None:
        """Nothing is between."""
        return None

    def ends(self, function: str, rows: int) -> pa.Array[Any] | None:
        """Nothing is in order."""
        return None

    def placed(self, function: str) -> Iterator[pa.RecordBatch] | None:
        """Keys are as near as places."""
        return None

    def placed_records(self, places: pa.Array[Any]) -> Iterator[pa.RecordBatch]:
        """None: no place was told."""
        return iter(())

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        """From where they were kept, in the order in which they were read; and what hashes like one of them."""
        self._reading.result()
        wanted = keys.cast(pa.schema([self._shape.schema.field(name) for name in self._shape.keys]))
        # By a number: joins by texts take memory that grows with what they are kept in.
        self._workspace.insert(f"CREATE OR REPLACE TABLE asked AS SELECT hash({self._keys}) AS x FROM chunk", wanted)
        for few in self._batches(f"SELECT n FROM kept SEMI JOIN asked ON hash({self._keys}) = x ORDER BY n"):
            yield from self._spool.take(few.column("n")).to_batches()

    def unusual(self) -> Iterator[pa.RecordBatch]:
        """None: it keeps canonical keys."""
        return iter(())

    def everything(self) -> Iterator[pa.RecordBatch]:
        """In the order in which they were read."""
        self._reading.result()
        return (batch for _, batch in self._spool.batches())

    def seeks(self, keys: int, records: int) -> bool:
        """All at hand."""
        return True

    def close(self) -> None:
        """Ends the reading and removes what was kept."""
        self._stopped.set()
        with self._closed:
            while not self._reading.done():
                # Repeated: a statement that is about to be sent can't be ended yet.
                if isinstance(self._scan, StoppableScan):
                    self._scan.stop()
                wait([self._reading], _ENDING_S)
            self._pool.shutdown()
            self._workspace.close()

    def _number(self, sql: str) -> int:
        return self._answered(lambda: self._workspace.number(sql))

    def _batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        def begun() -> tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]:
            batches = self._workspace.batches(sql, BATCH_ROWS)
            return next(batches, None), batches

        first, others = self._answered(begun)
        if first is not None:
            yield first
            yield from others

    def _answered(self, ask: Callable[[], T]) -> T:
        """Asks once more, with more memory, where a join or groups need more than rows that come and go."""
        self._reading.result()
        try:
            return ask()
        except TrueupError:
            self._workspace.allow(_MORE * self._memory_mb)
            return ask()

    def _whole(self, sql: str, names: Sequence[str]) -> pa.RecordBatch:
        """All of an answer of whole numbers."""
        empty = pa.schema([(name, pa.int64()) for name in names]).empty_table()
        found = list(self._batches(sql))
        whole = pa.Table.from_batches(found) if found else empty
        return pa.RecordBatch.from_arrays([_one(each.cast(pa.int64())) for each in whole.columns], names=list(names))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────

    def _fill(self, batches: Generator[pa.RecordBatch]) -> None:
        empty = self._hashed(self._shape.empty(), 0)
        parts = [f"coalesce(strlen({name}) || ':' || {name}, '~')" for name in empty.schema.names if name[0] == "t"]
        hashed = f"CAST('0x' || left(md5(concat({', '.join(parts)})), {CANONICAL_DIGITS}) AS BIGINT)"
        select = f"SELECT {self._keys}, {hashed} AS h, n FROM chunk"
        self._workspace.insert(f"CREATE TABLE kept AS {select} LIMIT 0", empty)
        with (
            closing(batches),
            self._workspace.inserts(f"INSERT INTO kept {select}") as insert,
            ThreadPoolExecutor(1, thread_name_prefix="trueup-keeping") as keeping,
        ):
            # Hashed while the next ones are read.
            before: Future[None] = keeping.submit(lambda: None)
            for chunk in chunks(batches, self._shape, self._workspace):
                before.result()
                if self._stopped.is_set():
                    return
                before = keeping.submit(self._keep, chunk, insert)
            before.result()

    def _keep(self, batches: list[pa.RecordBatch], insert: Callable[[pa.Table], None]) -> None:
        starts = self._spool.append(batches)
        insert(pa.concat_tables([self._hashed(*each) for each in zip(batches, starts, strict=True)]))

    def _hashed(self, batch: pa.RecordBatch, start: int) -> pa.Table:
        """Keys as they are, all that the hash covers as text, and the number of each record."""
        projection = self._shape.projection
        columns = {name: batch.column(name) for name in self._shape.keys}
        covered = [*zip(self._shape.keys, projection.key, strict=True),
                   *zip(self._shape.fields, projection.fields, strict=True)]  # fmt: skip
        for at, (name, field) in enumerate(covered):
            columns[f"t{at}"] = text_array(batch.column(name), field)
        columns["n"] = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows), start=start - 1)
        return pa.table(columns)


def _one(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else whole.chunk(0)
