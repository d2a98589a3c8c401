"""What a comparison found: counts, differences in key order, agreements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

from trueup.compare.plan import SchemaNotes
from trueup.model.change import UPSERT

DifferenceKind = Literal["missing", "extra", "differ", "duplicate"]
Values = Mapping[str, str | None]
# A key that is carried by thousands of rows is told by its counts and shown by its first few.
COPIES_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One key on which the sides disagree.

    kind: `missing` (on the left, not on the right), `extra` (the reverse), `differ`, or `duplicate` (a side
    has the key more than once).
    left, right: canonical texts by name (key included); None where the side lacks the record.
    fields: names of the fields that are not judged equal.
    left_copies, right_copies: records that carry the key on each side.
    left_only, right_only: of a duplicate, the copies that have no equal on the other side (at most
    COPIES_SHOWN); both empty where the copies are equal as multisets. `left` and `right` are the first of each.
    """

    kind: DifferenceKind
    key: str
    left: Values | None = None
    right: Values | None = None
    fields: tuple[str, ...] = ()
    left_copies: int = 0
    right_copies: int = 0
    left_only: tuple[Values, ...] = ()
    right_only: tuple[Values, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """One key on which the sides agree.

    left, right: digests; they differ only where a tolerance made unequal values equal. right is None where the
    left record's state means absence and the right side lacks it. version: of the left record, where one is
    read. action: what the left record asks for: the value of the plan's action field.
    """

    key: str
    left: str
    right: str | None
    version: int | None = None
    action: str = UPSERT


@dataclass(frozen=True, slots=True)
class Counts:
    """left, right: records read. The others count keys; each key counts once."""

    left: int = 0
    right: int = 0
    same: int = 0
    missing: int = 0
    extra: int = 0
    differ: int = 0
    duplicate: int = 0

    @property
    def different(self) -> int:
        """Keys on which the sides disagree."""
        return self.missing + self.extra + self.differ + self.duplicate


class Findings(Protocol):
    """Where a strategy keeps what it found."""

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """In key order."""

    def agreements(self) -> Iterator[list[Agreement]]:
        """In batches, in no particular order."""

    def close(self) -> None:
        """Removes what was kept."""


@runtime_checkable
class SampledFindings(Findings, Protocol):
    """Findings that can be looked at without reading all of them."""

    def sample(self, every: int) -> Iterator[Difference]:
        """About one of `every` differences, evenly spread over the keys, in key order."""

    def left_records(self, most: int) -> Iterator[Values]:
        """At most so many of the left records that were read, evenly spread in the order of reading."""


class Nothing:
    """Findings of a strategy that proved agreement without reading records here."""

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """None."""
        return iter(())

    def agreements(self) -> Iterator[list[Agreement]]:
        """Not known by key: only *rows* reads the records."""
        return iter(())

    def close(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one side: rows of answers and their bytes as they lie in memory here, and what it was asked."""

    rows: int = 0
    bytes: int = 0
    statements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The answer of one comparison; close it, or use it as a context manager, to remove its files.

    differing_fields: how many `differ` keys each field differs on. strategy, reason: how it was compared, and why so.
    seconds: wall time. read: of the left and of the right side.
    """

    counts: Counts
    notes: SchemaNotes
    strategy: str
    reason: str
    seconds: float = 0.0
    read: tuple[Read, Read] = (Read(), Read())
    differing_fields: Mapping[str, int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Nothing)

    @property
    def agree(self) -> bool:
        """No key differs, and no column is on one side only."""
        return not self.counts.different and self.notes.clean

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """Every difference, or the first `limit`, in key order, streamed; may be called again."""
        return self.findings.differences(limit)

    def agreements(self) -> Iterator[list[Agreement]]:
        """Every key that agrees, with its digests, in batches. Only strategy `rows` knows all of them."""
        return self.findings.agreements()

    def close(self) -> None:
        """Removes spill files; safe to call twice."""
        self.findings.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
