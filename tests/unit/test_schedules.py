"""When runs are due: laws of schedules, and the two nights of the year on which the clocks change."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup
from trueup.errors import ConfigError
from trueup.model.blackout import Blackout
from trueup.model.schedule import COUNT_MAX, Schedule, blackout_of, schedule
from trueup.model.turn import overdue_after_us

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia"]
LINES = ["0 * * * *", "*/15 * * * *", "30 2 * * *", "0 0 * * *", "0 3 * * Sun", "5,35 1-3 * * *", "0 */6 * * *"]
YEARS = range(2008, 2038)
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000


def us(*moment: int, zone: str = "UTC") -> int:
    return round(dt.datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()) * 1_000_000  # type: ignore[misc, arg-type]


def wall(at_us: int, zone: str) -> dt.datetime:
    return dt.datetime.fromtimestamp(at_us / 1e6, ZoneInfo(zone))


def times(found: Schedule, after_us: int, until_us: int) -> list[int]:
    answer = []
    while (after_us := found.next_due(after_us)) < until_us:
        answer.append(after_us)
    return answer


def changes_of_clocks(zone: str, years: range) -> list[int]:
    """Hours, as microseconds, within which the zone's clocks change."""
    hours = range(us(years[0], 1, 1), us(years[-1] + 1, 1, 1), 3_600_000_000)
    offsets = [wall(at_us, zone).utcoffset() for at_us in hours]
    return [hours[at] for at in range(1, len(hours)) if offsets[at] != offsets[at - 1]]


# ── cron lines ───────────────────────────────────────────────────────────────────────────────────────


