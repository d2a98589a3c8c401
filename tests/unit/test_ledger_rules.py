"""The rules of a row as pure functions: laws that hold whatever row and change they are given."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model import ledger as rules
from trueup.model.change import DELETE, Change, Origin, Outcome
from trueup.model.row import Baseline, Finish, Row, State, new_row
from trueup.model.urgency import Waiting, lowest_share, most_urgent

NOW = 1_000_000
PAIR, KEY = "orders", '["42"]'

booleans = st.booleans()
versions = st.none() | st.integers(1, 5)
digests = st.sampled_from(["a", "b", None])
actions = st.sampled_from(["upsert", "dropped", DELETE])


@st.composite
def rows(draw, leased=booleans):
    """Any row that offers, claims and finishes can leave behind."""
    state = draw(st.sampled_from(State))
    done = draw(st.booleans())
    row = Row(
        PAIR,
        KEY,
        state,
        wish=draw(st.integers(1, 9)),
        revision=draw(st.integers(1, 99)),
        fence=draw(st.integers(1, 99)),
    )
    if state is not State.IDLE:
        row.wish_action, row.wish_version, row.wish_digest = draw(actions), draw(versions), draw(digests)
        row.priority, row.refetch = draw(st.integers(0, 5)), draw(st.booleans())
        row.queued_at = row.due_at = draw(st.integers(1, 2 * NOW))
        row.tries, row.rejected = draw(st.integers(0, 5)), state is State.PARKED and draw(st.booleans())
    if done:
        row.done_action, row.done_version, row.done_digest = draw(actions), draw(versions), draw(digests)
        row.done_at, row.verified_until = draw(st.integers(0, NOW)), draw(st.integers(0, 2 * NOW))
        row.unordered = draw(st.booleans())
    row.high = max((v for v in (row.wish_version, row.done_version) if v is not None), default=None)
    if state is State.PENDING and draw(leased):
        row.lease_owner, row.lease_until = "worker", draw(st.integers(NOW - 5, NOW + 5))
    return row


changes = st.builds(
    Change, st.just(PAIR), st.just(KEY), actions, versions, digests, origin=st.sampled_from(Origin),
    unsynced=st.booleans(), judged_revision=st.none() | st.integers(0, 99),
)  # fmt: skip
plain = st.builds(Change, st.just(PAIR), st.just(KEY), actions, versions, digests, origin=st.sampled_from(Origin))


class TestOfferLaws:
    @given(row=st.none() | rows(), change=changes, young=st.booleans())
    def test_a_rule_never_changes_the_row_it_is_given(self, row, change, young):
        before = row and row.copy()
        rules.offer(row, change, NOW, young=young)
        assert row == before

    @given(row=st.none() | rows(), change=changes, young=st.booleans())
    def test_accepted_is_pending_due_now_with_a_new_wish_number_and_fresh_tries(self, row, change, young):
        outcome, after = rules.offer(row, change, NOW, young=young)
        if outcome.accepted:
            assert (after.state, after.due_at, after.tries, after.park_reason) == (State.PENDING, NOW, 0, None)
            assert after.wish == (row.wish if row else 0) + 1
        elif after is not None:
            assert after == replace(row, priority=after.priority, revision=row.revision + 1, touched_at=NOW)
            assert after.priority < row.priority

    @given(row=rows(), change=changes, young=st.booleans())
    def test_an_offer_never_touches_what_is_done_nor_the_lease(self, row, change, young):
        _, after = rules.offer(row, change, NOW, young=young)
        if after is not None:
            for name in ("done_action", "done_version", "done_digest", "done_replica", "done_at", "unordered",
                         "lease_owner", "lease_until", "fence", "attempted", "repairs"):  # fmt: skip
                assert getattr(after, name) == getattr(row, name)
            assert after.revision == row.revision + 1

    @given(row=rows(), change=plain, young=st.booleans())
    def test_an_older_offer_never_replaces_a_newer_wish_unread(self, row, change, young):
        outcome, after = rules.offer(row, change, NOW, young=young)
        older = change.version is not None and (
            (row.state is not State.IDLE and row.wish_version is not None and change.version < row.wish_version)
            or (row.done_version is not None and change.version < row.done_version)
        )
        if older and outcome is not Outcome.STALE:
            assert after.refetch

    @given(row=rows(), change=plain, young=st.booleans())
    def test_the_same_offer_again_is_the_same_or_read_again(self, row, change, young):
        outcome, after = rules.offer(row, change, NOW, young=young)
        if outcome.accepted:
            again, _ = rules.offer(after, change, NOW, young=young)
            assert again in (Outcome.SAME, Outcome.REFETCH, Outcome.STALE)

    @given(row=rows(), change=plain)
    def test_what_was_performed_and_verified_is_fresh(self, row, change):
        change = replace(change, version=change.version or 1, digest=None if change.action == DELETE else "a")
        outcome, after = rules.offer(row, replace(change, version=9), NOW, young=False)
        if outcome in (Outcome.PENDING, Outcome.COALESCED):
            after.lease_owner, after.lease_until, after.tries = None, 0, 0
            claim, held = rules.claim(after, "w", NOW, 10, 5)
            how = {"action": change.action, "digest": change.digest, "absent": change.action == DELETE}
            _, done = rules.finish(held, Finish(claim, "done", version=9, verified_for_us=5, **how), NOW)
            assert rules.offer(done, replace(change, version=9), NOW, young=False)[0] is Outcome.FRESH


class TestJobLaws:
    @given(row=rows())
    def test_a_claim_raises_the_fence_or_parks(self, row):
        claim, after = rules.claim(row, "w", NOW, 10, 3)
        if row.tries >= 3:
            assert claim is None
            assert (after.state, after.lease_owner, after.fence) == (State.PARKED, None, row.fence)
        else:
            assert (after.fence, after.tries, after.lease_until) == (row.fence + 1, row.tries + 1, NOW + 10)
            assert claim.row.attempted == row.attempted

    @given(row=rows(leased=st.just(False)), result=st.sampled_from(["done", "verified", "retry", "parked", "waits"]))
    def test_only_the_newest_fence_moves_what_is_done(self, row, result):
        row = replace(row, state=State.PENDING, wish_action="upsert", lease_owner=None, lease_until=0, tries=0)
        late, row = rules.claim(row, "late", NOW, 10, 5)
        _, row = rules.claim(row, "holder", NOW + 20, 10, 5)
        accepted, after = rules.finish(row, Finish(late, result, action="upsert", version=1, digest="z"), NOW + 25)
        assert not accepted
        for name in ("done_action", "done_version", "done_digest", "done_at", "lease_owner", "fence"):
            assert getattr(after, name) == getattr(row, name)
        assert (after.state, after.refetch, after.wish) == (State.PENDING, True, row.wish + 1)

    @given(row=rows(), agreed=st.builds(Baseline, st.just(KEY), st.none() | st.integers(0, 99), digests, digests,
                                        version=versions, since_us=st.integers(0, 9)))  # fmt: skip
    def test_a_baseline_never_touches_a_disturbed_row(self, row, agreed):
        after = rules.baseline(row, PAIR, agreed, NOW)
        if not row.undisturbed(NOW):
            assert after is None
        elif after is not None:
            assert (after.state, after.attempted, after.fence) == (State.IDLE, row.attempted, row.fence)
            assert after.revision == row.revision + 1

    @pytest.mark.parametrize(("state", "waits_for"), [("idle", "users [1]"), ("parked", "users [1]"), ("pending", "x")])
    def test_only_a_sleeping_row_is_woken(self, state, waits_for):
        assert rules.wake(Row(PAIR, KEY, State(state), waits_for=waits_for), "users [1]", NOW) is None

    def test_a_row_that_is_due_already_is_not_put_off_by_waking(self):
        row = Row(PAIR, KEY, State.PENDING, waits_for="users [1]", due_at=5)
        assert rules.wake(row, "users [1]", NOW).due_at == 5


class TestRow:
    def test_a_copy_is_equal_and_apart(self):
        row = Row(PAIR, KEY, attempted=((1, "a"),), high=5)
        copy = row.copy()
        assert copy == row
        copy.high = 6
        assert row.high == 5

    def test_every_field_is_copied(self):
        row = Row(PAIR, KEY)
        for number, field in enumerate(fields(Row)):
            setattr(row, field.name, number)
        assert row.copy() == row

    @given(rows())
    def test_what_a_row_wants_is_a_change_like_any_other(self, row):
        change = rules.wanted(row)
        assert vars(change).keys() == {field.name for field in fields(Change)}
        assert replace(change) == change

    def test_a_new_row_starts_above_any_fence_and_revision_ever_issued(self):
        row = new_row(PAIR, KEY, NOW)
        assert row.fence >= NOW
        assert row.revision >= NOW


def _waiting(priority, ready_at, key, pair=PAIR):
    return Waiting(priority, ready_at, 0, pair, key)


class TestUrgency:
    @given(st.lists(st.builds(_waiting, st.integers(0, 5), st.integers(0, 9), st.text("abcdef", max_size=3),
                              st.sampled_from(["p", "q"]))), st.integers(0, 30))  # fmt: skip
    def test_it_takes_as_many_as_it_may_and_none_twice(self, waiting, limit):
        chosen = most_urgent(waiting, limit)
        assert len(chosen) == min(limit, len(set(waiting)))
        assert len(set(chosen)) == len(chosen)
        lowest = [each for each in set(waiting) if each.priority == max(w.priority for w in waiting)]
        assert sum(each in lowest for each in chosen) >= min(lowest_share(limit), len(lowest))

    @given(st.lists(st.builds(_waiting, st.integers(0, 5), st.integers(0, 9), st.text("abcdef", max_size=3)),
                    max_size=30), st.integers(0, 9))  # fmt: skip
    def test_a_small_claim_of_one_pair_takes_the_first(self, waiting, limit):
        assert most_urgent(waiting, limit) == sorted(set(waiting))[:limit]

    @given(st.lists(st.builds(_waiting, st.integers(0, 2), st.integers(0, 9), st.text("abcdef", max_size=3),
                              st.sampled_from(["p", "q"])), max_size=40), st.integers(0, 25))  # fmt: skip
    def test_the_first_of_each_pair_and_its_lowest_suffice(self, waiting, limit):
        """What a store reads is enough: the first `limit` of each pair and a share of its lowest priority."""
        enough = []
        for pair in ("p", "q"):
            of_pair = sorted({each for each in waiting if each.pair == pair})
            lowest = [each for each in of_pair if each.priority == of_pair[-1].priority]
            enough += of_pair[:limit] + lowest[: lowest_share(limit)]
        assert most_urgent(enough, limit) == most_urgent(waiting, limit)
