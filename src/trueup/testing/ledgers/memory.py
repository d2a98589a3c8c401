"""What the ledger remembers: baselines, parked records, history, counts."""

from __future__ import annotations

import pytest

from trueup.model.change import Outcome
from trueup.model.row import NEVER_US, Baseline, Seen, State
from trueup.testing.ledgers.driving import KEY, MINUTE_US, PAIR, Driven, Driver


class MemoryContract(Driven):
    """Baselines, revival, history, counts and scans."""

    # ── baseline ──────────────────────────────────────────────────────────────────────────────────────

    def test_a_baseline_creates_what_was_never_seen(self, on: Driver) -> None:
        agreed = Baseline(KEY, 0, "a", "r", version=3, verified_for_us=MINUTE_US)
        assert on.ledger.baseline(PAIR, [agreed]) == 1
        row = on.row()
        assert (row.state, row.done_action, row.done_version) == (State.IDLE, "upsert", 3)
        assert (row.done_digest, row.done_replica, row.high) == ("a", "r", 3)
        assert row.verified_until == on.clock.now_us() + MINUTE_US
        assert on.offer(3, "a") is Outcome.FRESH
        assert on.offer(2, "z") is Outcome.STALE

    def test_a_baseline_refreshes_both_ancestors(self, on: Driver) -> None:
        row = on.done(1, repaired=True)
        agreed = Baseline(KEY, row.revision, "a2", "r2", version=2, verified_for_us=5)
        assert on.ledger.baseline(PAIR, [agreed]) == 1
        after = on.row()
        assert (after.done_digest, after.done_replica, after.done_version, after.repairs) == ("a2", "r2", 2, 0)
        assert after.revision > row.revision

    def test_a_baseline_keeps_the_version_where_it_knows_none(self, on: Driver) -> None:
        row = on.done(4)
        on.ledger.baseline(PAIR, [Baseline(KEY, row.revision, "a", "a")])
        assert on.row().done_version == 4
        assert not on.row().unordered

    def test_a_baseline_for_another_revision_is_not_stored(self, on: Driver) -> None:
        row = on.done(1)
        stale = [Baseline(KEY, row.revision - 1, "x", "x"), Baseline(KEY, 0, "x", "x"), Baseline('["9"]', 5, "x", "x")]
        assert on.ledger.baseline(PAIR, stale) == 0
        assert on.row() == row

    @pytest.mark.parametrize("how", ["pending", "leased", "parked"])
    def test_a_baseline_of_a_disturbed_record_is_not_stored(self, on: Driver, how: str) -> None:
        on.offer(1)
        if how != "pending":
            claim = on.claim()
            if how == "parked":
                on.finish(claim, "parked", reason="no")
        row = on.row()
        assert on.ledger.baseline(PAIR, [Baseline(KEY, row.revision, "x", "x")]) == 0
        assert on.row() == row

    def test_a_baseline_of_a_whole_compare_spares_what_was_touched_since(self, on: Driver) -> None:
        on.done(1, key='["before"]')
        on.clock.advance(1)
        since_us = on.ledger.now_us()
        on.done(1, key='["after"]')
        keys = ['["before"]', '["after"]', '["new"]']
        items = [Baseline(key, None, "x", "x", since_us=since_us) for key in keys]
        assert on.ledger.baseline(PAIR, items) == 2
        rows = on.ledger.rows(PAIR, keys)
        assert [rows[key].done_digest for key in keys] == ["x", "a", "x"]

    def test_a_baseline_of_an_absence_is_unordered(self, on: Driver) -> None:
        row = on.done(1)
        on.ledger.baseline(PAIR, [Baseline(KEY, row.revision, None, None, action="delete")])
        assert on.offer(2, "b") is Outcome.REFETCH

    def test_a_baseline_below_the_highest_version_is_unordered(self, on: Driver) -> None:
        row = on.done(5)
        on.ledger.baseline(PAIR, [Baseline(KEY, row.revision, "c", "c", version=3)])
        assert on.row().unordered
        on.ledger.baseline(PAIR, [Baseline(KEY, on.row().revision, "e", "e", version=5)])
        assert not on.row().unordered

    def test_a_baseline_of_many_thousands(self, on: Driver) -> None:
        items = [Baseline(f'["{n}"]', 0, "a", "a", version=1) for n in range(12_000)]
        assert on.ledger.baseline(PAIR, items) == 12_000
        assert on.ledger.counts(PAIR)["idle"] == 12_000
        assert on.ledger.baseline(PAIR, items) == 0

    # ── parked records ────────────────────────────────────────────────────────────────────────────────

    def test_a_parked_record_gets_one_more_try(self, on: Driver) -> None:
        on.parked(1)
        assert on.ledger.revive(PAIR, 5) == 1
        row = on.claim(tries_max=5).row
        assert (row.tries, row.park_reason) == (5, None)

    def test_a_rejected_record_is_not_revived(self, on: Driver) -> None:
        row = on.parked(1, rejected=True)
        assert on.ledger.revive(PAIR, 5) == 0
        assert on.row() == row

    def test_only_the_keys_asked_for_are_revived(self, on: Driver) -> None:
        on.parked(1)
        assert on.ledger.revive(PAIR, 5, ['["other"]']) == 0
        assert on.ledger.revive(PAIR, 5, [KEY]) == 1

    # ── what can be asked ─────────────────────────────────────────────────────────────────────────────

    def test_rows_answers_copies(self, on: Driver) -> None:
        on.done(1)
        on.row().done_digest = "changed by the caller"
        assert on.row().done_digest == "a"

    def test_what_is_as_it_was_left_is_not_told(self, on: Driver) -> None:
        on.ledger.baseline(PAIR, [Baseline(KEY, 0, "a", "r", version=1), Baseline('["2"]', 0, "b", "b", version=1)])
        on.offer(3, key='["2"]')
        left: list[Seen] = [
            (KEY, "upsert", "a", "r"),
            ('["2"]', "upsert", "b", None),
            ('["2"]', None, None, "b"),
            (KEY, None, None, None),
        ]
        assert on.ledger.unlike(PAIR, left) == []
        assert on.ledger.unlike(PAIR, []) == []

    @pytest.mark.parametrize(
        "seen",
        [("drop", "a", "r"), ("upsert", "x", "r"), ("upsert", "a", "x"), ("upsert", "a", ""), ("upsert", "x", None),
         ("upsert\n", "a", None), (None, None, "a"), ("drop", "a", None)],
    )  # fmt: skip
    def test_what_is_unlike_what_was_left_is_told(
        self, on: Driver, seen: tuple[str | None, str | None, str | None]
    ) -> None:
        on.ledger.baseline(PAIR, [Baseline(KEY, 0, "a", "r", version=1)])
        assert on.ledger.unlike(PAIR, [(KEY, "upsert", "a", "r"), (KEY, *seen)]) == [KEY]

    def test_what_the_ledger_knows_nothing_of_is_told(self, on: Driver) -> None:
        on.offer(1, "a", key='["wanted"]')
        on.ledger.baseline(PAIR, [Baseline('["gone"]', 0, None, None, action="delete", verified_for_us=1)])
        keys = ['["wanted"]', '["gone"]', '["never seen"]', '["\\"ä\\n\U0001f600"]']
        for values in (("upsert", "a", None), (None, None, "a")):
            assert sorted(on.ledger.unlike(PAIR, [(key, *values) for key in keys])) == sorted(keys)
        assert on.ledger.unlike("another", [('["gone"]', None, None, None)]) == ['["gone"]']

    def test_an_order_that_is_not_known_leaves_nothing_sure_of_the_authority(self, on: Driver) -> None:
        on.done(5)
        on.ledger.baseline(PAIR, [Baseline(KEY, on.row().revision, "c", "c", version=3)])
        assert on.row().unordered
        assert on.ledger.unlike(PAIR, [(KEY, "upsert", "c", None)]) == [KEY]
        assert on.ledger.unlike(PAIR, [(KEY, None, None, "c")]) == []

    def test_of_many_records_those_that_moved_are_told(self, on: Driver) -> None:
        items = [Baseline(f'["{n}"]', 0, f"a{n}", f"r{n}", version=1) for n in range(3_000)]
        on.ledger.baseline(PAIR, items)
        told: list[Seen] = [
            (item.key, "upsert", item.digest, f"r{n if n % 100 else 0}") for n, item in enumerate(items)
        ]
        assert sorted(on.ledger.unlike(PAIR, told)) == sorted(items[n].key for n in range(100, 3_000, 100))

    def test_counts_by_state(self, on: Driver) -> None:
        for n in range(3):
            on.done(1, key=f'["done {n}"]')
        on.parked(1)
        on.clock.advance(1)
        on.offer(1, key='["waits"]')
        due_us = on.clock.now_us()
        on.clock.advance(1)
        on.offer(1, key='["leased"]')
        on.claim(keys=['["leased"]'])
        expected = {"idle": 3, "pending": 2, "parked": 1, "leased": 1, "oldest_due_us": due_us}
        assert on.ledger.counts(PAIR) == expected
        del expected["idle"]
        assert on.ledger.busy(PAIR) == expected

    def test_counts_of_nothing(self, on: Driver) -> None:
        assert on.ledger.counts("none") == {"idle": 0, "pending": 0, "parked": 0, "leased": 0}
        assert on.ledger.busy("none") == {"pending": 0, "parked": 0, "leased": 0}

    def test_scan_by_state(self, on: Driver) -> None:
        on.done(1, key='["done"]')
        on.parked(1)
        on.offer(1, key='["waits"]')
        found = {
            where: [row.key for rows in on.ledger.scan(PAIR, where) for row in rows]
            for where in ("all", "pending", "parked")
        }
        assert found == {"all": [KEY, '["done"]', '["waits"]'], "pending": ['["waits"]'], "parked": [KEY]}

    def test_scan_of_many_thousands_gives_each_row_once(self, on: Driver) -> None:
        keys = [f'["{n}"]' for n in range(2_500)]
        on.ledger.offer([on.change(key=key) for key in keys])
        for where in ("all", "pending"):
            assert [row.key for rows in on.ledger.scan(PAIR, where) for row in rows] == sorted(keys)

    def test_due_are_the_pairs_with_a_record_to_claim_now(self, on: Driver) -> None:
        pairs = ["refunds", PAIR]
        assert on.ledger.due(pairs) == []
        on.offer(1)
        assert on.ledger.due(pairs) == [PAIR]
        assert on.ledger.due(["refunds"]) == []
        claim = on.claim()
        assert on.ledger.due(pairs) == []
        on.clock.advance((claim.lease_until - on.clock.now_us()) / 1e6)
        assert on.ledger.due(pairs) == [PAIR]
        on.finish(on.claim(), "parked")
        assert on.ledger.due(pairs) == []

    def test_next_due(self, on: Driver) -> None:
        assert on.ledger.next_due_us([PAIR]) is None
        on.offer(1)
        assert on.ledger.next_due_us([PAIR]) == on.clock.now_us()
        claim = on.claim(lease_us=MINUTE_US)
        assert on.ledger.next_due_us([PAIR, "refunds"]) == claim.lease_until
        on.finish(claim)
        assert on.ledger.next_due_us([PAIR]) is None

    def test_a_pair_is_young_until_it_is_settled(self, young: Driver) -> None:
        assert not young.ledger.settled(PAIR)
        young.ledger.settle(PAIR)
        young.ledger.settle(PAIR)
        assert young.ledger.settled(PAIR)
        assert not young.ledger.settled("refunds")

    def test_history_tells_offers_claims_and_finishes_oldest_first(self, on: Driver) -> None:
        start_us = on.clock.now_us()
        on.offer(2, "b" * 32)
        on.clock.advance(1)
        claim = on.claim(owner="me")
        on.clock.advance(0.25)
        on.finish(claim, "retry", reason="timeout")
        on.offer(1, "a")
        told = on.ledger.history(PAIR, KEY)
        assert told == [
            (start_us, "offered", "pending: upsert version 2 digest bbbbbbbb from event"),
            (start_us + 1_000_000, "claimed", f"try 1 by me, fence {claim.fence}"),
            (start_us + 1_250_000, "finished", f"retry after 0.250 s, fence {claim.fence}: timeout"),
            (start_us + 1_250_000, "offered", "stale: upsert version 1 digest a from event"),
        ]
        assert on.ledger.history(PAIR, KEY, limit=1) == told[-1:]
        assert on.ledger.history(PAIR, '["unknown"]') == []

    def test_history_tells_a_refused_finish(self, on: Driver) -> None:
        on.offer(1)
        late = on.claim()
        on.clock.advance(61)
        on.finish(on.claim())
        on.finish(late)
        assert on.ledger.history(PAIR, KEY)[-1][1] == "refused"

    def test_history_is_bounded(self, on: Driver) -> None:
        on.done(1_000)
        on.ledger.offer([on.change(version) for version in range(730)])
        told = on.ledger.history(PAIR, KEY, limit=1_000)
        assert len(told) == 200
        assert told[-1][2].startswith("stale: upsert version 729")

    def test_history_is_forgotten_by_age(self, on: Driver) -> None:
        on.done(1)
        on.clock.advance(10)
        since_us = on.clock.now_us()
        on.offer(1)
        assert on.ledger.prune(since_us) == 3
        assert [at for at, _, _ in on.ledger.history(PAIR, KEY)] == [since_us]
        assert on.ledger.prune(since_us) == 0
        assert on.row().done_version == 1

    def test_history_of_many_is_forgotten(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=f'["{n}"]') for n in range(12_000)])
        on.clock.advance(1)
        on.offer(1)
        assert on.ledger.prune(on.clock.now_us()) == 12_000
        assert on.ledger.prune(on.clock.now_us() + 1) == 1

    def test_history_never_tells_values(self, on: Driver) -> None:
        on.offer(1, payload='{"card":"4111 1111"}')
        on.finish(on.claim())
        assert "4111" not in str(on.ledger.history(PAIR, KEY))

    def test_a_confirmed_offer_clears_what_was_verified(self, on: Driver) -> None:
        row = on.done(1)
        on.offer(1, judged_revision=row.revision)
        assert on.row().verified_until == NEVER_US
