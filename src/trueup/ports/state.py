"""Our own state: the ledger, and the archive of runs, cursors, schedules, cases, evidence, workers and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from trueup.model.alert import Telling
from trueup.model.anchor import Anchored
from trueup.model.change import Change, Outcome
from trueup.model.letter import DeadLetter
from trueup.model.presence import Presence
from trueup.model.row import Baseline, Claim, Finish, Row, Seen
from trueup.ports.alerts import Pulses
from trueup.ports.cases import Cases
from trueup.ports.evidence import Evidence
from trueup.ports.handovers import Handovers
from trueup.ports.runs import Runs
from trueup.ports.schedules import Schedules
from trueup.ports.seals import Seals
from trueup.ports.trends import Trends
from trueup.ports.watching import Tallies


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
        others: int | None = None,
    ) -> list[Claim]:
        """The most urgent due records of these pairs, leased to `owner`; parks those whose tries are spent.

        keys: only these records, due or not (for `perform`). others: at most so many that are no events.
        """

    def attempt(self, intents: Sequence[tuple[Claim, str]]) -> list[bool]:
        """Records each digest about to be written, in one statement with the check that the lease still holds."""

    def renew(self, claims: Sequence[Claim], lease_us: int) -> list[bool]:
        """Extends leases; False for each that was lost."""

    def finish(self, finishes: Sequence[Finish]) -> list[bool]:
        """Ends jobs; False where the fence refused it (the record is then read again)."""

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; absent keys have no row."""

    def unlike(self, pair: str, seen: Sequence[Seen]) -> list[str]:
        """Keys of those that are not as the last finish or agreement left them, or have no row; in any order.

        Each is judged by itself. Costs far less than `rows` where most are.
        """

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

    def busy(self, pair: str) -> dict[str, int]:
        """The same without `idle`: what waits and what is parked, however many rows there are beside."""

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline (else it is young)."""

    def settle(self, pair: str) -> None:
        """Says that the pair has a complete baseline."""

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """(time, what, detail) of one record, oldest first: offers, claims, finishes."""

    def prune(self, older_than_us: int) -> int:
        """Forgets histories before that time, by the store's clock; answers how many entries. The records stay."""

    def due(self, pairs: Sequence[str]) -> list[str]:
        """Those of the pairs that have a record to claim now, in the order given."""

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

    def letter(self, number: int) -> DeadLetter | None:
        """The letter with this number, or None where there is none."""

    def refuse_letter(self, number: int, status: int, reason: str) -> None:
        """Says why a letter was refused again when it was read again; nothing where it is gone."""

    def drop_letters(self, numbers: Sequence[int]) -> int:
        """Forgets these; answers how many there were."""

    def forget_letters(self, older_than_us: int) -> int:
        """Forgets those that were received before that time; answers how many there were."""


class Presences(Protocol):
    """Who is at work in this store."""

    def beat(self, presence: Presence) -> None:
        """Says that this worker lives now, by the store's clock; forgets those that have long been silent."""

    def leave(self, name: str) -> None:
        """Says that this worker is gone; nothing where it is not known."""

    def presences(self) -> list[Presence]:
        """Everybody who did not take their leave, silent ones included, by start and name."""


class Archive(
    Runs, Trends, Schedules, Seals, Cases, Evidence, DeadLetters, Presences, Pulses, Tallies, Protocol
):  # fmt: skip
    """Runs with cursors and plans, trends, schedules, seals, cases, evidence, dead letters, workers and alerts."""

    @property
    def targets(self) -> Handovers[Telling]:
        """Who is told of conditions."""

    @property
    def places(self) -> Handovers[Anchored]:
        """Where anchors are given."""

    def close(self) -> None:
        """Gives back connections."""