def test_C100_a_daily_job_runs_once_in_autumn_once_in_spring_and_365_times_a_year() -> None:
    nightly = Schedule("30 2 * * *", zone="Europe/Berlin")
    autumn, spring = us(2027, 10, 31), us(2027, 3, 28)
    assert times(nightly, autumn, autumn + DAY_US) == [us(2027, 10, 31, 0, 30)]
    assert times(nightly, spring, spring + DAY_US) == [us(2027, 3, 28, 1)]  # 03:00, as soon as the clock has jumped
    year = times(nightly, us(2027, 1, 1, zone="Europe/Berlin") - 1, us(2028, 1, 1, zone="Europe/Berlin"))
    assert len(year) == 365


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("line", ["30 2 * * *", "0 0 * * *"])
def test_a_daily_job_runs_once_on_every_date_of_thirty_years(zone: str, line: str) -> None:
    found = Schedule(line, zone=zone)
    start, end = us(YEARS[0], 1, 1, zone=zone) - 1, us(YEARS[-1] + 1, 1, 1, zone=zone)
    dates = Counter(wall(at_us, zone).date() for at_us in times(found, start, end))
    every = {dt.date(YEARS[0], 1, 1) + dt.timedelta(days) for days in range((end - start) // DAY_US)}
    if zone == "Pacific/Apia":  # it left out 2011-12-30: the run of that day comes as the next one begins
        every -= {dt.date(2011, 12, 30)}
        assert dates.pop(dt.date(2011, 12, 31)) == (1 if line.startswith("0 0") else 2)
        every -= {dt.date(2011, 12, 31)}
    assert {date: count for date, count in dates.items() if count != 1} == {}
    assert every - set(dates) == set()


@pytest.mark.parametrize("zone", ZONES)
def test_a_weekly_job_runs_once_a_week_for_thirty_years(zone: str) -> None:
    found = times(Schedule("0 3 * * Sun", zone=zone), us(YEARS[0], 1, 1), us(YEARS[-1] + 1, 1, 1))
    assert {wall(at_us, zone).weekday() for at_us in found} == {6}
    gaps = {round((later - sooner) / DAY_US) for sooner, later in pairwise(found)}
    assert gaps == ({6, 7} if zone == "Pacific/Apia" else {7})  # it left out a day in 2011


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("line", "minutes"), [("0 * * * *", 60), ("*/15 * * * *", 15)])
def test_lines_of_real_time_keep_their_rhythm_when_clocks_change(zone: str, line: str, minutes: int) -> None:
    found = Schedule(line, zone=zone)
    for change_us in changes_of_clocks(zone, YEARS):
        around = times(found, change_us - DAY_US // 4, change_us + DAY_US // 4)
        gaps = {later - sooner for sooner, later in pairwise(around)}
        if zone == "Australia/Lord_Howe":  # half an hour: full hours of the wall are not an hour apart
            assert gaps <= {minutes * MINUTE_US, 30 * MINUTE_US, 90 * MINUTE_US}
        else:
            assert gaps == {minutes * MINUTE_US}
        assert {wall(at_us, zone).minute % minutes for at_us in around} == {0}


def reference(line: str, zone: str, start_us: int, end_us: int) -> list[int]:
    """All times of a line with a fixed minute and hour, by looking at every wall minute of every day."""
    minutes, hours, _, _, days = line.split()
    found = set()
    date = wall(start_us, zone).date() - dt.timedelta(days=1)
    while date <= wall(end_us, zone).date():
        for hour in range(24):
            for minute in range(60):
                if not (_matches(minutes, minute) and _matches(hours, hour)):
                    continue
                if days != "*" and date.strftime("%a") != days:
                    continue
                moment = dt.datetime.combine(date, dt.time(hour, minute))
                while (at := moment.replace(tzinfo=ZoneInfo(zone))).astimezone(dt.UTC).astimezone(ZoneInfo(zone)) != at:
                    moment += dt.timedelta(minutes=1)
                found.add(round(at.timestamp()) * 1_000_000)
        date += dt.timedelta(days=1)
    return sorted(each for each in found if start_us < each < end_us)


def _matches(field: str, value: int) -> bool:
    if "-" in field:
        low, high = field.split("-")
        return int(low) <= value <= int(high)
    return value in {int(each) for each in field.split(",")}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("line", ["30 2 * * *", "0 0 * * *", "5,35 1-3 * * *", "0 3 * * Sun"])
def test_fixed_times_are_those_on_the_wall(zone: str, line: str) -> None:
    """Given a look at each minute around each change of the clocks, I expect the same times."""
    found = Schedule(line, zone=zone)
    for change_us in changes_of_clocks(zone, range(2024, 2028)):
        start_us, end_us = change_us - 2 * DAY_US, change_us + 2 * DAY_US
        assert times(found, start_us, end_us) == reference(line, zone, start_us, end_us)


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────

moments = st.integers(us(2008, 1, 1), us(2037, 1, 1))
windows = st.lists(
    st.sampled_from(["22:00-06:00", "Sat", "Sat,Sun", "Mon-Fri 08:00-18:00", "02:00-03:00", "Sun 20:00-24:00"]),
    max_size=3,
)
rules = st.sampled_from([*LINES, "1m", "10m", "7h", "1d", "90s"])


@st.composite
def schedules(draw: st.DrawFn, windows: st.SearchStrategy[list[str]] = windows) -> Schedule:
    zone = draw(st.sampled_from(ZONES))
    jitter = draw(st.sampled_from([None, "5m", 0]))
    closed = blackout_of(draw(windows), zone, "p")
    name = draw(st.text("abc", min_size=1))
    return schedule(draw(rules), pair=name, what="sweep", zone=zone, start_jitter=jitter, blackout_=closed)


@given(schedules(), moments)
def test_the_next_time_is_later_and_nothing_lies_between(found: Schedule, at_us: int) -> None:
    due_us = found.next_due(at_us)
    assert due_us > at_us
    for between_us in (at_us + 1, (at_us + due_us) // 2, due_us - 1):
        if at_us <= between_us < due_us:
            assert found.next_due(between_us) == due_us


@given(schedules(), moments)
def test_no_time_lies_in_a_blackout(found: Schedule, at_us: int) -> None:
    for _ in range(20):
        at_us = found.next_due(at_us)
        assert found.opens_us(at_us) == at_us


@given(schedules(), moments, st.integers(0, 3 * DAY_US))
def test_what_is_counted_is_what_is_there(found: Schedule, start_us: int, took_us: int) -> None:
    listed = times(found, start_us, start_us + took_us + 1)
    assert found.count(start_us, start_us + took_us) == len(listed)


@given(schedules(st.just([])), moments)
def test_counts_of_two_spans_add_up(found: Schedule, start_us: int) -> None:
    middle_us, end_us = start_us + DAY_US // 3, start_us + DAY_US
    parts = found.count(start_us, middle_us) + found.count(middle_us, end_us)
    assert parts == found.count(start_us, end_us)


def test_counting_ends_somewhere() -> None:
    found = Schedule("* * * * *")
    assert found.count(us(2020, 1, 1), us(2030, 1, 1)) == COUNT_MAX


# ── shift ────────────────────────────────────────────────────────────────────────────────────────────


def made(rule: str | float, pair: str = "orders", jitter: str | float | None = None) -> Schedule:
    return schedule(rule, pair=pair, what="sweep", zone="UTC", start_jitter=jitter, blackout_=Blackout())


def test_intervals_of_many_pairs_spread_over_the_whole_interval() -> None:
    shifts = sorted(made("10m", f"tenant {at}").shift_us for at in range(1_000))
    assert shifts[0] < 5_000_000
    assert shifts[-1] > 595_000_000
    halves = Counter(shift * 10 // 600_000_000 for shift in shifts)
    assert min(halves.values()) > 60


def test_a_shift_is_the_same_for_everybody_and_another_for_each_schedule() -> None:
    assert made("10m") == made("10m")
    other = schedule("10m", pair="orders", what="compare", zone="UTC", start_jitter=None, blackout_=Blackout())
    assert other.shift_us != made("10m").shift_us


def test_a_cron_line_is_shifted_where_that_is_declared() -> None:
    assert made("0 3 * * *").shift_us == 0
    shifts = {made("0 3 * * *", f"tenant {at}", "30m").shift_us for at in range(200)}
    assert 0 <= min(shifts) < max(shifts) < 30 * MINUTE_US
    assert len(shifts) > 150
    assert made("10m", jitter=0).next_due(us(2026, 1, 1)) == us(2026, 1, 1, 0, 10)


# ── blackout ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_falls_into_a_blackout_starts_once_at_its_end() -> None:
    closed = blackout_of(["22:00-06:00", "Sat"], "Europe/Berlin", "p")
    found = Schedule("10m", every_us=600_000_000, blackout=closed)
    friday = us(2026, 11, 27, 21, 45, zone="Europe/Berlin")
    assert times(found, friday, us(2026, 11, 29, 6, 15, zone="Europe/Berlin")) == [
        us(2026, 11, 27, 21, 50, zone="Europe/Berlin"),
        us(2026, 11, 29, 6, zone="Europe/Berlin"),
        us(2026, 11, 29, 6, 10, zone="Europe/Berlin"),
    ]


@pytest.mark.parametrize(("at", "ends"), [
    ((2026, 11, 28, 12), (2026, 11, 29, 0)),  # Saturday
    ((2026, 11, 29, 12), None),
    ((2026, 11, 30, 8), (2026, 11, 30, 18)),  # Monday
    ((2026, 11, 30, 18), None),
    ((2026, 12, 2, 23), (2026, 12, 3, 4)),  # Wednesday
    ((2026, 12, 3, 3), (2026, 12, 3, 4)),
    ((2026, 12, 4, 3), None),
])  # fmt: skip
def test_windows_are_days_times_or_both(at: tuple[int, ...], ends: tuple[int, ...] | None) -> None:
    closed = blackout_of(["sat", "Mon-Tue 08:00-18:00", "Wed 22:00-04:00"], "UTC", "p")
    assert closed.end_us(us(*at)) == us(*(ends or at))


def test_a_blackout_is_on_the_wall_when_clocks_change() -> None:
    closed = blackout_of(["01:30-02:30"], "Europe/Berlin", "p")
    autumn, spring = us(2027, 10, 31), us(2027, 3, 28)
    # Both hours of the autumn night are covered: from 01:30 to the second 02:30.
    assert closed.end_us(us(2027, 10, 30, 23, 30)) == autumn + 90 * MINUTE_US
    # 02:30 does not exist: it ends as the clock jumps.
    assert closed.end_us(spring + 45 * MINUTE_US) == spring + 60 * MINUTE_US


# ── declarations ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("rule", "says"), [
    ("ten minutes", "is no schedule"), ("10", "is no schedule"), ("", "is no schedule"), ("0 3 * *", "is no schedule"),
    ("0 3 * * * *", "is no schedule"), ("@daily", "is no schedule"), (True, "is no schedule"),
    ("0s", "too often"), (0.5, "too often"), ("61 3 * * *", "its minute is wrong"), ("0 24 * * *", "its hour"),
    ("0 3 30 2 *", "day-of-month"), ("0 3 * 13 *", "its month"), ("0 3 * * 8", "day-of-week"),
])  # fmt: skip
def test_a_rule_that_is_none_says_what_is_wrong(rule: str | float, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        made(rule)
    assert "pair orders: sweep" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("window", ["22-06", "25:00-26:00", "", "Sa", "10:00-10:00", "10:70-11:00", "Mon 10:00"])
def test_a_window_that_is_none_says_so(window: str) -> None:
    with pytest.raises(ConfigError, match="pair orders: blackout"):
        blackout_of([window], "UTC", "orders")


def pair(**options: object) -> trueup.Project:
    project = trueup.Project("memory:")
    side = trueup.Memory([{"id": 1, "v": 1}], key="id", version="v")
    project.pair("orders", authority=side, **options)
    return project


@pytest.mark.parametrize(("options", "says"), [
    ({"blackout": ["Mon-Sun"], "sweep": "1h"}, "leaves no time at all"),
    ({"zone": "Mars/Olympus", "sweep": "1h"}, "is not a time zone"),
    ({"compare": "1h"}, "compare needs a replica"),
    ({"compare_changed": "1h"}, "compare_changed needs a replica"),
    ({"sweep": "1h", "start_jitter": "much"}, "start_jitter"),
])  # fmt: skip
def test_a_pair_checks_its_schedules_where_they_are_declared(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        pair(**options)


def test_a_pair_keeps_the_schedules_that_are_declared() -> None:
    found = pair(sweep=600, blackout="Sat", zone="Europe/Berlin").pairs["orders"].pair.schedules
    assert list(found) == ["sweep"]
    assert str(found["sweep"]) == "every 600s"
    assert str(made("0  3 * * *")) == "0 3 * * * UTC"


def test_a_run_is_overdue_after_its_interval_wherever_in_it_it_was_due() -> None:
    hourly = schedule(
        "1h", pair="p", what="sweep", zone="UTC", start_jitter=None, blackout_=blackout_of([], "UTC", "p")
    )
    assert {overdue_after_us(hourly, us(2026, 1, 1) + minute * MINUTE_US) for minute in range(60)} == {60 * MINUTE_US}
