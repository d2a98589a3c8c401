"""The week-one pair: an authority with a `synced` flag, a function that pushes, no replica to read."""

from __future__ import annotations

from typing import Any

import pytest

from trueup import Reject
from trueup.bound import BoundPair
from trueup.errors import ConfigError
from trueup.model.change import Outcome
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock


class Shop:
    def __init__(self) -> None:
        self.clock = ManualClock()
        rows = [{"id": at, "total": "9.90", "synced": at % 2 == 0, "v": at} for at in range(1, 7)]
        self.orders = Memory(
            rows, key="id", version="v", columns={"total": "decimal", "synced": "boolean"}, clock=self.clock,
            conditions={"not synced": lambda row: not row["synced"]}, stamp=True,
        )  # fmt: skip
        self.project = Project(state="memory:", clock=self.clock, seed=1, threads=1)
        self.pair: BoundPair = self.project.pair(
            "orders", authority=self.orders, unsynced="not synced", mark="synced = true", settle=0
        )
        self.pushed: list[tuple[int, str]] = []

        @self.pair.on_change
        def push(change: Any) -> None:
            if change.values["id"] == 5 and change.values["total"] < 100:
                raise Reject("unknown SKU")
            self.pushed.append((change.values["id"], change.id))


def test_the_first_run_pushes_what_is_unsynced_and_creates_no_rows_for_the_rest() -> None:
    shop = Shop()
    report = shop.pair.run()
    assert sorted(ident for ident, _ in shop.pushed) == [1, 3]
    assert (report.counts["unsynced"], report.counts["jobs_done"], report.counts["parked"]) == (3, 2, 1)
    assert report.exit_code == 1
    assert shop.project.ledger.rows("orders", ['["2"]']) == {}
    assert shop.orders.get(1)["synced"] is True


def test_what_was_pushed_is_not_pushed_again_although_mark_moved_its_version() -> None:
    shop = Shop()
    shop.pair.run()
    shop.pushed.clear()
    shop.pair.run()
    assert shop.pushed == []


def test_a_record_unsynced_for_a_month_is_found_at_any_age() -> None:
    shop = Shop()
    shop.pair.run()
    shop.clock.advance(30 * 86_400)
    shop.orders.put({"id": 2, "synced": False})
    shop.pushed.clear()
    shop.pair.run()
    assert [ident for ident, _ in shop.pushed] == [2]


def test_changed_since_the_last_run_is_pushed() -> None:
    shop = Shop()
    shop.pair.run()
    shop.pushed.clear()
    shop.orders.put({"id": 4, "total": "20"})
    report = shop.pair.run()
    assert [ident for ident, _ in shop.pushed] == [4]
    assert report.counts["changed_pending"] == 1


def test_a_rejected_record_stays_parked_until_it_changes() -> None:
    shop = Shop()
    shop.pair.run()
    assert shop.pair.run().counts["parked"] == 1
    shop.orders.put({"id": 5, "total": "500"})
    report = shop.pair.run()
    assert 5 in [ident for ident, _ in shop.pushed]
    assert report.counts["parked"] == 0
    assert report.exit_code == 0


def test_a_record_that_is_no_longer_unsynced_when_its_turn_comes_is_not_pushed() -> None:
    shop = Shop()
    shop.pair.run(enqueue=True)
    shop.orders.put({"id": 1, "synced": True})
    shop.project.worker().drain(0)
    assert 1 not in [ident for ident, _ in shop.pushed]


def test_the_live_path_pushes_once() -> None:
    shop = Shop()
    shop.pair.run()
    shop.pushed.clear()
    shop.orders.put({"id": 8, "total": "7", "synced": False})
    assert shop.pair.offer(shop.orders.get(8)) == [Outcome.PENDING]
    shop.project.worker().drain(0)
    shop.pair.run()
    assert [ident for ident, _ in shop.pushed] == [8]


def test_a_pair_without_replica_can_not_be_adopted() -> None:
    with pytest.raises(ConfigError, match="no replica to adopt"):
        Shop().pair.adopt()
