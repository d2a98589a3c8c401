"""Runs: one at a time for a pair, resumed where they stopped, closed together with their cursors."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from trueup.model.run import PROCESS_ENDED, RESUMED_WITHIN_US, Piece, Run
from trueup.ports import Archive
from trueup.testing.clock import START_US, ManualClock
from trueup.testing.ledgers.races import WORKERS, together

LEASE_US = 60_000_000
LEASE_S = LEASE_US / 1e6
RUN = Run("orders", "run", START_US, cutoff_us=9)


def begin(archive: Archive, run: Run = RUN, owner: str = "a") -> Run:
    """The run, begun."""
    begun = archive.begin_run(run, owner, LEASE_US)
    assert begun is not None
    return begun


def ended(run: Run) -> Run:
    """As a run reads that came to its end: nobody has its slot."""
    return replace(run, ended="done", ended_us=5, owner="", fence=0, lease_until_us=0)


class RunContract:
    """What becomes of runs and their pieces. A subclass brings `archive` and its `clock`."""

    # ── the slot ─────────────────────────────────────────────────────────────────────────────────────

    def test_a_run_that_begins_is_numbered_and_leased(self, archive: Archive, clock: ManualClock) -> None:
        run = begin(archive)
        assert run == replace(
            RUN, number=run.number, owner="a", fence=run.fence, lease_until_us=clock.now_us() + LEASE_US
        )
        assert (archive.run(run.number), archive.runs("orders")) == (run, [run])
        assert run.number > 0
        assert archive.run(run.number + 1) is None

    def test_runs_are_numbered_and_the_newest_comes_first(self, archive: Archive) -> None:
        runs = []
        for at in (1, 2, 3):
            runs.append(ended(begin(archive, replace(RUN, started_us=at))))
            assert archive.close_run(replace(runs[-1], fence=archive.runs("orders")[0].fence))
        begin(archive, Run("refunds", "adopt", 4))
        assert runs[0].number < runs[1].number < runs[2].number
        assert archive.runs("orders") == runs[::-1]
        assert archive.runs("orders", limit=1) == [runs[2]]
        assert archive.runs("none") == []

    def test_an_overlapping_run_is_refused_and_counted(self, archive: Archive, clock: ManualClock) -> None:
        begin(archive)
        clock.advance(LEASE_S - 1)
        for what in ("run", "compare", "run"):
            assert archive.begin_run(replace(RUN, what=what), "b", LEASE_US) is None
        assert (archive.refusals("orders"), archive.refusals("refunds")) == (3, 0)
        assert len(archive.runs("orders")) == 1

    def test_pairs_do_not_wait_for_each_other(self, archive: Archive) -> None:
        assert begin(archive).number != begin(archive, replace(RUN, pair="refunds")).number
        assert archive.refusals("orders") == 0

    def test_a_slot_is_taken_once(self, archive: Archive) -> None:
        """Given 8 workers that begin at the same moment, 10 times, I expect one run a time and 7 refusals."""
        for time in range(1, 11):
            begun: list[Run] = []

            def work(number: int, begun: list[Run] = begun) -> None:
                run = archive.begin_run(RUN, f"worker {number}", LEASE_US)
                begun.extend([] if run is None else [run])

            together(WORKERS, work)
            assert len(begun) == 1
            assert archive.refusals("orders") == time * (WORKERS - 1)
            assert archive.close_run(replace(begun[0], ended="done", ended_us=5))
        assert len(archive.runs("orders")) == 10

    def test_a_closed_run_frees_the_slot(self, archive: Archive) -> None:
        first = begin(archive)
        assert archive.close_run(replace(first, ended="failed", ended_us=5))
        second = begin(archive, owner="b")
        assert second.number > first.number
        assert second.fence > first.fence
        assert archive.refusals("orders") == 0

    def test_fences_start_at_the_stores_clock(self, archive: Archive, clock: ManualClock) -> None:
        """So that a store that was lost never gives out an old one again."""
        first = begin(archive)
        assert first.fence >= clock.now_us()
        archive.close_run(replace(first, ended="done", ended_us=5))
        clock.advance(7)
        assert begin(archive).fence >= clock.now_us()

    # ── checkpoints ──────────────────────────────────────────────────────────────────────────────────

    def test_a_run_whose_owner_fell_silent_is_resumed(self, archive: Archive, clock: ManualClock) -> None:
        memo = {"newest": 7, "after": '["Zoë"]', "parts": [1, {"deep": None}]}
        run = replace(begin(archive), cutoff_us=8, counts={"missing": 3, "ü": 1}, done=("stuck", "changed"), memo=memo)
        assert archive.save_run(run)
        clock.advance(LEASE_S)
        resumed = begin(archive, replace(RUN, started_us=99), owner="b")
        assert resumed == replace(run, owner="b", fence=resumed.fence, lease_until_us=clock.now_us() + LEASE_US)
        assert resumed.fence > run.fence
        assert archive.run(run.number) == resumed
        assert archive.refusals("orders") == 0

    def test_who_was_replaced_may_do_nothing(self, archive: Archive, clock: ManualClock) -> None:
        run = begin(archive)
        clock.advance(LEASE_S)
        resumed = begin(archive, owner="b")
        assert not archive.keep_run(run, LEASE_US)
        assert not archive.save_run(replace(run, done=("stuck",)))
        assert not archive.close_run(replace(run, ended="done", ended_us=5), {"orders": 7})
        assert (archive.run(run.number), archive.cursor("orders")) == (resumed, None)
        assert archive.save_run(replace(resumed, done=("stuck",)))

    def test_who_is_late_but_was_not_replaced_goes_on(self, archive: Archive, clock: ManualClock) -> None:
        run = begin(archive)
        clock.advance(LEASE_S * 10)
        assert archive.save_run(run)
        assert archive.keep_run(run, LEASE_US)
        assert archive.begin_run(RUN, "b", LEASE_US) is None
        assert archive.close_run(replace(run, ended="done", ended_us=5))

    def test_a_lease_is_extended_from_now_on(self, archive: Archive, clock: ManualClock) -> None:
        run = begin(archive)
        for _ in range(3):
            clock.advance(LEASE_S - 1)
            assert archive.keep_run(run, LEASE_US)
            assert archive.begin_run(RUN, "b", LEASE_US) is None
        assert archive.runs("orders") == [replace(run, lease_until_us=clock.now_us() + LEASE_US)]
        clock.advance(LEASE_S)
        assert begin(archive, owner="b").number == run.number

    def test_a_dead_run_of_another_kind_has_failed(self, archive: Archive, clock: ManualClock) -> None:
        dead = begin(archive)
        archive.save_run(replace(dead, counts={"read": 4}, done=("stuck",)))
        clock.advance(LEASE_S)
        run = begin(archive, replace(RUN, what="compare", cutoff_us=11), owner="b")
        assert (run.what, run.cutoff_us, run.counts, run.done) == ("compare", 11, {}, ())
        assert archive.runs("orders") == [
            run,
            replace(ended(dead), ended="failed", ended_us=clock.now_us(), error=PROCESS_ENDED,
                    counts={"read": 4}, done=("stuck",)),
        ]  # fmt: skip
        assert not archive.close_run(replace(dead, ended="done", ended_us=5), {"orders": 1})
        assert archive.cursor("orders") is None

    def test_a_run_that_is_too_old_is_not_gone_on_with(self, archive: Archive, clock: ManualClock) -> None:
        old = begin(archive)
        clock.advance(RESUMED_WITHIN_US / 1e6 + 1)
        new = begin(archive, replace(RUN, started_us=clock.now_us()), "b")
        assert new.number != old.number
        assert [(each.number, each.ended) for each in archive.runs("orders")] == [
            (new.number, "open"), (old.number, "failed"),
        ]  # fmt: skip

    def test_a_run_that_is_left_open_goes_on_at_once(self, archive: Archive) -> None:
        run = begin(archive)
        assert archive.close_run(replace(run, done=("stuck",)))
        assert not archive.save_run(replace(run, done=()))
        resumed = begin(archive, owner="b")
        assert (resumed.number, resumed.owner, resumed.done) == (run.number, "b", ("stuck",))

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────

    def test_a_closed_run_keeps_how_it_ended(self, archive: Archive) -> None:
        run = replace(
            begin(archive), ended="failed", ended_us=5, error="no connection", counts={"missing": 3}, done=("stuck",),
            memo={"a": 1}, cutoff_us=None,
        )  # fmt: skip
        assert archive.close_run(run)
        assert archive.runs("orders") == [replace(ended(run), ended="failed")]

    def test_an_error_may_hold_what_a_database_does_not_take(self, archive: Archive) -> None:
        archive.close_run(replace(begin(archive), ended="failed", ended_us=5, error="no \0 \udc80 Zoë"))
        error = archive.runs("orders")[0].error
        assert error is not None
        assert error.startswith("no ")
        assert error.endswith("Zoë")

    def test_the_cursor_moves_when_a_run_closes(self, archive: Archive) -> None:
        assert archive.cursor("orders") is None
        for at in (-5, 2**62):
            run = begin(archive)
            assert archive.save_run(replace(run, memo={"cursor": at}))
            assert archive.cursor("orders") != at
            assert archive.close_run(replace(run, ended="done", ended_us=5), {"orders": at, "orders first": 1})
            assert archive.cursor("orders") == at
        assert archive.cursor("orders first") == 1
        assert archive.cursor("refunds") is None

    def test_a_run_that_closes_without_cursor_leaves_it(self, archive: Archive) -> None:
        archive.close_run(replace(begin(archive), ended="done", ended_us=5), {"orders": 7})
        archive.close_run(replace(begin(archive), ended="failed", ended_us=5))
        assert archive.cursor("orders") == 7

    def test_the_same_end_may_be_told_twice(self, archive: Archive) -> None:
        """Given an answer that was lost, I expect the repetition to succeed, and no other end to replace the first."""
        run = replace(begin(archive), ended="done", ended_us=5)
        assert archive.close_run(run, {"orders": 7})
        assert archive.close_run(run, {"orders": 7})
        assert not archive.close_run(replace(run, ended="failed", error="no answer"))
        assert not archive.keep_run(run, LEASE_US)
        assert archive.runs("orders") == [ended(run)]
        begin(archive, owner="b")
        assert not archive.close_run(run, {"orders": 8})
        assert archive.cursor("orders") == 7


class PieceContract:
    """What becomes of the pieces of a run. A subclass brings `archive` and its `clock`."""

    def _cut(self, archive: Archive, count: int = 3) -> Run:
        run = begin(archive)
        archive.cut(run.number, [Piece(0, number, str(number), str(number + 1)) for number in range(count)])
        return run

    def test_pieces_are_cut_once(self, archive: Archive) -> None:
        odd = "a\0b\udc80 Zoë"
        run = begin(archive).number
        first, second = Piece(run, 1, None, odd), Piece(run, 2, odd, None, counts={"same": 1}, state="done")
        window = Piece(run, 3, from_us=-(2**62), to_us=2**62)
        archive.cut(run, [second, first, window])
        archive.cut(run, [Piece(run, 7)])
        assert archive.pieces(run) == [first, second, window]
        assert archive.pieces(run + 1) == []

    def test_pieces_are_claimed_in_order_each_by_one(self, archive: Archive, clock: ManualClock) -> None:
        run = self._cut(archive)
        claims = [archive.claim_piece(run.number, owner, LEASE_US) for owner in "abc"]
        assert [(claim.number, claim.owner) for claim in claims if claim] == [(0, "a"), (1, "b"), (2, "c")]
        assert claims == archive.pieces(run.number)
        assert {claim.lease_until_us for claim in claims if claim} == {clock.now_us() + LEASE_US}
        assert all(claim.fence >= clock.now_us() for claim in claims if claim)
        assert archive.claim_piece(run.number, "d", LEASE_US) is None
        assert archive.claim_piece(run.number + 1, "d", LEASE_US) is None

    def test_a_finished_piece_keeps_what_it_counted(self, archive: Archive) -> None:
        run = self._cut(archive, 2)
        piece = archive.claim_piece(run.number, "a", LEASE_US)
        assert piece is not None
        piece = replace(piece, counts={"same": 90, "differ": 2})
        assert archive.finish_piece(piece, ['["b"]', '["a"]'])
        assert archive.pieces(run.number)[0] == replace(piece, state="done", lease_until_us=0)
        assert archive.suspects(run.number, 10) == ['["a"]', '["b"]']
        following = archive.claim_piece(run.number, "a", LEASE_US)
        assert following is not None
        assert following.number == 1

    def test_a_piece_whose_owner_fell_silent_is_claimed_again(self, archive: Archive, clock: ManualClock) -> None:
        run = self._cut(archive, 1)
        dead = archive.claim_piece(run.number, "a", LEASE_US)
        assert dead is not None
        clock.advance(LEASE_S - 1)
        assert archive.claim_piece(run.number, "b", LEASE_US) is None
        clock.advance(1)
        alive = archive.claim_piece(run.number, "b", LEASE_US)
        assert alive is not None
        assert alive.fence > dead.fence
        assert not archive.keep_piece(dead, LEASE_US)
        assert not archive.finish_piece(replace(dead, counts={"same": 1}), ['["a"]'])
        assert (archive.pieces(run.number), archive.count_suspects(run.number)) == ([alive], 0)
        assert archive.finish_piece(alive, [])

    def test_a_kept_piece_stays_with_its_owner(self, archive: Archive, clock: ManualClock) -> None:
        run = self._cut(archive, 1)
        piece = archive.claim_piece(run.number, "a", LEASE_US)
        assert piece is not None
        for _ in range(3):
            clock.advance(LEASE_S - 1)
            assert archive.keep_piece(piece, LEASE_US)
            assert archive.claim_piece(run.number, "b", LEASE_US) is None

    def test_the_same_finish_may_be_told_twice(self, archive: Archive) -> None:
        run = self._cut(archive, 1)
        piece = archive.claim_piece(run.number, "a", LEASE_US)
        assert piece is not None
        assert archive.finish_piece(piece, ['["a"]'])
        archive.plan(run.number, [], ['["a"]'])
        assert archive.finish_piece(piece, ['["a"]'])
        assert archive.count_suspects(run.number) == 0
        assert not archive.keep_piece(piece, LEASE_US)

    def test_nobody_works_on_a_run_that_ended(self, archive: Archive) -> None:
        run = self._cut(archive)
        piece = archive.claim_piece(run.number, "a", LEASE_US)
        assert piece is not None
        archive.close_run(replace(run, ended="failed", ended_us=5))
        assert archive.claim_piece(run.number, "b", LEASE_US) is None
        assert not archive.keep_piece(piece, LEASE_US)
        assert not archive.finish_piece(piece, ['["a"]'])
        assert archive.count_suspects(run.number) == 0

    def test_runs_with_something_to_claim(self, archive: Archive, clock: ManualClock) -> None:
        run = self._cut(archive, 1)
        begin(archive, replace(RUN, pair="refunds"))
        assert archive.runs_with_pieces(["orders", "refunds", "none"]) == [run]
        assert archive.runs_with_pieces(["refunds"]) == archive.runs_with_pieces([]) == []
        archive.claim_piece(run.number, "a", LEASE_US)
        assert archive.runs_with_pieces(["orders"]) == []
        clock.advance(LEASE_S)
        assert archive.runs_with_pieces(["orders"]) == [run]
        archive.close_run(replace(run, ended="done", ended_us=5))
        assert archive.runs_with_pieces(["orders"]) == []

    def test_runs_of_a_thousand_pairs(self, archive: Archive) -> None:
        run = self._cut(archive, 1)
        assert archive.runs_with_pieces([*(f"tenant {number}" for number in range(1_000)), "orders"]) == [run]

    def test_each_piece_is_claimed_exactly_once(self, archive: Archive) -> None:
        """Given 60 pieces and 8 workers started together, I expect each piece with one of them, and all suspects."""
        run = self._cut(archive, 60)
        claimed: list[int] = []

        def work(number: int) -> None:
            while piece := archive.claim_piece(run.number, f"worker {number}", LEASE_US):
                claimed.append(piece.number)
                assert archive.finish_piece(replace(piece, counts={"differ": 1}), [f"[{piece.number:02}]"])

        together(WORKERS, work)
        # Whoever finds all that is open in other hands leaves it to them, but none is left behind.
        work(0)
        assert Counter(claimed) == Counter(range(60))
        assert archive.suspects(run.number, 100) == [f"[{number:02}]" for number in range(60)]
        assert {piece.state for piece in archive.pieces(run.number)} == {"done"}
