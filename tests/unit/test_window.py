"""Windows partition time by the calendar of their zone, whatever its clocks do."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trueup.errors import ConfigError
from trueup.model.kinds import DATE, INSTANT, TIMESTAMP
from trueup.model.times import parse_us, timestamp_us
from trueup.model.window import Span, Windows, windows_of

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
# Clocks that jump over midnight (Beirut, Havana), by half an hour (Lord Howe), over a whole day (Apia), or never.
ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Beirut", "America/Havana",
    "Pacific/Apia", "America/Mexico_City", "America/Sao_Paulo",
)  # fmt: skip
LENGTHS = ((1, "h"), (6, "h"), (1, "d"), (3, "d"), (1, "w"), (1, "mo"), (5, "mo"))
# From 1990 to 2040.
INSTANTS = st.integers(631_152_000_000_000, 2_208_988_800_000_000)
APIA_US = 1_325_239_200_000_000


def us(text: str) -> int:
    return parse_us(text, aware=True, zone=None)


def declared(**options: object) -> Windows:
    return windows_of({"column": "paid_at", "zone": "Europe/Berlin", **options}, "payments")


@given(st.sampled_from(ZONES), st.sampled_from(LENGTHS), INSTANTS)
@example("Pacific/Apia", (1, "d"), APIA_US)
@example("Pacific/Apia", (1, "d"), APIA_US - 1)
@example("Europe/Berlin", (1, "h"), us("2026-10-25T01:30:00Z"))
def test_each_instant_lies_in_one_window_and_windows_follow_each_other(zone, length, at_us):
    windows = Windows("at", "at", zone, *length)
    window = windows.at(at_us)
    assert window.from_us <= at_us < window.to_us
    assert windows.at(window.from_us) == windows.at(window.to_us - 1) == window
    assert windows.at(window.to_us).from_us == window.to_us
    assert windows.at(window.from_us - 1).to_us == window.from_us


@given(st.sampled_from(ZONES), st.sampled_from([(1, "d"), (1, "w"), (1, "mo")]), INSTANTS)
def test_a_window_of_days_begins_with_a_day_of_the_zone(zone, length, at_us):
    window = Windows("at", "at", zone, *length).at(at_us)
    before, first = (
        dt.datetime.fromtimestamp(each // 1_000_000, ZoneInfo(zone))
        for each in (window.from_us - 1_000_000, window.from_us)
    )
    assert before.date() != first.date()
    assert length[1] != "w" or first.weekday() == 0
    assert length[1] != "mo" or first.day == 1


@given(st.sampled_from(ZONES), st.sampled_from([(1, "h"), (1, "d"), (1, "mo")]), INSTANTS, st.integers(0, 59))
def test_a_wall_clock_without_a_zone_lies_in_the_window_of_the_first_instant_that_shows_it(zone, length, at_us, minute):
    windows = Windows("at", "at", zone, *length)
    shown = dt.datetime.fromtimestamp(at_us // 1_000_000, ZoneInfo(zone)).replace(tzinfo=None, minute=minute)
    instant_us = timestamp_us(shown, aware=True, zone=ZoneInfo(zone))
    wall_us = timestamp_us(shown, aware=False, zone=None)
    holding = [
        window
        for window in (windows.at(instant_us + step * HOUR_US) for step in range(-26, 27))
        for low, high in [windows.span(window.from_us, window.to_us).bounds(TIMESTAMP)]
        if low <= wall_us < high
    ]
    assert len(set(holding)) == 1
    back = dt.datetime.fromtimestamp(instant_us // 1_000_000, ZoneInfo(zone)).replace(tzinfo=None)
    if back == shown.replace(microsecond=0):  # else the clocks jumped over it
        assert holding[0] == windows.at(instant_us)


def test_days_of_23_and_25_hours():
    windows = declared()
    for text, hours in (("2026-03-29T12:00Z", 23), ("2026-10-25T12:00Z", 25), ("2026-11-01T12:00Z", 24)):
        window = windows.at(us(text))
        assert (window.to_us - window.from_us) // HOUR_US == hours
        assert window.name == text[:10]


def test_C071_a_month_is_cut_in_the_declared_zone():
    window = declared(zone="America/Mexico_City", length="1mo").at(us("2026-08-31T12:00:00Z"))
    assert (window.from_us, window.to_us) == (us("2026-08-01T06:00:00Z"), us("2026-09-01T06:00:00Z"))
    assert window.name == "2026-08"
    assert window.from_us <= us("2026-09-01T03:40:00Z") < window.to_us <= us("2026-09-01T06:10:00Z")
    span = Span("booked", window.from_us, window.to_us, "America/Mexico_City")
    assert span.bounds(DATE) == (us("2026-08-01T00:00Z"), us("2026-09-01T00:00Z"))
    assert span.bounds(INSTANT) == (window.from_us, window.to_us)


def test_a_window_is_closed_where_both_clocks_are_past_its_end_by_the_lag():
    windows = declared(lag="2h", replica_lag="6h")
    end_us = windows.at(us("2026-11-01T12:00Z")).to_us

    def newest(authority_us, replica_us):
        return windows.newest_closed(windows.cutoff_us(authority_us, replica_us)).name

    assert newest(end_us + 2 * HOUR_US, end_us + 6 * HOUR_US) == "2026-11-01"
    assert newest(end_us + 2 * HOUR_US - 1, end_us + 6 * HOUR_US) == "2026-10-31"
    assert newest(end_us + 9 * HOUR_US, end_us + 6 * HOUR_US - 1) == "2026-10-31"


def test_windows_that_a_person_names():
    windows, cutoff_us = declared(), us("2026-12-01T00:00Z")
    names = [window.name for window in windows.named("2026-11-01..2026-11-04", cutoff_us, "payments")]
    assert names == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert [window.name for window in windows.named("2026-11-01", cutoff_us, "payments")] == ["2026-11-01"]
    assert len(windows.named("2026-10..2026-11", cutoff_us, "payments")) == 31


@pytest.mark.parametrize(
    ("text", "said"),
    [("2026-11-31", "names no windows"), ("2026-11-04..2026-11-01", "holds no window"),
     ("2026-11-01..2027-01-01", "2026-12-31 is not closed"), ("..", "names no windows")],
)  # fmt: skip
def test_windows_that_nobody_can_mean(text, said):
    with pytest.raises(ConfigError, match=said):
        declared().named(text, us("2026-12-01T00:00Z"), "payments")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"column": ""}, "names no column"), ({"zone": None}, "names no zone"), ({"zone": "Mars/Base"}, "no time zone"),
     ({"length": "90m"}, "no length"), ({"length": "5h"}, "do not divide"), ({"lag": "soon"}, "lag"),
     ({"since": "yesterday"}, "no date"), ({"colum": "x"}, "no option colum")],
)  # fmt: skip
def test_a_declaration_that_is_wrong_says_what_is(options, said):
    with pytest.raises(ConfigError, match=said) as caught:
        declared(**options)
    assert "payments" in str(caught.value)
    assert caught.value.hint


def test_since_is_a_day_of_the_zone():
    assert declared(since="2026-11-01").since_us == us("2026-10-31T23:00:00Z")
    assert declared(since=dt.date(2026, 11, 1)).since_us == us("2026-10-31T23:00:00Z")
