"""What counts as wrong: each condition, its cause and command, from when on, and that nothing else is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from trueup.config import HealthOptions
from trueup.engine.health import Seen, conditions_of, conditions_of_store
from trueup.engine.report import Status
from trueup.engine.schedules import ScheduleStatus
from trueup.engine.systems import Spending, SystemStatus
from trueup.errors import ConfigError
from trueup.model.case import HELD, Case
from trueup.model.condition import CONDITIONS, STATE, Condition, Severity
from trueup.model.presence import SILENT_US, Presence
from trueup.model.pulse import Pulse
from trueup.model.run import Run
from trueup.model.thresholds import DEFAULT, OPTIONS, thresholds
from trueup.model.trend import Streak
from trueup.pair import Pair, declare
from trueup.sides.memory import Memory

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
NOW_US = 1_800_000_000_000_000
RUNBOOK = Path(__file__).parents[2] / "docs/runbook"


def pair(**health: Any) -> Pair:
    side = Memory([{"id": 1}], key="id")
    return declare("orders", authority=side, replica=Memory([{"id": 1}], key="id"), sweep="10m", health=health)


def status(**changes: Any) -> Status:
    good = Status(
        pair="orders", adopted=True, counts={}, cases=0, oldest_case_us=None, oldest_due_us=None, last_run=None,
        last_success_us=None, now_us=NOW_US, word="in agreement", next_command=None,
    )  # fmt: skip
    return replace(good, **changes)


def system(**changes: Any) -> SystemStatus:
    free = SystemStatus("erp", False, None, None, "", (), None, None, 0, None, None, None)
    return replace(free, **changes)


def run(ago_us: int = 0, ended: str = "done", **changes: Any) -> Run:
    began = Run("orders", "run", NOW_US - ago_us, ended=ended, ended_us=None if ended == "open" else NOW_US - ago_us)
    return replace(began, **changes)


def compares(*read: int) -> list[Run]:
    """Comparisons that read so many records of both sides, the newest last."""
    return [run(counts={"left": count, "right": count}) for count in reversed(read)]


def found(seen: Seen | None = None, limits: dict[str, Any] | None = None, **changes: Any) -> list[Condition]:
    return conditions_of(pair(**(limits or {})), status(**changes), seen or Seen())


def schedule(late_us: int, **changes: Any) -> ScheduleStatus:
    due = ScheduleStatus("sweep", "every 10m", NOW_US - late_us, may_start=True, overdue_after_us=10 * MINUTE_US)
    return replace(due, **changes)


def names(conditions: list[Condition]) -> list[str]:
    return [each.name for each in conditions]


def test_where_nothing_is_wrong_nothing_is_said() -> None:
    assert found() == []
    assert conditions_of_store(DEFAULT, [], NOW_US, NOW_US) == []


def test_a_run_that_does_not_start_is_overdue_after_its_threshold() -> None:
    assert found(schedules=[schedule(10 * MINUTE_US)]) == []
    [late] = found(schedules=[schedule(10 * MINUTE_US + 1)])
    assert (late.name, late.severity, late.command) == ("overdue", "critical", "trueup serve --only scheduler")
    assert late.cause == "its sweep (every 10m) was due 2027-01-15 07:49:59 UTC and nobody starts it"
    assert names(found(schedules=[schedule(2_000_000)], limits={"overdue": "1s"})) == ["overdue"]
    assert found(schedules=[schedule(HOUR_US, may_start=False)]) == []


def test_a_run_that_failed_is_overdue_only_once_its_next_try_is() -> None:
    tried = schedule(HOUR_US, failures=3, retry_us=NOW_US - MINUTE_US)
    assert found(schedules=[tried]) == []
    assert names(found(schedules=[replace(tried, retry_us=NOW_US - 11 * MINUTE_US)])) == ["overdue"]


def test_a_run_without_a_sign_of_life_is_stuck_and_not_overdue_as_well() -> None:
    silent = run(HOUR_US, "open", number=7, owner="app-1:4121:ab", lease_until_us=NOW_US - 6 * MINUTE_US)
    [stuck] = found(last_run=silent, schedules=[schedule(HOUR_US)])
    assert (stuck.name, stuck.severity, stuck.command) == ("stuck", "critical", "trueup run orders")
    assert "run 7 (run) has given no sign of life since" in stuck.cause
    assert "its process is 4121 on app-1" in stuck.cause


def test_a_run_that_takes_too_long_is_a_warning() -> None:
    long = run(7 * HOUR_US, "open", owner="a:1:b", lease_until_us=NOW_US + MINUTE_US)
    assert [(each.name, each.severity) for each in found(last_run=long)] == [("stuck", "warning")]
    assert found(last_run=replace(long, started_us=NOW_US - 5 * HOUR_US)) == []


def test_runs_that_fail_say_why_and_since_when() -> None:
    failed = [
        run(at_us, "failed", error="SchemaError: orders: there is no column v. Add it.")
        for at_us in (MINUTE_US, 5 * MINUTE_US)
    ]
    [failing] = found(Seen([*failed, run(HOUR_US)]))
    assert (failing.name, failing.command) == ("failing", "trueup run orders")
    assert failing.cause == "its run fails: orders: there is no column v. Add it"
    assert failing.since_us == NOW_US - 5 * MINUTE_US
    assert found(Seen([failed[0], run(HOUR_US)])) == []  # not for long yet
    assert found(Seen([run(), *failed])) == []


def test_a_scheduled_kind_that_fails_is_seen_behind_others_that_do_not() -> None:
    """Given that sweeps succeed and hourly comparisons fail, I expect the pair to be failing."""
    both = declare(
        "orders",
        authority=Memory([{"id": 1}], key="id"),
        replica=Memory([{"id": 1}], key="id"),
        sweep="1m",
        compare="1h",
    )
    runs = [run(what="sweep"), run(HOUR_US, "failed", what="compare", error="BadInput: x")]
    assert names(conditions_of(both, status(), Seen(runs))) == ["failing"]


def test_an_error_that_is_not_ours_may_hold_values_and_is_not_repeated() -> None:
    [failing] = found(Seen([run(HOUR_US, "failed", error="ValueError: Zoë owes 12.50")]))
    assert failing.cause == "its run fails: ValueError"


def test_a_system_in_trouble_is_unreachable_once_whatever_its_runs_say() -> None:
    trouble = system(paused=True, troubled=True, reason="no answer", since_us=NOW_US - 3 * MINUTE_US)
    refused = run(HOUR_US, "failed", error="Unreachable: the login was refused.")
    [only] = found(Seen([refused]), systems=[trouble])
    assert (only.name, only.subject, only.cause) == ("unreachable", "orders", "erp is in trouble: no answer")
    [alone] = found(Seen([refused]))
    assert (alone.ident, alone.cause) == (only.ident, "its run fails: the login was refused")
    assert found(systems=[replace(trouble, since_us=NOW_US - MINUTE_US)]) == []


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ((100, 100, 51), []),
        ((100, 100, 49), [("few-records", Severity.WARNING)]),
        ((100, 0), [("few-records", Severity.CRITICAL)]),
        ((3, 0), [("few-records", Severity.CRITICAL)]),
        ((10, 4), []),  # so few that a share means nothing
        ((0, 0), []),
        ((100, 40, 40, 40), [("few-records", Severity.WARNING)]),  # what was few is not usual
        ((100, 40, 90), []),
        ((), []),
    ],
)
def test_few_records_are_seen_beside_what_is_usual(read: tuple[int, ...], expected: list[Any]) -> None:
    assert [(each.name, each.severity) for each in found(Seen(compares=compares(*read)))] == expected


def test_a_plan_that_a_breaker_holds_and_an_old_case_are_two_things() -> None:
    held = Case("orders", HELD, "held", NOW_US, number=4, cause="12 deletes, and 5 are allowed.")
    old = Case("orders", '["1"]', "edited", NOW_US - 8 * 24 * HOUR_US, number=3)
    first, second = found(Seen(cases=[old, held]))
    assert (first.name, first.severity, first.command) == ("held", "critical", "trueup review show 4")
    assert (second.name, second.severity, second.command) == ("old-drift", "warning", "trueup review show 3")


def test_a_defect_is_told_without_keys_and_with_how_many_more_there_are() -> None:
    fee = Case(
        "orders", "#defect behind fee", "defect", NOW_US - HOUR_US, number=7, cause="fee is behind, such as 4711."
    )
    name = Case("orders", "#defect edited name", "defect", NOW_US, number=8)
    streak = Streak("orders", "behind", "fee", 3, NOW_US - 50 * HOUR_US, 12, 12, 100, 36, ('["4711"]',))
    (told,) = found(Seen(cases=[name, fee], streaks=[streak]))
    assert (told.name, told.severity, told.command) == ("defect", "warning", "trueup review show 7")
    assert told.cause.startswith("fee is behind in 3 runs running, since 20")
    assert told.cause.endswith(": 12 of 100 records (12.00%) in the last; 1 more like it")
    assert told.since_us == streak.since_us
    # One run that found little ends the streak, and not the question.
    (told,) = found(Seen(cases=[name]))
    assert (told.cause, told.since_us) == ("name was edited in run after run", NOW_US)


def worker(ago_us: int = 0, name: str = "w", stays: bool = True) -> Presence:
    return Presence(name, "app-1", 1, 1, ("orders",), stays, 0, NOW_US - HOUR_US, NOW_US - ago_us)


@pytest.mark.parametrize(
    ("changes", "workers", "cause", "command"),
    [
        ({}, [], "no worker is alive", "trueup worker"),
        ({}, [worker(HOUR_US)], "no worker is alive", "trueup worker"),
        ({}, [worker()], "slower than what comes", "trueup status orders"),
        (
            {"systems": [system(paused=True, next_command="trueup resume erp")]}, [worker()],
            "erp is paused", "trueup resume erp",
        ),
        (
            {"systems": [system(spending=[Spending("9/minute", 9, 9, 9, 9)])]}, [worker()],
            "9/minute of erp is used up", "trueup status orders",
        ),
    ],
)  # fmt: skip
def test_what_waits_says_what_holds_it(changes: Any, workers: Any, cause: str, command: str) -> None:
    waiting = {"counts": {"pending": 12_000}, "oldest_due_us": NOW_US - HOUR_US} | changes
    seen = Seen(workers=workers)
    assert {"backlog", "old-pending"} <= set(names(found(seen, **waiting)))
    for each in found(seen, **waiting):
        assert (cause in each.cause, each.command) == (True, command)
    assert found(seen, limits={"backlog": 12_001, "pending": "1h"}, **waiting) == []


def test_a_pause_is_a_condition_after_an_hour_and_a_limit_that_frees_up_soon_is_none() -> None:
    paused = system(paused=True, paused_by="ann", reason="upgrade", since_us=NOW_US - 2 * HOUR_US)
    [held] = found(systems=[paused])
    assert (held.ident, held.command) == ("paused erp", "trueup resume erp")
    assert "by ann: upgrade" in held.cause
    assert found(systems=[replace(paused, since_us=NOW_US - MINUTE_US)]) == []
    # Trouble that the system itself asked a pause for is no outage.
    asked = replace(paused, troubled=True, reason="erp asked for a pause")
    assert names(found(systems=[asked])) == ["paused"]

    def limit(frees_in_us: int) -> SystemStatus:
        return system(spending=[Spending("9/day from 00:00 UTC", 9, 9, 9, 9, None, frees_in_us)])

    assert [(each.ident, each.severity) for each in found(systems=[limit(2 * HOUR_US)])] == [("budget erp", "critical")]
    assert found(systems=[limit(MINUTE_US)]) == []
    slow = system(lasts_us=9 * HOUR_US, pace="9/hour of erp")
    assert [(each.ident, each.severity) for each in found(systems=[slow])] == [("budget erp", "warning")]


def test_silence_is_a_condition_only_where_it_is_declared() -> None:
    pulse = Pulse("orders", NOW_US - HOUR_US, 3, 3, "no answer")
    assert names(found(Seen(pulse=replace(pulse, in_row=0)))) == []
    assert names(found(Seen(pulse=replace(pulse, in_row=0)), {"event": "30m"})) == ["no-events"]
    assert names(found(Seen(pulse=Pulse("orders")), {"event": "30m"})) == []
    assert names(found(Seen(pulse=pulse))) == ["pings"]


def test_clocks_and_the_growth_of_the_ledger() -> None:
    skewed = run(memo={"skew_us": {"authority": 5, "replica": -40_000_000}})
    [clock] = found(Seen([skewed]))
    assert clock.cause.startswith("the clock of the replica was 40.0 s behind this program's")
    big = {"counts": {"idle": 40_000}}
    assert names(found(Seen(compares=compares(10_000)), **big)) == ["growth"]
    assert found(Seen(compares=compares(20_000)), **big) == []


def test_workers_that_died_lately_and_the_clock_of_the_store() -> None:
    dead = [worker(SILENT_US + at, f"w{at}") for at in (1, 2, 3)]
    [deaths] = conditions_of_store(DEFAULT, [*dead, worker()], NOW_US, NOW_US)
    assert (deaths.name, deaths.command) == ("workers", "trueup worker")
    assert deaths.cause.startswith("3 workers died since")
    assert conditions_of_store(DEFAULT, [*dead[:2], replace(dead[2], stays=False)], NOW_US, NOW_US) == []
    assert conditions_of_store(DEFAULT, dead, NOW_US + HOUR_US, NOW_US + HOUR_US) == []
    [clock] = conditions_of_store(DEFAULT, [], NOW_US, NOW_US + MINUTE_US)
    assert (clock.subject, clock.cause) == (STATE, "the clock of the state store is 1 min behind this host's")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"pending": "soon"}, "pair orders: health pending: 'soon' is not a duration."),
        ({"backlog": -1}, "pair orders: health backlog is -1."),
        ({"few": True}, "pair orders: health few is True."),
        ({"pendng": "1m"}, "pair orders: there is no threshold pendng."),
    ],
)
def test_a_threshold_that_is_wrong_is_named(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        thresholds(declared, "pair orders")
    assert error.value.message == said


def test_every_threshold_stands_in_the_file_too() -> None:
    assert list(HealthOptions.model_fields) == list(OPTIONS)
    assert thresholds(dict.fromkeys(OPTIONS), "x") == DEFAULT
    assert all(getattr(DEFAULT, each.name) == each.default for each in fields(DEFAULT))


def test_each_condition_has_its_page_and_each_page_its_condition() -> None:
    assert sorted(path.stem for path in RUNBOOK.glob("*.md") if path.stem != "index") == sorted(CONDITIONS)


@pytest.mark.parametrize("name", sorted(CONDITIONS))
def test_a_page_says_cause_sight_and_mend_on_one_screen(name: str) -> None:
    text = (RUNBOOK / f"{name}.md").read_text("utf-8")
    assert text.startswith(f"# {name}: ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Cause", "How to see it", "How to mend it"]
    assert len(text.splitlines()) <= 40


def test_every_name_that_is_used_is_a_condition() -> None:
    source = (RUNBOOK.parents[1] / "src/trueup/engine/health.py").read_text("utf-8")
    used: Callable[[str], set[str]] = lambda pattern: set(re.findall(pattern, source))  # noqa: E731
    assert used(r'Condition\(\s*"([\w-]+)"') | {"unreachable", "failing"} == set(CONDITIONS)
