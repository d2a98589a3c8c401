"""Schedules: each turn is claimed by one, renewed while it runs, due again where its holder died."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trueup.model.turn import Turn
from trueup.ports import Archive
from trueup.testing.clock import START_US, ManualClock
from trueup.testing.ledgers.races import WORKERS, together

LEASE_US = 60_000_000
LEASE_S = LEASE_US / 1e6
DUE_US = START_US + 10_000_000
SWEEP = Turn("orders", "sweep", "every 10m", DUE_US, DUE_US)
NEXT_US = DUE_US + 600_000_000


def declare(archive: Archive, *turns: Turn) -> None:
    """Declares the turns, or the one that most tests use."""
    archive.declare_turns(turns or [SWEEP])


def only(archive: Archive) -> Turn:
    """The one turn of `orders`."""
    [turn] = archive.turns(["orders"])
    return turn


def claim(archive: Archive, owner: str = "a") -> Turn:
    """The turn of `orders`, claimed."""
    claimed = archive.claim_turn(only(archive), owner, LEASE_US)
    assert claimed is not None
    return claimed


class ScheduleContract:
    """What becomes of turns. A subclass brings `archive` and its `clock`."""

    @pytest.fixture
    def due(self, archive: Archive, clock: ManualClock) -> Turn:
        """A turn that is due now."""
        declare(archive)
        clock.advance(10)
        return only(archive)

    # ── declarations ─────────────────────────────────────────────────────────────────────────────────

    def test_a_turn_is_kept_as_it_was_declared(self, archive: Archive) -> None:
        odd = Turn("Zoë's % pair", "compare", "0 3 * * * Europe/Berlin", 1, 2)
        declare(archive, SWEEP, odd)
        assert only(archive) == SWEEP
        assert archive.turns(["Zoë's % pair", "orders", "none"]) == [odd, SWEEP]
        assert archive.turns([]) == []

    def test_the_longest_due_comes_first(self, archive: Archive) -> None:
        turns = [replace(SWEEP, pair=name, what=what, due_us=at) for name, what, at in (
            ("b", "sweep", 2), ("a", "sweep", 3), ("b", "compare", 1), ("a", "changed", 2),
        )]  # fmt: skip
        declare(archive, *turns)
        found = [(turn.pair, turn.what) for turn in archive.turns(["a", "b"])]
        assert found == [("b", "compare"), ("a", "changed"), ("b", "sweep"), ("a", "sweep")]

    def test_declared_again_it_keeps_its_time(self, archive: Archive) -> None:
        declare(archive)
        declare(archive, replace(SWEEP, due_us=NEXT_US, ready_us=NEXT_US), replace(SWEEP, what="compare"))
        assert [turn.due_us for turn in archive.turns(["orders"])] == [DUE_US, DUE_US]

    def test_another_rule_gets_its_own_times_and_keeps_what_was_counted(self, archive: Archive, due: Turn) -> None:
        claimed = claim(archive)
        archive.end_turn(replace(claimed, missed=3, refused=2, failures=1, due_us=NEXT_US, ready_us=NEXT_US))
        declare(archive, replace(SWEEP, rule="every 1m", due_us=DUE_US + 5, ready_us=DUE_US + 5))
        found = only(archive)
        assert (found.rule, found.due_us, found.ready_us) == ("every 1m", DUE_US + 5, DUE_US + 5)
        assert (found.missed, found.refused, found.failures, found.started_us) == (3, 2, 0, claimed.started_us)

    def test_another_rule_leaves_a_run_that_is_under_way_alone(self, archive: Archive, due: Turn) -> None:
        claimed = claim(archive)
        declare(archive, replace(SWEEP, rule="every 1m", due_us=DUE_US + 5, ready_us=DUE_US + 5))
        assert archive.claim_turn(only(archive), "b", LEASE_US) is None
        assert archive.end_turn(replace(claimed, due_us=NEXT_US, ready_us=NEXT_US))
        found = only(archive)
        assert (found.rule, found.due_us, found.ready_us, found.owner) == ("every 1m", DUE_US + 5, DUE_US + 5, "")

    # ── claims ───────────────────────────────────────────────────────────────────────────────────────

    def test_a_turn_is_claimed_when_it_is_due(self, archive: Archive, clock: ManualClock) -> None:
        declare(archive)
        clock.advance(9.999)
        assert archive.claim_turn(only(archive), "a", LEASE_US) is None
        clock.advance(0.001)
        claimed = claim(archive)
        assert claimed == replace(
            SWEEP, owner="a", fence=claimed.fence, started_us=clock.now_us(), ready_us=clock.now_us() + LEASE_US
        )
        assert only(archive) == claimed

    def test_a_turn_is_claimed_once(self, archive: Archive, due: Turn) -> None:
        claim(archive)
        assert archive.claim_turn(due, "b", LEASE_US) is None
        assert archive.claim_turn(only(archive), "b", LEASE_US) is None
        assert archive.claim_turn(replace(due, what="compare"), "b", LEASE_US) is None

    def test_what_moved_since_it_was_read_is_not_claimed(self, archive: Archive, due: Turn) -> None:
        """Given that somebody was faster, and has ended, I expect that the old reading starts no second run."""
        archive.end_turn(replace(claim(archive), due_us=NEXT_US, ready_us=due.ready_us + 1))
        assert archive.claim_turn(due, "b", LEASE_US) is None

    def test_a_turn_whose_holder_died_is_due_when_the_lease_ends(
        self, archive: Archive, clock: ManualClock, due: Turn
    ) -> None:
        dead = claim(archive)
        clock.advance(LEASE_S - 0.001)
        assert archive.claim_turn(only(archive), "b", LEASE_US) is None
        clock.advance(0.001)
        taken = claim(archive, "b")
        assert (taken.owner, taken.due_us) == ("b", DUE_US)
        assert taken.fence > dead.fence
        assert not archive.keep_turn(dead, LEASE_US)
        assert not archive.end_turn(replace(dead, due_us=NEXT_US, ready_us=NEXT_US))
        assert archive.end_turn(replace(taken, due_us=NEXT_US, ready_us=NEXT_US))

    def test_C102_a_turn_that_is_renewed_is_not_taken_again(
        self, archive: Archive, clock: ManualClock, due: Turn
    ) -> None:
        """Given a run of 95 s under a lease of 30 s, I expect one, which the other scheduler never gets."""
        claimed = archive.claim_turn(due, "a", 30_000_000)
        assert claimed is not None
        for _ in range(19):
            clock.advance(5)
            assert archive.claim_turn(only(archive), "b", 30_000_000) is None
            assert archive.keep_turn(claimed, 30_000_000)
        assert archive.end_turn(replace(claimed, due_us=NEXT_US, ready_us=NEXT_US))
        assert archive.claim_turn(only(archive), "b", 30_000_000) is None

    def test_who_is_late_but_was_not_replaced_may_end(self, archive: Archive, clock: ManualClock, due: Turn) -> None:
        claimed = claim(archive)
        clock.advance(LEASE_S * 2)
        assert archive.keep_turn(claimed, LEASE_US)
        assert archive.end_turn(replace(claimed, due_us=NEXT_US, ready_us=NEXT_US))

    def test_an_end_frees_the_turn_and_may_be_said_twice(self, archive: Archive, clock: ManualClock, due: Turn) -> None:
        claimed = claim(archive)
        clock.advance(5)
        ended = replace(claimed, due_us=NEXT_US, ready_us=NEXT_US, missed=1, refused=2, failures=3)
        assert archive.end_turn(ended)
        assert archive.end_turn(ended)
        assert not archive.keep_turn(claimed, LEASE_US)
        assert only(archive) == replace(ended, owner="", ended_us=clock.now_us())

    def test_of_many_that_claim_together_one_starts(self, archive: Archive, clock: ManualClock, due: Turn) -> None:
        for _ in range(10):
            seen = only(archive)
            taken: list[Turn] = []

            def work(number: int, seen: Turn = seen, taken: list[Turn] = taken) -> None:
                if (claimed := archive.claim_turn(seen, f"worker {number}", LEASE_US)) is not None:
                    taken.append(claimed)

            together(WORKERS, work)
            assert len(taken) == 1
            assert archive.end_turn(replace(taken[0], due_us=clock.now_us(), ready_us=clock.now_us()))

    # ── people ───────────────────────────────────────────────────────────────────────────────────────

    def test_what_a_person_paused_starts_when_it_is_resumed_and_keeps_its_time(
        self, archive: Archive, clock: ManualClock, due: Turn
    ) -> None:
        declare(archive, replace(SWEEP, pair="refunds"))
        assert archive.pause_turns("orders", "zoë@host", "month's end") == 1
        found = only(archive)
        assert (found.paused_by, found.reason) == ("zoë@host", "month's end")
        assert archive.claim_turn(found, "a", LEASE_US) is None
        assert archive.turns(["refunds"])[0].paused_by is None
        clock.advance(3_600)
        assert archive.resume_turns("orders") == 1
        assert claim(archive).due_us == DUE_US

    def test_a_pause_outlives_the_end_of_a_run(self, archive: Archive, due: Turn) -> None:
        claimed = claim(archive)
        archive.pause_turns("orders", "zoë", "")
        assert archive.keep_turn(claimed, LEASE_US)
        assert archive.end_turn(replace(claimed, due_us=NEXT_US, ready_us=NEXT_US))
        assert (only(archive).paused_by, only(archive).owner) == ("zoë", "")

    def test_a_turn_can_be_made_due_now(self, archive: Archive, clock: ManualClock) -> None:
        declare(archive, SWEEP, replace(SWEEP, what="compare"), replace(SWEEP, pair="refunds"))
        assert archive.hasten_turns("orders", "sweep") == 1
        now_us = clock.now_us()
        due = [(turn.pair, turn.what) for turn in archive.turns(["orders", "refunds"]) if turn.due_us <= now_us]
        assert due == [("orders", "sweep")]
        assert archive.hasten_turns("orders") == 2
        assert archive.hasten_turns("none") == 0
        assert archive.hasten_turns("orders", "changed") == 0

    def test_what_is_under_way_or_paused_is_not_hastened(self, archive: Archive, clock: ManualClock, due: Turn) -> None:
        claimed = claim(archive)
        assert archive.hasten_turns("orders") == 0
        assert archive.keep_turn(claimed, LEASE_US)
        archive.end_turn(replace(claimed, due_us=NEXT_US, ready_us=NEXT_US))
        archive.pause_turns("orders", "zoë", "")
        assert archive.hasten_turns("orders") == 0
        assert only(archive).due_us == NEXT_US
