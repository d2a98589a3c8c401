"""The private files of one comparison: a DuckDB database of keys and hashes, and the records as they were read."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute

from trueup.compare.judge import Array
from trueup.errors import BadInput, TrueupError
from trueup.model.duck import interruptible, settings

pc: Any = pyarrow.compute
# Records are hashed, kept and fetched in chunks of about this size, whichever is reached first.
CHUNK_ROWS: Final = 131_072
CHUNK_BYTES: Final = 16 * 1024 * 1024
BATCHES_MAX: Final = 8
# Results come in batches of this many rows.
BATCH_ROWS: Final = 8_192
# Odd keys that are joined at once.
_RANGE_KEYS: Final = 32_768


@contextmanager
def _room() -> Iterator[None]:
    try:
        with interruptible():
            yield
    except (duckdb.OutOfMemoryException, duckdb.IOException, OSError) as failure:
        raise TrueupError(
            "the comparison ran out of memory or of room for its files.",
            hint="Give it more memory, or set TMPDIR to a directory with more room.",
        ) from failure
    except duckdb.Error:
        # Its text may hold values.
        raise BadInput(
            "a value can't be held beside others.", hint="Texts must be UTF-8: check the columns of the key first."
        ) from None


class Workspace:
    """A private directory with a database in it. Closing removes it; so does the end of the program.

    Raises TrueupError where memory or disk do not suffice.
    """

    def __init__(self, memory_mb: int) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="trueup-"))
        # Chunks wait beside what the database holds, those of both sides at once.
        self.chunk_rows, self.chunk_bytes = memory_mb << 9, memory_mb << 16
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._connection = duckdb.connect(
            str(self.path / "keys.duckdb"),
            # The tables live for seconds, and hashes do not get smaller.
            config={**settings(memory_mb, str(self.path / "spill")), "force_compression": "uncompressed"},
        )

    def allow(self, memory_mb: int) -> None:
        """Lets the database have so much memory from now on."""
        self.run(f"SET memory_limit = '{memory_mb}MB'")

    def run(self, sql: str) -> None:
        """Runs one statement for its effect."""
        with _room(), self._connection.cursor() as cursor:
            cursor.execute(sql)

    def number(self, sql: str) -> int:
        """The one number that a query answers; 0 for null."""
        with _room(), self._connection.cursor() as cursor:
            row = cursor.execute(sql).fetchone()
        return int(row[0] or 0) if row else 0

    def counts(self, sql: str) -> dict[str, int]:
        """A small table of names and numbers."""
        with _room(), self._connection.cursor() as cursor:
            return dict(cursor.execute(sql).fetchall())

    def batches(self, sql: str, size: int, values: dict[str, int] | None = None) -> Iterator[pa.RecordBatch]:
        """A result in batches. values: of `$name` in the query."""
        with self._connection.cursor() as cursor:
            with _room():
                reader = cursor.sql(sql, params=values or {}).to_arrow_reader(size)
            while True:
                with _room():
                    batch = next(reader, None)
                if batch is None:
                    return
                yield batch

    def insert(self, sql: str, chunk: pa.RecordBatch | pa.Table) -> None:
        """Runs one statement that reads from `chunk`."""
        with self.inserts(sql) as insert:
            insert(chunk)

    def select(self, sql: str, chunk: pa.RecordBatch | pa.Table) -> pa.Table:
        """What a query answers that reads from `chunk`."""
        with _room(), self._connection.cursor() as cursor:
            found: pa.Table = cursor.sql(sql).to_arrow_table()
            return found

    @contextmanager
    def inserts(self, sql: str) -> Iterator[Callable[[pa.RecordBatch | pa.Table], None]]:
        """Runs one statement that reads from `chunk` for one chunk after the other, all in one transaction.

        In a transaction each, every chunk would wait for the disk.
        """
        with self._connection.cursor() as cursor:

            def insert(chunk: pa.RecordBatch | pa.Table) -> None:
                # DuckDB finds the variable by its name. A registered chunk would live as long as the transaction.
                with _room():
                    cursor.execute(sql)
                # Each thread's allocator would keep what its chunks took.
                pa.default_memory_pool().release_unused()

            cursor.begin()
            yield insert
            with _room():
                cursor.commit()

    def close(self) -> None:
        """Closes the database and removes the directory; safe to call twice."""
        self._connection.close()
        self._remove()


class Spool:
    """The records of one side as they were read, in files of a few batches.

    Records are numbered from 0 in the order in which they came. The files are not compressed: they are mapped
    into memory, so that fetching a few records reads little.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        # The number of each file's first record.
        self._starts: list[int] = []
        self.rows = 0

    def append(self, batches: list[pa.RecordBatch]) -> list[int]:
        """Keeps batches of one schema; answers the number of each one's first record."""
        starts = []
        path = str(self._path(len(self._starts)))
        self._starts.append(self.rows)
        with _room(), pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batches[0].schema) as to:
            for batch in batches:
                to.write_batch(batch)
                starts.append(self.rows)
                self.rows += batch.num_rows
        return starts

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Every batch that holds one of the records `first` to `last`, with the number of its first record."""
        last = self.rows - 1 if last is None else last
        for at in range(bisect_right(self._starts, first) - 1 if self._starts else 0, bisect_right(self._starts, last)):
            start = self._starts[at]
            with pa.memory_map(str(self._path(at))) as file, pa.ipc.open_file(file) as opened:
                for index in range(opened.num_record_batches):
                    batch = opened.get_batch(index)
                    if start <= last and first < start + batch.num_rows:
                        yield start, batch
                    start += batch.num_rows

    def take(self, numbers: Array) -> pa.Table:
        """The records with these numbers, of which there is at least one, and which ascend."""
        found = []
        for start, batch in self.batches(numbers[0].as_py(), numbers[-1].as_py()):
            mine = pc.and_(pc.greater_equal(numbers, start), pc.less(numbers, start + batch.num_rows))
            found.append(batch.take(pc.subtract(numbers.filter(mine), start)))
        # Of many batches with a few records each, what is around the values takes most.
        return pa.Table.from_batches(found).combine_chunks()

    def _path(self, at: int) -> Path:
        return self._directory / f"{self._name}-{at:06}.arrow"


RANGE: Final = "WHERE o BETWEEN $first AND $last"


def in_ranges(workspace: Workspace, sql: str) -> Iterator[pa.RecordBatch]:
    """Runs a query for one range of odd keys after the other: a join of a few thousand never needs much memory.

    sql: bounds each of its tables by RANGE.
    """
    for first in range(1, workspace.number("SELECT max(o) FROM odd") + 1, _RANGE_KEYS):
        yield from workspace.batches(sql, BATCH_ROWS, {"first": first, "last": first + _RANGE_KEYS - 1})


class Parts:
    """Batches of one schema, their rows parted by the last bits of the column `h` into as many files, a power of two.

    Few enough rows of a part are then all that is in memory at once.
    """

    def __init__(self, directory: Path, name: str, parts: int) -> None:
        self._paths = [directory / f"{name}-{at:04}.arrow" for at in range(parts)]
        self._files: list[pa.OSFile] = []
        self._writers: list[pa.ipc.RecordBatchStreamWriter] = []
        self.rows = 0

    def append(self, batches: list[pa.RecordBatch]) -> None:
        """Keeps the rows, the better the more of them at once. All must have been kept before a part is asked for."""
        rows = pa.Table.from_batches(batches).combine_chunks()
        part = pc.bit_wise_and(rows.column("h"), len(self._paths) - 1).cast(pa.uint8())
        ordered = rows.take(pc.sort_indices(part))
        counts = {each["values"]: each["counts"] for each in pc.value_counts(part).to_pylist()}
        with _room():
            if not self._writers:
                self._files = [pa.OSFile(str(path), "wb") for path in self._paths]
                self._writers = [pa.ipc.new_stream(file, rows.schema) for file in self._files]
            start = 0
            for at, writer in enumerate(self._writers):
                writer.write_table(ordered.slice(start, counts.get(at, 0)))
                start += counts.get(at, 0)
        self.rows += rows.num_rows

    def close(self) -> None:
        """Ends the keeping."""
        with _room():
            for writer, file in zip(self._writers, self._files, strict=True):
                writer.close()
                file.close()

    def part(self, at: int) -> pa.Table:
        """All rows of a part."""
        with _room(), pa.OSFile(str(self._paths[at]), "rb") as file, pa.ipc.open_stream(file) as stream:
            rows: pa.Table = stream.read_all()
            return rows
