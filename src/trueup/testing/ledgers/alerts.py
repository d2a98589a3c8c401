"""What people were told, and pulses: kept, claimed by one, and never taken back by whoever was replaced."""

from __future__ import annotations

from trueup.model.alert import delivered, undelivered
from trueup.model.condition import Condition, Severity
from trueup.model.pulse import Pulse
from trueup.ports import Archive
from trueup.testing.clock import ManualClock

LEASE_US = 60_000_000
OVERDUE = Condition("overdue", "ördérs", Severity.CRITICAL, "nobody 'starts' it\n", "trueup serve", 2**60)
PAUSED = Condition("paused", "erp", Severity.WARNING, "held", "trueup resume erp")
NEWS = ((OVERDUE,), ())


class AlertContract:
    """What becomes of messages. A subclass brings `archive` and its `clock`."""

    def test_a_target_that_was_told_nothing_knows_nothing(self, archive: Archive) -> None:
        found = archive.tellings(["a", "b"])
        assert set(found) == {"a", "b"}
        assert (found["a"].known, found["a"].outgoing, found["a"].told_us) == ({}, None, None)

    def test_a_message_is_kept_before_it_is_sent(self, archive: Archive, clock: ManualClock) -> None:
        taken = archive.claim_telling(archive.tellings(["a"])["a"], NEWS, "me", LEASE_US)
        assert taken is not None
        assert taken.outgoing is not None
        assert (taken.outgoing.began, taken.outgoing.at_us) == ((OVERDUE,), clock.now_us())
        assert archive.tellings(["a"])["a"] == taken

    def test_what_arrived_is_known(self, archive: Archive, clock: ManualClock) -> None:
        taken = archive.claim_telling(archive.tellings(["a"])["a"], ((OVERDUE, PAUSED), ()), "me", LEASE_US)
        assert taken is not None
        assert archive.end_telling(delivered(taken, clock.now_us()))
        found = archive.tellings(["a"])["a"]
        assert (found.known, found.outgoing) == ({OVERDUE.ident: OVERDUE, PAUSED.ident: PAUSED}, None)
        assert (found.told_us, found.owner) == (clock.now_us(), "")

    def test_a_recovery_is_forgotten_once_told(self, archive: Archive, clock: ManualClock) -> None:
        for some in (NEWS, ((), (OVERDUE,))):
            taken = archive.claim_telling(archive.tellings(["a"])["a"], some, "me", LEASE_US)
            assert taken is not None
            assert archive.end_telling(delivered(taken, clock.now_us()))
        assert archive.tellings(["a"])["a"].known == {}

    def test_one_of_two_that_saw_the_same_tells(self, archive: Archive) -> None:
        seen = archive.tellings(["a"])["a"]
        assert archive.claim_telling(seen, NEWS, "first", LEASE_US) is not None
        assert archive.claim_telling(seen, NEWS, "second", LEASE_US) is None
        # Not even by a fresh look, while the first one is at it.
        assert archive.claim_telling(archive.tellings(["a"])["a"], NEWS, "second", LEASE_US) is None

    def test_what_a_dead_sender_left_is_sent_by_another(self, archive: Archive, clock: ManualClock) -> None:
        first = archive.claim_telling(archive.tellings(["a"])["a"], NEWS, "first", LEASE_US)
        assert first is not None
        clock.advance(LEASE_US / 1e6)
        second = archive.claim_telling(archive.tellings(["a"])["a"], ((), ()), "second", LEASE_US)
        assert second is not None
        assert second.outgoing == first.outgoing
        assert second.fence > first.fence
        assert not archive.end_telling(delivered(first, clock.now_us()))
        assert archive.tellings(["a"])["a"] == second
        assert archive.end_telling(delivered(second, clock.now_us()))

    def test_a_failure_is_counted_and_waits(self, archive: Archive, clock: ManualClock) -> None:
        taken = archive.claim_telling(archive.tellings(["a"])["a"], NEWS, "me", LEASE_US)
        assert taken is not None
        assert archive.end_telling(undelivered(taken, "no answer \0", clock.now_us(), 1.0))
        found = archive.tellings(["a"])["a"]
        assert (found.tries, found.failed, found.outgoing) == (1, 1, taken.outgoing)
        assert archive.claim_telling(found, NEWS, "me", LEASE_US) is None
        clock.advance((found.ready_us - clock.now_us()) / 1e6)
        assert archive.claim_telling(found, NEWS, "me", LEASE_US) is not None

    def test_targets_are_told_apart(self, archive: Archive) -> None:
        assert archive.claim_telling(archive.tellings(["a"])["a"], NEWS, "me", LEASE_US) is not None
        assert archive.tellings(["b"])["b"].outgoing is None

    # ── pulses ───────────────────────────────────────────────────────────────────────────────────────

    def test_the_last_event_of_each_pair_is_known(self, archive: Archive, clock: ManualClock) -> None:
        assert archive.pulses(["orders"]) == {"orders": Pulse("orders")}
        archive.hear(["orders", "refunds", "orders"])
        clock.advance(7)
        archive.hear(["orders"])
        found = archive.pulses(["orders", "refunds", "users"])
        now_us = clock.now_us()
        assert {pair: each.event_us for pair, each in found.items()} == {
            "orders": now_us, "refunds": now_us - 7_000_000, "users": None,
        }  # fmt: skip

    def test_pings_that_fail_are_counted_until_one_arrives(self, archive: Archive) -> None:
        archive.note_ping("orders", None)
        for _ in range(3):
            archive.note_ping("orders", "no answer")
        assert archive.pulses(["orders"])["orders"] == Pulse("orders", None, 3, 3, "no answer")
        archive.note_ping("orders", None)
        archive.note_ping("orders", "refused")
        assert archive.pulses(["orders"])["orders"] == Pulse("orders", None, 4, 1, "refused")
        archive.hear(["orders"])
        assert archive.pulses(["orders"])["orders"].pings_failed == 4
