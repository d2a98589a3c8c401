"""The rules of budgets as laws: what holds for every order of calls, and days that are not 24 hours long."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import ConfigError
from trueup.model.allowance import Said
from trueup.model.budget import DAY_US, Limit, Quota, System, declare_system
from trueup.model.forecast import forecast
from trueup.model.health import HEALTHY, answered, failed, spend
from trueup.testing.clock import START_US

MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000

limits = st.builds(Limit, st.integers(1, 40), st.sampled_from([1_000_000, MINUTE_US, HOUR_US]))
systems = st.builds(
    System,
    st.just("api"),
    st.lists(limits, min_size=1, max_size=2, unique_by=lambda limit: limit.period_us).map(tuple),
    st.sampled_from([0.0, 0.25, 0.4, 0.9]),
    st.none(),
    st.none() | st.builds(Quota, st.integers(1, 100), zone=st.sampled_from(["UTC", "Asia/Tokyo"])),
)


class Calls:
    """A system that is called, and every call that was granted: (when, cost, of the rest)."""

    def __init__(self, system, health=HEALTHY, now_us=START_US):
        self.system, self.health, self.now_us, self.granted = system, health, now_us, []

    def ask(self, *, urgent=True, cost=1.0):
        wait_us, self.health = spend(
            self.system, self.health, cost, self.now_us, urgent=urgent, call="c", call_us=MINUTE_US
        )
        if not wait_us:
            self.granted.append((self.now_us, cost, not urgent))
        return wait_us

    def most_within(self, period_us, rest):
        """The most that any window of this length holds."""
        counted = [(at, cost) for at, cost, of_rest in self.granted if of_rest or not rest]
        return max((sum(cost for at, cost in counted if begin <= at < begin + period_us) for begin, _ in counted),
                   default=0)  # fmt: skip

    def most_in_a_day(self, rest):
        """The most that any day of the quota holds."""
        days = itertools.groupby(self.granted, lambda call: self.system.quota.reset_us(call[0]))
        return max((sum(cost for _, cost, of_rest in calls if of_rest or not rest) for _, calls in days), default=0)


rounds = st.tuples(st.booleans(), st.floats(0.1, 3), st.floats(0, 0.4), st.integers(1, 20))


@given(systems, st.lists(rounds, max_size=40))
def test_no_window_and_no_day_holds_more_than_is_allowed(system, asked):
    calls = Calls(system)
    for urgent, cost, gap, times in asked:
        for _ in range(times):
            calls.ask(urgent=urgent, cost=min(cost, system.most))
        calls.now_us += int(gap * max(limit.period_us for limit in system.limits))
    largest = max((cost for _, cost, of_rest in calls.granted if of_rest), default=0)
    for limit in system.limits:
        assert calls.most_within(limit.period_us, rest=False) <= limit.calls + 1e-6
        assert calls.most_within(limit.period_us, rest=True) <= max(limit.calls * (1 - system.reserve), largest) + 1e-6
    if system.quota is not None:
        assert calls.most_in_a_day(rest=False) <= system.quota.calls + 1e-6
        assert calls.most_in_a_day(rest=True) <= max(system.quota.calls * (1 - system.reserve), largest) + 1e-6


@given(systems, st.booleans(), st.integers(0, 60))
def test_the_wait_that_is_answered_is_enough_for_who_is_alone(system, urgent, before):
    calls = Calls(system)
    for _ in range(before):
        calls.ask(urgent=urgent)
    if wait_us := calls.ask(urgent=urgent):
        # More than one limit may be in the way, and what frees one says nothing of the other.
        for _ in range(len(system.limits) + 1):
            calls.now_us += wait_us
            wait_us = calls.ask(urgent=urgent)
            if not wait_us:
                break
    assert not wait_us


@given(limits, st.sampled_from([0.0, 0.4, 0.9]), st.floats(0.2, 1), st.integers(0, 3))
def test_events_that_take_all_they_get_do_not_starve_the_rest(limit, reserve, share_of_cost, seed):
    calls = Calls(System("api", (limit,), reserve))
    cost = max(0.2, share_of_cost * max(1.0, limit.calls * (1 - reserve) / 4))
    for _ in range(4):
        began_us = calls.now_us
        while wait_us := calls.ask(urgent=False, cost=min(cost, limit.calls)):
            # Events come all the time, and first.
            ends_us = calls.now_us + wait_us
            assert ends_us - began_us <= 4 * limit.period_us
            while calls.now_us < ends_us:
                calls.now_us = min(ends_us, calls.now_us + limit.period_us // (20 + seed))
                while not calls.ask():
                    pass
        while not calls.ask():
            pass


@given(limits, st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 1), st.floats(0, 0.1)), max_size=60))
def test_what_is_given_back_is_never_spent_twice(limit, asked):
    calls, paid = Calls(System("api", (limit,))), []
    for cost, share, gap in [(min(cost, limit.calls), *others) for cost, *others in asked]:
        if not calls.ask(cost=cost):
            paid.append((calls.now_us, cost * share))
            calls.health = answered(
                calls.system, calls.health, "c", calls.now_us, extra=cost * share - cost, urgent=True, said=None
            )
        calls.now_us += int(gap * limit.period_us)
    for begin, _ in paid:
        assert sum(cost for at, cost in paid if begin <= at < begin + limit.period_us) <= limit.calls + 1e-6


def test_what_is_given_back_frees_nothing_that_was_spent_later():
    calls = Calls(System("api", (Limit(10, MINUTE_US),)))
    assert calls.ask(cost=5) == 0
    calls.now_us += 30_000_000
    assert calls.ask(cost=5) == 0
    calls.health = answered(calls.system, calls.health, "c", calls.now_us, extra=-4, urgent=True, said=None)
    calls.now_us += 32_000_000  # only the later call counts now, and perhaps it was the one that did cost 5
    assert [calls.ask(cost=5) == 0, calls.ask(cost=1) == 0] == [True, False]


def test_a_clock_that_was_a_day_ahead_does_not_close_the_system():
    system = System("api", (Limit(10, MINUTE_US),), quota=Quota(10))
    ahead = Calls(system, now_us=START_US + 5 * DAY_US)
    while not ahead.ask():
        pass
    assert Calls(system, ahead.health).ask() == 0


# The forecast.

started = st.lists(st.tuples(st.booleans(), st.integers(1, 15), st.floats(0, 0.3)), max_size=6)


@given(systems, started, st.integers(1, 400), st.sampled_from([0, 0, 45_000_000]), st.sampled_from([None, None, 5]))
def test_the_forecast_is_within_a_quarter_and_a_period_of_what_comes_true(system, before, left, pause_us, said):
    calls = Calls(system)
    for urgent, times, gap in before:
        for _ in range(times):
            calls.ask(urgent=urgent)
        calls.now_us += int(gap * max(limit.period_us for limit in system.limits))
    if pause_us:
        calls.health = failed(calls.health, calls.now_us, "429", pause_us=pause_us)
    if said:
        calls.health = answered(
            system, calls.health, "c", calls.now_us, extra=0, urgent=True, said=Said(said, MINUTE_US)
        )
    began_us, expected = calls.now_us, forecast(system, calls.health, left, calls.now_us)
    while left:
        if wait_us := calls.ask(urgent=False):
            calls.now_us += wait_us
        else:
            left -= 1
    took_us = calls.now_us - began_us
    slack_us = max(limit.period_us for limit in system.limits) + (DAY_US if system.quota else 0)
    assert took_us / 1.25 - slack_us <= expected.lasts_us
    if not any(urgent for urgent, _, _ in before):  # else events were expected that did not come
        assert expected.lasts_us <= took_us * 1.25 + slack_us


def test_the_forecast_knows_that_events_go_on():
    calls = Calls(System("api", (Limit(600, MINUTE_US),), 0.4))
    for _ in range(120):
        for _ in range(4):
            calls.ask()
        calls.now_us += 500_000
    expected = forecast(calls.system, calls.health, 3_000, calls.now_us)
    began_us, left, events = calls.now_us, 3_000, 0
    while left:
        events += 4
        while events and not calls.ask():
            events -= 1
        while left and not calls.ask(urgent=False):
            left -= 1
        calls.now_us += 500_000
    assert expected.lasts_us == pytest.approx(calls.now_us - began_us, rel=0.25)
    assert expected.lasts_us > 20 * MINUTE_US
    assert expected.pace == "120/minute"


@pytest.mark.parametrize(("system", "left", "minutes", "pace"), [
    (System("a", (Limit(600, MINUTE_US),), 0.4), 360, 0, "360/minute"),
    (System("a", (Limit(600, MINUTE_US),), 0.4), 15_120, 42, "360/minute"),
    (System("a", (Limit(600, MINUTE_US), Limit(6_000, HOUR_US)), 0.0), 18_000, 122, "6000/hour"),
    (System("a", (), 0.5, quota=Quota(1_000)), 2_500, 3 * 1440 + 960, "500/day"),
    (System("a", (Limit(60, MINUTE_US),), 0.0, quota=Quota(1_000)), 1_060, 960, "1000/day"),
], ids=str)  # fmt: skip
def test_the_forecast_of_a_system_that_nobody_called(system, left, minutes, pace):
    expected = forecast(system, HEALTHY, left, START_US)
    assert (round(expected.lasts_us / MINUTE_US), expected.pace) == (pytest.approx(minutes, abs=1), pace)


def test_nothing_is_forecast_where_nothing_is_known():
    assert forecast(System("a"), HEALTHY, 100, START_US) is None
    limited = System("a", (Limit(600, MINUTE_US),))
    assert forecast(limited, replace(HEALTHY, by_person=True), 100, START_US) is None


# Days.


def us(text, zone):
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1_000_000


@pytest.mark.parametrize(("zone", "at", "now", "reset"), [
    ("UTC", "00:00", "2026-11-30T10:00", "2026-12-01T00:00"),
    ("UTC", "00:00", "2026-11-30T00:00", "2026-12-01T00:00"),
    ("UTC", "09:30", "2026-11-30T09:29", "2026-11-30T09:30"),
    ("America/Los_Angeles", "00:00", "2026-03-08T00:30", "2026-03-09T00:00"),
    ("America/Los_Angeles", "00:00", "2026-11-01T00:30", "2026-11-02T00:00"),
    ("Europe/Berlin", "02:30", "2026-03-29T00:00", "2026-03-29T03:30"),
    ("Europe/Berlin", "02:30", "2026-10-25T00:00", "2026-10-25T02:30"),
    ("Pacific/Apia", "12:00", "2011-12-29T13:00", "2011-12-31T12:00"),
])  # fmt: skip
def test_a_quota_resets_by_the_clock_on_the_wall(zone, at, now, reset):
    quota = Quota(1, dt.time.fromisoformat(at), zone)
    assert quota.reset_us(us(now, zone)) == us(reset, zone)


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe", "Pacific/Apia"])
times = st.builds(dt.time, st.integers(0, 23), st.integers(0, 59))


@given(zones, times, st.integers(1_300_000_000, 1_900_000_000))
def test_resets_follow_each_other_within_two_days(zone, at, now_s):
    quota, now_us = Quota(1, at, zone), now_s * 1_000_000
    first = quota.reset_us(now_us)
    assert now_us < first <= now_us + 2 * DAY_US
    assert quota.reset_us(first - 1) == first
    assert first < quota.reset_us(first) <= first + 2 * DAY_US


def test_a_day_of_25_hours_has_one_quota():
    zone = "America/Los_Angeles"
    calls = Calls(System("a", quota=Quota(3, zone=zone)), now_us=us("2026-11-01T00:00", zone))
    for _ in range(25 * 4):
        calls.ask()
        calls.now_us += HOUR_US // 4
    assert len(calls.granted) == 3


# Declarations.


@pytest.mark.parametrize(("options", "message"), [
    ({"limit": "600 a minute"}, "'600 a minute' is not a limit"),
    ({"limit": "0/minute"}, "is not a limit"),
    ({"quota": "100/hour"}, "is not a quota of a day"),
    ({"quota": "100/day", "quota_reset": "midnight"}, "'midnight' is not the time of a reset"),
    ({"quota": "100/day", "quota_reset": "25:00 UTC"}, "is not the time of a reset"),
    ({"quota": "100/day", "quota_reset": "00:00 Mars/Olympus"}, "is not the time of a reset"),
    ({"reserve": 1.0}, "reserve is 1.0"),
    ({"reserve": -0.1}, "reserve is -0.1"),
    ({"concurrency": 0}, "concurrency is 0"),
    ({"cost": {"lists": 2}}, "no calls of the kind lists"),
    ({"cost": {"list": -1}}, "the cost of a list is -1"),
    ({"cost": {"list": float("nan")}}, "the cost of a list is nan"),
    ({"limit": "10/minute", "cost": {"write": 11}}, "a write costs 11, and a limit allows 10"),
    ({"reset_header": "X-Reset"}, "reset_header says nothing alone"),
    ({"pause_max": "soon"}, "pause_max"),
])  # fmt: skip
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        declare_system("courses", **options)
    assert "courses" in str(caught.value)
    assert caught.value.hint


def test_everything_that_can_be_declared():
    system = declare_system(
        "courses", limit=["600/minute", "20000/day"], quota="10000/day", quota_reset="08:00 Europe/Berlin",
        reserve=0.25, concurrency=8, cost={"list": 5}, cost_header="X-Cost", remaining_header="X-Left",
        reset_header="X-Reset", pause_max="1h",
    )  # fmt: skip
    assert [str(limit) for limit in system.limits] == ["600/minute", "20000/day"]
    assert str(system.quota) == "10000/day from 08:00 Europe/Berlin"
    assert [system.costs.of(kind) for kind in ("list", "read", "write")] == [5, 1, 1]
    assert (system.pause_max_us, system.most) == (HOUR_US, 600)
