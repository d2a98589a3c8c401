"""What people were told, and pulses: kept, claimed by one, and never taken back by whoever was replaced."""

from __future__ import annotations

from trueup.model import alert as rules
from trueup.model.alert import News, Telling, delivered
from trueup.model.condition import Condition, Severity
from trueup.model.handover import failed
from trueup.model.pulse import Pulse
from trueup.ports import Archive
from trueup.testing.clock import ManualClock

LEASE_US = 60_000_000
OVERDUE = Condition("overdue", "ördérs", Severity.CRITICAL, "nobody 'starts' it\n", "trueup serve", 2**60)
PAUSED = Condition("paused", "erp", Severity.WARNING, "held", "trueup resume erp")
NEWS = ((OVERDUE,), ())


def claim(archive: Archive, owner: str, some: News, seen: Telling | None = None) -> Telling | None:
    """The target `a` as this one claims it, who saw it like this; by default as it is."""
    seen = seen or archive.targets.known(["a"])["a"]
    return archive.targets.claim(seen, lambda stored, at_us: rules.claim(stored, some, owner, at_us, LEASE_US))


class AlertContract:
    """What becomes of messages. A subclass brings `archive` and its `clock`."""

    def test_a_target_that_was_told_nothing_knows_nothing(self, archive: Archive) -> None:
        found = archive.targets.known(["a", "b"])
        assert set(found) == {"a", "b"}
        assert (found["a"].known, found["a"].outgoing, found["a"].arrived_us) == ({}, None, None)

    def test_a_message_is_kept_before_it_is_sent(self, archive: Archive, clock: ManualClock) -> None:
        taken = claim(archive, "me", NEWS)
        assert taken is not None
        assert taken.outgoing is not None
        assert (taken.outgoing.began, taken.outgoing.at_us) == ((OVERDUE,), clock.now_us())
        assert archive.targets.known(["a"])["a"] == taken

    def test_what_arrived_is_known(self, archive: Archive, clock: ManualClock) -> None:
        taken = claim(archive, "me", ((OVERDUE, PAUSED), ()))
        assert taken is not None
        assert archive.targets.end(delivered(taken, clock.now_us()))
        found = archive.targets.known(["a"])["a"]
        assert (found.known, found.outgoing) == ({OVERDUE.ident: OVERDUE, PAUSED.ident: PAUSED}, None)
        assert (found.arrived_us, found.owner) == (clock.now_us(), "")

    def test_a_recovery_is_forgotten_once_told(self, archive: Archive, clock: ManualClock) -> None:
        for some in (NEWS, ((), (OVERDUE,))):
            taken = claim(archive, "me", some)
            assert taken is not None
            assert archive.targets.end(delivered(taken, clock.now_us()))
        assert archive.targets.known(["a"])["a"].known == {}

    def test_one_of_two_that_saw_the_same_tells(self, archive: Archive) -> None:
        seen = archive.targets.known(["a"])["a"]
        assert claim(archive, "first", NEWS, seen) is not None
        assert claim(archive, "second", NEWS, seen) is None
        # Not even by a fresh look, while the first one is at it.
        assert claim(archive, "second", NEWS) is None

    def test_what_a_dead_sender_left_is_sent_by_another(self, archive: Archive, clock: ManualClock) -> None:
        first = claim(archive, "first", NEWS)
        assert first is not None
        clock.advance(LEASE_US / 1e6)
        second = claim(archive, "second", ((), ()))
        assert second is not None
        assert second.outgoing == first.outgoing
        assert second.fence > first.fence
        assert not archive.targets.end(delivered(first, clock.now_us()))
        assert archive.targets.known(["a"])["a"] == second
        assert archive.targets.end(delivered(second, clock.now_us()))

    def test_a_failure_is_counted_and_waits(self, archive: Archive, clock: ManualClock) -> None:
        taken = claim(archive, "me", NEWS)
        assert taken is not None
        assert archive.targets.end(failed(taken, "no answer \0", clock.now_us(), 1.0))
        found = archive.targets.known(["a"])["a"]
        assert (found.tries, found.failed, found.outgoing) == (1, 1, taken.outgoing)
        assert found.ready_us > clock.now_us()
        # A person need not wait.
        assert claim(archive, "me", NEWS, found) is not None

    def test_targets_are_told_apart(self, archive: Archive) -> None:
        assert claim(archive, "me", NEWS) is not None
        assert archive.targets.known(["b"])["b"].outgoing is None

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
