"""The ports: all that the engine asks of the world. Every wait and every effect goes through one of them.

Sides are other people's systems; the ledger and the archive are our own state; the clock is time itself.
Adapters implement these protocols without naming them as bases. Times are microseconds, UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from trueup.errors import SideError
from trueup.model.budget import Health, System
from trueup.model.case import Case
from trueup.model.change import Change, Outcome
from trueup.model.digest import HashSum
from trueup.model.kinds import Column
from trueup.model.letter import DeadLetter
from trueup.model.record import Found, Projection
from trueup.model.row import Baseline, Claim, Finish, Row
from trueup.model.run import Run

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
    """

    since: int | None = None
    where: str | None = None


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
class HashingSide(Side, Protocol):
    """A side that can hash its records where they are."""

    def hash_sum(self, projection: Projection) -> HashSum | None:
        """Count and hash sum of every record; None where that is not certain or a key may repeat."""


@dataclass(frozen=True, slots=True)
class Write:
    """One conditional write.

    values: canonical texts by field name to put, or None to delete the record.
    kinds: kinds of those values, where they differ from the projection's.
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


class Ledger(Protocol):
    """One row per record: queue, lock and memory at once (rules: `trueup.model.ledger`).

    Every method is one transaction, or a few short ones, and may be repeated. Time is the store's clock.
    """

    def offer(self, changes: Sequence[Change], *, connection: Any = None) -> list[Outcome]:
        """Judges each change by the offer table, in list order; answers an outcome for each.

        connection: a caller's open transaction in the same database to join; StateError where the store
        can't join it. Without it the offer is durable when this returns.
        """

    def claim(
        self,
        pairs: Sequence[str],
        limit: int,
        owner: str,
        lease_us: int,
        tries_max: int,
        keys: Sequence[str] | None = None,
    ) -> list[Claim]:
        """The most urgent due records of these pairs, leased to `owner`; parks those whose tries are spent.

        keys: only these records, due or not (for `perform`).
        """

    def attempt(self, intents: Sequence[tuple[Claim, str]]) -> list[bool]:
        """Records each digest about to be written, in one statement with the check that the lease still holds."""

    def renew(self, claims: Sequence[Claim], lease_us: int) -> list[bool]:
        """Extends leases; False for each that was lost."""

    def finish(self, finishes: Sequence[Finish]) -> list[bool]:
        """Ends jobs; False where the fence refused it (the record is then read again)."""

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; absent keys have no row."""

    def scan(self, pair: str, where: str = "all") -> Iterator[list[Row]]:
        """All rows of a pair in batches; where: `all`, `pending` or `parked`."""

    def baseline(self, pair: str, items: Sequence[Baseline]) -> int:
        """Stores ancestors of agreeing records whose row did not move since; answers how many were new or renewed."""

    def revive(self, pair: str, tries_max: int, keys: Sequence[str] | None = None) -> int:
        """Gives parked records that were not rejected one more try; answers how many."""

    def counts(self, pair: str) -> dict[str, int]:
        """Rows by state: `idle`, `pending`, `parked`; of the pending, those that are `leased` now; and
        `oldest_due_us` where any is pending.
        """

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline (else it is young)."""

    def settle(self, pair: str) -> None:
        """Says that the pair has a complete baseline."""

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """(time, what, detail) of one record, oldest first: offers, claims, finishes."""

    def prune(self, older_than_us: int) -> int:
        """Forgets histories before that time, by the store's clock; answers how many entries. The records stay."""

    def next_due_us(self, pairs: Sequence[str]) -> int | None:
        """When the next record of these pairs is due, or None."""

    def wait(self, timeout_s: float) -> None:
        """Sleeps until the store changed since this thread's last claim, at most `timeout_s`."""

    def now_us(self) -> int:
        """The store's clock."""

    def close(self) -> None:
        """Gives back connections."""


class DeadLetters(Protocol):
    """What authentic senders sent and nobody could make sense of; bounded for each source."""

    def keep_letter(self, letter: DeadLetter) -> int:
        """Stores a letter, durable when this returns; answers how many old ones of its source had to go for it."""

    def letters(self, source: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """The newest first, of one source or of all; `count_letters` says how many are kept."""

    def count_letters(self, source: str | None = None) -> int: ...  # noqa: D102

    def drop_letters(self, numbers: Sequence[int]) -> int:
        """Forgets these; answers how many there were."""


class Archive(DeadLetters, Protocol):
    """Runs, cursors, cases and dead letters."""

    def open_run(self, run: Run) -> Run:
        """Stores a run that begins and gives it its number."""

    def close_run(self, run: Run, cursors: Mapping[str, int] | None = None) -> None:
        """Stores how it ended and, in the same transaction, moves cursors (by name)."""

    def runs(self, pair: str, limit: int = 20) -> list[Run]:
        """The newest runs first."""

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved. The pair's own name: how far its sweep is complete."""

    def open_cases(self, cases: Sequence[Case]) -> int:
        """Opens cases; an open case about the same question is refreshed instead. Answers how many are new."""

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> int:
        """Closes the open cases about these records, with the reason."""

    def cases(self, pair: str, *, open_only: bool = True, limit: int | None = None) -> list[Case]:
        """Cases, oldest first."""

    def count_cases(self, pair: str) -> int:
        """How many cases wait for a person."""

    def close(self) -> None:
        """Gives back connections."""


class Budgets(Protocol):
    """What may be asked of each system, shared by all workers of a store (rules: `trueup.model.budget`)."""

    def take(self, system: System, cost: float, *, urgent: bool, token: str, call_us: int) -> int:
        """Spends if it may; answers the microseconds to wait, 0 where it was granted."""

    def ended(self, name: str, token: str) -> None:
        """A call under way came to its end."""

    def failed(self, name: str, reason: str, pause_us: int | None = None) -> Health:
        """The system is in trouble: it is paused, for what it asked or ever longer."""

    def succeeded(self, name: str) -> None:
        """A call worked: the system is back."""

    def probe(self, name: str, for_us: int) -> bool:
        """Whether the caller is the one that finds out whether the system is back."""

    def pause(self, name: str, reason: str) -> None:
        """A person pauses the system (`*`: all of them) until `resume`."""

    def resume(self, name: str) -> None:
        """Ends a pause, whoever began it."""

    def health(self, name: str) -> Health:
        """What is known of the system; paused by a person where `*` is."""

    def names(self) -> list[str]:
        """Systems of which anything is known."""


class Gate(Protocol):
    """The door to one system: its budget, its pause, its limit of calls at once. Bound by the project."""

    def enter(self, cost: float = 1.0) -> None:
        """Waits until a call of this cost may be made.

        Raises `trueup.model.outcome.RateLimited` where the wait would be longer than the caller may wait, and
        Unreachable where the system is paused.
        """

    def leave(self, status: int | None, headers: Mapping[str, str]) -> None:
        """Tells how the call ended (status None: no answer); reads what the system says of its limits.

        Raises RateLimited where the answer was a refusal for having called too often.
        """


class Clock(Protocol):
    """Time and waiting. The simulation brings its own."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""

    def sleep(self, seconds: float) -> None:
        """Waits."""

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it."""
