"""The contract of every `Budgets`: subclass it with a fixture `make` that answers budgets by a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from trueup.model.allowance import Said
from trueup.model.budget import DAY_US, Limit, Quota, System
from trueup.ports import Budgets, Clock
from trueup.testing.clock import ManualClock

MINUTE_US = 60_000_000
DAILY = System("daily", reserve=0.25, quota=Quota(40))
SAYING = System("saying", reserve=0.5, remaining_header="X-Left")
API = System("api", (Limit(60, MINUTE_US),), reserve=0.5)


class BudgetsContract:
    """What every store of budgets promises."""

    @pytest.fixture
    def make(self) -> Callable[[Clock], Budgets]:
        """Answers budgets that go by this clock; those of one test share one store, which is empty at first."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def budgets(self, make: Callable[[Clock], Budgets], clock: ManualClock) -> Budgets:
        return make(clock)

    @pytest.fixture
    def beside(self, make: Callable[[Clock], Budgets], clock: ManualClock, budgets: Budgets) -> Budgets:
        """The same budgets as another process has them."""
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

    def test_who_asks_again_for_a_call_under_way_renews_it(self, budgets: Budgets, clock: ManualClock) -> None:
        system = System("narrow", concurrency=1)
        assert self.take(budgets, system, call="a") == 0
        clock.advance(40)
        assert self.take(budgets, system, call="a") == 0
        clock.advance(40)
        assert self.take(budgets, system, call="b") > 0

    def test_a_quota_is_spent_once_a_day_and_then_waits_for_the_reset(
        self, budgets: Budgets, clock: ManualClock
    ) -> None:
        for _ in range(3):
            assert sum(self.take(budgets, DAILY) == 0 for _ in range(50)) == 40
            wait_us = self.take(budgets, DAILY)
            assert clock.now_us() + wait_us == (clock.now_us() // DAY_US + 1) * DAY_US
            assert not budgets.health("daily").paused(clock.now_us())
            clock.advance(wait_us / 1e6)

    def test_a_share_of_the_quota_is_kept_for_events(self, budgets: Budgets) -> None:
        assert sum(self.take(budgets, DAILY, urgent=False) == 0 for _ in range(50)) == 30
        assert sum(self.take(budgets, DAILY) == 0 for _ in range(50)) == 10

    def test_what_a_call_did_cost_is_charged_and_what_it_did_not_is_given_back(self, budgets: Budgets) -> None:
        self.take(budgets, cost=10)
        budgets.answered(API, "t", extra=30, urgent=True, said=None)
        assert sum(self.take(budgets) == 0 for _ in range(60)) == 20
        budgets.answered(API, "t", extra=-7, urgent=True, said=None)
        assert sum(self.take(budgets) == 0 for _ in range(60)) == 7

    def test_what_a_call_of_the_rest_did_cost_counts_to_its_share(self, budgets: Budgets) -> None:
        self.take(budgets, urgent=False, cost=10)
        budgets.answered(API, "t", extra=15, urgent=False, said=None)
        assert sum(self.take(budgets, urgent=False) == 0 for _ in range(60)) == 5

    def test_a_call_that_was_answered_is_under_way_no_more(self, budgets: Budgets) -> None:
        system = System("narrow", concurrency=1, cost_header="X-Cost")
        assert self.take(budgets, system, call="a") == 0
        budgets.answered(system, "a", extra=1, urgent=True, said=None)
        assert self.take(budgets, system, call="b") == 0

    def test_what_a_system_says_is_left_holds_until_its_reset(self, budgets: Budgets, clock: ManualClock) -> None:
        self.take(budgets, SAYING)
        budgets.answered(SAYING, "t", extra=0, urgent=True, said=Said(8, 90_000_000))
        assert sum(self.take(budgets, SAYING, urgent=False) == 0 for _ in range(20)) == 4
        assert sum(self.take(budgets, SAYING) == 0 for _ in range(20)) == 4
        assert self.take(budgets, SAYING) == 90_000_000
        clock.advance(90)
        assert self.take(budgets, SAYING) == 0

    def test_the_stricter_of_both_counts_is_believed(self, budgets: Budgets, clock: ManualClock) -> None:
        both = System("api", API.limits, remaining_header="X-Left")
        for said, granted in ((Said(100, 60_000_000), 60), (Said(0, 60_000_000), 0)):
            budgets.answered(both, "t", extra=0, urgent=True, said=said)
            assert sum(self.take(budgets, both) == 0 for _ in range(80)) == granted
        budgets.answered(SAYING, "t", extra=0, urgent=True, said=Said(3, 60_000_000))
        budgets.answered(SAYING, "t", extra=0, urgent=True, said=Said(9, 59_000_000))  # an older answer came later
        assert sum(self.take(budgets, SAYING) == 0 for _ in range(20)) == 3
        clock.advance(30)
        budgets.answered(SAYING, "t", extra=0, urgent=True, said=Said(9, 60_000_000))  # of the next window
        assert sum(self.take(budgets, SAYING) == 0 for _ in range(20)) == 9

    def test_events_do_not_starve_the_rest(self, budgets: Budgets, clock: ManualClock) -> None:
        waited = longest = 0
        for _ in range(60):
            waited = 0 if self.take(budgets, urgent=False) == 0 else waited + 10
            longest = max(longest, waited)
            while self.take(budgets) == 0:
                pass
            clock.advance(10)
        assert 60 <= longest <= 180

    def test_nobody_calls_a_paused_system(self, budgets: Budgets, clock: ManualClock) -> None:
        budgets.failed("api", "429", 90_000_000)
        assert self.take(budgets) == 90_000_000
        assert self.take(budgets, System("api")) == 90_000_000
        clock.advance(90)
        assert self.take(budgets) == 0

    def test_no_system_pauses_itself_for_more_than_a_day(self, budgets: Budgets, clock: ManualClock) -> None:
        assert budgets.failed("api", "429", 10**18).paused_until_us == clock.now_us() + DAY_US

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

    def test_a_pause_says_who_and_why(self, budgets: Budgets) -> None:
        budgets.pause("api", "upgrade", "anna")
        found = budgets.health("api")
        assert (found.by, found.reason, found.everything) == ("anna", "upgrade", False)
        budgets.pause("*", "night", "bert")
        found = budgets.health("api")
        assert (found.by, found.reason, found.everything) == ("bert", "night", True)
        budgets.resume("api")
        assert budgets.health("api").by_person

    def test_a_person_ends_what_the_system_said(self, budgets: Budgets) -> None:
        budgets.answered(SAYING, "t", extra=0, urgent=True, said=Said(0, 90_000_000))
        assert self.take(budgets, SAYING) > 0
        budgets.resume("saying")
        assert self.take(budgets, SAYING) == 0

    @pytest.mark.parametrize("paused", ["api", "*"])
    def test_a_pause_made_elsewhere_is_obeyed_within_a_tenth_of_a_second(
        self, budgets: Budgets, beside: Budgets, clock: ManualClock, paused: str
    ) -> None:
        assert not budgets.health("api").paused(clock.now_us())
        beside.pause(paused, "elsewhere")
        deadline = time.monotonic() + 0.1
        while not budgets.health("api").paused(clock.now_us()):
            assert time.monotonic() < deadline
        beside.resume(paused)
        assert not budgets.health("api").paused(clock.now_us())

    def test_trouble_that_was_met_elsewhere_is_obeyed_by_calls_that_are_counted(
        self, budgets: Budgets, beside: Budgets
    ) -> None:
        assert self.take(budgets) == 0
        beside.failed("api", "429", 90_000_000)
        assert self.take(budgets) == 90_000_000

    def test_several_systems_are_asked_for_at_once(self, budgets: Budgets, clock: ManualClock) -> None:
        budgets.failed("api", "429", 90_000_000)
        found = budgets.healths(["api", "other"])
        assert {name: health.paused(clock.now_us()) for name, health in found.items()} == {"api": True, "other": False}

    def test_what_is_known_is_the_same_elsewhere(self, budgets: Budgets, beside: Budgets) -> None:
        both = System("api", API.limits, concurrency=9, quota=Quota(100), remaining_header="X-Left")
        self.take(budgets, both, call="a", urgent=False)
        budgets.answered(both, "b", extra=0.5, urgent=True, said=Said(7, 1_000_000))
        while self.take(budgets, both, urgent=False) == 0:
            pass
        budgets.failed("api", "refused")
        assert budgets.probe("api", 1) is False
        assert beside.health("api") == budgets.health("api")

    def test_many_threads_never_spend_more_than_there_is(self, budgets: Budgets) -> None:
        with ThreadPoolExecutor(8) as pool:
            granted = list(pool.map(lambda _: self.take(budgets) == 0, range(200)))
        assert sum(granted) == 60

    def test_what_is_known_is_listed(self, budgets: Budgets) -> None:
        assert budgets.names() == []
        budgets.pause("b", "")
        self.take(budgets)
        assert budgets.names() == ["api", "b"]
