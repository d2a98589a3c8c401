"""What is kept as evidence: one chain of entries, to which is only ever added, and where its anchors are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from trueup.model.evidence import Entry, Fact, Head


class Evidence(Protocol):
    """Every method is one transaction and may be repeated (rules: `trueup.model.evidence`).

    There is one chain in a store, whatever the pairs; whoever appends waits for whoever appends. What closes a run or
    concludes a decision appends in the same transaction (`Runs.close_run`, `Cases.conclude`).
    """

    def put_on_record(self, fact: Fact) -> Entry:
        """Appends an entry, or answers the one that puts this very fact on record already. By the store's clock."""

    def entries(
        self, pairs: Sequence[str] | None = None, *, after: int = 0, limit: int | None = None, newest: bool = False
    ) -> list[Entry]:
        """Entries in order, behind the number `after`; of all pairs, or of these. newest: the last ones first."""

    def entry(self, number: int) -> Entry | None:
        """The entry of this number, or None."""

    def fact(self, kind: str, about: str) -> Entry | None:
        """The entry about this run or decision, or None."""

    def head(self) -> Head:
        """What the store itself holds for the end of the chain."""

    def unrecorded(self) -> list[tuple[str, str, str]]:
        """(kind, pair, about) of runs that ended and decisions that were made without an entry.

        Those from before the store kept evidence do not count, nor those whose entries were cut.
        """

    def cut_evidence(self, before_us: int) -> Entry | None:
        """Removes the entries up to the first that was put on record at that time or later, by the store's clock.

        Answers the entry that stands for them, appended in the same transaction; None where there were none.
        """

    def redaction_key(self) -> str:
        """64 hex digits, made at random when it is first asked for: the key of hashes that stand for values."""


class AnchorPlace(Protocol):
    """Where anchors are kept, out of reach of whoever can write the state store."""

    @property
    def who(self) -> str:
        """For messages: never an address, which may hold a token."""

    def give(self, head: Head, at_us: int) -> None:
        """Hands an anchor over; returns once it was accepted. May be repeated. Raises TrueupError where it was not."""

    def close(self) -> None:
        """Gives back connections."""


@runtime_checkable
class ReadableAnchorPlace(AnchorPlace, Protocol):
    """A place that can be asked what it was given."""

    def heads(self) -> list[Head]:
        """All anchors that it keeps, in any order. Raises TrueupError where it can't be read."""
