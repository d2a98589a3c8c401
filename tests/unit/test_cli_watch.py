"""What a working process shows of itself: rates, what waits, what is paused; and that looking costs little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest

import trueup
from trueup.cli.service import Objects
from trueup.cli.terminal import END_WORDS
from trueup.cli.watch import Backlog, Hold, Look, Watch, line, lines, summary
from trueup.errors import StateError
from trueup.model.row import Finish
from trueup.testing.clock import ManualClock

NOW_US = 1_800_000_000_000_000
LOOK = Look(NOW_US, 12.34, {"done": 1_204, "retry": 3}, [Backlog("orders", 340, NOW_US - 90_000_000)], [])


@pytest.fixture
def clock() -> ManualClock:
    """The time of store and process."""
    return ManualClock()


@pytest.fixture
def project(clock: ManualClock) -> Iterator[trueup.Project]:
    with trueup.Project("memory:", clock=clock) as made:
        for name in ("orders", "refunds"):
            made.pair(name, authority=trueup.Memory([{"id": 0, "v": 1}], key="id", version="v"), settle=0)
        yield made


@pytest.fixture
def watch(project: trueup.Project) -> Watch:
    return Watch(project, list(project.pairs))


def test_every_end_of_a_job_has_its_words() -> None:
    assert list(END_WORDS) == list(get_args(get_type_hints(Finish)["result"]))


def test_the_rate_is_that_of_the_last_ten_seconds(watch: Watch, clock: ManualClock) -> None:
    clock.advance(60)
    watch.ended(Counter(done=50, retry=10))
    clock.advance(5)
    watch.ended(Counter(done=40))
    assert watch.look().jobs_per_s == 10
    clock.advance(5.1)
    assert watch.look().jobs_per_s == 4
    clock.advance(10)
    assert watch.look().jobs_per_s == 0
    assert watch.look().ended == {"done": 90, "retry": 10}


def test_a_young_process_counts_by_its_own_age(watch: Watch, clock: ManualClock) -> None:
    clock.advance(2)
    watch.ended(Counter(done=10))
    assert watch.look().jobs_per_s == 5


def test_what_waits_is_counted_for_each_pair(watch: Watch, project: trueup.Project, clock: ManualClock) -> None:
    project.find("orders").offer([{"id": at, "v": 1} for at in range(3)])
    clock.advance(90)
    assert watch.look().backlogs == [Backlog("orders", 3, clock.now_us() - 90_000_000), Backlog("refunds", 0, None)]


def test_work_that_is_not_due_yet_is_pending_and_not_late(watch: Watch, project: trueup.Project) -> None:
    project.find("orders").offer({"id": 1, "v": 1})
    project.ledger.claim(["orders"], 1, "somebody", 60_000_000, 5)
    assert watch.look().backlogs[0] == Backlog("orders", 1, None)


def test_paused_systems_are_named_with_reason_and_end(
    watch: Watch, project: trueup.Project, clock: ManualClock
) -> None:
    project.budgets.failed("refunds", "it asked for a pause (429)", 90_000_000)
    project.budgets.pause("orders", "upgrade")
    assert watch.look().holds == [
        Hold("orders", "upgrade", None),
        Hold("refunds", "it asked for a pause (429)", clock.now_us() + 90_000_000),
    ]


def test_a_pause_of_everything_is_said_once(watch: Watch, project: trueup.Project) -> None:
    project.budgets.pause("*", "what is going on?")
    assert watch.look().holds == [Hold("*", "what is going on?", None)]


def test_counting_takes_a_fiftieth_of_the_time_at_most(
    watch: Watch, project: trueup.Project, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.find("orders").offer({"id": 1, "v": 1})
    counted = []
    real = project.ledger.busy

    def slow(pair: str) -> dict[str, int]:
        counted.append(pair)
        clock.advance(3)
        return real(pair)

    monkeypatch.setattr(project.ledger, "busy", slow)
    for _ in range(300):
        watch.look()
        clock.advance(1)
    assert len(counted) in (2, 3)


def test_a_store_that_is_away_does_not_end_the_display(
    watch: Watch, project: trueup.Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Objects(watch, 1.0)
    with monkeypatch.context() as away:
        away.setattr(project.ledger, "next_due_us", _raise)
        assert shown._tick()
        assert capsys.readouterr().out == ""
    assert shown._tick()
    assert '"jobs_per_s": 0.0' in capsys.readouterr().out


def _raise(pairs: object) -> None:
    raise StateError("the store does not answer.")


def test_a_line_for_a_log() -> None:
    assert line(LOOK) == "1,204 done, 3 to try again; 12.3 jobs/s; 340 pending"
    held = replace(LOOK, holds=[Hold("*", "night", None)])
    assert line(held).endswith("; everything is paused until trueup resume --all: night")
    assert summary({}) == "nothing was due"


def test_the_pair_with_the_oldest_work_comes_first_and_many_are_cut() -> None:
    late = [Backlog(f"pair{at}", 1, NOW_US - at * 1_000_000) for at in range(1, 12)]
    shown = list(lines(replace(LOOK, backlogs=[Backlog("quiet", 0, None), *late])))
    assert shown[0] == "12.3 jobs/s   1,204 done, 3 to try again"
    assert shown[1] == "  pair11  1 pending, due for 11.0 s"
    assert shown[-1] == "  … 4 more pairs, 3 pending"


def test_many_paused_systems_are_cut() -> None:
    shown = list(lines(replace(LOOK, holds=[Hold(f"s{at}", "why", None) for at in range(10)])))
    assert shown[-1] == "  … 2 more systems are paused"
    assert "  s0 is paused until trueup resume s0: why" in shown
