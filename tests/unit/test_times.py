"""Dates, times and intervals: any year, infinity, zones, and a day that has 23 or 25 hours."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strategies import BERLIN
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.times import (
    US_PER_DAY,
    date_text,
    days_from_civil,
    interval_text,
    parse_date,
    parse_interval,
    parse_us,
    time_text,
    timestamp_text,
    timestamp_us,
)

EPOCH = dt.date(1970, 1, 1)


@given(st.dates())
def test_days_agree_with_the_calendar_of_python(day: dt.date) -> None:
    days = (day - EPOCH).days
    assert days_from_civil(day.year, day.month, day.day) == days
    assert date_text(days) == day.isoformat()


@given(st.integers(-365_000_000, 365_000_000))
def test_dates_of_any_year_round_trip(days: int) -> None:
    text = date_text(days)
    assert parse_date(text) == text
    assert canonical_text(text, k.DATE) == text


@given(st.integers(-100_000_000, 100_000_000))
def test_the_calendar_repeats_every_400_years(days: int) -> None:
    assert date_text(days)[-6:] == date_text(days + 146_097)[-6:]


@pytest.mark.parametrize(
    "day", [(2023, 2, 29), (1900, 2, 29), (2023, 4, 31), (2023, 13, 1), (2023, 0, 1), (2023, 1, 0)]
)
def test_a_day_that_does_not_exist_is_refused(day: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no such day"):
        days_from_civil(*day)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2025-11-03", "2025-11-03"),
        ("2025-11-03 00:00:00.000000", "2025-11-03"),
        (dt.date(2025, 11, 3), "2025-11-03"),
        (dt.datetime(2025, 11, 3), "2025-11-03"),  # noqa: DTZ001
        ("0001-01-01", "0001-01-01"),
        ("0001-01-01 BC", "0000-01-01"),
        ("0044-03-15 BC", "-0043-03-15"),
        ("10000-01-01", "+10000-01-01"),
        ("294276-12-31", "+294276-12-31"),
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
        ("2025-11-04 00:00:00.000001", "!2025-11-04 00:00:00.000001"),
        ("0000-00-00", "!0000-00-00"),
        ("2023-00-10", "!2023-00-10"),
        ("2023-07-00", "!2023-07-00"),
        ("2023-02-29", "!2023-02-29"),
        ("0000-01-01 BC", "!0000-01-01 BC"),
        ("20251103", "!20251103"),
        ("03/11/2025", "!03/11/2025"),
        ("2025-1-3", "!2025-1-3"),
    ],
)
def test_dates(value: Any, text: str) -> None:
    assert canonical_text(value, k.DATE) == text


@given(st.datetimes())
def test_wall_clock_times_agree_with_python(value: dt.datetime) -> None:
    text = canonical_text(value, k.TIMESTAMP)
    assert text is not None
    assert dt.datetime.fromisoformat(text) == value
    assert canonical_text(value.isoformat(" "), k.TIMESTAMP) == text


@given(st.datetimes(timezones=st.timezones()))
def test_instants_agree_with_python_in_every_zone(value: dt.datetime) -> None:
    text = canonical_text(value, k.INSTANT)
    assert text is not None
    if 1 < value.year < 9999:
        utc = value.astimezone(dt.UTC)
        assert dt.datetime.fromisoformat(text) == utc
        assert canonical_text(utc.isoformat(), k.INSTANT) == text
        assert timestamp_us(value, True, None) == timestamp_us(utc, True, None)


@given(st.integers(-(10**19), 10**19), st.booleans())
def test_timestamps_of_any_year_round_trip(us: int, aware: bool) -> None:
    text = timestamp_text(us, aware)
    assert parse_us(text, aware, None) == us


OFFSETS = st.sampled_from(["Z", "+00:00", "-00:00", "+14:00", "-12:30", "+23:59", "+24:00", "+99:99"])


@given(
    st.integers(-1, 10_000), st.dates(), st.integers(0, 86_410), st.sampled_from(["", ".5", ".250", ".999999"]), OFFSETS
)
@example(1, dt.date(1970, 1, 1), 0, "", "+23:59")
@example(9999, dt.date(1970, 12, 31), 86_399, ".999999", "-12:30")
@example(0, dt.date(1970, 1, 1), 0, "", "Z")
@example(2016, dt.date(1970, 12, 31), 86_400, "", "Z")
def test_the_usual_spelling_means_what_its_parts_mean(
    year: int, day: dt.date, second: int, fraction: str, offset: str
) -> None:
    """Given a time as most systems write it, I expect what the general rules make of the same one with a blank more."""
    minute = min(second // 60, 24 * 60 - 1)
    clock = f"{minute // 60:02}:{minute % 60:02}:{second - minute * 60:02}{fraction}"
    for separator in "T ":
        text = f"{year:04}-{day:%m-%d}{separator}{clock}"
        assert _outcome(text + offset, aware=True) == _outcome(f"{text} {offset}", aware=True)
        longer = f"{text}{'' if fraction else '.'}0000000"
        assert _outcome(text, aware=False) == _outcome(longer, aware=False)


def _outcome(text: str, aware: bool) -> int | str:
    try:
        return parse_us(text, aware, None)
    except ValueError as error:
        return str(error)


@given(st.integers(-62_135_596_800_000_000 - 10, 253_402_300_800_000_000 + 10))
@example(-62_135_596_800_000_000)
@example(253_402_300_800_000_000)
def test_a_timestamp_is_its_date_and_its_time(us: int) -> None:
    days, of_day = divmod(us, US_PER_DAY)
    assert timestamp_text(us, aware=True) == f"{date_text(days)}T{time_text(of_day)}Z"


@given(st.integers(-(10**18), 10**18), st.integers(-(10**18), 10**18))
def test_later_microseconds_never_give_the_same_text(one: int, other: int) -> None:
    assert (timestamp_text(one, True) == timestamp_text(other, True)) == (one == other)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("2024-05-01 12:00:00+02", "2024-05-01T10:00:00Z"),
        ("2024-05-01T12:00:00.5+02:00", "2024-05-01T10:00:00.5Z"),
        ("2024-05-01 12:00:00.123456 +0200", "2024-05-01T10:00:00.123456Z"),
        ("2024-05-01T10:00Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01 10:00:00,25z", "2024-05-01T10:00:00.25Z"),
        ("2024-05-01 00:00:00-00:00:30", "2024-05-01T00:00:30Z"),
        ("0001-01-01T00:00:00+14:00", "0000-12-31T10:00:00Z"),
        ("0044-03-15 12:00:00+00 BC", "-0043-03-15T12:00:00Z"),
        ("294276-12-31 23:59:59.999999+00", "+294276-12-31T23:59:59.999999Z"),
        ("2024-12-31 24:00:00Z", "2025-01-01T00:00:00Z"),
        ("2016-12-31 23:59:60Z", "2017-01-01T00:00:00Z"),
        ("infinity", "infinity"),
        ("2024-05-01 12:00:00", "!2024-05-01 12:00:00"),
        ("2024-05-01 24:00:01Z", "!2024-05-01 24:00:01Z"),
        ("2024-05-01 12:60:00Z", "!2024-05-01 12:60:00Z"),
        ("2024-05-01 12Z", "!2024-05-01 12Z"),
    ],
)
def test_instants_are_utc(raw: str, text: str) -> None:
    assert canonical_text(raw, k.INSTANT) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("2023-07-31 08:15:00", "2023-07-31T08:15:00"),
        ("2023-07-31", "2023-07-31T00:00:00"),
        ("2023-07-31 08:15:00.100000", "2023-07-31T08:15:00.1"),
        ("2023-07-31 08:15:00.1234564", "2023-07-31T08:15:00.123456"),
        ("2023-07-31 08:15:00.1234565", "2023-07-31T08:15:00.123457"),
        ("2023-12-31 23:59:59.9999999", "2024-01-01T00:00:00"),
        ("2023-07-31 08:15:00+00", "!2023-07-31 08:15:00+00"),
        ("0000-00-00 00:00:00", "!0000-00-00 00:00:00"),
        ("2023-00-10 00:00:00", "!2023-00-10 00:00:00"),
        ("2023-07-00 08:15:00", "!2023-07-00 08:15:00"),
    ],
)
def test_wall_clock_times(raw: str, text: str) -> None:
    assert canonical_text(raw, k.TIMESTAMP) == text


@pytest.mark.parametrize(
    ("wall", "instant"),
    [
        ("2024-01-15 12:00:00", "2024-01-15T11:00:00Z"),
        ("2024-07-15 12:00:00", "2024-07-15T10:00:00Z"),
        # The clock jumps from 2 to 3: a time that was never shown counts by the offset before the jump.
        ("2024-03-31 02:30:00", "2024-03-31T01:30:00Z"),
        # The clock shows 2:30 twice: without more knowledge the first is meant.
        ("2024-10-27 02:30:00", "2024-10-27T00:30:00Z"),
    ],
)
def test_a_declared_zone_makes_a_wall_clock_time_an_instant(wall: str, instant: str) -> None:
    assert canonical_text(wall, k.INSTANT, BERLIN) == instant
    assert canonical_text(dt.datetime.fromisoformat(wall), k.INSTANT, BERLIN) == instant


def test_the_second_of_two_equal_clock_times_is_kept_where_python_knows_it() -> None:
    second = dt.datetime(2024, 10, 27, 2, 30, fold=1)  # noqa: DTZ001
    assert canonical_text(second, k.INSTANT, BERLIN) == "2024-10-27T01:30:00Z"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("08:15", "08:15:00"),
        ("08:15:00.500", "08:15:00.5"),
        (dt.time(8, 15, 0, 5), "08:15:00.000005"),
        ("24:00:00", "24:00:00"),
        ("838:59:59", "838:59:59"),
        ("-838:59:59.000001", "-838:59:59.000001"),
        ("-00:00:00", "00:00:00"),
        (dt.timedelta(hours=-25), "-25:00:00"),
        ("08:15:00+02", "08:15:00+02:00"),
        ("08:15:00-00", "08:15:00+00:00"),
        ("08:15:00Z", "08:15:00+00:00"),
        ("08:15:00-00:00:30", "08:15:00-00:00:30"),
        (dt.time(8, 15, tzinfo=dt.UTC), "08:15:00+00:00"),
        ("8:15", "!8:15"),
        ("08:60:00", "!08:60:00"),
        ("noon", "!noon"),
    ],
)
def test_times(value: Any, text: str) -> None:
    assert canonical_text(value, k.TIME) == text


@given(st.timedeltas())
def test_times_and_intervals_agree_with_python(value: dt.timedelta) -> None:
    us = value // dt.timedelta(microseconds=1)
    assert canonical_text(value, k.TIME) == canonical_text(time_text(us), k.TIME) == time_text(us)
    text = canonical_text(value, k.INTERVAL)
    assert text == interval_text(0, us)
    assert parse_interval(text) == (0, us)


@given(st.integers(-(10**6), 10**6), st.integers(-(10**17), 10**17))
def test_intervals_round_trip(months: int, us: int) -> None:
    text = interval_text(months, us)
    assert parse_interval(text) == (months, us)
    assert canonical_text(text, k.INTERVAL) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("P1Y2M3DT4H5M6.5S", "P14MT273906.5S"),
        ("P-1Y-2M3DT-4H", "P-14MT244800S"),
        ("-P1Y", "P-12M"),
        ("P1W", "PT604800S"),
        ("PT0S", "PT0S"),
        ("P0D", "PT0S"),
        ("PT24H", "PT86400S"),
        ("P1D", "PT86400S"),
        ("P30D", "PT2592000S"),
        ("P1M", "P1M"),
        ("-12:30:00", "PT-45000S"),
        ("25:00:00.25", "PT90000.25S"),
        (dt.timedelta(days=1, microseconds=1), "PT86400.000001S"),
        (dt.time(1, 0), "PT3600S"),
        ("PT-0.5S", "PT-0.5S"),
        ("1 day", "!1 day"),
        ("P", "!P"),
        ("P1YT", "!P1YT"),
        ("", "!"),
    ],
)
def test_intervals(value: Any, text: str) -> None:
    assert canonical_text(value, k.INTERVAL) == text


def test_a_month_is_not_thirty_days() -> None:
    assert canonical_text("P1M", k.INTERVAL) != canonical_text("P30D", k.INTERVAL)


def test_a_day_has_this_many_microseconds() -> None:
    assert dt.timedelta(days=1) // dt.timedelta(microseconds=1) == US_PER_DAY
