"""Sides: other people's systems. Adapters implement these protocols without naming them as bases."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from trueup.errors import SideError
from trueup.model.digest import HashSum
from trueup.model.inputs import Inputs
from trueup.model.kinds import Column, Kind
from trueup.model.record import Found, Projection
from trueup.model.window import Span

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a side can do beside being enumerated.

    engine: family of engine whose native hashes may be compared, such as "postgresql"; "" for none.
    reads_by_key: `read` costs about as much as the keys it is given, not as the whole side.
    version_index: `Scope.since` costs about as much as what changed.
    snapshot: one scan sees one instant.
    precondition: who checks what a write expects: the `system` itself, as part of the write, or only a `read` just
    before it, so that what happens between the two is overwritten.
    """

    engine: str = ""
    reads_by_key: bool = False
    version_index: bool = False
    snapshot: bool = False
    precondition: Literal["system", "read"] = "system"


@dataclass(frozen=True, slots=True)
class Description:
    """What a side says of itself.

    label: short name for people, such as "orders"; never holds a password.
    system: such as "PostgreSQL 15.4" or "CSV". columns: in the side's order. key: the primary key if it has one.
    rows: an estimate, or None.
    """

    label: str
    system: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    rows: int | None = None

    def column(self, name: str) -> Column | None:
        """The column of exactly this name, or None."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a scan looks at; everything by default.

    since: only records with version >= this, ordered by (version, key).
    where: only records that the side's own condition selects, such as `not synced` (SQL).
    low, high: only records whose first key column is >= low and < high; canonical texts of an integer. Asked only of a
    `DivisibleSide`.
    window: only records that lie in this interval; those without a time lie in none. Asked only of a `WindowedSide`.
    """

    since: int | None = None
    where: str | None = None
    low: str | None = None
    high: str | None = None
    window: Span | None = None


EVERYTHING = Scope()


@runtime_checkable
class Side(Protocol):
    """One system's view of a pair's records.

    Raises Unreachable where the system does not answer, SchemaError where a column of the projection is
    missing, BadInput where a value of a file is not what was declared, IncompleteScan where an enumeration
    ended early. A scan that returns has been complete.
    """

    @property
    def label(self) -> str:
        """A short name for people; never holds a password."""

    @property
    def key(self) -> tuple[str, ...]:
        """The declared key columns; may be empty where `describe` finds a primary key."""

    @property
    def version(self) -> str | None:
        """The declared version column. On a replica it is the precondition of writes."""

    @property
    def capabilities(self) -> Capabilities:
        """What this side can do."""

    def describe(self) -> Description:
        """Columns, key and system; reads no records (files: at most enough to infer types)."""

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every record in scope, in batches, in bounded memory.

        Columns by position: `projection.columns`. Each has type `kind.arrow()` where the field is native,
        else string with canonical texts (oddities marked); the version is int64 (null = none). Order is
        free except with `scope.since`.
        """

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts; a key that is absent from the answer is absent from the side."""

    def now_us(self) -> int | None:
        """The system's own clock; None where it has none (files)."""

    def close(self) -> None:
        """Gives back connections and file handles; safe to call twice."""


@runtime_checkable
class StoppableScan(Protocol):
    """Batches of a scan that another thread than the one that reads them can end."""

    def stop(self) -> None:
        """Ends what the system is doing for them; the reader meets an error. May be repeated."""


@runtime_checkable
class DigestingSide(Side, Protocol):
    """A side that can take digests of its records where they are."""

    def digests(self, projection: Projection, since: int) -> Iterator[pa.RecordBatch] | None:
        """Columns by position: key and `extra`, as scans deliver them, and the digest of records with version >= since.

        Reading begins at once, beside whatever else is read. A few older records may be among them. A digest is null
        where only a read can tell it; the answer is None where that is so of all.
        """


@runtime_checkable
class NewerHashingSide(Side, Protocol):
    """A side that can hash what is newer where it is, which takes a fraction of the time of a digest."""

    def hashes(
        self, projection: Projection, since: int, rows_max: int
    ) -> Mapping[str, Callable[[], Generator[pa.RecordBatch, None, None]]]:
        """By the name of a hash function that costs less (see `Snapshot.functions`), what begins to read by it at once.

        Columns by position: key, as scans deliver it, and the hash of at most so many records with version >= since:
        int64, null where only a read can tell. A few older records may be among them. Empty where it can't be asked.
        """


class Match(Protocol):
    """Two sides matched by the engine that reads both: what is surely the same stayed there.

    left, right: records of each side. same: keys with one record on each side, surely judged equal. All records of any
    other key must be read and judged.
    """

    left: int
    right: int
    same: int

    def left_records(self) -> Iterator[pa.RecordBatch]:
        """The left side's records of all other keys, as its scan delivers them."""

    def right_records(self) -> Iterator[pa.RecordBatch]:
        """The right side's records of all other keys, as its scan delivers them."""

    def stop(self) -> None:
        """Ends what the engine is doing for it; may be called by another thread."""

    def close(self) -> None:
        """Gives back what the engine keeps for it; safe to call twice."""


