"""The offer table: every row of it and every point under it is a test that names it."""

from __future__ import annotations

import pytest

from trueup.model.change import VERIFY_PRIORITY, Origin, Outcome
from trueup.model.row import State
from trueup.testing.ledgers.driving import KEY, MINUTE_US, PAIR, Driven, Driver


class OfferContract(Driven):
    """What becomes of a change that is offered."""

    # ── confirmed, and selected by the unsynced condition ─────────────────────────────────────────────

    def test_confirmed_offer_for_another_revision_is_overtaken(self, on: Driver) -> None:
        row = on.done(1)
        assert on.offer(1, "b", origin=Origin.COMPARE, judged_revision=row.revision - 1) is Outcome.OVERTAKEN
        assert on.row() == row

    def test_confirmed_offer_is_overtaken_where_a_row_appeared(self, on: Driver) -> None:
        on.done(1)
        assert on.offer(1, "b", origin=Origin.COMPARE, judged_revision=0) is Outcome.OVERTAKEN

    def test_confirmed_offer_is_overtaken_where_the_row_is_gone(self, on: Driver) -> None:
        assert on.offer(1, origin=Origin.COMPARE, judged_revision=7) is Outcome.OVERTAKEN
        assert on.ledger.rows(PAIR, [KEY]) == {}

    @pytest.mark.parametrize("origin", [Origin.COMPARE, Origin.REVIEW])
    def test_confirmed_offer_is_overtaken_while_pending(self, on: Driver, origin: Origin) -> None:
        on.offer(1)
        assert on.offer(1, "b", origin=origin, judged_revision=on.row().revision) is Outcome.OVERTAKEN

    @pytest.mark.parametrize("origin", [Origin.COMPARE, Origin.REVIEW])
    def test_confirmed_offer_is_overtaken_while_leased(self, on: Driver, origin: Origin) -> None:
        on.offer(1)
        on.claim()
        assert on.offer(1, "b", origin=origin, judged_revision=on.row().revision) is Outcome.OVERTAKEN

    def test_compare_offer_is_overtaken_by_a_parked_row(self, on: Driver) -> None:
        row = on.parked(1)
        assert on.offer(1, "b", origin=Origin.COMPARE, judged_revision=row.revision) is Outcome.OVERTAKEN
        assert on.row().state is State.PARKED

    def test_review_offer_moves_a_parked_row(self, on: Driver) -> None:
        row = on.parked(1, rejected=True)
        assert on.offer(1, "b", origin=Origin.REVIEW, judged_revision=row.revision) is Outcome.REFETCH
        row = on.row()
        assert (row.state, row.rejected, row.park_reason, row.tries) == (State.PENDING, False, None, 0)

    @pytest.mark.parametrize("version", [None, 1, 2, 9])
    def test_confirmed_offer_as_judged_is_refetched_whatever_the_version(self, on: Driver, version: int | None) -> None:
        row = on.done(2)
        change = on.change(version, "z", origin=Origin.COMPARE, judged_revision=row.revision, judged_replica="r")
        assert on.ledger.offer([change]) == [Outcome.REFETCH]
        row = on.row()
        assert (row.state, row.refetch, row.verified_until, row.judged_replica) == (State.PENDING, True, 0, "r")

    def test_confirmed_offer_for_no_row_is_refetched(self, on: Driver) -> None:
        assert on.offer(1, origin=Origin.COMPARE, judged_revision=0) is Outcome.REFETCH
        assert on.row().refetch

    def test_unsynced_offer_is_refetched_when_idle(self, on: Driver) -> None:
        on.done(2)
        assert on.row().verified_until > on.clock.now_us()
        assert on.offer(1, origin=Origin.SWEEP, unsynced=True) is Outcome.REFETCH
        row = on.row()
        assert (row.refetch, row.verified_until, row.unsynced) == (True, 0, True)

    def test_unsynced_offer_without_row_is_refetched(self, on: Driver) -> None:
        assert on.offer(1, origin=Origin.SWEEP, unsynced=True) is Outcome.REFETCH

    @pytest.mark.parametrize("version", [None, 1, 2])
    def test_unsynced_offer_leaves_a_parked_row_parked(self, on: Driver, version: int | None) -> None:
        row = on.parked(1)
        assert on.offer(version, "z", origin=Origin.SWEEP, unsynced=True) is Outcome.SAME
        assert on.row() == row

    def test_unsynced_offer_while_pending_is_judged_by_its_version(self, on: Driver) -> None:
        on.offer(2)
        assert on.offer(1, origin=Origin.SWEEP, unsynced=True) is Outcome.STALE

    # ── pending + refetch: what the version can't decide ──────────────────────────────────────────────

    def test_offer_without_version_is_refetched(self, on: Driver) -> None:
        on.done(2)
        assert on.offer(None, None) is Outcome.REFETCH
        assert on.row().refetch

    def test_first_offer_without_version_is_refetched(self, on: Driver) -> None:
        assert on.offer(None, None) is Outcome.REFETCH

    @pytest.mark.parametrize("version", [2, 4, 5, 6])
    def test_offer_to_an_unordered_row_is_refetched(self, on: Driver, version: int) -> None:
        on.unordered(high=5, read=3)
        assert on.offer(version, "z") is Outcome.REFETCH

    def test_offer_equal_to_done_of_an_unordered_row_is_not_refetched(self, on: Driver) -> None:
        on.unordered(high=5, read=3)
        assert on.offer(3, "c") is Outcome.FRESH

    def test_first_offer_while_young_is_refetched(self, young: Driver) -> None:
        assert young.offer(1) is Outcome.REFETCH

    def test_offer_to_a_row_with_nothing_done_while_young_is_refetched(self, young: Driver) -> None:
        young.offer(2)
        assert young.offer(1) is Outcome.REFETCH

    def test_offer_to_a_row_with_something_done_while_young_is_judged(self, young: Driver) -> None:
        young.done(2)
        assert young.offer(1) is Outcome.STALE
        assert young.offer(3, "c") is Outcome.PENDING

    @pytest.mark.parametrize("version", [1, 2])
    def test_non_delete_not_newer_than_a_done_delete_is_refetched(self, on: Driver, version: int) -> None:
        on.done(2, action="delete")
        assert on.offer(version) is Outcome.REFETCH

    @pytest.mark.parametrize("version", [1, 2])
    def test_non_delete_not_newer_than_a_wanted_delete_is_refetched(self, on: Driver, version: int) -> None:
        on.offer(2, action="delete")
        assert on.offer(version) is Outcome.REFETCH

    def test_non_delete_newer_than_a_done_delete_is_pending(self, on: Driver) -> None:
        on.done(2, action="delete")
        assert on.offer(3) is Outcome.PENDING

    # ── stale ─────────────────────────────────────────────────────────────────────────────────────────

    def test_offer_older_than_done_is_stale(self, on: Driver) -> None:
        row = on.done(2)
        assert on.offer(1, "z") is Outcome.STALE
        assert on.row() == row

    def test_offer_older_than_wanted_while_pending_is_stale(self, on: Driver) -> None:
        on.offer(2)
        row = on.row()
        assert on.offer(1, "z") is Outcome.STALE
        assert on.row() == row

    def test_offer_older_than_wanted_while_leased_is_stale(self, on: Driver) -> None:
        on.offer(2)
        on.claim()
        assert on.offer(1, "z") is Outcome.STALE

    def test_offer_older_than_wanted_while_parked_is_stale(self, on: Driver) -> None:
        row = on.parked(2)
        assert on.offer(1, "z") is Outcome.STALE
        assert on.row() == row

    def test_older_delete_is_stale(self, on: Driver) -> None:
        on.done(2)
        assert on.offer(1, action="delete") is Outcome.STALE

    def test_an_enrol_that_an_unenrol_overtook_never_runs(self, on: Driver) -> None:
        on.offer(2, "b", action="dropped")
        assert on.offer(1, "a", action="registered") is Outcome.STALE
        assert [claim.change.action for claim in on.claims(limit=10)] == ["dropped"]

    # ── equal ─────────────────────────────────────────────────────────────────────────────────────────

    def test_offer_equal_to_wanted_while_leased_is_refetched(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim()
        assert on.offer(1) is Outcome.REFETCH
        assert on.finish(claim)
        assert (on.row().state, on.row().refetch) == (State.PENDING, True)

    def test_offer_equal_to_done_while_leased_is_refetched(self, on: Driver) -> None:
        on.done(1)
        on.offer(None, None)
        on.claim()
        assert on.offer(1) is Outcome.REFETCH

    def test_offer_equal_to_wanted_is_same(self, on: Driver) -> None:
        on.offer(1)
        row = on.row()
        assert on.offer(1) is Outcome.SAME
        assert on.row() == row

    def test_offer_equal_to_wanted_under_an_expired_lease_is_same(self, on: Driver) -> None:
        on.offer(1)
        on.claim()
        on.clock.advance(61)
        assert on.offer(1) is Outcome.SAME

    def test_the_more_urgent_priority_of_equal_offers_wins(self, on: Driver) -> None:
        on.offer(1, origin=Origin.BACKFILL)
        assert on.offer(1, origin=Origin.EVENT) is Outcome.SAME
        assert on.row().priority == Origin.EVENT
        assert on.offer(1, origin=Origin.SWEEP) is Outcome.SAME
        assert on.row().priority == Origin.EVENT

    def test_offer_equal_to_done_while_pending_is_same(self, on: Driver) -> None:
        on.done(1)
        on.offer(None, None)
        assert on.offer(1) is Outcome.SAME

    def test_offer_equal_to_a_parked_wish_stays_parked(self, on: Driver) -> None:
        row = on.parked(1)
        assert on.offer(1) is Outcome.SAME
        assert on.row() == row

    def test_offer_equal_to_done_leaves_another_parked_wish_parked(self, on: Driver) -> None:
        on.done(1)
        row = on.parked(None, None)
        assert on.offer(1) is Outcome.SAME
        assert on.row() == row

    def test_offer_equal_to_done_frees_a_parked_wish_of_the_same_version(self, on: Driver) -> None:
        on.done(1, "a")
        on.parked(1, "b")
        assert on.offer(1, "a") is Outcome.REFETCH

    def test_offer_equal_to_done_and_verified_is_fresh(self, on: Driver) -> None:
        row = on.done(1, verified_for_us=MINUTE_US)
        on.clock.advance(59.999_999)
        assert on.offer(1) is Outcome.FRESH
        assert on.row() == row

    def test_offer_equal_to_done_is_verified_when_that_expired(self, on: Driver) -> None:
        on.done(1, verified_for_us=MINUTE_US)
        on.clock.advance(60)
        assert on.offer(1) is Outcome.VERIFY
        row = on.row()
        assert (row.state, row.verify, row.refetch, row.priority) == (State.PENDING, True, False, VERIFY_PRIORITY)

    # ── same version, other content; newer ────────────────────────────────────────────────────────────

    @pytest.mark.parametrize(("digest", "action"), [("b", "upsert"), ("a", "dropped"), ("a", "delete")])
    def test_same_version_as_done_with_other_content_is_refetched(self, on: Driver, digest: str, action: str) -> None:
        on.done(1, "a")
        assert on.offer(1, digest, action) is Outcome.REFETCH

    @pytest.mark.parametrize(("digest", "action"), [("b", "upsert"), ("a", "dropped"), ("a", "delete")])
    def test_same_version_as_wanted_with_other_content_is_refetched(self, on: Driver, digest: str, action: str) -> None:
        on.offer(1, "a")
        assert on.offer(1, digest, action) is Outcome.REFETCH

    def test_first_offer_is_pending(self, on: Driver) -> None:
        assert on.offer(1) is Outcome.PENDING
        row = on.row()
        now_us = on.clock.now_us()
        assert (row.state, row.refetch, row.due_at, row.queued_at) == (State.PENDING, False, now_us, now_us)
        assert (row.wish_action, row.wish_version, row.wish_digest, row.high) == ("upsert", 1, "a", 1)

    def test_newer_than_done_is_pending(self, on: Driver) -> None:
        on.done(1)
        assert on.offer(2, "a") is Outcome.PENDING

    def test_newer_than_wanted_is_coalesced(self, on: Driver) -> None:
        on.offer(1)
        assert on.offer(2, "b") is Outcome.COALESCED
        assert [(claim.change.version, claim.change.digest) for claim in on.claims(limit=10)] == [(2, "b")]

    def test_newer_delete_is_pending_and_refetched(self, on: Driver) -> None:
        on.done(1)
        assert on.offer(2, action="delete") is Outcome.PENDING
        assert on.row().refetch

    def test_newer_unparks(self, on: Driver) -> None:
        on.parked(1, rejected=True)
        assert on.offer(2, "b") is Outcome.COALESCED
        row = on.row()
        assert (row.state, row.park_reason, row.rejected, row.tries) == (State.PENDING, None, False, 0)

    @pytest.mark.parametrize("version", [2, None])
    def test_newer_and_refetched_are_due_now_with_fresh_tries(self, on: Driver, version: int | None) -> None:
        on.offer(1)
        on.finish(on.claim(), "retry", delay_us=MINUTE_US)
        on.clock.advance(1)
        on.offer(version, "b")
        row = on.row()
        assert (row.due_at, row.tries) == (on.clock.now_us(), 0)

    def test_newer_keeps_its_place_and_the_more_urgent_priority(self, on: Driver) -> None:
        on.offer(1, origin=Origin.EVENT)
        queued_at = on.row().queued_at
        on.clock.advance(5)
        on.offer(2, "b", origin=Origin.BACKFILL)
        assert (on.row().queued_at, on.row().priority) == (queued_at, Origin.EVENT)

    def test_newer_raises_the_priority(self, on: Driver) -> None:
        on.offer(1, origin=Origin.BACKFILL)
        on.offer(2, "b", origin=Origin.REVIEW)
        assert on.row().priority == Origin.REVIEW

    def test_newer_replaces_a_verification(self, on: Driver) -> None:
        on.done(1, verified_for_us=0)
        on.offer(1)
        assert on.offer(2, "b", origin=Origin.BACKFILL) is Outcome.COALESCED
        assert (on.row().verify, on.row().priority) == (False, Origin.BACKFILL)

    # ── points under the table ────────────────────────────────────────────────────────────────────────

    def test_the_same_key_twice_in_a_batch_is_judged_in_list_order(self, on: Driver) -> None:
        changes = [on.change(version, digest) for version, digest in [(2, "b"), (1, "a"), (2, "b"), (3, "c")]]
        expected = [Outcome.PENDING, Outcome.STALE, Outcome.SAME, Outcome.COALESCED]
        assert on.ledger.offer(changes) == expected
        assert on.row().wish_version == 3

    def test_a_batch_of_many_thousands_is_judged_in_list_order(self, on: Driver) -> None:
        changes = [on.change(version, str(version), key=f'["{n}"]') for version in (2, 1) for n in range(2_500)]
        assert on.ledger.offer(changes) == [Outcome.PENDING] * 2_500 + [Outcome.STALE] * 2_500

    def test_of_many_thousand_records_each_has_its_own_outcome(self, on: Driver) -> None:
        on.ledger.offer([on.change(2, "2", key=f'["{n}"]') for n in range(0, 5_000, 2)])
        outcomes = on.ledger.offer([on.change(1, "1", key=f'["{n}"]') for n in range(5_000)])
        assert outcomes == [Outcome.STALE, Outcome.PENDING] * 2_500

    def test_an_empty_batch_has_no_outcome(self, on: Driver) -> None:
        assert on.ledger.offer([]) == []

    def test_pairs_do_not_meet(self, on: Driver) -> None:
        on.done(5)
        assert on.offer(1, pair="refunds") is Outcome.REFETCH  # another pair, still young

    def test_keys_of_any_text_are_their_own_records(self, on: Driver) -> None:
        keys = ['["a"]', '["A"]', '["ä"]', '["a "]', '["a","b"]', "[null]", '["\\u0000"]', '["%_\'\\""]', '["日本🙂"]']
        assert on.ledger.offer([on.change(key=key) for key in keys]) == [Outcome.PENDING] * len(keys)
        assert set(on.ledger.rows(PAIR, keys)) == set(keys)
        assert [row.key for rows in on.ledger.scan(PAIR) for row in rows] == sorted(keys)

    @pytest.mark.parametrize("version", [-(2**63), -1, 0, 2**63 - 1])
    def test_versions_are_64_bit(self, on: Driver, version: int) -> None:
        assert on.done(version).done_version == version
        assert on.offer(version) is Outcome.FRESH

    def test_every_accepted_offer_raises_the_wish_number(self, on: Driver) -> None:
        numbers = []
        for version, digest in [(1, "a"), (2, "b"), (2, "c"), (None, None)]:
            assert on.offer(version, digest).accepted
            numbers.append(on.row().wish)
        assert numbers == [1, 2, 3, 4]

    def test_dropped_offers_change_nothing(self, on: Driver) -> None:
        row = on.done(2)
        assert [on.offer(1), on.offer(2)] == [Outcome.STALE, Outcome.FRESH]
        assert on.row() == row

    def test_refetch_is_sticky_until_a_finish_clears_the_wish(self, on: Driver) -> None:
        on.offer(None, None)
        assert on.offer(3, "c") is Outcome.COALESCED
        assert on.row().refetch
        assert on.finish(on.claim())
        assert not on.row().refetch

    def test_an_offer_that_shares_an_unsynced_wish_makes_it_unconditional(self, on: Driver) -> None:
        on.offer(1, origin=Origin.SWEEP, unsynced=True)
        assert on.claim().change.unsynced
        on.offer(2, "b")
        assert not on.row().unsynced

    def test_an_unsynced_offer_does_not_make_an_event_conditional(self, on: Driver) -> None:
        on.offer(1)
        on.offer(None, None, origin=Origin.SWEEP, unsynced=True)
        assert not on.row().unsynced

    def test_a_refetch_offer_older_than_the_wish_keeps_the_wish(self, on: Driver) -> None:
        on.unordered(high=5, read=3)
        on.offer(6, "f")
        assert on.offer(4, "d") is Outcome.REFETCH
        assert (on.row().wish_version, on.row().wish_digest) == (6, "f")

    def test_a_new_row_has_a_fence_above_any_ever_issued(self, on: Driver) -> None:
        on.offer(1)
        assert on.row().fence >= on.clock.now_us()
