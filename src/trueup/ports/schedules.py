"""What is kept of schedules: when each is due, who is at it, what was missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trueup.model.turn import Turn


class Schedules(Protocol):
    """Every method is one transaction, or a few short ones, and may be repeated (rules: `trueup.model.turn`).

    Leases are by the store's clock, ownership is the fence.
    """

    def declare_turns(self, turns: Sequence[Turn]) -> None:
        """Stores those that are new; one whose rule is another than the stored one gets the new times."""

    def turns(self, pairs: Sequence[str]) -> list[Turn]:
        """All turns of these pairs, the longest due first."""

    def claim_turn(self, turn: Turn, owner: str, lease_us: int) -> Turn | None:
        """Takes a turn that is due and that nobody changed since it was read; None where somebody did."""

    def keep_turn(self, turn: Turn, lease_us: int) -> bool:
        """Extends the lease, from now on; False where it was lost."""

    def end_turn(self, turn: Turn) -> bool:
        """Frees a turn and stores when it is due next, and its counts.

        False, and nothing stored, where the fence is old.
        """

    def pause_turns(self, pair: str, by: str, reason: str) -> int:
        """A person holds the schedules of a pair until `resume_turns`; answers how many there are."""

    def resume_turns(self, pair: str) -> int:
        """Ends the pause; what was due meanwhile is due now, once."""

    def hasten_turns(self, pair: str, what: str | None = None) -> int:
        """Makes the turns of a pair (or the one of this kind) due now; answers how many.

        One that somebody is at, or that is paused, stays as it is.
        """
