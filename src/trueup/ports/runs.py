"""What is kept of runs: the slot of each pair, checkpoints, the pieces of a comparison, and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from trueup.model.evidence import Fact
from trueup.model.plan import ItemState, PlanItem
from trueup.model.run import Piece, Run
from trueup.model.trend import RunDrift


class Runs(Protocol):
    """Every method is one transaction, or a few short ones, and may be repeated (rules: `trueup.model.run`).

    Leases are by the store's clock, ownership is the fence: who is late but was not replaced may go on.
    """

    def begin_run(self, run: Run, owner: str, lease_us: int) -> Run | None:
        """Takes the slot of the run's pair.

        Answers the new run, numbered and with a fence above any before; or the open run of this pair and `what` whose
        lease ran out, under a new fence, as far as it came. An open run of another `what` whose lease ran out is
        closed as failed ("its process ended") and put on record, and the new one begins. None where somebody else is at
        it: the refusal is counted.
        """

    def refusals(self, pair: str) -> int:
        """How many runs of the pair were refused because another one was under way."""

    def keep_run(self, run: Run, lease_us: int) -> bool:
        """Extends the lease of the slot, from now on; False where it was lost."""

    def save_run(self, run: Run) -> bool:
        """A checkpoint: stores cutoff, counts, phases done and memo.

        False, and nothing stored, where the fence is old.
        """

    def close_run(
        self,
        run: Run,
        cursors: Mapping[str, int] | None = None,
        fact: Fact | None = None,
        drift: RunDrift | None = None,
    ) -> bool:
        """Stores how it ended, frees the slot and, in the same transaction, moves cursors (by name).

        fact: put on record in that transaction too. drift: added to the trend of the pair, likewise.

        A run that is still `open` is left to whoever begins the same next. False, and nothing stored, where the fence
        is old.
        """

    def run(self, number: int) -> Run | None:
        """The run of this number, or None."""

    def runs(self, pair: str, limit: int = 20, what: Sequence[str] = ()) -> list[Run]:
        """The newest runs first; only these kinds of run, or all."""

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved. The pair's own name: how far its sweep is complete."""

    # ── pieces ───────────────────────────────────────────────────────────────────────────────────────

    def cut(self, run: int, pieces: Sequence[Piece]) -> None:
        """Stores the pieces of a run, in one transaction; nothing where it has some already."""

    def claim_piece(self, run: int, owner: str, lease_us: int) -> Piece | None:
        """The first piece that is open and that nobody works on, leased under a fence above any before.

        None where there is none now, or where the run is not open.
        """

    def keep_piece(self, piece: Piece, lease_us: int) -> bool:
        """Extends the lease, from now on; False where it was lost, or the run ended."""

    def finish_piece(self, piece: Piece, suspects: Sequence[str]) -> bool:
        """Stores what the piece counted and its differing keys (suspects until they are confirmed).

        False, and nothing stored, where the fence is old or the run ended.
        """

    def pieces(self, run: int) -> list[Piece]:
        """All pieces of a run, by number."""

    def runs_with_pieces(self, pairs: Sequence[str]) -> list[Run]:
        """Open runs of these pairs with a piece that somebody could claim now."""

    # ── the plan ─────────────────────────────────────────────────────────────────────────────────────

    def suspects(self, run: int, limit: int) -> list[str]:
        """Keys that differed and are not confirmed yet, in order; the first `limit`."""

    def count_suspects(self, run: int) -> int: ...  # noqa: D102

    def plan(self, run: int, items: Sequence[PlanItem], confirmed: Sequence[str]) -> None:
        """Stores items and forgets the suspects that were confirmed.

        An item of the same key is replaced while it is still `planned`; one that something came of stays as it is, so
        that whoever is late does not undo that. `PlanItem.run` of the items does not matter: they are this run's.
        """

    def items(
        self, run: int, *, state: ItemState | None = None, after: str = "", limit: int | None = None
    ) -> list[PlanItem]:
        """Items in key order, behind the key `after`."""

    def count_items(self, run: int) -> dict[tuple[str, str, bool, str], int]:
        """How many items, by (drift, verdict, removes, state)."""

    def move_items(self, run: int, keys: Sequence[str], state: ItemState) -> int:
        """Sets the state of these items; answers how many there were."""

    def forget_plans(self, older_than_us: int) -> int:
        """Drops pieces, suspects and items of runs that ended before; answers of how many runs there were any.

        The runs stay. A plan of which anything is still `held` stays too: a person has not decided yet.
        """
