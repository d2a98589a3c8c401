"""What is kept as evidence: one chain of entries, to which is only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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

        Those from before the store kept evidence do not count.
        """
