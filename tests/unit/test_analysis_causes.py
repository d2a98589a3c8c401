"""Each likely cause: values that show it, and values that look like it and are not."""

from __future__ import annotations

import unicodedata

import pytest

from trueup.compare.analysis.causes import CAUSES, Cause
from trueup.compare.analysis.columns import likely_causes
from trueup.model import kinds
from trueup.model.kinds import Kind
from trueup.model.record import Field

BY_NAME = {cause.name: cause for cause in CAUSES}
NFD = unicodedata.normalize("NFD", "Zoë")

# Whole value, value that suffered.
SHOWS: dict[str, list[tuple[str | None, str | None]]] = {
    "null": [("a", None), ("0", None)],
    "null-or-empty": [("", None)],
    "unfit": [("2026-11-28", "!2026-02-30"), (None, "!x")],
    "case": [("Paid", "PAID"), ("straße", "STRASSE")],
    "spaces": [("Ann", "Ann  "), ("\tAnn", "Ann")],
    "line-ends": [("a\nb", "a\r\nb"), ("a\rb", "a\nb")],
    "white-space": [("a b", "a  b"), ("a b", "a\u00a0b")],
    "unicode-form": [("Zoë", NFD), (NFD, "Zoë")],
    "mojibake": [("Müller", "MÃ¼ller"), ("5 €", "5 â‚¬")],
    "replaced": [("Müller", "M?ller"), ("Zoë", "Zo\ufffd\ufffd"), ("日本", "??")],
    "accents": [("Müller", "Muller"), ("Zoë", "Zoe")],
    "escaped": [("Ann & Bob", "Ann &amp; Bob"), ("<b>", "&lt;b&gt;")],
    "zeros": [("007", "7"), ("000", "0")],
    "notation": [("1.50", "1.5"), ("2026-07-01T12:00:00+02:00", "2026-07-01T10:00:00Z"), ("1e3", "1000")],
    "truncated": [("a long text", "a long"), ("abc def", "abc ")],
    "rounded": [("7.255", "7.26"), ("0.125", "0.12"), ("-1.005", "-1.01"), ("1.999", "2"), ("2.004", "2")],
    "cut-places": [("7.259", "7.25"), ("-1.99", "-1")],
    "single-precision": [("19.9", "19.899999618530273")],
    "sign": [("5", "-5"), ("-0.1", "0.1")],
    "time-zone": [
        ("2026-11-28T02:00:00", "2026-11-28T04:00:00"),
        ("2026-11-28T02:00:00Z", "2026-11-27T20:15:00Z"),
        ("02:00:00", "03:00:00"),
    ],
    "time-precision": [
        ("2026-11-28T02:00:00.123456", "2026-11-28T02:00:00"),
        ("2026-11-28T02:00:00.9", "2026-11-28T02:00:01"),
        ("2026-11-28T02:31:07", "2026-11-28T00:00:00"),
    ],
    "day-month": [("2026-03-04", "2026-04-03"), ("2026-03-04T10:00:00", "2026-04-03T10:00:00")],
}
DOES_NOT: dict[str, list[tuple[str | None, str | None]]] = {
    "null": [(None, "a"), ("", None), (None, None), ("a", "b")],
    "null-or-empty": [("a", None), (None, ""), ("", "a")],
    "unfit": [("!x", "!y"), ("1", "2"), ("1", None)],
    "case": [("paid", "open"), ("a", "a"), ("", "A"), (None, "a")],
    "spaces": [("Ann", "Bob "), ("Ann", "Ann"), (" ", "")],
    "line-ends": [("a\nb", "a b"), ("a", "b")],
    "white-space": [("a b", "ab"), ("a ", "a"), ("a\nb", "a\r\nb")],
    "unicode-form": [("Zoe", "Zoë"), ("a", "b")],
    "mojibake": [("Muller", "MÃ¼ller"), ("Müller", "Möller"), ("ü", "u")],
    "replaced": [("Müller", "M?lle"), ("why?", "why"), ("Muller", "M?ller"), ("Müller", "Muller")],
    "accents": [("Muller", "Müller"), ("Zoë", NFD), ("Müller", "Möller")],
    "escaped": [("Ann & Bob", "Ann &lt; Bob"), ("a & b", "a & c")],
    "zeros": [("7", "07"), ("007", "8"), ("00a", "a")],
    "notation": [("007", "7"), ("1.5", "1.51"), ("2026-07-01T12:00:00", "2026-07-01T12:00:01"), ("a", "b")],
    "truncated": [("abc", "abx"), ("abc", ""), ("abc  ", "abc"), ("ab", "abc")],
    "rounded": [("7.255", "7.2"), ("7.25", "7.255"), ("7", "8"), ("7.25", "9.3"), ("nan", "1"), ("!x", "1")],
    "cut-places": [("7.259", "7.26"), ("7.25", "7.2500001"), (None, "7")],
    "single-precision": [("19.9", "19.91"), ("1", "1"), ("1e300", "1e301")],
    "sign": [("0", "-0"), ("5", "-6"), ("5", None)],
    "time-zone": [
        ("2026-11-28T02:00:00", "2026-11-28T02:00:05"),
        ("2026-11-28T02:00:00", "2026-11-29T02:00:00"),
        ("2026-11-28T02:00:00", "2026-11-28T02:00:00"),
        ("infinity", "2026-11-28T02:00:00"),
        ("2026-11-28T02:00:00", None),
    ],
    "time-precision": [
        ("2026-11-28T02:00:00", "2026-11-28T02:00:00.5"),
        ("2026-11-28T02:00:00.5", "2026-11-28T02:00:02"),
        ("2026-11-28", "2026-11-27"),
    ],
    "day-month": [("2026-03-03", "2026-03-03"), ("2026-03-04", "2026-03-05"), ("2026-03", "2026-04"), (None, None)],
}  # fmt: skip


