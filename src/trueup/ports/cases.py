"""Questions to people: cases, what was said about them, decisions, and differences that were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trueup.model.acceptance import Acceptance
from trueup.model.case import ANY_CASE, Case, CaseFilter, Comment
from trueup.model.decision import Decision, DecisionState
from trueup.model.evidence import Fact


class Cases(Protocol):
    """Every method is one transaction, or a few short ones, and may be repeated (rules: `trueup.model.decision`).

    Time is the store's clock.
    """

    def open_cases(self, cases: Sequence[Case]) -> dict[str, int]:
        """Opens cases of one pair; an open case about the same question is refreshed instead.

        Answers the numbers of those that are new, by key.

        A refreshed case keeps its number, when it was opened, who looks into it and until when.
        """

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> dict[str, int]:
        """Closes the open cases about these records, with the reason; answers their numbers, by key."""

    def case(self, number: int) -> Case | None:
        """The case of this number, open or closed, or None."""

    def cases(
        self,
        pair: str | None = None,
        where: CaseFilter = ANY_CASE,
        *,
        open_only: bool = True,
        after: Case | None = None,
        limit: int | None = None,
    ) -> list[Case]:
        """Cases of a pair, or of all, oldest first (by opening and number), behind the case `after`."""

    def count_cases(self, pair: str | None = None) -> int:
        """How many cases wait for a person."""

    def assign_case(self, number: int, assignee: str | None, due_us: int | None = None) -> bool:
        """Says who looks into a case, and until when; False where there is no such case, or it is closed."""

    def comment(self, number: int, comment: Comment) -> bool:
        """Keeps what a person said about a case, open or closed; False where there is no such case."""

    def comments(self, number: int) -> list[Comment]:
        """What was said about a case, oldest first."""

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────

    def decide(self, decision: Decision, *, two_person: bool, lease_us: int) -> Decision:
        """Stores a decision before it acts, and answers it as stored: `proposed`, or `acting` under a lease.

        Raises MovedOn where the case shows something else than the decision says, DecisionRefused where there is no
        such case, it is closed, or somebody else is at it.
        """

    def keep_decision(self, id_: str, lease_us: int) -> bool:
        """Extends the lease of a decision that acts, from now on; False where it does not."""

    def conclude(
        self,
        decision: Decision,
        state: DecisionState,
        note: str = "",
        close: str | None = None,
        fact: Fact | None = None,
    ) -> bool:
        """Says what came of a decision that acts; False where it does not.

        close: closes the case in the same transaction, with this reason, unless it shows something else by now.
        fact: put on record in the same transaction.
        """

    def decisions(self, number: int) -> list[Decision]:
        """All decisions about a case, oldest first."""

    # ── accepted differences ─────────────────────────────────────────────────────────────────────────

    def accept(self, acceptance: Acceptance) -> None:
        """Stores an accepted difference, in place of any other of the same record."""

    def acceptances(self, pair: str, keys: Sequence[str] | None = None) -> dict[str, Acceptance]:
        """By key, those of these records, or of the whole pair, that have not expired."""

    def expired(self, pair: str) -> list[Acceptance]:
        """Those that have expired, in the order of their keys."""
