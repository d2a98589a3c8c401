"""Pairs whose records come after others: an enrolment waits for its user."""

from __future__ import annotations

import pytest

from trueup.errors import ConfigError
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock


def declare(**after: object) -> tuple[Project, ManualClock, list[str]]:
    clock, done = ManualClock(), []
    project = Project(state="memory:", clock=clock, seed=1, threads=1)
    users = Memory([{"user_id": "u1", "v": 1}], key="user_id", version="v", clock=clock)
    enrolments = Memory([{"id": "e1", "user_id": "u1", "v": 1}], key="id", version="v", clock=clock)
    first = project.pair("users", authority=users)
    second = project.pair("enrolments", authority=enrolments, **after)

    @first.on_change
    def user(change):  # type: ignore[no-untyped-def]
        done.append(change.key)

    @second.on_change
    def enrolment(change):  # type: ignore[no-untyped-def]
        done.append(change.key)

    first.offer({"user_id": "u1", "v": 1})
    second.offer({"id": "e1", "user_id": "u1", "v": 1})
    return project, clock, done


def test_an_enrolment_waits_for_its_user() -> None:
    project, _, done = declare(after=["users"])
    project.worker(["enrolments"]).once(project.chance())
    assert done == []
    assert project.ledger.rows("enrolments", ['["e1"]'])['["e1"]'].waits_for == 'users ["u1"]'
    project.worker().drain(60_000_000)
    assert done == ['["u1"]', '["e1"]']


def test_it_is_woken_as_soon_as_the_user_is_done() -> None:
    project, clock, done = declare(after={"users": ["user_id"]})
    project.worker(["enrolments"]).once(project.chance())
    project.worker(["users"]).once(project.chance())
    before = clock.now_us()
    project.worker(["enrolments"]).once(project.chance())
    assert done == ['["u1"]', '["e1"]']
    assert clock.now_us() == before


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (["user"], "which there is not"),
        (["enrolments"], "wait for each other"),
        ({"users": ["nothing"]}, "do not hold"),
    ],
)
def test_what_can_not_be_waited_for_is_an_error_at_start(after: object, said: str) -> None:
    project, _, _ = declare(after=after)
    with pytest.raises(ConfigError, match=said):
        project.worker()
