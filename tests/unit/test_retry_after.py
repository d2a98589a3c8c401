"""What a system means by Retry-After."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.retry_after import LONGEST_US, http_date_us, retry_after_us

NOW_US = int(dt.datetime(2026, 11, 30, 7, 58, 30, 200_000, dt.UTC).timestamp() * 1_000_000)
EIGHT_US = int(dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(("value", "seconds"), [
    ("Mon, 30 Nov 2026 08:00:00 GMT", 90), ("120", 120), (None, None), ("Mon, 30 Nov 2026 07:00:00 GMT", 0),
])  # fmt: skip
def test_C116_a_pause_is_said_in_seconds_or_as_a_date(value, seconds):
    assert retry_after_us(value, NOW_US) == (None if seconds is None else seconds * 1_000_000)


@pytest.mark.parametrize(("value", "us"), [
    ("0", 0), ("1.2", 2_000_000), (" 5 ", 5_000_000), ("99999999999999999999", LONGEST_US), ("9" * 9_000, LONGEST_US),
    ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_US), ("soon", None), ("-5", None), ("", None), ("1e9", None),
    ("٣", None), ("Mon, 31 Feb 2026 08:00:00 GMT", None), ("Mon, 30 Nov 2026 08:00:00 CET", None), ("2026-11-30", None),
])  # fmt: skip
def test_absurd_and_unreadable_pauses(value, us):
    assert retry_after_us(value, NOW_US) == us


@pytest.mark.parametrize("text", [
    "Mon, 30 Nov 2026 08:00:00 GMT", "Monday, 30-Nov-26 08:00:00 GMT", "Mon Nov 30 08:00:00 2026",
    "mon, 30 nov 2026 08:00:00 gmt",
])  # fmt: skip
def test_the_three_forms_of_a_date(text):
    assert http_date_us(text) == EIGHT_US


def test_two_digits_of_a_year_and_a_leap_second():
    assert http_date_us("Sunday, 06-Nov-94 08:49:37 GMT") == 784_111_777_000_000
    assert http_date_us("Sat, 31 Dec 2016 23:59:60 GMT") == 1_483_228_799_000_000


@given(st.text(max_size=40), st.integers(0, 2**52))
def test_no_header_raises_or_waits_for_more_than_a_day(value, now_us):
    answer = retry_after_us(value, now_us)
    assert answer is None or (0 <= answer <= LONGEST_US and answer % 1_000_000 == 0)


@given(st.integers(0, 13_000_000_000))
def test_every_date_reads_back(at_s):
    at = dt.datetime.fromtimestamp(at_s, dt.UTC)
    assert http_date_us(at.strftime("%a, %d %b %Y %H:%M:%S GMT")) == at_s * 1_000_000
