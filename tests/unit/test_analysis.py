"""What an analysis says of differences: columns, places, whole records, schemas; and what it must not say."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.compare.analysis.columns import analysed_columns
from trueup.compare.analysis.distributions import BINS, distributions
from trueup.compare.analysis.places import groups, patterns
from trueup.compare.analysis.records import causes_of_records
from trueup.compare.analysis.schema import schema_differences
from trueup.compare.analysis.spelled import spelled_kind, us_of
from trueup.compare.plan import plan
from trueup.compare.result import Difference
from trueup.model import kinds
from trueup.model.kinds import Column, Kind
from trueup.model.record import Field, Projection, key_text
from trueup.model.times import timestamp_text
from trueup.ports import Description

MINUTE = 60_000_000
NIGHT = 1_795_831_200_000_000  # 2026-11-28T02:00:00
ORDERS = Projection(
    key=(Field("id", "id", kinds.INTEGER),),
    fields=(
        Field("placed", "placed", kinds.TIMESTAMP),
        Field("currency", "currency", kinds.TEXT),
        Field("total", "total", kinds.DECIMAL),
    ),
)


def order(number: int, *, total: str = "5") -> dict[str, str | None]:
    """An order a minute; every tenth is in yen."""
    placed = timestamp_text(NIGHT + number * MINUTE, aware=False)
    return {"id": str(number), "placed": placed, "currency": "EUR" if number % 10 else "JPY", "total": total}


EVERY = [order(number) for number in range(2_000)]


def differ(number: int, *, right: str = "7", fields: tuple[str, ...] = ("total",)) -> Difference:
    return Difference("differ", key_text([str(number)]), order(number), {**order(number), "total": right}, fields)


def missing(number: int) -> Difference:
    return Difference("missing", key_text([str(number)]), order(number), None)


def told(differences, every=1, everything=EVERY, redact=(), asked=ORDERS):
    """Patterns as (about, cause, kind, column, values)."""
    counts = {name: sum(name in each.fields for each in differences) for name in ("placed", "currency", "total")}
    differing = [each for each in differences if each.kind == "differ"]
    columns = analysed_columns(differing, asked, counts, 2_000, redact)
    found = patterns(groups(differences, columns, every), asked, everything, redact)
    return [(each.about, each.cause, each.kind, each.column, each.values) for each in found]


# Where they lie


def test_a_night_is_told_with_its_keys():
    """Given orders missing from one quarter of an hour, I expect its ends, and that their keys leave no gap."""
    assert told([missing(number) for number in range(120, 135)]) == [
        ("missing", None, "time", "placed", ("2026-11-28T04:00:00", "2026-11-28T04:14:00")),
        ("missing", None, "block", "id", ("120", "134")),
    ]


def test_one_currency_is_told():
    assert told([differ(number) for number in range(0, 2_000, 40)]) == [("differ", None, "value", "currency", ("JPY",))]


def test_what_all_records_share_is_not_told():
    """Given differences spread like all records, I expect nothing: most records are in euro anyway."""
    assert told([differ(number) for number in range(7, 2_000, 30)]) == []


def test_a_few_records_of_a_rare_value_are_not_told():
    """Given three of a value that a tenth has, I expect nothing: that may be chance."""
    assert told([differ(number) for number in (100, 700, 1_500)]) == []


def test_nearly_all_are_enough_for_a_place():
    """Given nineteen in twenty in one hour, I expect that hour."""
    lost = [missing(number) for number in [5, *range(300, 357), 1_100, 1_900]]
    assert [each for each in told(lost) if each[2] == "time"] == [
        ("missing", None, "time", "placed", ("2026-11-28T07:00:00", "2026-11-28T07:56:00"))
    ]


def test_the_same_hour_of_every_day_is_told():
    """Given orders that go missing shortly after four every day, I expect the time of day."""
    every = [order(number) for number in range(0, 20_000, 7)]
    lost = [missing(day * 1440 + 120 + minute) for day in range(12) for minute in (0, 3, 7)]
    assert [each for each in told(lost, everything=every) if "time" in each[2]] == [
        ("missing", None, "time_of_day", "placed", ("04:00:00", "04:07:00"))
    ]


def test_a_cause_has_a_place_of_its_own():
    """Given cents only in yen, and rounding elsewhere, I expect the currency told for the factor alone."""
    yen = [
        Difference(
            "differ", key_text([str(n)]), order(n, total=str(n + 1)), order(n, total=str((n + 1) * 100)), ("total",)
        )
        for n in range(0, 600, 10)
    ]
    others = [
        Difference("differ", key_text([str(n)]), order(n, total=f"{n}.255"), order(n, total=f"{n}.26"), ("total",))
        for n in range(1, 600, 11)
        if n % 10
    ]
    assert ("total", "factor", "value", "currency", ("JPY",)) in told(
        sorted([*yen, *others], key=lambda d: int(d.left["id"]))
    )


def test_without_other_records_only_a_row_of_keys_is_told():
    """Given nothing to compare with, I expect no share and no value, but a gap in the keys."""
    night = [missing(number) for number in range(120, 135)]
    assert told(night, everything=None) == [("missing", None, "block", "id", ("120", "134"))]
    assert told([differ(number) for number in range(0, 2_000, 40)], everything=None) == []


def test_keys_with_gaps_are_no_block():
    assert told([missing(number) for number in (120, 121, 123, 125, 129)], everything=None) == []


def test_a_sample_of_a_row_of_keys_is_still_one():
    """Given one in ten of a thousand keys in a row, I expect the block."""
    assert told([missing(number) for number in range(500, 1_500, 10)], every=10, everything=None) == [
        ("missing", None, "block", "id", ("500", "1490"))
    ]


def test_a_null_is_a_value_like_others():
    every = [{**each, "currency": None if int(each["id"]) % 20 == 3 else "EUR"} for each in EVERY]
    lost = [Difference("missing", key_text([each["id"]]), each, None) for each in every if each["currency"] is None][
        :30
    ]
    assert ("missing", None, "value", "currency", (None,)) in told(lost, everything=every)


def test_text_that_spells_times_and_numbers_is_read_as_such():
    """Given columns of text as a CSV file has them, I expect the same places."""
    asked = Projection(
        key=(Field("id", "id", kinds.TEXT),),
        fields=tuple(Field(name, name, kinds.TEXT) for name in ("placed", "currency", "total")),
    )
    assert told([missing(number) for number in range(120, 135)], asked=asked) == [
        ("missing", None, "time", "placed", ("2026-11-28T04:00:00", "2026-11-28T04:14:00")),
        ("missing", None, "block", "id", ("120", "134")),
    ]


@given(st.lists(st.integers(0, 1_999), min_size=1, max_size=60, unique=True))
def test_a_place_holds_what_it_says(numbers):
    """Whatever is missing, a place that is told holds nine tenths of it, and at most half of that share of all."""
    lost = [missing(number) for number in sorted(numbers)]
    for each in patterns(groups(lost, [], 1), ORDERS, EVERY):
        inside = [one for one in (lacking.left for lacking in lost) if _within(one, each)]
        assert each.count >= 0.9 * each.of == 0.9 * len(lost)
        assert len(inside) >= each.count
        if each.share_all is not None:
            assert each.share_all <= each.count / each.of / 2
            assert each.share_all == pytest.approx(sum(_within(one, each) for one in EVERY) / len(EVERY))


def _within(record, pattern) -> bool:
    text = record[pattern.column]
    match pattern.kind:
        case "value":
            return text in pattern.values
        case "time_of_day":
            return pattern.values[0] <= text[11:] <= pattern.values[1]
        case "time":
            return us_of(pattern.values[0]) <= us_of(text) <= us_of(pattern.values[1])
    return int(pattern.values[0]) <= int(text) <= int(pattern.values[1])


# Columns


def test_a_column_has_exact_counts_and_its_most_frequent_values():
    found = [differ(number, right="9" if number % 3 else "7") for number in range(30)]
    column = analysed_columns(found, ORDERS, {"total": 412}, 1_000)[0].analysis

    assert (column.count, column.of, column.share, column.examined, column.alone) == (412, 1_000, 0.412, 30, 30)
    assert [(each.left, each.right, each.count) for each in column.examples] == [("5", "9", 20), ("5", "7", 10)]
    assert column.examples[0].key == '["1"]'
    assert column.delta is not None
    delta = column.delta
    assert (delta.count, delta.least, delta.most, delta.median, delta.total) == (30, "2", "4", "4", "100")
    assert delta.mean == "3.33333333333"


def test_times_have_deltas_in_seconds():
    late = {**order(1), "placed": "2026-11-28T02:01:07.5"}
    found = [Difference("differ", '["1"]', order(1), late, ("placed",))]
    delta = analysed_columns(found, ORDERS, {"placed": 1}, 1)[0].analysis.delta
    assert delta is not None
    assert (delta.total, delta.seconds) == ("7.5", True)


def test_values_that_must_not_be_shown_are_not():
    """Given a redacted column and a redacted key, I expect counts and causes, and neither values nor keys."""
    found = [
        Difference(
            "differ",
            key_text([f"k{at}"]),
            {"id": f"k{at}", "total": f"SECRET-{at}"},
            {"total": f"secret-{at}"},
            ("total",),
        )
        for at in range(5)
    ]
    asked = Projection(key=(Field("id", "id", kinds.TEXT),), fields=(Field("total", "total", kinds.TEXT),))
    columns = analysed_columns(found, asked, {"total": 5}, 5, redact={"total", "id"})
    spread = distributions(found, asked, [{"id": "k9", "total": "SECRET-9"}], {"total", "id"})
    where = patterns(groups(found, columns, 1), asked, [{"id": "k9", "total": "SECRET-9"}], {"total", "id"})
    said = json.dumps([asdict(columns[0].analysis), [asdict(each) for each in (*spread, *where)]])

    assert columns[0].analysis.redacted
    assert [each.name for each in columns[0].analysis.causes] == ["case"]
    assert "secret" not in said.lower()
    shown = analysed_columns(found, asked, {"total": 5}, 5, redact={"id"})[0].analysis
    assert "SECRET-0" in str(shown)
    assert "k0" not in str(shown)


# Whole records


def test_swapped_columns_are_seen():
    found = [
        Difference("differ", f'["{at}"]', {"first": f"a{at}", "last": f"b{at}"}, {"first": f"b{at}", "last": f"a{at}"},
                   ("first", "last"))
        for at in range(4)
    ]  # fmt: skip
    assert [(each.name, each.said, each.count, each.of) for each in causes_of_records(found, (), every=1)] == [
        ("swapped-columns", "first and last in each other's place", 4, 4)
    ]
    half = [Difference("differ", each.key, each.left, {**each.right, "last": "x"}, each.fields) for each in found]
    assert causes_of_records(half, (), every=1) == ()


def test_a_batch_that_came_twice_is_seen():
    twice = [Difference("duplicate", key_text([str(n)]), order(n), order(n), (), 1, 2) for n in range(40, 60)]
    where = patterns(groups(twice, [], 1), ORDERS, EVERY)
    assert [(each.name, each.side, each.count) for each in causes_of_records(twice, where, every=1)] == [
        ("duplicated-batch", "right", 20)
    ]
    scattered = [Difference("duplicate", key_text([str(n)]), order(n), order(n), (), 1, 2) for n in range(0, 2_000, 99)]
    assert causes_of_records(scattered, patterns(groups(scattered, [], 1), ORDERS, EVERY), every=1) == ()


@pytest.mark.parametrize(
    ("spelled", "what"),
    [
        (str.upper, "upper and lower case"),
        (lambda key: f" {key}", "blanks around the key"),
        (lambda key: f"00{key}", None),
    ],
)
def test_keys_in_another_spelling_are_seen(spelled, what):
    lost = [Difference("missing", key_text([f"a{at}"]), {}, None) for at in range(3)]
    new = [Difference("extra", key_text([spelled(f"a{at}")]), None, {}) for at in range(3)]
    said = [each.said.rpartition(": ")[2] for each in causes_of_records([*lost, *new], (), every=1)]
    assert said == ([] if what is None else [what])
    # Half of a pair is no sign of the other half.
    assert causes_of_records([*lost, *new], (), every=2) == ()


# How they spread


def test_bins_hold_every_difference_once():
    lost = [missing(number) for number in range(100, 400, 3)]
    by_key, by_time, by_currency = distributions(lost, ORDERS, EVERY)

    assert (by_key.column, by_time.column, by_currency.column) == ("id", "placed", "currency")
    for each in (by_key, by_time, by_currency):
        assert sum(one.count for one in each.bins) == each.of == 100
        assert sum(one.share_all for one in each.bins) == pytest.approx(1)
    assert len(by_key.bins) == len(by_time.bins) == BINS
    assert by_key.bins[0].first == "0"
    assert by_key.bins[-1].last == "1999"
    assert by_currency.bins[0].first == "EUR"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "20", None], kinds.INTEGER),
        (["1.50", "2"], kinds.DECIMAL),
        (["2026-11-28", "2026-11-28 02:00:00+01"], kinds.TIMESTAMP),
        (["007", "8"], kinds.TEXT),
        (["1", "x"], kinds.TEXT),
        ([None, ""], kinds.TEXT),
    ],
)
def test_what_text_spells(texts, kind: Kind):
    assert spelled_kind(kinds.TEXT, texts) == kind
    assert spelled_kind(kinds.JSON, texts) == kinds.JSON


# Schemas


def described(*columns: Column, system: str = "PostgreSQL 15.4") -> Description:
    return Description("orders", system, columns)


def test_schema_differences_are_told_side_by_side():
    id_ = Column("id", kinds.INTEGER, nullable=False, declared="bigint")
    left = described(
        id_,
        Column("name", kinds.TEXT, declared="varchar(40)", collation="C"),
        Column("fee", Kind("decimal", scale=2, precision=12), nullable=False, declared="numeric(12,2)"),
        Column("at", kinds.TIMESTAMP, declared="timestamp"),
        Column("old", kinds.TEXT, declared="text"),
    )
    right = described(
        id_,
        Column("name", kinds.TEXT, declared="varchar(20)", collation="de_DE"),
        Column("fee", Kind("decimal", scale=4, precision=12), declared="numeric(12,4)"),
        Column("at", kinds.TEXT, declared="text"),
        Column("new", kinds.TEXT, declared="text"),
    )
    found = [
        (each.column, each.right_column, each.what, each.left, each.right)
        for each in schema_differences(plan(left, right, key=["id"]), left, right)
    ]
    assert found == [
        ("old", None, "only_left", "text", ""),
        (None, "new", "only_right", "", "text"),
        ("name", "name", "width", "varchar(40)", "varchar(20)"),
        ("name", "name", "collation", "C", "de_DE"),
        ("fee", "fee", "scale", "numeric(12,2)", "numeric(12,4)"),
        ("fee", "fee", "nullability", "not null", "null allowed"),
        ("at", "at", "type", "timestamp", "text"),
    ]


def test_a_file_says_nothing_of_nulls_and_another_engine_nothing_of_collations():
    """Given a side that declares nothing as required, or of another engine, I expect no difference from that."""
    table = described(
        Column("id", kinds.INTEGER, nullable=False, declared="bigint"),
        Column("name", kinds.TEXT, nullable=False, declared="text", collation="C"),
    )
    file = described(Column("id", kinds.INTEGER), Column("name", kinds.TEXT), system="CSV")
    other = described(
        Column("id", kinds.INTEGER, nullable=False, declared="bigint"),
        Column("name", kinds.TEXT, nullable=False, declared="text", collation="utf8mb4_bin"),
        system="MariaDB 10.11",
    )
    for right in (file, other):
        assert list(schema_differences(plan(table, right, key=["id"]), table, right)) == []
