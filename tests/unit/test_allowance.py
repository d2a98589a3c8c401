"""What a system says is left, in the headers that APIs send."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.allowance import UNSAID_US, Said, number_in, said_in
from trueup.model.retry_after import LONGEST_US

NOW_US = int(dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC).timestamp()) * 1_000_000
NOW_S = NOW_US // 1_000_000


def said(left, reset):
    return said_in({"x-left": left, "x-reset": reset}, "X-Left", "X-Reset", NOW_US)


@pytest.mark.parametrize(("reset", "seconds"), [
    ("30", 30), ("0", 0), ("29.2", 30), (str(NOW_S + 90), 90), (str(NOW_S - 90), 0), (f"{NOW_S + 90}000", 90),
    ("Mon, 30 Nov 2026 08:01:30 GMT", 90), ("2026-11-30T08:01:30Z", 90), ("2026-11-30T09:01:30+01:00", 90),
    ("2027-11-30T08:00:00Z", LONGEST_US // 1_000_000), (str(NOW_S + 10**8), LONGEST_US // 1_000_000),
    ("soon", UNSAID_US // 1_000_000), ("", UNSAID_US // 1_000_000), ("-5", UNSAID_US // 1_000_000),
    ("2026-11-30T08:01:30", UNSAID_US // 1_000_000),
])  # fmt: skip
def test_a_reset_is_said_in_many_ways(reset, seconds):
    assert said("7", reset) == Said(7, seconds * 1_000_000)


@pytest.mark.parametrize("left", ["", "many", "-1", "nan", "inf", "1e9", "٣", "9" * 400])
def test_what_is_unreadable_says_nothing(left):
    assert said(left, "30") is None
    assert number_in(left) is None


@pytest.mark.parametrize(("field", "found"), [
    ('"default";r=50;t=30', Said(50, 30_000_000)),
    ('"burst";r=8;t=1, "day";r=3;t=40000', Said(3, 40_000_000_000)),
    ('"a";r=3;t=5,"b";r=3;t=9', Said(3, 9_000_000)),
    ('"default"; r=0', Said(0, UNSAID_US)),
    ('"default";t=30', None),
    ("", None),
])  # fmt: skip
def test_the_field_of_the_draft(field, found):
    assert said_in({"ratelimit": field}, "RateLimit", None, NOW_US) == found


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_header_raises_or_holds_for_more_than_a_day(left, reset):
    for found in (said(left, reset), said("5", reset), said_in({"ratelimit": left}, "RateLimit", None, NOW_US)):
        assert found is None or (found.left >= 0 and 0 <= found.lasts_us <= LONGEST_US)
