"""How a job ends, and what becomes of an end that comes too late."""

from __future__ import annotations

from typing import Any

import pytest

from trueup.model.change import Outcome
from trueup.model.row import NEVER_US, State
from trueup.testing.ledgers.driving import KEY, MINUTE_US, PAIR, Driven, Driver, ending

OTHER = '["7"]'


class FinishContract(Driven):
    """Accepted and refused finishes."""

    # ── done ──────────────────────────────────────────────────────────────────────────────────────────

    def test_done_is_what_was_performed_not_what_was_offered(self, on: Driver) -> None:
        on.offer(2, "b")
        on.finish(on.claim(), action="registered", version=4, digest="d", replica="r", verified_for_us=MINUTE_US)
        row = on.row()
        assert (row.done_action, row.done_version, row.done_digest, row.done_replica) == ("registered", 4, "d", "r")
        assert (row.done_at, row.verified_until) == (on.clock.now_us(), on.clock.now_us() + MINUTE_US)
        assert row.high == 4

    def test_done_clears_the_wish_and_wipes_its_values(self, on: Driver) -> None:
        on.offer(1)
        assert on.row().wish_payload is not None
        on.finish(on.claim())
        row = on.row()
        assert (row.state, row.wish_action, row.wish_version, row.wish_digest, row.wish_payload) == (
            State.IDLE, None, None, None, None,
        )  # fmt: skip
        assert (row.lease_owner, row.lease_until, row.tries, row.last_error) == (None, 0, 0, None)

    def test_done_clears_only_the_wish_that_was_claimed(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.offer(2, "b")
        on.clock.advance(1)
        assert on.finish(claim)
        row = on.row()
        assert (row.done_version, row.state, row.wish_version, row.lease_owner) == (1, State.PENDING, 2, None)
        assert (row.due_at, row.tries) == (on.clock.now_us(), 0)
        assert on.claim().change.version == 2

    def test_done_takes_the_version_that_was_read_even_a_lower_one(self, on: Driver) -> None:
        on.offer(5, "e")
        on.finish(on.claim(), version=3, digest="c")
        assert (on.row().done_version, on.row().high) == (3, 5)

    def test_an_absence_takes_the_version_of_a_delete(self, on: Driver) -> None:
        on.done(1)
        on.offer(2, action="delete")
        on.finish(on.claim(), version=None)
        assert (on.row().done_action, on.row().done_version, on.row().done_digest) == ("delete", 2, None)

    def test_an_absence_under_another_wish_keeps_the_old_version(self, on: Driver) -> None:
        on.done(1)
        on.offer(2, "b")
        on.finish(on.claim(), action="delete", version=None, digest=None, absent=True)
        assert (on.row().done_action, on.row().done_version) == ("delete", 1)

    def test_done_below_the_highest_version_is_unordered(self, on: Driver) -> None:
        on.unordered(high=5, read=3)

    def test_an_absence_without_version_is_unordered(self, on: Driver) -> None:
        on.done(1)
        on.offer(None, None)
        on.finish(on.claim(), action="delete", version=None, digest=None, absent=True)
        assert on.row().unordered
        assert on.offer(2, "b") is Outcome.REFETCH

    def test_a_wish_that_remains_is_not_unordered(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.offer(5, "e")
        on.finish(claim)
        assert not on.row().unordered

    @pytest.mark.parametrize("version", [5, 6])
    def test_done_at_the_highest_version_is_ordered_again(self, on: Driver, version: int) -> None:
        on.unordered(high=5, read=3)
        on.offer(None, None)
        on.finish(on.claim(), version=version, digest="z")
        assert not on.row().unordered
        assert on.offer(4, "d") is Outcome.STALE

    def test_done_removes_its_own_intents_only(self, on: Driver) -> None:
        on.offer(1, "a")
        died = on.claim()
        on.clock.advance(61)
        holder = on.claim()
        on.ledger.attempt([(holder, "x")])
        on.finish(holder)
        assert on.row().attempted == ((died.fence, "a"),)

    def test_verified_extends_what_is_done_and_changes_nothing_else(self, on: Driver) -> None:
        before = on.done(1, verified_for_us=0)
        on.clock.advance(5)
        on.offer(1)
        on.finish(on.claim(), "verified", verified_for_us=MINUTE_US)
        row = on.row()
        assert row.verified_until == on.clock.now_us() + MINUTE_US
        assert (row.done_action, row.done_version, row.done_digest, row.done_replica) == (
            before.done_action, before.done_version, before.done_digest, before.done_replica,
        )  # fmt: skip
        assert row.state is State.IDLE

    def test_verified_does_not_order_what_was_unordered(self, on: Driver) -> None:
        on.done(2, action="delete")
        on.offer(None, None)
        on.finish(on.claim(), action="delete", version=None, digest=None, absent=True, verified_for_us=0)
        assert on.offer(2, action="delete") is Outcome.VERIFY
        on.finish(on.claim(), "verified", absent=True)
        assert on.row().unordered

    def test_repairs_in_a_row_are_counted(self, on: Driver) -> None:
        assert [on.done(n, str(n), repaired=True).repairs for n in (1, 2, 3)] == [1, 2, 3]
        assert on.done(4, "d").repairs == 0

    # ── not done ──────────────────────────────────────────────────────────────────────────────────────

    def test_retry_charges_the_try_and_waits(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(), "retry", delay_us=MINUTE_US, reason="timeout")
        row = on.row()
        assert (row.state, row.tries, row.last_error) == (State.PENDING, 1, "timeout")
        assert (row.due_at, row.lease_owner) == (on.clock.now_us() + MINUTE_US, None)

    def test_retry_without_charge_gives_the_try_back(self, on: Driver) -> None:
        on.offer(1)
        for _ in range(9):
            on.finish(on.claim(tries_max=2), "retry", charge=False)
        assert on.row().tries == 0

    def test_retry_keeps_its_intents(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.finish(claim, "retry")
        assert on.row().attempted == ((claim.fence, "a"),)

    def test_retry_of_a_job_that_a_newer_wish_replaced_is_due_now(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.offer(2, "b")
        on.finish(claim, "retry", delay_us=MINUTE_US)
        assert (on.row().due_at, on.row().tries) == (on.clock.now_us(), 0)

    def test_a_rejected_record_is_parked_with_its_reason(self, on: Driver) -> None:
        row = on.parked(1, rejected=True)
        assert (row.state, row.park_reason, row.rejected) == (State.PARKED, "no such SKU", True)
        assert (row.wish_version, row.lease_owner) == (1, None)

    def test_a_parking_that_a_newer_wish_overtook_parks_nothing(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.offer(2, "b")
        on.finish(claim, "parked", reason="no such SKU", rejected=True)
        assert on.claim().change.version == 2

    # ── waiting for another record ────────────────────────────────────────────────────────────────────

    def test_a_record_that_waits_sleeps_until_it_is_due(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(), "waits", waits_for=f"{PAIR} {OTHER}", delay_us=MINUTE_US, charge=False)
        assert on.claims() == []
        on.clock.advance(60)
        assert on.claim().row.tries == 1

    def test_a_record_that_waits_wakes_when_the_other_is_done(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(), "waits", waits_for=f"{PAIR} {OTHER}", delay_us=MINUTE_US, charge=False)
        on.done(1, key=OTHER)
        assert (on.claim().change.key, on.row().waits_for) == (KEY, None)

    def test_a_record_that_waits_sleeps_on_while_the_other_is_not_done(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(), "waits", waits_for=f"{PAIR} {OTHER}", delay_us=MINUTE_US, charge=False)
        on.offer(1, key=OTHER)
        on.finish(on.claim(keys=[OTHER]), "parked", reason="no")
        assert on.claims() == []

    def test_a_record_wakes_at_once_where_the_other_became_done_meanwhile(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.clock.advance(1)
        on.done(1, key=OTHER)
        on.finish(claim, "waits", waits_for=f"{PAIR} {OTHER}", delay_us=MINUTE_US, charge=False)
        assert on.claim().change.key == KEY

    def test_a_record_wakes_where_both_end_in_one_batch(self, on: Driver) -> None:
        on.offer(1)
        on.offer(1, key=OTHER)
        waits, done = on.claim(keys=[KEY]), on.claim(keys=[OTHER])
        slept = ending(waits, "waits", waits_for=f"{PAIR} {OTHER}", delay_us=MINUTE_US, charge=False)
        assert on.ledger.finish([ending(done), slept]) == [True, True]
        assert on.claim().change.key == KEY

    # ── too late ──────────────────────────────────────────────────────────────────────────────────────

    def test_a_late_finish_that_nobody_reclaimed_is_accepted(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        on.clock.advance(3_600)
        assert on.finish(claim)
        assert on.row().state is State.IDLE

    @pytest.mark.parametrize("result", ["done", "verified", "retry", "parked", "waits"])
    def test_a_refused_finish_changes_no_done(self, on: Driver, result: str) -> None:
        on.offer(1, "a")
        late = on.claim()
        on.clock.advance(61)
        on.finish(on.claim(), version=2, digest="b", replica="b")
        assert not on.finish(late, result, version=1, digest="a", replica="a", action="upsert")
        row = on.row()
        assert (row.done_version, row.done_digest, row.done_replica) == (2, "b", "b")

    def test_a_refused_finish_reads_an_idle_record_again(self, on: Driver) -> None:
        on.offer(1, "a")
        late = on.claim()
        on.clock.advance(61)
        on.finish(on.claim(), version=2, digest="b")
        wish = on.row().wish
        assert not on.finish(late)
        row = on.row()
        assert (row.state, row.refetch, row.verified_until, row.wish) == (State.PENDING, True, NEVER_US, wish + 1)
        assert (row.wish_action, row.wish_version, row.wish_digest) == ("upsert", 2, "b")
        assert row.due_at <= on.clock.now_us()

    def test_a_refused_finish_reads_again_under_the_next_holder(self, on: Driver) -> None:
        """The holder that is at work read before the late write may have landed: its finish clears nothing."""
        on.offer(1, "a")
        late = on.claim()
        on.clock.advance(61)
        holder = on.claim()
        assert not on.finish(late)
        assert on.row().lease_owner is not None
        assert on.finish(holder)
        assert (on.row().state, on.row().refetch) == (State.PENDING, True)

    def test_a_refused_finish_moves_a_parked_record(self, on: Driver) -> None:
        on.offer(1, "a")
        late = on.claim()
        on.clock.advance(61)
        on.finish(on.claim(), "parked", reason="no", rejected=True)
        assert not on.finish(late)
        row = on.row()
        assert (row.state, row.refetch, row.rejected, row.tries) == (State.PENDING, True, False, 0)

    def test_a_refused_finish_of_a_record_that_is_gone_offers_it_without_version(self, on: Driver, make: Any) -> None:
        on.offer(3, "c")
        late = on.claim()
        lost = make(on.clock)  # the store was lost; a new one takes its place
        try:
            assert lost.finish([ending(late)]) == [False]
            row = lost.rows(PAIR, [KEY])[KEY]
            assert (row.state, row.refetch, row.wish_version, row.done_at) == (State.PENDING, True, None, None)
        finally:
            lost.close()

    def test_a_finish_that_is_repeated_is_refused_and_reads_again(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        assert on.ledger.finish([ending(claim), ending(claim)]) == [True, False]
        assert on.row().refetch

    def test_a_fence_of_a_lost_store_is_never_issued_again(self, on: Driver, make: Any) -> None:
        on.offer(1)
        late = on.claim()
        on.clock.advance(0.001)
        lost = make(on.clock)
        try:
            again = Driver(lost, on.clock)
            again.offer(1)
            assert again.claim().fence > late.fence
            assert not again.finish(late)
        finally:
            lost.close()
