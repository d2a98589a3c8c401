"""One table at one instant, its rows hashed inside the database, over a few connections that see the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
import sqlalchemy as sa

from trueup.model.columns import key_texts
from trueup.model.digest import HashSum, of_texts
from trueup.ports import EVERYTHING, Blocks
from trueup.sides.sql import find as finding
from trueup.sides.sql import read as reading
from trueup.sides.sql.dialects import VERSION, Raw, Reading, Stored
from trueup.sides.sql.hashing import (
    Function,
    Hasher,
    Packed,
    first_and_last,
    gaps,
    packed_as_read,
    packed_key,
    part_keys,
    unique,
    whole_number_key,
)
from trueup.sides.sql.hashing.abridged import abridged, abridges, joined, parted
from trueup.sides.sql.instant import Instant
from trueup.sides.sql.limits import UNLIMITED, Limits
from trueup.sides.sql.read import Selection
from trueup.sides.sql.trouble import in_our_words, unrepeated

pc: Any = pyarrow.compute
# Of a table whose pages can't be asked for, pieces are ranges of about so many keys.
_PIECE_ROWS: Final = 32_768
# To look for a key that may be spelled in several ways is taken to cost as much as to read so many rows.
_UNUSUAL_ROWS: Final = 4
# Long enough to time on a link that is worth timing, and soon there on any other.
_TRIAL_BYTES: Final = 262_144


class SqlSnapshot:
    """A table as it is when this is made. connect: opens a connection of the side. place: for messages.

    limits: how many connections may work at once, where the engine lets several see one instant, and how much they
    rest. Where they rest, what takes long is asked for in pieces.
    """

    def __init__(
        self,
        connect: Callable[[], sa.Connection],
        hasher: Hasher,
        of: Selection,
        place: str,
        limits: Limits = UNLIMITED,
    ) -> None:
        self._hasher, self._of, self._place, self._limits = hasher, of, place, limits
        self._statements: dict[str, None] = {}
        with self._in_our_words():
            self._instant = Instant(connect, hasher, limits)
            try:
                with self._instant.connection() as connection:
                    self._known = {function.name: function for function in hasher.functions(connection, of)}
            except BaseException:
                self.close()
                raise

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that fit this table, fastest first."""
        return tuple(self._known)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Columns of which the engine's SQL can't give the canonical text."""
        return tuple(gaps(self._of, self._hasher))

    @property
    def here(self) -> bool:
        """Whether the engine runs in this process."""
        return self._hasher.here

    @property
    def dear(self) -> bool:
        """Whether hashing a record takes as long as reading it."""
        return self._hasher.dear

    @property
    def sketches(self) -> bool:
        """Not where connections rest: cells can't be asked for in pieces."""
        return self._hasher.sketches and not self._limits.gentle and whole_number_key(self._of) is not None

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
        """Count and hash sum in one statement, or in one for each piece."""
        known = self._known[function]
        if not unique(self._of, hashed=of_texts(function)):
            return None
        select = f"SELECT {known.sums}, {part_keys(self._of)}"
        found = HashSum(0, 0)
        for condition, values in self._pieces():
            count, without, total, part = self._one(f"{select} {self._of.from_where(condition)}", tuple(values))
            if int(without) or int(part) or (int(count) and total is None):
                return None
            found = HashSum(found.count + int(count), found.total + int(total or 0))
        return found

    def segments(self, function: str, origin: int, bits: int) -> dict[int, HashSum | None]:
        """Count and hash sum of each segment in one statement, or in one for each piece."""
        key = whole_number_key(self._of)
        assert key is not None
        segment = self._block(key, bits)
        found: dict[int, HashSum | None] = {}
        for condition, values in self._pieces():
            sql = self._hasher.segments(self._of, segment, self._known[function], condition)
            for number, count, without, total in self._all(sql, (origin, *values)):
                known = found.get(int(number), HashSum(0, 0))
                lacking = int(without) or total is None
                found[int(number)] = (
                    None if known is None or lacking else HashSum(known.count + int(count), known.total + int(total))
                )
        return found

    def hashes(self, function: str) -> Iterator[pa.RecordBatch]:
        """Packed by the server where conditions part its rows, else as a scan."""
        delivered = packed_key(self._of, self._hasher)
        columns = delivered or packed_as_read(self._of)
        pages = None if columns is None else self._pages()
        if pages is None or columns is None:
            yield from self._scanned(self._known[function])
            return
        packed = [*columns, self._known[function].packed]
        for condition, values in pages:
            arrays = self._packed_noted(packed, self._of.from_where(condition), values)
            yield _named(arrays if delivered else self._delivered(arrays))

    def hashes_within(
        self, function: str, first: int, last: int, rows_max: int, among: Blocks | None = None
    ) -> pa.RecordBatch | None:
        """One packed row, in the order of the index."""
        key, known = whole_number_key(self._of), self._known[function]
        assert key is not None

        def rest(numbers: str) -> str:
            some = f" AND {self._block(key, among[0])} IN ({numbers})" if among else ""
            return self._of.from_where(f"{self._between(key)}{some}")

        values = [first, last, *([first] if among else [])]
        order = f" ORDER BY {key} LIMIT {rows_max + 1}"
        short = abridges(known, first, last)
        columns = [joined(key, known)] if short else [Packed(key, "integer", nullable=False), known.packed]
        self._note(f"SELECT {', '.join(each.sql for each in columns)} {rest('…')}{order}")
        arrays = self._packed_arrays(columns, rest(", ".join(map(str, among[1])) if among else ""), values, order)
        batch = _named(parted(arrays[0], first) if short else arrays)
        return batch if batch.num_rows <= rows_max else None

    def blocks(self, function: str, first: int, last: int, bits: int) -> pa.RecordBatch:
        """As segments are, and packed by the server; number and count in one number."""
        key, known = whole_number_key(self._of), self._known[function]
        assert key is not None
        xored = replace(known, summed=known.xored)
        sums = self._hasher.segments(self._of, self._block(key, bits), xored, self._between(key))
        most = ((last - first) >> bits) + 1
        hashed = "CASE WHEN w = 0 THEN h END" if known.unless else "h"
        columns = [Packed(f"n * {most} + s", "integer", nullable=False), replace(known.packed, sql=hashed)]
        self._note(sums)
        told, hashes = self._packed_arrays(columns, f"FROM ({sums}) AS g", (first, first, last))
        counts = pc.divide(told, most)
        numbers = pc.subtract(told, pc.multiply(counts, most))
        return pa.RecordBatch.from_arrays([numbers, counts, hashes], names=["k0", "n", "h"]).sort_by("k0")

    def hashes_within_each(
        self, function: str, ranges: Sequence[tuple[int, int]], rows_max: int
    ) -> list[pa.RecordBatch | None]:
        """One packed row for all of them, unless connections have to rest."""
        if self._hasher.here or self._limits.gentle or not ranges:
            return [self.hashes_within(function, *each, rows_max) for each in ranges]
        key, known = whole_number_key(self._of), self._known[function]
        assert key is not None
        if all(abridges(known, *each) for each in ranges):
            known = abridged(known)
        within = self._of.from_where(self._between(key))
        one = f"SELECT {key} AS k, {known.hash} AS h {within} ORDER BY {key} LIMIT {rows_max + 1}"
        self._note(f"{one} … UNION ALL, {len(ranges)} times")
        each_one = " UNION ALL ".join(f"SELECT k, h FROM ({one}) AS r{at}" for at in range(len(ranges)))
        columns = [Packed("k", "integer", nullable=False), replace(known.packed, sql="h")]
        ends = [end for each in ranges for end in each]
        batch = _named(self._packed_arrays(columns, f"FROM ({each_one}) AS u", ends))
        return [_ranged(batch, *each, rows_max) for each in ranges]

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        """All tables of cells in one scan."""
        key = whole_number_key(self._of) if self.sketches else None
        sql = None if key is None else self._hasher.cells(key, self._known[function], sizes, self._of.from_where())
        if sql is None:
            return None
        rows = [tuple(int(value or 0) for value in row) for row in self._all(sql)]
        if any(row[2] != row[3] for row in rows):
            return None
        which, cells, counts, _, keys, hashes, checks = list(zip(*rows, strict=True)) or [()] * 7
        columns = {"t": which, "c": cells, "n": counts, "k": keys, "h": hashes, "q": checks}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    def pace(self) -> float | None:
        """The time for some hundred kilobytes, without what an answer takes that has nothing in it."""
        if self._hasher.here:
            return None
        seconds = []
        for size in (1, _TRIAL_BYTES):
            started = time.monotonic()
            self._one(f"SELECT repeat('x', {size})")
            seconds.append(time.monotonic() - started)
        return _TRIAL_BYTES / max(seconds[1] - seconds[0], 1e-9)

    def ends(self, function: str, rows: int) -> pa.Array[Any] | None:
        """In the order of the first index that tells records of different keys apart."""
        known = self._known[function]
        both = first_and_last(self._of, known, rows)
        return None if both is None else self._packed_noted([replace(known.packed, sql="h")], both, ())[0]

    def placed(self, function: str) -> Iterator[pa.RecordBatch] | None:
        """Where the engine tells places, and every row has a hash."""
        known = self._known[function]
        pages = None if known.unless else self._pages(places=True)
        if pages is None:
            return None
        columns = [known.packed, self._hasher.place()]
        packed = (self._packed_noted(columns, self._of.from_where(each), values) for each, values in pages)
        return (pa.RecordBatch.from_arrays(arrays, names=["h", "p"]) for arrays in packed)

    def placed_records(self, places: pa.Array[Any]) -> Iterator[pa.RecordBatch]:
        """A few thousand in each statement."""
        for condition in self._hasher.at(places):
            yield from self._read(condition)

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        """By the engine's own lists or arrays of keys, else one key after the other."""
        # Else each of many small batches would be asked for by a statement of its own.
        keys = keys.combine_chunks()
        conditions = self._hasher.among(self._of, keys)
        if conditions is None:
            yield from self._looked_up(keys)
            return
        for condition in conditions:
            yield from self._read(condition)

    def unusual(self) -> Iterator[pa.RecordBatch]:
        """In one statement, whatever is asked of it: no index leads to a spelling that nobody guesses."""
        if (condition := finding.unusual(self._of)) is not None:
            yield from self._read((f"({condition})", []))

    def everything(self) -> Iterator[pa.RecordBatch]:
        """As the side's own scan, but of this instant."""
        yield from self._read(None)

    def seeks(self, keys: int, records: int) -> bool:
        """As its engine finds rows."""
        few = finding.unusual(self._of) is None or keys * _UNUSUAL_ROWS < records
        return few and self._hasher.seeks(self._of, keys, records)

    def close(self) -> None:
        """Ends what still runs, then gives back all connections."""
        self._instant.close()

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────

    def _packed_noted(self, columns: Sequence[Packed], rest: str, values: Sequence[Any]) -> list[pa.Array[Any]]:
        self._note(f"SELECT {', '.join(column.sql for column in columns)} {rest}")
        return self._packed_arrays(columns, rest, values)

    def _packed_arrays(
        self, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        with self._borrowed() as connection, self._instant.working():
            return self._hasher.pack(connection, columns, rest, values, order)

    def _between(self, key: str) -> str:
        return f"{key} >= {self._of.dialect.mark} AND {key} <= {self._of.dialect.mark}"

    def _block(self, key: str, bits: int) -> str:
        return f"(({self._hasher.wide.format(key)} - {self._of.dialect.mark}) >> {bits})"

    def _scanned(self, function: Function) -> Iterator[pa.RecordBatch]:
        of = self._of
        selected: list[tuple[Stored | None, Reading]] = [(known.stored, each) for _, known, each in of.key]
        selected.append((None, Reading(function.hash, "integer", VERSION)))
        self._note(f"SELECT {', '.join(each.sql for _, each in selected)} {of.from_where()}")
        with self._borrowed() as connection:
            for raw in self._streamed(of.dialect.scan(connection, selected, of.from_where(), [])):
                yield _named(self._delivered(raw))

    def _delivered(self, raw: Sequence[Raw]) -> list[pa.Array[Any]]:
        """Keys as they must be delivered, and hashes."""
        *keys, last = raw
        hashes: pa.Array[Any] = last if isinstance(last, pa.Array) else pa.array(last, pa.int64())
        found = (reading.delivered_array(*each, self._of, {}) for each in zip(keys, self._of.key, strict=True))
        return [*found, hashes.cast(pa.int64())]

    def _looked_up(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        key = self._of.projection.key
        for few in keys.to_batches():
            for wanted, condition, binds in finding.usual(self._of, key_texts(few.columns, key)):
                for batch in self._read((condition, binds)):
                    # What collates alike may be among those of another condition, too.
                    found = key_texts(batch.columns[: len(key)], key)
                    yield batch.filter(pa.array([each in wanted for each in found], pa.bool_()))

    def _read(self, among: tuple[str, list[Any]] | None) -> Iterator[pa.RecordBatch]:
        with self._borrowed() as connection:
            yield from self._streamed(reading.scan(connection, self._of, EVERYTHING, {}, among))

    def _pieces(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Conditions that part the rows: one piece, or many small ones where connections have to rest between them."""
        if not self._limits.gentle:
            return iter([("", ())])
        if (pages := self._pages()) is not None:
            return pages
        key, span = whole_number_key(self._of), self.span()
        if key is None or span is None:
            return iter([("", ())])
        rows = self._of.inspected.description.rows or 0
        width = max(_PIECE_ROWS, (span[1] - span[0] + 1) * _PIECE_ROWS // max(rows, 1))
        between = self._between(key)
        return ((between, (at, min(at + width - 1, span[1]))) for at in range(span[0], span[1] + 1, width))

    def _pages(self, *, places: bool = False) -> Iterator[tuple[str, Sequence[Any]]] | None:
        with self._borrowed() as connection:
            return self._hasher.pages(connection, self._of, self._first, places=places)

    def _first(self, sql: str, values: Sequence[Any]) -> Any:
        return next(iter(self._all(sql, tuple(values))), None)

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self._all(sql, values)[0]

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> Sequence[Any]:
        self._note(sql)
        with self._borrowed() as connection, self._instant.working():
            return connection.exec_driver_sql(sql, values or None).all()

    def _note(self, sql: str) -> None:
        self._statements.setdefault(sql.replace("%%", "%"))

    def _streamed(self, batches: Iterator[Any]) -> Iterator[Any]:
        started = False
        try:
            while True:
                with self._instant.working(), self._in_our_words(scanning=started):
                    batch = next(batches, None)
                if batch is None:
                    return
                started = True
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()

    @contextmanager
    def _borrowed(self) -> Iterator[sa.Connection]:
        with self._in_our_words(), self._instant.connection() as connection:
            yield connection

    @contextmanager
    def _in_our_words(self, *, scanning: bool = False) -> Iterator[None]:
        label = self._of.inspected.description.label
        with unrepeated(), in_our_words(self._of.dialect, label, self._place, scanning=scanning):
            yield


def _named(arrays: list[pa.Array[Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names=[*(f"k{at}" for at in range(len(arrays) - 1)), "h"])


def _ranged(batch: pa.RecordBatch, first: int, last: int, rows_max: int) -> pa.RecordBatch | None:
    keys = batch.column("k0")
    found = batch.filter(pc.and_(pc.greater_equal(keys, first), pc.less_equal(keys, last)))
    return found.sort_by("k0") if found.num_rows <= rows_max else None