def _cases(table: dict[str, list[tuple[str | None, str | None]]]) -> list[tuple[str, str | None, str | None]]:
    return [(name, *pair) for name, pairs in table.items() for pair in pairs]


@pytest.mark.parametrize(("name", "whole", "lost"), _cases(SHOWS))
def test_a_cause_is_seen(name, whole, lost):
    assert BY_NAME[name].holds(whole, lost)


@pytest.mark.parametrize(("name", "whole", "lost"), _cases(DOES_NOT))
def test_a_cause_is_not_seen_where_it_is_not(name, whole, lost):
    assert not BY_NAME[name].holds(whole, lost)


def test_every_cause_has_examples_of_both_sorts():
    assert set(SHOWS) == set(DOES_NOT) == set(BY_NAME)


def causes(kind: Kind, *pairs: tuple[str | None, str | None], telling: bool = True):
    """Name, side, sentence and count of what is found in a column of this kind."""
    found = likely_causes(Field("x", "x", kind), pairs, telling=telling)
    return [(cause.name, cause.side, cause.said, cause.count) for cause, _ in found]


def test_the_side_that_suffered_is_named():
    """Given texts cut at left, I expect left to be blamed, and where they were cut."""
    pairs = [("abcde", "abcdefgh"), ("12345", "123456"), ("xyzxy", "xyzxyz")]
    assert causes(kinds.TEXT, *pairs) == [("truncated", "left", "cut off at left after 5 characters", 3)]


def test_texts_cut_at_different_places_name_no_place():
    pairs = [("abcdefgh", "abc"), ("123456", "12345"), ("xyzxyz", "x")]
    assert causes(kinds.TEXT, *pairs) == [("truncated", "right", "cut off at right", 3)]


@pytest.mark.parametrize("least", [0, 1, 2])
def test_what_one_or_two_records_show_is_chance(least):
    assert causes(kinds.TEXT, *[("a", "A")] * least) == []


def test_a_cause_that_explains_nothing_more_is_left_out():
    """Given rounding that is also a difference in single precision or sign, I expect it said once."""
    pairs = [("7.255", "7.26"), ("1.119", "1.12"), ("3.336", "3.34"), ("4.441", "4.44")]
    assert causes(kinds.DECIMAL, *pairs) == [("rounded", "right", "rounded to 2 places at right", 4)]


def test_two_causes_in_one_column_are_both_named():
    pairs = [("Ann", "ANN"), ("Bob", "BOB"), ("Zoë", "Zo?"), ("Jürg", "J?rg"), ("Noël", "No?l"), ("Max", "MAX")]
    assert causes(kinds.TEXT, *pairs) == [
        ("case", None, "only upper and lower case", 3),
        ("replaced", "right", "characters replaced by ? or \ufffd at right", 3),
    ]


def test_cents_are_a_factor():
    pairs = [("19.9", "1990"), ("5", "500"), ("0.07", "7"), ("3", "3.5")]
    assert causes(kinds.DECIMAL, *pairs) == [("factor", None, "right is left × 100", 3)]
    swapped = [(b, a) for a, b in pairs]
    assert causes(kinds.DECIMAL, *swapped) == [("factor", None, "right is left ÷ 100", 3)]


def test_a_fee_is_a_step():
    pairs = [("10", "10.5"), ("11", "11.5"), ("12.25", "12.75")]
    assert causes(kinds.DECIMAL, *pairs) == [("step", None, "right is left + 0.5", 3)]


def test_one_pair_of_values_that_is_repeated_is_no_step():
    assert causes(kinds.INTEGER, *[("1", "2")] * 9) == []


def test_both_offsets_of_a_zone_are_told():
    """Given summer and winter, I expect both shifts, the most frequent first."""
    pairs = [
        ("2026-07-01T12:00:00", "2026-07-01T10:00:00"), ("2026-08-01T12:00:00", "2026-08-01T10:00:00"),
        ("2026-01-01T12:00:00", "2026-01-01T11:00:00"),
    ]  # fmt: skip
    assert causes(kinds.TIMESTAMP, *pairs) == [
        ("time-zone", None, "2 h earlier or 1 h earlier at right: a time zone", 3)
    ]


def test_many_shifts_are_no_zone():
    pairs = [(f"2026-07-01T{hour:02}:00:00", "2026-07-01T12:00:00") for hour in (1, 3, 4, 6, 7, 9)]
    assert causes(kinds.TIMESTAMP, *pairs) == []


def test_seconds_later_are_a_step():
    pairs = [(f"2026-07-01T12:00:0{at}", f"2026-07-01T12:00:1{at}") for at in range(4)]
    assert causes(kinds.TIMESTAMP, *pairs) == [("step", None, "10 s later at right", 4)]


def test_hidden_values_are_not_given_away():
    """Given a column that must not be shown, I expect no step and no factor: with one value they tell the other."""
    pairs = [("10", "10.5"), ("11", "11.5"), ("12.25", "12.75")]
    assert causes(kinds.DECIMAL, *pairs, telling=False) == []


@pytest.mark.parametrize("cause", CAUSES, ids=lambda each: each.name)
def test_every_sentence_and_every_option_can_be_filled_in(cause: Cause):
    pairs = SHOWS[cause.name]
    more = cause.more(pairs)
    assert more is not None
    assert "{" not in cause.said.format(side="right", other="left", more=more) + cause.advice.format(
        name="x", more=more
    )
