"""Snapshots: sides that hash their records where they are, so that only what differs is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from trueup.model.digest import HashSum
from trueup.model.record import Projection
from trueup.ports.sides import Side

if TYPE_CHECKING:
    import pyarrow as pa

# Sums by number of the segment; None where a record of the segment can't be hashed.
Segments = Mapping[int, HashSum | None]
# Some of the blocks of a range of keys from `first` on: bits, and numbers `(key - first) >> bits`.
Blocks = tuple[int, Sequence[int]]


class Snapshot(Protocol):
    """A side as it was at one instant, its records hashed where they are. Safe to share between threads.

    A hash covers key and fields of a record; records whose canonical values differ have different hashes, up to
    chance. Batches of hashes hold the key columns as scans deliver them and `h`, int64, which is null where the side
    can't hash a record: such a record must be read. Errors are those of the side.
    """

    @property
    def functions(self) -> tuple[str, ...]:
        """Hash functions by name, fastest first. Equal names on two sides mean equal functions."""

    @property
    def gaps(self) -> tuple[str, ...]:
        """Columns, with their types, that keep it from the function that all systems share; for people."""

    @property
    def here(self) -> bool:
        """Whether it answers from this process, so that no network is between."""

    @property
    def dear(self) -> bool:
        """Whether hashing a record takes the system as long as reading it."""

    @property
    def unique(self) -> bool:
        """Whether no two records share a key and every key is whole: the system itself says so."""

    @property
    def sketches(self) -> bool:
        """Whether it has `blocks`, and `cells`, hashes permitting."""

    @property
    def statements(self) -> tuple[str, ...]:
        """What has been asked of the system, in its own language and without values."""

    def span(self) -> tuple[int, int] | None:
        """First and last key where it is one column of whole numbers led by an index; None for any other, or none."""

    def total(self, function: str) -> HashSum | None:
        """Count and hash sum of every record; None where that is not certain or a key may repeat."""

    def segments(self, function: str, origin: int, bits: int) -> Segments:
        """Count and hash sum by `(key - origin) >> bits`, where keys have a span; none is below `origin`."""

    def hashes(self, function: str) -> Iterator[pa.RecordBatch]:
        """Every record's hash, in batches of bounded size, in any order."""

    def hashes_within(
        self, function: str, first: int, last: int, rows_max: int, among: Blocks | None = None
    ) -> pa.RecordBatch | None:
        """Hashes of the keys from `first` to `last`, both included, in key order; None where they are more.

        Of a function that says so of itself, most bits of each may be all that is told. among: only what is in these
        blocks.
        """

    def blocks(self, function: str, first: int, last: int, bits: int) -> pa.RecordBatch:
        """Of each block of `2 ** bits` keys that has records: k0 (number), n (records), h (XOR).

        In the order of their numbers; h is null where a record can't be hashed. Only where `sketches`.
        """

    def hashes_within_each(
        self, function: str, ranges: Sequence[tuple[int, int]], rows_max: int
    ) -> list[pa.RecordBatch | None]:
        """`hashes_within` for each of a few ranges, in one go where a network is between."""

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        """One table of cells for each size: t (which), c (cell), n (records), k, h and q (XOR of keys, hashes, checks).

        Of the lower 62 bits of a record's hash, its cell is the remainder by the size, and its check that by
        CHECK_MODULUS. None where a record can't be hashed, or all of them not in one go.
        """

    def pace(self) -> float | None:
        """How many bytes arrive from the system in a second, by a short trial; None where nothing is between."""

    def ends(self, function: str, rows: int) -> pa.Array[Any] | None:
        """Hashes of the first and the last so many records by key; None where no index leads to them."""

    def placed(self, function: str) -> Iterator[pa.RecordBatch] | None:
        """Every record's hash `h`, never null, and place `p`: where it lies as long as this is open.

        In batches of bounded size, at least one, in any order. None where records can't be read by where they lie.
        """

    def placed_records(self, places: pa.Array[Any]) -> Iterator[pa.RecordBatch]:
        """The records that lie there, as a scan delivers them."""

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        """At least every record with one of these keys that is not in `unusual`, as a scan delivers them.

        keys: columns as delivered.
        """

    def unusual(self) -> Iterator[pa.RecordBatch]:
        """Every record that spells its key in a way that `records` does not look for; most sides have none."""

    def everything(self) -> Iterator[pa.RecordBatch]:
        """Every record, as a scan delivers them."""

    def seeks(self, keys: int, records: int) -> bool:
        """Whether that many keys, of that many records, are sooner looked up than all records are read."""

    def close(self) -> None:
        """Ends what still runs in the system and gives back all connections; safe to call twice."""


@runtime_checkable
class HashingSide(Side, Protocol):
    """A side that can hash its records where they are."""

    def snapshot(self, projection: Projection) -> Snapshot:
        """The side as it is now. The caller closes it."""