@runtime_checkable
class MatchingSide(Side, Protocol):
    """A side whose engine can match it with another side of the same engine, rules included."""

    def match(self, projection: Projection, other: Side, asked: Projection, *, memory_mb: int) -> Match | None:
        """This side matched with another, which is asked for `asked`; None where the engine can't do that exactly.

        memory_mb: for an engine that runs here. Raises SchemaError where values of two columns can't be told apart
        exactly, and reading all records here is no way out. The caller closes it.
        """


@runtime_checkable
class SampledSide(Side, Protocol):
    """A side that shows some of its records at little cost."""

    def sample(self, projection: Projection, most: int) -> Iterator[pa.RecordBatch]:
        """About so many records from all over, as scans deliver them; none where all would be read for it."""


@runtime_checkable
class DivisibleSide(Side, Protocol):
    """A side that can be read a range of keys at a time, each range costing about as much as it holds."""

    def cut(self, projection: Projection, pieces: int) -> list[str]:
        """Canonical texts of the first key column that divide the records into about equal pieces, growing.

        Empty where ranges can't be asked for: the first key column is no integer, or no index begins with it.
        """


@runtime_checkable
class WindowedSide(Side, Protocol):
    """A side that can be asked for the records of an interval of time, by a column of its own."""

    def window_kind(self, column: str) -> Kind:
        """What the column holds: dates or timestamps. SchemaError where it is not there or holds anything else."""

    def window_sum(self, projection: Projection, span: Span) -> HashSum | None:
        """Count and sum of the canonical hashes (`trueup.model.digest`) of the interval, taken where the records are.

        None where they must be read for it.
        """


@runtime_checkable
class RunningSide(Side, Protocol):
    """A side that knows of transactions whose writes are not visible yet."""

    def oldest_running_us(self) -> int | None:
        """When the oldest transaction that is still running began, by the system's clock; its time now where none does.

        None where this can't be seen.
        """

    def newest_version(self, projection: Projection) -> int | None:
        """The highest version that is visible now; None where no record has one."""


@runtime_checkable
class TraceableSide(Side, Protocol):
    """A side that says, for evidence, where its records come from."""

    def declared(self) -> Mapping[str, str]:
        """What was declared of it that decides which records it shows, and as what; never a secret."""

    def inputs(self) -> Inputs:
        """What it would read now. Raises what the side raises."""


def provides(side: object, port: type) -> bool:
    """Whether a side can do what a port adds to `Side`, without a connection.

    isinstance would ask the side for its properties too, before Python 3.12; some of them need to look.
    """
    return all(callable(getattr(side, name, None)) for name in vars(port) if not name.startswith("_"))


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional write.

    values: canonical texts by field name to put, or None to delete the record.
    expect: the token that must still be found; "" where the record must still be absent; None for any state.
    id: idempotency key.
    """

    key: str
    values: Mapping[str, str | None] | None
    expect: str | None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one write.

    landed: False where the precondition failed; nothing was changed then.
    replica: the record as read back, in the same transaction where the side has them; None where absent.
    """

    key: str
    landed: bool
    replica: Found | None


@runtime_checkable
class WritableSide(Side, Protocol):
    """A side that applies changes."""

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Applies the writes in order, each with its precondition; answers in the same order.

        Upserts never delete and insert: rows that reference the record stay. A write whose precondition
        fails changes nothing and does not keep the others from landing.
        """


@runtime_checkable
class MarkableSide(Side, Protocol):
    """A side on which a record can be marked as done, for pairs with `unsynced` and `mark`."""

    def mark(self, projection: Projection, key: str, version: int | None, assignments: str) -> tuple[bool, int | None]:
        """Runs `UPDATE … SET assignments WHERE key AND version = the one given`.

        Answers (whether a row was updated, its version as read back in the same transaction).
        """

    def selects(self, projection: Projection, keys: Sequence[str], condition: str) -> set[str]:
        """Which of these records the side's own condition selects now."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A table as its keeper should know it.

    unique_key: the system itself refuses a second record with the same key. key_index, version_index: reading
    by key, or what changed since, need not read everything. make_key, make_version: the statements that would
    create what is missing; make_version is None where no version is declared.
    """

    unique_key: bool
    key_index: bool
    version_index: bool
    make_key: str
    make_version: str | None


@runtime_checkable
class ExaminableSide(Side, Protocol):
    """A side that can be asked, before a run, for what a run will need."""

    def examine(self) -> Examined:
        """Whether key and version are indexed."""

    def refused_write(self) -> SideError | None:
        """Why records could not be written, or None where they could; changes nothing."""
