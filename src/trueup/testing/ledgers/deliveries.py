"""Deliveries: each part of one is judged once, whoever brings it again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from trueup.model.change import Change, Outcome
from trueup.testing.ledgers.driving import KEY, PAIR, Driven, Driver

DAY_S = 86_400.0


class DeliveryContract(Driven):
    """What becomes of a change whose delivery has a name."""

    def test_a_delivery_is_judged_once(self, on: Driver) -> None:
        assert on.offer(None, None, delivery="shop/1") is Outcome.REFETCH
        row = on.row()
        assert on.offer(None, None, delivery="shop/1") is Outcome.REPEATED
        assert on.row() == row

    def test_another_delivery_of_the_same_change_is_judged(self, on: Driver) -> None:
        on.offer(None, None, delivery="shop/1")
        assert on.offer(None, None, delivery="shop/2") is Outcome.REFETCH
        assert on.offer(None, None) is Outcome.REFETCH

    def test_a_delivery_is_known_by_its_name_not_by_what_it_says(self, on: Driver) -> None:
        on.offer(1, delivery="shop/1")
        assert on.offer(2, key='["43"]', delivery="shop/1") is Outcome.REPEATED
        assert on.ledger.rows(PAIR, ['["43"]']) == {}

    def test_a_delivery_twice_in_a_batch_is_judged_once(self, on: Driver) -> None:
        changes = [on.change(None, None, delivery=name) for name in ("a", "b", "a")]
        assert on.ledger.offer(changes) == [Outcome.REFETCH, Outcome.REFETCH, Outcome.REPEATED]

    def test_a_delivery_that_was_stale_is_repeated_all_the_same(self, on: Driver) -> None:
        on.done(5)
        assert on.offer(4, delivery="shop/1") is Outcome.STALE
        assert on.offer(4, delivery="shop/1") is Outcome.REPEATED

    def test_a_delivery_is_remembered_after_its_job_is_done(self, on: Driver) -> None:
        on.offer(1, delivery="shop/1")
        on.finish(on.claim())
        on.clock.advance(2 * DAY_S)
        assert on.offer(1, delivery="shop/1") is Outcome.REPEATED
        assert on.claims() == []

    def test_a_delivery_is_forgotten_after_three_days(self, on: Driver) -> None:
        on.offer(1, delivery="shop/1")
        on.clock.advance(DAY_S)
        on.offer(2, delivery="shop/2")
        on.clock.advance(2 * DAY_S)
        assert on.offer(3, delivery="shop/1") is Outcome.COALESCED
        assert on.offer(3, delivery="shop/2") is Outcome.REPEATED

    def test_the_history_names_the_delivery(self, on: Driver) -> None:
        on.offer(1, delivery="shop/1")
        on.offer(1, delivery="shop/1")
        said = [detail for _, what, detail in on.ledger.history(PAIR, KEY) if what == "offered"]
        assert [detail.partition(":")[0] for detail in said] == ["pending", "repeated"]
        assert all(detail.endswith("delivery shop/1") for detail in said)

    def test_copies_that_come_at_once_are_judged_once(self, on: Driver) -> None:
        def copies(at: int) -> Sequence[Change]:
            return [on.change(None, None, key=f'["{at}"]', delivery=f"shop/{at}")]

        with ThreadPoolExecutor(5) as threads:
            for at in range(10):
                outcomes = [found for [found] in threads.map(on.ledger.offer, [copies(at)] * 5)]
                assert sorted(outcomes) == [Outcome.REFETCH] + [Outcome.REPEATED] * 4
