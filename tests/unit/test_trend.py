"""Drift over time: what is merged is neither lost nor counted twice, stays small, and names defects, not noise."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import ConfigError
from trueup.model.trend import (
    BUCKETS_MAX,
    EVERY,
    FIELDS_MAX,
    OTHERS,
    RECORD,
    Bucket,
    DefectRule,
    Length,
    RunDrift,
    Streak,
    Tally,
    added,
    defect_rule,
    folded,
    placed,
    streaks,
)

DAY_US = 86_400_000_000
RULE = DefectRule(after=3, share=0.01)


def us(day: str) -> int:
    return int(dt.datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()) * 1_000_000


def run_drift(at_us: int, *tallies: Tally, compared: int = 1_000, whole: bool = True) -> RunDrift:
    return RunDrift("orders", 1, at_us, compared, whole, tallies)


# What runs of ten years find: on which day, and how many records by field.
RUNS = st.lists(
    st.tuples(st.integers(0, 3_650), st.dictionaries(st.sampled_from(["fee", "name", "at"]), st.integers(1, 9))),
    max_size=25,
).map(
    lambda runs: [
        run_drift(day * DAY_US + 5, *(Tally("behind", field, count) for field, count in found.items()))
        for day, found in sorted(runs, key=lambda run: run[0])
    ]
)


def sums(buckets: list[Bucket]) -> Counter[tuple[str, str, str]]:
    """Runs, records and compared by cause and field."""
    found: Counter[tuple[str, str, str]] = Counter()
    for each in buckets:
        for name in ("runs", "records", "compared"):
            found[each.cause, each.field, name] += getattr(each, name)
    return found


@given(RUNS)
def test_whether_it_is_merged_after_each_run_or_once_makes_no_difference(runs: list[RunDrift]) -> None:
    stepwise: list[Bucket] = []
    for each in runs:
        stepwise = added(stepwise, each)
    now_us = runs[-1].at_us if runs else 0
    assert stepwise == folded([bucket for each in runs for bucket in each.buckets()], now_us)
    assert folded(stepwise, now_us) == stepwise


@given(RUNS, st.integers(0, 900))
def test_merging_loses_nothing_but_what_is_forgotten(runs: list[RunDrift], later: int) -> None:
    now_us = 3_650 * DAY_US + later * DAY_US
    every = [bucket for each in runs for bucket in each.buckets()]
    kept = [each for each in every if placed(each.length, each.from_us, now_us) is not None]
    assert +sums(folded(every, now_us)) == +sums(kept)
    # What is forgotten is more than three years old.
    assert all(now_us - each.from_us > 3 * 365 * DAY_US for each in every if each not in kept)


@given(st.integers(0, 40_000))
def test_a_pair_that_runs_every_day_for_ever_has_few_rows(today: int) -> None:
    days = range(max(0, today - 1_500), today + 1)
    places = {placed(Length.DAY, day * DAY_US, today * DAY_US) for day in days} - {None}
    assert len(places) <= BUCKETS_MAX
    lengths = [length for length, _ in sorted((p for p in places if p is not None), key=lambda place: place[1])]
    assert lengths == sorted(lengths, key=[Length.MONTH, Length.WEEK, Length.DAY].index)


@given(st.dictionaries(st.text("abcdefgh", min_size=3, max_size=4), st.integers(1, 99), max_size=3 * FIELDS_MAX))
def test_a_wide_table_has_few_rows_too(found: dict[str, int]) -> None:
    drift = run_drift(5, Tally("behind", RECORD, 99), *(Tally("behind", name, count) for name, count in found.items()))
    once, twice = added([], drift), added(added([], drift), drift)
    fields = {each.field: each.records for each in once if each.field}
    assert sum(fields.values()) == sum(found.values())
    assert len(fields) <= FIELDS_MAX + 1
    named = [count for field, count in fields.items() if field != OTHERS]
    assert len(found) <= FIELDS_MAX or min(named) >= max(count for name, count in found.items() if name not in fields)
    assert sum(each.records for each in twice if each.field) == 2 * sum(found.values())


@pytest.mark.parametrize(
    ("day", "today", "length", "begins"),
    [
        ("2026-11-30", "2026-11-30", "day", "2026-11-30"),
        ("2026-11-16", "2026-11-30", "day", "2026-11-16"),  # two weeks before this one
        ("2026-11-15", "2026-11-30", "week", "2026-11-09"),
        ("2026-08-03", "2026-11-30", "week", "2026-08-03"),
        ("2026-08-02", "2026-11-30", "month", "2026-07-01"),  # its week began in July
        ("2023-11-06", "2026-11-30", "month", "2023-11-01"),
        ("2026-12-24", "2026-11-30", "day", "2026-12-24"),  # a clock that went back merges nothing
    ],
)
def test_where_a_day_belongs(day: str, today: str, length: str, begins: str) -> None:
    assert placed(Length.DAY, us(day), us(today)) == (Length(length), us(begins))


def test_what_is_older_than_three_years_is_forgotten() -> None:
    assert placed(Length.MONTH, us("2023-10-01"), us("2026-11-30")) is None


def test_a_run_that_found_nothing_is_known_to_have_looked() -> None:
    assert added([], run_drift(7)) == [Bucket("orders", Length.DAY, 0, EVERY, RECORD, 1, 0, 1_000)]


# ── streaks ──────────────────────────────────────────────────────────────────────────────────────────


def after(*runs: RunDrift, rule: DefectRule = RULE) -> tuple[Streak, ...]:
    found: tuple[Streak, ...] = ()
    for number, each in enumerate(runs, 1):
        found = streaks(found, replace(each, run=number, at_us=number), rule)
    return found


FEE = Tally("behind", "fee", 20, examples=('["1"]',))
MANY, NOTHING = run_drift(0, FEE), run_drift(0)
FEW = run_drift(0, replace(FEE, records=9))
WAITS = run_drift(0, replace(FEE, records=0, waiting=20))


def test_runs_running_are_a_streak() -> None:
    [streak] = after(NOTHING, MANY, MANY, MANY)
    assert streak == Streak("orders", "behind", "fee", 3, 2, 4, 20, 1_000, 60, ('["1"]',))
    assert streak.share == 0.02


@pytest.mark.parametrize(
    ("runs", "length"),
    [
        ([MANY, NOTHING], 0),
        ([MANY, FEW], 0),
        ([FEW, FEW, FEW], 0),
        ([MANY, NOTHING, MANY], 1),
        ([MANY, WAITS, MANY], 2),  # what waits for a person did not drift again
        ([WAITS, WAITS, WAITS], 0),
        ([MANY, replace(NOTHING, whole=False), MANY], 2),  # it did not look at everything
        ([MANY, replace(FEW, whole=False), MANY], 2),
        ([MANY, replace(MANY, whole=False)], 2),
        ([MANY, replace(MANY, compared=2_001)], 0),  # a smaller share
        ([MANY, run_drift(0, replace(FEE, cause="edited"))], 1),
    ],
)
def test_what_makes_a_streak_longer_and_what_ends_it(runs: list[RunDrift], length: int) -> None:
    assert sum(each.runs for each in after(*runs)) == length


def test_records_that_a_side_lacks_and_fields_without_a_name_are_no_streak() -> None:
    assert after(run_drift(0, Tally("missing", RECORD, 500), Tally("behind", OTHERS, 500))) == ()


@given(st.integers(1, 5), st.integers(0, 20))
def test_a_question_is_asked_again_after_as_many_runs(rule_after: int, runs: int) -> None:
    rule = DefectRule(rule_after)
    streak = Streak("orders", "behind", "fee", runs, 0, 1, 20, 1_000, 20)
    assert rule.asks(streak) == (runs >= rule_after and runs % rule_after == 0)
    assert rule.names(streak) == (runs >= rule_after)


def test_no_rule_no_streak() -> None:
    assert after(MANY, MANY, MANY, rule=DefectRule(0)) == ()
    assert not DefectRule(0).asks(Streak("orders", "behind", "fee", 9, 0, 1, 20, 1_000, 20))


@pytest.mark.parametrize(
    ("declared", "said"), [((-1, 0.1), "defect_after"), ((True, 0.1), "defect_after"), ((3, 2), "defect_share")]
)
def test_what_is_no_rule(declared: tuple[int, float], said: str) -> None:
    with pytest.raises(ConfigError, match=f"pair orders: {said} is"):
        defect_rule("orders", *declared)
