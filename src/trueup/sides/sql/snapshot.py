"""One table at one instant, its rows hashed inside the database, over a few connections that see the same."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa

from trueup.model.columns import key_texts
from trueup.model.digest import HashSum
from trueup.ports import EVERYTHING
from trueup.sides.scanning import delivered_texts, schema_of
from trueup.sides.sql import read as reading
from trueup.sides.sql.dialects import VERSION, Reading, Stored
from trueup.sides.sql.hashing import (
    Function,
    Hasher,
    Packed,
    packed_key,
    part_keys,
    unique,
    whole_number_key,
)
from trueup.sides.sql.read import Selection
from trueup.sides.sql.trouble import in_our_words

CONNECTIONS_MAX: Final = 2


class SqlSnapshot:
    """A table as it is when this is made. connect: opens a connection of the side. place: for messages.

    connections_max: how many may work at once, where the engine lets several see one instant.
    """

    def __init__(
        self,
        connect: Callable[[], sa.Connection],
        hasher: Hasher,
        of: Selection,
        place: str,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._connect, self._hasher, self._of, self._place = connect, hasher, of, place
        self._ready = threading.Condition()
        self._max = connections_max
        self._closed = False
        self._free: list[sa.Connection] = []
        self._busy: list[sa.Connection] = []
        self._statements: dict[str, None] = {}
        with self._in_our_words():
            first = connect()
            self._free.append(first)
            try:
                self._instant = hasher.begin(first)
                if not (hasher.shares_instant and self._instant):
                    self._max = 1
                self._known = {function.name: function for function in hasher.functions(first, of)}
                self._pages = hasher.pages(first, of) if packed_key(of, hasher) is not None else None
            except BaseException:
                self.close()
                raise

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that fit this table, fastest first."""
        return tuple(self._known)

    @property
    def unique(self) -> bool:
        """Whether an index refuses a second record with the same key, and no part of a key may be null."""
        return unique(self._of) and not any(known.stored.nullable for _, known, _ in self._of.key)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements that were run, each once."""
        return tuple(self._statements)

    def span(self) -> tuple[int, int] | None:
        """First and last key where it is a whole number led by an index."""
        key = whole_number_key(self._of)
        if key is None:
            return None
        row = self._one(f"SELECT min({key}), max({key}) {self._of.from_where()}")
        return None if row[0] is None else (int(row[0]), int(row[1]))

    def total(self, function: str) -> HashSum | None:
        """Count and hash sum in one statement."""
        if not unique(self._of):
            return None
        sums = self._known[function].sums
        count, without, total, part = self._one(f"SELECT {sums}, {part_keys(self._of)} {self._of.from_where()}")
        if int(without) or int(part) or (int(count) and total is None):
            return None
        return HashSum(int(count), int(total or 0))

    def segments(self, function: str, origin: int, bits: int) -> dict[int, HashSum | None]:
        """Count and hash sum of each segment in one statement."""
        key = whole_number_key(self._of)
        segment = f"({self._hasher.wide.format(key)} - {self._of.dialect.mark}) >> {bits}"
        sql = self._hasher.segments(self._of, segment, self._known[function])
        return {
            int(number): None if int(without) or total is None else HashSum(int(count), int(total))
            for number, count, without, total in self._all(sql, (origin,))
        }

    def hashes(self, function: str) -> Iterator[pa.RecordBatch]:
        """Packed by the server where it can say where rows lie, else as a scan."""
        columns = packed_key(self._of, self._hasher)
        if self._pages is None or columns is None:
            yield from self._scanned(self._known[function])
            return
        packed = [*columns, Packed(self._known[function].hash, "integer", nullable=True)]
        for condition, values in self._pages:
            yield self._packed(packed, self._of.from_where(condition), values)

    def hashes_within(self, function: str, first: int, last: int, rows_max: int) -> pa.RecordBatch | None:
        """One packed row, in the order of the index."""
        key = whole_number_key(self._of)
        assert key is not None
        mark = self._of.dialect.mark
        rest = self._of.from_where(f"{key} >= {mark} AND {key} <= {mark}") + f" ORDER BY {key} LIMIT {rows_max + 1}"
        known = self._known[function]
        hashed = Packed(known.hash, "integer", nullable=bool(known.unless))
        batch = self._packed([Packed(key, "integer", nullable=False), hashed], rest, (first, last))
        return batch if batch.num_rows <= rows_max else None

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        """All tables of cells in one scan."""
        key = whole_number_key(self._of)
        sql = None if key is None else self._hasher.cells(key, self._known[function], sizes, self._of.from_where())
        if sql is None:
            return None
        rows = [tuple(map(_int, row)) for row in self._all(sql)]
        if any(row[2] != row[3] for row in rows):
            return None
        which, cells, counts, _, keys, hashes, checks = list(zip(*rows, strict=True)) or [()] * 7
        columns = {"t": which, "c": cells, "n": counts, "k": keys, "h": hashes, "q": checks}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        """By the engine's own lists or arrays of keys, else one key after the other."""
        conditions = self._hasher.among(self._of, keys)
        if conditions is None:
            yield from self._looked_up(keys)
            return
        for condition in conditions:
            with self._borrowed() as connection:
                yield from self._streamed(reading.scan(connection, self._of, EVERYTHING, {}, among=condition))

    def close(self) -> None:
        """Ends what still runs, then gives back all connections."""
        with self._ready:
            self._closed = True
            busy = list(self._busy)
            self._ready.notify_all()
        for connection in busy:
            with contextlib.suppress(Exception):
                self._hasher.cancel(connection)
        with self._ready:
            self._ready.wait_for(lambda: not self._busy, timeout=10)
            free, self._free = self._free, []
        for connection in free:
            with contextlib.suppress(Exception):
                connection.close()

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────

    def _packed(self, columns: Sequence[Packed], rest: str, values: Sequence[Any]) -> pa.RecordBatch:
        self._note(f"SELECT {', '.join(column.sql for column in columns)} {rest}")
        with self._borrowed() as connection:
            arrays = self._hasher.pack(connection, columns, rest, values)
        names = [*(f"k{at}" for at in range(len(columns) - 1)), "h"]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _scanned(self, function: Function) -> Iterator[pa.RecordBatch]:
        of = self._of
        selected: list[tuple[Stored | None, Reading]] = [(known.stored, each) for _, known, each in of.key]
        selected.append((None, Reading(function.hash, "integer", VERSION)))
        self._note(f"SELECT {', '.join(each.sql for _, each in selected)} {of.from_where()}")
        names = [*(f"k{at}" for at in range(len(of.key))), "h"]
        with self._borrowed() as connection:
            for raw in self._streamed(of.dialect.scan(connection, selected, of.from_where(), [])):
                keys = [
                    reading.delivered_array(each, column, of, {}) for each, column in zip(raw, of.key, strict=False)
                ]
                hashes = raw[-1] if isinstance(raw[-1], pa.Array) else pa.array(raw[-1], pa.int64())
                yield pa.RecordBatch.from_arrays([*keys, hashes.cast(pa.int64())], names=names)

    def _looked_up(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        projection = self._of.projection
        for few in keys.to_batches(reading.KEYS_MAX):
            texts = key_texts(few.columns, projection.key)
            with self._borrowed() as connection, self._in_our_words():
                found = [row.found for rows in reading.find(connection, self._of, texts).values() for row in rows]
            arrays: list[pa.Array[Any]] = [
                pa.array([each.version for each in found], pa.int64())
                if field is projection.version
                else delivered_texts([each.values[field.name] for each in found], field)
                for field in projection.columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema_of(projection))

    def _one(self, sql: str) -> Any:
        return self._all(sql)[0]

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> Sequence[Any]:
        self._note(sql)
        with self._borrowed() as connection:
            return connection.exec_driver_sql(sql, values or None).all()

    def _note(self, sql: str) -> None:
        self._statements.setdefault(sql.replace("%%", "%"))

    def _streamed(self, batches: Iterator[Any]) -> Iterator[Any]:
        started = False
        try:
            while True:
                with self._in_our_words(scanning=started):
                    batch = next(batches, None)
                if batch is None:
                    return
                started = True
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()

    # ── connections ──────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _borrowed(self) -> Iterator[sa.Connection]:
        with self._in_our_words():
            connection = self._take()
            try:
                yield connection
            finally:
                with self._ready:
                    self._busy.remove(connection)
                    self._free.append(connection)
                    self._ready.notify_all()

    def _take(self) -> sa.Connection:
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._free or len(self._busy) < self._max)
            if self._closed:
                raise Closed
            connection = self._free.pop() if self._free else None
            if connection is None:
                connection = self._connect()
                try:
                    self._hasher.join(connection, self._instant)
                except BaseException:
                    connection.close()
                    raise
            self._busy.append(connection)
            return connection

    @contextmanager
    def _in_our_words(self, *, scanning: bool = False) -> Iterator[None]:
        label = self._of.inspected.description.label
        with in_our_words(self._of.dialect, label, self._place, scanning=scanning):
            yield


class Closed(Exception):
    """The snapshot was closed while it was asked; nobody waits for the answer."""


def _int(value: Any) -> int:
    return 0 if value is None else int(value)
