"""The contract of every `Budgets`: subclass it with a fixture `make` that answers budgets by a clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from trueup.model.budget import Limit, System
from trueup.ports import Budgets, Clock
from trueup.testing.clock import ManualClock

MINUTE_US = 60_000_000
API = System("api", (Limit(60, MINUTE_US),), reserve=0.5)


class BudgetsContract:
    """What every store of budgets promises."""

    @pytest.fixture
    def make(self) -> Callable[[Clock], Budgets]:
        """Answers empty budgets that go by this clock."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def budgets(self, make: Callable[[Clock], Budgets], clock: ManualClock) -> Budgets:
        return make(clock)

    @staticmethod
    def take(budgets: Budgets, system: System = API, *, urgent: bool = True, call: str = "t", cost: float = 1) -> int:
        return budgets.take(system, cost, urgent=urgent, call=call, call_us=MINUTE_US)

    def test_no_window_of_the_period_holds_more_than_the_limit(self, budgets: Budgets, clock: ManualClock) -> None:
        granted: list[int] = []
        for _ in range(600):
            if self.take(budgets) == 0:
                granted.append(clock.now_us())
            clock.advance(0.4)
        assert len(granted) > 120
        assert all(sum(at <= each < at + MINUTE_US for each in granted) <= 60 for at in granted)

    def test_the_wait_that_is_answered_is_enough(self, budgets: Budgets, clock: ManualClock) -> None:
        while (wait_us := self.take(budgets)) == 0:
            pass
        clock.advance(wait_us / 1e6)
        assert self.take(budgets) == 0

    def test_a_share_is_kept_for_events(self, budgets: Budgets) -> None:
        others = sum(self.take(budgets, urgent=False) == 0 for _ in range(100))
        events = sum(self.take(budgets) == 0 for _ in range(100))
        assert (others, events) == (30, 30)

    def test_events_may_use_everything(self, budgets: Budgets) -> None:
        assert sum(self.take(budgets) == 0 for _ in range(100)) == 60

    def test_a_call_may_cost_more_than_one(self, budgets: Budgets) -> None:
        assert sum(self.take(budgets, cost=20) == 0 for _ in range(10)) == 3

    def test_several_limits_are_all_kept(self, budgets: Budgets) -> None:
        system = System("both", (Limit(10, 1_000_000), Limit(15, MINUTE_US)))
        assert sum(self.take(budgets, system) == 0 for _ in range(40)) == 10

    def test_calls_at_once_are_limited_until_they_end(self, budgets: Budgets, clock: ManualClock) -> None:
        system = System("narrow", concurrency=2)
        assert [self.take(budgets, system, call=name) == 0 for name in "abc"] == [True, True, False]
        budgets.ended("narrow", "a")
        assert self.take(budgets, system, call="c") == 0
        clock.advance(61)  # the holders died; their calls no longer count
        assert [self.take(budgets, system, call=name) == 0 for name in "de"] == [True, True]

    def test_trouble_pauses_ever_longer_and_one_probes(self, budgets: Budgets, clock: ManualClock) -> None:
        pauses = []
        for _ in range(12):
            health = budgets.failed("api", "refused")
            pauses.append(health.paused_until_us - clock.now_us())
            assert not budgets.probe("api", MINUTE_US)
            clock.advance(pauses[-1] / 1e6)
            assert [budgets.probe("api", MINUTE_US), budgets.probe("api", MINUTE_US)] == [True, False]
        assert pauses == sorted(pauses)
        assert pauses[-1] == pauses[-2] <= 300_000_000
        budgets.succeeded("api")
        assert not budgets.health("api").probes

    def test_the_pause_that_a_system_asks_for_is_kept(self, budgets: Budgets, clock: ManualClock) -> None:
        assert budgets.failed("api", "429", 90_000_000).paused_until_us == clock.now_us() + 90_000_000
        budgets.failed("api", "429", 1_000_000)
        assert budgets.health("api").paused_until_us == clock.now_us() + 90_000_000

    def test_only_a_person_ends_the_pause_of_a_person(self, budgets: Budgets, clock: ManualClock) -> None:
        budgets.pause("api", "upgrade")
        budgets.succeeded("api")
        clock.advance(10_000)
        assert budgets.health("api").paused(clock.now_us())
        assert budgets.health("api").reason == "upgrade"
        budgets.resume("api")
        assert not budgets.health("api").paused(clock.now_us())

    def test_a_pause_of_everything_holds_every_system(self, budgets: Budgets, clock: ManualClock) -> None:
        budgets.pause("*", "night")
        assert budgets.health("never heard of").paused(clock.now_us())
        budgets.resume("*")
        assert not budgets.health("never heard of").paused(clock.now_us())

    def test_many_threads_never_spend_more_than_there_is(self, budgets: Budgets) -> None:
        with ThreadPoolExecutor(8) as pool:
            granted = list(pool.map(lambda _: self.take(budgets) == 0, range(200)))
        assert sum(granted) == 60

    def test_what_is_known_is_listed(self, budgets: Budgets) -> None:
        assert budgets.names() == []
        budgets.pause("b", "")
        self.take(budgets)
        assert budgets.names() == ["api", "b"]
