"""Budgets over HTTP: quotas, costs and what the API says of its own limits, against a real API on loopback."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from pathlib import Path

import pytest

from api import Api, Reply, serving
from trueup.engine.clock import SystemClock
from trueup.engine.gate import Caller, SystemGate, calling
from trueup.errors import ConfigError, Unreachable
from trueup.model.budget import DAY_US, declare_system
from trueup.model.outcome import Postponed, RateLimited
from trueup.ports import Write
from trueup.sides.http import Http
from trueup.stores.budgets import MemoryBudgets
from trueup.stores.sql import SqlStore
from trueup.testing.clock import START_US, ManualClock
from trueup.testing.sides.asking import key_of, projection_of, scanned


@pytest.fixture
def api():
    with serving(Api(rows=[{"id": number, "name": f"n{number}"} for number in range(1, 301)])) as api:
        yield api


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def side_of(api):
    with contextlib.ExitStack() as stack:

        def side_of(gate=None, **options):
            declared = {"key": "id", "columns": {"id": "integer", "name": "text"}, **options}
            side = Http(f"{api.url}/items", gate=gate, **declared)
            stack.callback(side.close)
            return side

        yield side_of


def gate_of(clock, budgets=None, owner="tests", **system):
    return SystemGate(declare_system("courses", **system), budgets or MemoryBudgets(clock), clock, owner)


def spent(gate):
    health = gate._budgets.health("courses")
    return sum(both for slices in health.spent.values() for both, _ in slices.values())


def read(side, *keys):
    return set(side.read(projection_of(side, ["id"], ["name"]), [key_of(str(key)) for key in keys]))


def ids(side):
    return [int(row["id"]) for row in scanned(side, projection_of(side, ["id"], ["name"]))]


# Quotas.

PAGED = {"paging": "cursor", "next": "next", "items": "data", "page_size": 2}
EXCEEDED = Reply(403, {"error": {"code": "dailyLimitExceeded"}})
USED_UP = {"status": 403, "body": "error.code == 'dailyLimitExceeded'", "used_up": True}


class Metered:
    """An API that answers so many calls a day by this clock. refused: calls it did not."""

    def __init__(self, api, clock, quota):
        self.clock, self.quota, self.answered, self.refused = clock, quota, Counter(), 0
        api.before = self.before

    def before(self, call):
        today = self.clock.now_us() // DAY_US
        if self.answered[today] >= self.quota:
            self.refused += 1
            return EXCEEDED
        self.answered[today] += 1
        return None


@pytest.mark.parametrize(("declared", "refused"), [("100/day", 0), ("5000/day", 2)])
def test_C120_a_quota_smaller_than_the_work_goes_on_where_it_stopped(api, clock, side_of, declared, refused):
    api.rows = [{"id": number, "name": f"n{number}"} for number in range(1, 501)]
    api.paging, api.wrap = "cursor", "data"
    side = side_of(throttled_when=USED_UP, **PAGED)
    side.describe()
    api.calls.clear()
    metered, side.gate = Metered(api, clock, 100), gate_of(clock, quota=declared, reserve=0)
    assert ids(side) == list(range(1, 501))
    days = list(metered.answered.values())
    assert (days, metered.refused) == ([100, 100, 50], refused)
    asked = Counter(call.query.get("cursor") for call in api.calls)
    assert sum(asked.values()) == 250 + refused
    assert clock.now_us() == (START_US // DAY_US + 2) * DAY_US


def test_C120_a_system_whose_quota_is_used_up_is_not_in_trouble(api, clock, side_of):
    Metered(api, clock, 0)
    gate = gate_of(clock, quota="100/day")
    with calling(Caller(patience_us=0)), pytest.raises(Postponed, match="courses") as caught:
        read(side_of(gate, throttled_when=USED_UP, lists=False), 1)
    assert clock.now_us() + caught.value.retry_after_s * 1e6 == (START_US // DAY_US + 1) * DAY_US
    assert not gate._budgets.health("courses").paused(clock.now_us())
    with calling(Caller(urgent=True, patience_us=0)), pytest.raises(Postponed):
        read(side_of(gate, lists=False), 2)
    assert len(api.calls) == 1


def test_where_no_quota_is_known_such_an_answer_is_a_pause(api, clock, side_of):
    Metered(api, clock, 0)
    with calling(Caller(patience_us=0)), pytest.raises(RateLimited) as caught:
        read(side_of(gate_of(clock), throttled_when=USED_UP), 1)
    assert caught.value.retry_after_s == 60


# Costs.


def test_a_call_costs_what_its_kind_is_declared_to_cost(api, clock, side_of):
    gate = gate_of(clock, limit="1000/minute", cost={"list": 10, "read": 2, "write": 5})
    side = side_of(gate, page_size=300, answers_with_record=True)
    ids(side)
    pages = len(api.calls)
    assert spent(gate) == pages * 10
    read(side, 1)
    assert spent(gate) == pages * 10 + 2
    projection = projection_of(side, ["id"], ["name"])
    token = side.read(projection, [key_of("1")])[key_of("1")].token
    before = len(api.calls)
    side.apply(projection, [Write(key_of("1"), {"name": "new"}, token)])
    writes = sum(call.method != "GET" for call in api.calls[before:])
    reads = len(api.calls) - before - writes
    assert writes == 1
    assert spent(gate) == pages * 10 + 4 + writes * 5 + reads * 2


@pytest.mark.parametrize(("said", "cost"), [("7", 7), ("0", 0), ("2.5", 2.5), ("many", 3), ("1e99", 3), ("9" * 12, 20)])
def test_what_a_call_did_cost_is_read_from_its_answer(api, clock, side_of, said, cost):
    api.after = lambda _, reply: Reply(200, reply.body, {"x-request-COST": said})
    gate = gate_of(clock, limit="20/minute", cost={"read": 3}, cost_header="X-Request-Cost")
    read(side_of(gate, lists=False), 1)
    assert spent(gate) == cost


# What the system says is left.

LEFT = {"remaining_header": "X-RateLimit-Remaining", "reset_header": "X-RateLimit-Reset"}


def test_what_is_said_to_be_left_is_not_overrun(api, clock, side_of):
    # Somebody else calls too: of its 10 calls a minute the system has 4 left.
    state = {"left": 10, "until_s": START_US // 1_000_000 + 60}
    refused = []

    def after(call, reply):
        now_s = clock.now_us() // 1_000_000
        if now_s >= state["until_s"]:
            state.update(left=10, until_s=now_s + 60)
        state["left"] -= 2
        if state["left"] < 0:
            refused.append(call)
            return Reply(429, {})
        return Reply(200, reply.body, {
            "X-RateLimit-Remaining": str(state["left"]), "X-RateLimit-Reset": str(state["until_s"]),
            "Date": "", })  # fmt: skip

    api.after = after
    side = side_of(gate_of(clock, limit="600/minute", reserve=0, **LEFT), at_once=1)
    assert len(read(side, *range(1, 21))) == 20
    assert refused == []
    assert clock.now_us() - START_US >= 3 * 60_000_000


def test_times_in_an_answer_are_by_the_clock_of_its_sender(api, clock, side_of):
    sent = {"Date": "Mon, 30 Nov 2026 08:00:00 GMT", "X-RateLimit-Remaining": "0"}
    api.after = lambda _, reply: Reply(200, reply.body, {**sent, "X-RateLimit-Reset": "Mon, 30 Nov 2026 08:00:50 GMT"})
    side = side_of(gate_of(clock, **LEFT))
    read(side, 1)
    with calling(Caller(patience_us=0)), pytest.raises(Postponed) as caught:
        read(side, 2)
    assert caught.value.retry_after_s == 50


def test_a_refusal_lasts_until_the_reset_where_it_says_no_more(api, clock, side_of):
    api.before = lambda _: Reply(403, {}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "600"})
    side = side_of(gate_of(clock, **LEFT), throttled_when={"status": 403, "header": "X-RateLimit-Remaining: 0"})
    with calling(Caller(patience_us=0)), pytest.raises(Postponed) as caught:
        read(side, 1)
    assert caught.value.retry_after_s == 600


# Called too often.


@pytest.mark.parametrize(("when", "reply", "throttled"), [
    ({"status": 503, "header": "Retry-After"}, Reply(503, {}, {"Retry-After": "7"}), True),
    ({"status": 503, "header": "Retry-After"}, Reply(503, {}), False),
    ({"status": 403, "body": "error.code == 'rate_limited'"}, Reply(403, {"error": {"code": "rate_limited"}}), True),
    ({"status": 403, "body": "error.code == 'rate_limited'"}, Reply(403, {"error": {"code": "forbidden"}}), False),
    ({"status": 403, "body": "error.code == 'rate_limited'"}, Reply(403, raw=b"<html>"), False),
    ({"header": "X-Left: 0"}, Reply(403, {}, {"X-Left": " 0 "}), True),
    ({"header": "X-Left: 0"}, Reply(403, {}, {"X-Left": "10"}), False),
    ([420, {"status": 503, "header": "Retry-After"}], Reply(420, {}), True),
    ([420, {"status": 503, "header": "Retry-After"}], Reply(429, {}), True),
])  # fmt: skip
def test_an_answer_means_too_often_if_all_of_it_is_true(api, side_of, when, reply, throttled):
    api.before = lambda _: reply
    with pytest.raises(RateLimited if throttled else Unreachable):
        read(side_of(throttled_when=when), 1)


@pytest.mark.parametrize(("when", "message"), [
    ({"stauts": 503}, "no option stauts"),
    ({"used_up": True}, "says nothing of the answer"),
    ("a b c", "throttled_when"),
])  # fmt: skip
def test_a_wrong_sign_is_named(side_of, when, message):
    with pytest.raises(ConfigError, match=message) as caught:
        side_of(throttled_when=when)
    assert caught.value.hint


def test_a_pause_is_never_longer_than_declared(api, clock, side_of):
    api.before = lambda _: Reply(429, {}, {"Retry-After": "999999999"})
    gate = gate_of(clock, pause_max="10m")
    with calling(Caller(patience_us=0)), pytest.raises(RateLimited) as caught:
        read(side_of(gate), 1)
    assert caught.value.retry_after_s == 600
    assert gate._budgets.health("courses").paused_until_us == clock.now_us() + 600_000_000


def test_no_wait_at_all_is_believed_once(api, clock, side_of):
    refusals = [Reply(429, {}, {"Retry-After": "0"}) for _ in range(4)]
    api.before = lambda _: refusals.pop() if refusals else None
    gate = gate_of(clock)
    side = side_of(gate)
    assert len(read(side, 1)) == 1
    waited_s = (clock.now_us() - START_US) / 1e6
    assert 3 <= waited_s <= 60
    assert not gate._budgets.health("courses").probes
    refusals.append(Reply(429, {}, {"Retry-After": "0"}))
    assert len(read(side, 2)) == 1
    assert (clock.now_us() - START_US) / 1e6 == waited_s


def test_who_finds_the_door_closed_does_not_pause_the_system(api, clock, side_of):
    gate = gate_of(clock, limit="10/hour", reserve=0.5)
    side = side_of(gate, at_once=1)
    with calling(Caller(patience_us=20_000_000)), pytest.raises(Postponed, match="courses may not be called now"):
        read(side, *range(1, 11))
    assert len(api.calls) == 5
    assert not gate._budgets.health("courses").probes
    with calling(Caller(urgent=True, patience_us=0)):
        assert len(read(side, *range(1, 6))) == 5


def test_a_pause_of_everything_names_the_command_that_ends_it(clock, side_of):
    gate = gate_of(clock)
    gate._budgets.pause("*", "night", "anna")
    with pytest.raises(Unreachable, match="trueup resume --all"):
        read(side_of(gate), 1)


class Crowded:
    """Knows how many calls are under way; refuses beyond 8, and then for a minute by this clock."""

    def __init__(self, api, clock):
        self.clock, self.lock = clock, threading.Lock()
        self.now, self.most, self.breaches, self.closed_us, self.early = 0, 0, 0, 0, 0
        api.before, api.after = self.before, self.after

    def before(self, call):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.clock.now_us() < self.closed_us:
                self.early += 1
            elif self.now <= 8:
                return None
            else:
                self.breaches += 1
                self.closed_us = self.clock.now_us() + 60_000_000
            self.now -= 1
            return Reply(403, {"message": "secondary rate limit"}, {"Retry-After": "60"})

    def after(self, call, reply):
        with self.lock:
            self.now -= 1
        return reply


SECONDARY = {"status": 403, "header": "Retry-After"}


def test_C121_never_more_calls_at_once_than_declared(api, side_of):
    clock = SystemClock()
    crowded = Crowded(api, clock)
    gate = gate_of(clock, concurrency=8)
    side = side_of(gate, throttled_when=SECONDARY, at_once=50)
    assert len(read(side, *range(1, 301))) == 300
    assert crowded.breaches == 0
    assert 1 <= crowded.most <= 8


def test_C121_one_breach_pauses_every_process_that_shares_the_account(api, clock, side_of, tmp_path: Path):
    crowded = Crowded(api, clock)
    crowded.now = 8  # others of the account are at it
    with contextlib.ExitStack() as stack:
        sides = []
        for number in range(4):
            store = SqlStore(f"sqlite:///{tmp_path}/state.db", clock, durable=False)
            stack.callback(store.close)
            gate = gate_of(clock, store.budgets, f"process {number}", concurrency=8)
            sides.append(side_of(gate, throttled_when=SECONDARY))
        with calling(Caller(patience_us=0)):
            for side in sides * 3:
                with pytest.raises(Postponed):
                    read(side, 1)
        assert (crowded.breaches, crowded.early, len(api.calls)) == (1, 0, 1)
        crowded.now = 0
        clock.advance(60)
        found = [read(side, *range(75 * number + 1, 75 * number + 76)) for number, side in enumerate(sides)]
        assert len(set().union(*found)) == 300
        assert (crowded.breaches, crowded.early) == (1, 0)
