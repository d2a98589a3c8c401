"""From when the state store counts as gone, and what each process then tells of it by itself."""

from __future__ import annotations

import random
import threading
import time

import pytest

from trueup.engine.clock import SystemClock
from trueup.engine.direct import Direct
from trueup.errors import SideError, StateError
from trueup.model.alert import Message
from trueup.model.condition import Severity
from trueup.testing.clock import ManualClock

LIMIT_S = 120.0


class Desk:
    """A target that takes messages, or refuses them."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.attempts: list[str] = []
        self.refuses = False

    def send(self, name: str, message: Message) -> None:
        self.attempts.append(message.ident)
        if self.refuses:
            raise SideError("the desk does not answer.")
        self.messages.append(message)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def direct(clock: ManualClock, desk: Desk) -> Direct:
    return watching(clock, desk)


def watching(clock: ManualClock | SystemClock, desk: Desk, limit_s: float = LIMIT_S) -> Direct:
    return Direct(
        clock, lambda: None, desk.send, ["desk"], store="trueup.db", project="shop", every_s=0.05,
        limit_us=round(limit_s * 1e6), chance=random.Random(1),
    )  # fmt: skip


def fails(direct: Direct, what: str = "alerts", error: Exception | None = None) -> None:
    def act() -> None:
        raise error or StateError("trueup.db: the state store is locked by another program.", hint="Find it.")

    assert not direct.attempt(what, act)


def works(direct: Direct, what: str = "alerts") -> None:
    assert direct.attempt(what, lambda: None)


def test_what_fails_for_a_while_is_no_condition(direct: Direct, clock: ManualClock) -> None:
    fails(direct)
    clock.advance(LIMIT_S - 1)
    fails(direct)
    assert direct.conditions() == []
    works(direct)
    clock.advance(2)
    assert direct.conditions() == []


def test_what_fails_for_longer_is_told_once_and_so_is_its_end(direct: Direct, clock: ManualClock, desk: Desk) -> None:
    began_us = clock.now_us()
    fails(direct)
    clock.advance(LIMIT_S)
    for _ in range(3):
        fails(direct)
        direct.tell("desk")
        clock.advance(30)
    [message] = desk.messages
    [condition] = message.began
    assert (condition.name, condition.subject, condition.since_us) == ("state", "state store", began_us)
    assert (condition.severity, condition.command) == (Severity.CRITICAL, "trueup doctor")
    assert condition.cause == "trueup.db: the state store is locked by another program"
    works(direct)
    for _ in range(2):
        direct.tell("desk")
    assert [(len(each.began), len(each.ended)) for each in desk.messages] == [(1, 0), (0, 1)]


def test_each_use_has_to_work_again(direct: Direct, clock: ManualClock) -> None:
    """Given looks that work and a claim that fails each time, I expect the store to count as gone."""
    for _ in range(5):
        works(direct)
        fails(direct, "alerts to desk")
        clock.advance(LIMIT_S / 4)
    assert [each.name for each in direct.conditions()] == ["state"]
    works(direct, "alerts to desk")
    assert direct.conditions() == []


def test_what_may_hold_values_is_told_by_its_type(direct: Direct, clock: ManualClock) -> None:
    fails(direct, error=KeyError("ann@example.org"))
    clock.advance(LIMIT_S)
    [condition] = direct.conditions()
    assert condition.cause == "trueup.db: the state store can't be looked at (KeyError)"


def test_a_store_that_gives_no_answer_at_all_is_told(clock: ManualClock, direct: Direct) -> None:
    """Given a call that does not return, I expect a condition while it lasts, and a long look to be none."""
    seen: list[str] = []

    def hangs() -> None:
        clock.advance(LIMIT_S)
        seen.extend(each.cause for each in direct.conditions())

    assert direct.attempt("alerts", hangs)
    assert seen == []
    assert direct.attempt("signs of life", hangs, may_hang=False)
    assert seen == ["trueup.db: the state store does not answer"]
    assert direct.conditions() == []


def test_processes_that_saw_the_same_outage_tell_under_one_ident(clock: ManualClock) -> None:
    """Given two processes that notice it five seconds apart, and a second outage, I expect two idents each time."""
    clock.advance(LIMIT_S - clock.now_us() / 1e6 % LIMIT_S)  # to the begin of a stretch
    desks = [Desk(), Desk()]
    processes = [watching(clock, each) for each in desks]
    for _ in range(2):
        for process in processes:
            clock.advance(5)
            fails(process)
        clock.advance(LIMIT_S)
        for process in processes:
            process.tell("desk")
            works(process)
            process.tell("desk")
    first, second = ([each.ident for each in desk.messages] for desk in desks)
    assert first == second
    assert len(set(first)) == 4
    assert all(ident.startswith("shop-desk-state-") for ident in first)


def test_a_message_that_does_not_arrive_is_sent_again_later_as_it_was(
    direct: Direct, clock: ManualClock, desk: Desk
) -> None:
    desk.refuses = True
    fails(direct)
    clock.advance(LIMIT_S)
    for _ in range(3):
        direct.tell("desk")
    assert len(desk.attempts) == 1
    desk.refuses = False
    works(direct)
    clock.advance(10)
    for _ in range(2):
        direct.tell("desk")
    assert [(len(each.began), len(each.ended)) for each in desk.messages] == [(1, 0), (0, 1)]
    assert desk.attempts[0] == desk.attempts[1]


class Slept(SystemClock):
    """A clock that went on while this process stood still."""

    ahead_us = 0

    def elapsed_us(self) -> int:
        return super().elapsed_us() + self.ahead_us


def test_a_process_that_stood_still_blames_nobody(desk: Desk) -> None:
    """Given a process that was frozen for an hour in the middle of a failure, I expect it to look again first."""
    clock, stop = Slept(), threading.Event()
    direct = watching(clock, desk, limit_s=1_000)
    fails(direct)
    serving = threading.Thread(target=direct.serve, args=(stop,))
    serving.start()
    time.sleep(0.02)
    clock.ahead_us = 3_600_000_000
    time.sleep(0.3)
    fails(direct)
    stop.set()
    serving.join()
    assert direct.conditions() == []
