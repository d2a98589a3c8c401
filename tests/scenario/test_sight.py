"""An authority that shows nothing at all is not believed: a login without rights answers success, with no record."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trueup.bound import BoundPair
from trueup.model.record import Found, Projection
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock


class Shop(Memory):
    """Hides what it is told to hide, and calls that success."""

    blind = False
    reads = 0

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        self.reads += 1
        return {} if self.blind else super().read(projection, keys)


class World:
    def __init__(self, rows: int, **options: object) -> None:
        self.clock = ManualClock()
        values = [{"id": number, "name": f"n{number}", "v": 1} for number in range(rows)]
        self.shop = Shop(values, key="id", version="v", clock=self.clock)
        self.erp = Memory([{"id": each["id"], "name": each["name"]} for each in values], key="id", clock=self.clock)
        self.project = Project("memory:", clock=self.clock, seed=1, threads=1)
        self.pair: BoundPair = self.project.pair(
            "orders", authority=self.shop, replica=self.erp, fields=["name"], settle=1, **options
        )
        self.pair.adopt()

    def work(self) -> None:
        """Long enough for every retry, pause and probe."""
        for _ in range(60):
            self.project.worker().drain(1_000_000)
            self.clock.advance(60)

    def on_erp(self, number: int) -> bool:
        return any(row["id"] == number for row in self.erp.rows())


@pytest.mark.parametrize("keys", [[3], [1, 2, 3, 4, 5]])
def test_an_outage_that_looks_like_deletions_deletes_nothing(keys: list[int]) -> None:
    world = World(50)
    world.shop.blind = True
    world.pair.offer([{"id": key} for key in keys])
    world.work()
    assert all(world.on_erp(key) for key in keys)
    health = world.project.budgets.health(world.pair.pair.authority_system)
    assert "shows none of the records that it is known to have" in str(health.reason)
    world.shop.blind = False
    world.work()
    assert world.project.ledger.counts("orders")["pending"] == 0
    assert all(world.on_erp(key) for key in keys)


def test_a_real_deletion_travels_without_a_comparison() -> None:
    world = World(50)
    world.shop.remove(3)
    world.pair.offer({"id": 3})
    world.work()
    assert not world.on_erp(3)
    assert world.on_erp(4)


def test_a_witness_that_vanished_unheard_does_not_stop_the_others() -> None:
    """Given the first thirty gone without an event, I expect the deletion of another to be believed."""
    world = World(50)
    for number in [*range(30), 40]:
        world.shop.remove(number)
    world.pair.offer({"id": 40})
    world.work()
    assert not world.on_erp(40)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_where_hardly_anything_is_known_an_absence_is_believed(rows: int) -> None:
    """Given a small table that was emptied and one event of it, I expect no waiting for ever."""
    world = World(rows)
    for number in range(rows):
        world.shop.remove(number)
    world.pair.offer({"id": 0})
    world.work()
    assert not world.on_erp(0)


def test_an_authority_emptied_in_earnest_goes_on_once_a_comparison_has_been_answered() -> None:
    world = World(20)
    for number in range(20):
        world.shop.remove(number)
    world.pair.offer({"id": 0})
    world.work()
    assert world.on_erp(0)
    world.pair.run("compare")
    while cases := world.project.archive.cases("orders"):
        choice = "approve-plan" if cases[0].drift == "held" else "take-authority"
        world.pair.decide(cases[0].number, choice, person="ann", reason="the shop was closed")
    world.work()
    assert world.erp.rows() == []
    assert world.project.ledger.counts("orders")["pending"] == 0


def test_a_batch_that_shows_one_record_asks_no_witness() -> None:
    world = World(50)
    world.shop.remove(3)
    world.pair.offer([{"id": 3}, {"id": 4}])
    world.shop.reads = 0
    world.project.worker().once(world.project.chance())
    assert world.shop.reads == 1
