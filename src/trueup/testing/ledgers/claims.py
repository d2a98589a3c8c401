"""Who may work on what, in which order, and for how long."""

from __future__ import annotations

import pytest

from trueup.model.change import Origin, Outcome
from trueup.model.row import State
from trueup.testing.ledgers.driving import KEY, MINUTE_US, PAIR, Driven, Driver


def _key(name: object) -> str:
    return f'["{name}"]'


class ClaimContract(Driven):
    """Claims, leases, fences and intents."""

    def test_nothing_wanted_is_nothing_claimed(self, on: Driver) -> None:
        on.done(1)
        assert on.claims(limit=10) == []

    def test_a_claim_says_what_is_wanted(self, on: Driver) -> None:
        on.offer(7, "g", action="registered", payload='{"a":"7"}', origin=Origin.SWEEP)
        change = on.claim().change
        wanted = (change.pair, change.key, change.action, change.version, change.digest, change.payload)
        assert wanted == (PAIR, KEY, "registered", 7, "g", '{"a":"7"}')
        assert (change.origin, change.wish) == (Origin.SWEEP, 1)

    def test_a_claim_adds_one_to_fence_and_tries_before_any_work(self, on: Driver) -> None:
        on.offer(1)
        before = on.row()
        claim = on.claim(lease_us=MINUTE_US, owner="me")
        row = on.row()
        assert (row.fence, row.tries) == (before.fence + 1, before.tries + 1) == (claim.fence, 1)
        assert (row.lease_owner, row.lease_until) == ("me", on.clock.now_us() + MINUTE_US)
        assert (claim.lease_until, claim.claimed_at) == (row.lease_until, on.clock.now_us())

    def test_a_leased_record_is_not_claimed_again(self, on: Driver) -> None:
        on.offer(1)
        on.claim()
        assert on.claims() == []
        assert on.claims(keys=[KEY]) == []

    def test_an_expired_lease_comes_back_with_a_higher_fence(self, on: Driver) -> None:
        on.offer(1)
        first = on.claim(lease_us=MINUTE_US)
        on.clock.advance(59.999_999)
        assert on.claims() == []
        on.clock.advance(0.000_001)
        second = on.claim()
        assert second.fence == first.fence + 1
        assert second.row.tries == 2

    def test_only_the_pairs_asked_for_are_claimed(self, on: Driver) -> None:
        on.offer(1)
        assert on.claims(limit=10, pairs=("refunds",)) == []

    def test_the_limit_holds(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=_key(n)) for n in range(5)])
        assert len(on.claims(limit=3)) == 3
        assert len(on.claims(limit=3)) == 2

    def test_the_most_urgent_come_first_then_the_longest_due(self, on: Driver) -> None:
        for name, origin in [("b", Origin.BACKFILL), ("s", Origin.SWEEP), ("e2", Origin.EVENT), ("e1", Origin.EVENT),
                             ("r", Origin.REVIEW), ("c", Origin.COMPARE)]:  # fmt: skip
            on.offer(1, key=_key(name), origin=origin)
            on.clock.advance(1)
        order = [claim.change.key for claim in on.claims(limit=9)]
        assert order == [_key(name) for name in ("e2", "e1", "r", "s", "c", "b")]

    def test_a_small_share_goes_to_the_lowest_priority_that_waits(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=_key(f"b{n}"), origin=Origin.BACKFILL) for n in range(9)])
        on.ledger.offer([on.change(key=_key(f"e{n}"), origin=Origin.EVENT) for n in range(99)])
        origins = [claim.change.origin for claim in on.claims(limit=20)]
        assert origins == [Origin.EVENT] * 18 + [Origin.BACKFILL] * 2

    def test_small_claims_are_all_urgent(self, on: Driver) -> None:
        on.offer(1, key=_key("b"), origin=Origin.BACKFILL)
        on.ledger.offer([on.change(key=_key(f"e{n}"), origin=Origin.EVENT) for n in range(99)])
        assert {claim.change.origin for claim in on.claims(limit=9)} == {Origin.EVENT}

    def test_those_that_are_no_events_are_claimed_only_as_far_as_asked_for(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=_key(f"b{n}"), origin=Origin.BACKFILL) for n in range(50)])
        on.ledger.offer([on.change(key=_key(f"e{n}"), origin=Origin.EVENT) for n in range(5)])
        assert len(on.claims(limit=20, others=0)) == 5
        assert on.claims(limit=20, others=0) == []
        assert len(on.claims(limit=20, others=3)) == 3
        assert len(on.claims(limit=20)) == 20

    def test_pairs_take_turns(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=_key(n)) for n in range(50)])
        on.clock.advance(1)
        on.ledger.offer([on.change(key=_key(n), pair="refunds") for n in range(50)])
        pairs = [claim.change.pair for claim in on.claims(limit=8, pairs=(PAIR, "refunds"))]
        assert pairs.count(PAIR) == pairs.count("refunds") == 4

    def test_what_is_not_due_is_not_claimed(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(), "retry", delay_us=MINUTE_US)
        assert on.claims() == []
        assert on.ledger.next_due_us([PAIR]) == on.clock.now_us() + MINUTE_US
        on.clock.advance(60)
        assert len(on.claims()) == 1

    def test_named_keys_are_claimed_due_or_not(self, on: Driver) -> None:
        on.offer(1)
        on.offer(1, key=_key("other"))
        on.finish(on.claim(keys=[KEY]), "retry", delay_us=MINUTE_US)
        assert on.claim(keys=[KEY, _key("unknown")], limit=5).change.key == KEY

    def test_the_limit_holds_for_named_keys(self, on: Driver) -> None:
        on.ledger.offer([on.change(key=_key(n)) for n in range(3)])
        assert [claim.change.key for claim in on.claims(keys=[_key(2), _key(0)], limit=1)] == [_key(2)]

    def test_a_parked_record_is_not_claimed_by_name(self, on: Driver) -> None:
        on.parked(1)
        assert on.claims(keys=[KEY]) == []

    def test_spent_tries_park_the_record_with_its_last_error(self, on: Driver) -> None:
        on.offer(1)
        for _ in range(3):
            on.finish(on.claim(tries_max=3), "retry", reason="timeout")
        assert on.claims(tries_max=3) == []
        row = on.row()
        assert (row.state, row.park_reason, row.rejected, row.lease_owner) == (State.PARKED, "timeout", False, None)

    def test_records_behind_those_that_must_be_parked_are_claimed(self, on: Driver) -> None:
        on.offer(1)
        on.finish(on.claim(tries_max=1), "retry", reason="timeout")
        on.clock.advance(1)
        on.offer(1, key=_key("behind"))
        assert on.claim(tries_max=1, limit=1).change.key == _key("behind")

    def test_C097_a_job_that_kills_its_worker_ends_after_its_tries(self, on: Driver) -> None:
        """Given P, which kills its worker, and five others, P is tried three times and parked; the others are done."""
        on.offer(1, key=_key("P"))
        on.clock.advance(1)
        on.ledger.offer([on.change(key=_key(n)) for n in range(1, 6)])
        deliveries, finished = 0, 0
        for _ in range(30):
            for claim in on.claims(limit=1, tries_max=3, lease_us=MINUTE_US):
                if claim.change.key == _key("P"):
                    deliveries += 1  # SIGKILL: the worker never says how it ended
                    assert on.row(_key("P")).tries == deliveries
                else:
                    finished += on.finish(claim)
            on.clock.advance(20)
        assert (deliveries, finished) == (3, 5)
        row = on.row(_key("P"))
        assert row.state is State.PARKED
        assert row.park_reason is not None
        assert row.park_reason.startswith("worker died")

    def test_a_job_that_kills_its_worker_does_not_use_up_the_tries_of_its_batch(self, on: Driver) -> None:
        """Given P, which kills its worker, claimed in one batch with five others, I expect only P to be parked."""
        on.ledger.offer([on.change(key=_key(n)) for n in ("P", 1, 2, 3, 4, 5)])
        finished = 0
        for _ in range(30):
            claims = on.claims(limit=10, tries_max=3, lease_us=MINUTE_US)
            if all(claim.change.key != _key("P") for claim in claims):
                finished += sum(on.finish(claim) for claim in claims)
            on.clock.advance(70)
        assert finished == 5
        assert on.row(_key("P")).state is State.PARKED

    def test_C094_a_record_whose_worker_was_killed_is_claimed_when_the_lease_ends(self, on: Driver) -> None:
        """Given a worker killed at t5 under a lease of 60 s, a later offer waits, is not lost, and runs by t65."""
        on.offer(1)
        on.clock.advance(5)
        on.claim(lease_us=60_000_000)
        on.clock.advance(5)
        assert on.offer(2, "b") is Outcome.COALESCED
        assert on.claims() == []
        assert on.ledger.counts(PAIR)["pending"] == 1
        on.clock.advance(55)
        assert on.claim().change.version == 2

    # ── intents and leases ────────────────────────────────────────────────────────────────────────────

    def test_the_claim_stores_the_intended_digest(self, on: Driver) -> None:
        on.offer(1, "a")
        claim = on.claim()
        assert on.row().attempted == ((claim.fence, "a"),)
        assert claim.row.attempted == ()

    @pytest.mark.parametrize("how", ["refetch", "verify", "delete"])
    def test_the_claim_stores_no_digest_that_is_not_yet_known(self, on: Driver, how: str) -> None:
        if how == "verify":
            on.done(1, verified_for_us=0)
            on.offer(1)
        else:
            on.offer(*((None, None) if how == "refetch" else (1, None, "delete")))
        on.claim()
        assert on.row().attempted == ()

    def test_an_attempt_stores_the_digest_while_the_lease_holds(self, on: Driver) -> None:
        on.offer(None, None)
        claim = on.claim()
        revision = on.row().revision
        assert on.ledger.attempt([(claim, "x"), (claim, "x"), (claim, "y")]) == [True, True, True]
        assert on.row().attempted == ((claim.fence, "x"), (claim.fence, "y"))
        assert on.row().revision > revision

    def test_an_attempt_is_refused_when_the_lease_ran_out(self, on: Driver) -> None:
        on.offer(None, None)
        claim = on.claim(lease_us=MINUTE_US)
        on.clock.advance(60)
        assert on.ledger.attempt([(claim, "x")]) == [False]
        assert on.row().attempted == ()

    def test_an_attempt_is_refused_when_another_holds_the_record(self, on: Driver) -> None:
        on.offer(None, None)
        late = on.claim()
        on.clock.advance(61)
        holder = on.claim()
        assert on.ledger.attempt([(late, "x"), (holder, "y")]) == [False, True]
        assert on.row().attempted == ((holder.fence, "y"),)

    def test_the_newest_sixteen_intents_are_kept_and_evictions_counted(self, on: Driver) -> None:
        on.offer(None, None)
        claim = on.claim()
        on.ledger.attempt([(claim, f"d{n}") for n in range(20)])
        row = on.row()
        assert row.attempted == tuple((claim.fence, f"d{n}") for n in range(4, 20))
        assert row.evicted == 4

    def test_renewal_extends_the_lease(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim(lease_us=MINUTE_US)
        on.clock.advance(40)
        assert on.ledger.renew([claim], MINUTE_US) == [True]
        on.clock.advance(59)
        assert on.claims() == []
        assert on.finish(claim)

    def test_renewal_is_refused_when_the_lease_ran_out(self, on: Driver) -> None:
        on.offer(1)
        claim = on.claim(lease_us=MINUTE_US)
        on.clock.advance(60)
        assert on.ledger.renew([claim], MINUTE_US) == [False]

    def test_renewal_is_refused_when_another_holds_the_record(self, on: Driver) -> None:
        on.offer(1)
        late = on.claim()
        on.clock.advance(61)
        holder = on.claim()
        assert on.ledger.renew([late, holder], MINUTE_US) == [False, True]

    def test_C087_a_late_release_frees_nobody_elses_lease(self, on: Driver) -> None:
        """Given A (t0, 10 s) and B (t11), A's release at t12 is refused and C gets nothing while B works."""
        on.offer(1)
        a = on.claim(lease_us=10_000_000, owner="A")
        on.clock.advance(11)
        b = on.claim(lease_us=9_000_000, owner="B")
        on.clock.advance(1)
        assert not on.finish(a)
        assert on.claims(owner="C") == []
        on.clock.advance(7)
        assert on.ledger.attempt([(b, "b")]) == [True]
        on.clock.advance(1)
        assert on.claim(owner="C").fence == b.fence + 1

    def test_C090_ownership_is_the_fence_not_local_time(self, on: Driver) -> None:
        """Given A (1 s, t0) and B (t5 to t60), A's release at t30 is refused and B's at t60 accepted."""
        on.offer(1)
        a = on.claim(lease_us=1_000_000, owner="A")
        on.clock.advance(5)
        b = on.claim(lease_us=55_000_000, owner="B")
        on.clock.advance(25)
        assert not on.finish(a)
        on.clock.advance(29.9)
        assert on.claims(owner="C") == []
        on.clock.advance(0.1)
        assert on.finish(b)
