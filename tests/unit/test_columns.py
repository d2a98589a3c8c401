"""The vectorised columns give what the reference gives, value for value."""

from __future__ import annotations

import datetime as dt
import decimal
import time
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.model.canonical import canonical_text
from trueup.model.columns import canonical_array, delivered, key_texts, text_array, texts, versions
from trueup.model.digest import digest_of
from trueup.model.digest_columns import digests
from trueup.model.kinds import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    ENUM,
    FLOAT,
    INSTANT,
    INTEGER,
    INTERVAL,
    JSON,
    TEXT,
    TIME,
    TIMESTAMP,
    UUID,
    Kind,
)  # fmt: skip
from trueup.model.record import Field, key_text, version_of
from trueup.model.times import date_text, timestamp_text

FLOAT32 = Kind("float", bits=32)
KINDS = [
    BOOLEAN, INTEGER, DECIMAL, FLOAT, FLOAT32, TEXT, BYTES, UUID, DATE, TIME, TIMESTAMP, INSTANT, INTERVAL, JSON, ENUM,
    Kind("array", item=INTEGER),
]  # fmt: skip
BERLIN = ZoneInfo("Europe/Berlin")

# Texts that look like something, and texts that nearly do.
_clock = st.from_regex(
    r"(0000|0001|1899|1970|2024|9999)-(0[0-9]|1[0-3])-(0[0-9]|[12][0-9]|3[0-2])"
    r"([T ](0[0-9]|1[0-9]|2[0-5]):[0-6][0-9]:[0-6][0-9](\.[0-9]{1,8})?(Z|\+00|\+00:00|\+01:00|-00:30)?)?",
    fullmatch=True,
)
_number = st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
_words = st.sampled_from(
    [
        "-0",
        "0",
        "-0.0",
        "007",
        "1.",
        ".5",
        "nan",
        "NaN",
        "Infinity",
        "-inf",
        "t",
        "FALSE",
        "yes",
        "1",
        "2",
        "0.001",
        "0.0001",
        "-0.00012300",
        "123456.7890",
        "9007199254740993",
        "1e400",
        "!",
        "é",
        '{"b":1,"a":2}',
        "[1,2]",
        "P1DT2H",
        "-12:30:00",
        "24:00:00",
        "2023-02-29",
        "infinity",
        "2024-01-01T00:00Z",
        "2024-02-29T23:59:60",
        "ABCDEF",
        "0xff",
        "\\xAB",
        "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
        "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        "6f9619ff-8b86-d011-b42d-00cf4fc964ff\n",
        "",
        " 7 ",
        "\x1f",
        "a\nb",
        "2024-02-29 23:59:60",
    ]
)
a_text = st.one_of(st.text(max_size=12), _clock, _number, _words)


def columns_of(values: st.SearchStrategy[object], size: int = 12) -> st.SearchStrategy[list[object]]:
    return st.lists(st.one_of(st.none(), values), max_size=size)


def expected(values: list[object], kind: Kind, zone: ZoneInfo | None = None) -> list[str | None]:
    return [canonical_text(value, kind, zone) for value in values]


@given(columns_of(a_text), st.sampled_from(KINDS), st.sampled_from([None, BERLIN]))
@settings(max_examples=600, deadline=None)
def test_text_columns_are_parsed_as_the_reference_parses_them(
    values: list[object], kind: Kind, zone: ZoneInfo | None
) -> None:
    assert canonical_array(pa.array(values, pa.string()), kind, zone).to_pylist() == expected(values, kind, zone)


_doubles = st.one_of(
    st.floats(),
    st.integers(-(10**17), 10**17).map(float),
    st.builds(round, st.floats(-(10**8), 10**8), st.integers(0, 9)),
    st.builds(round, st.floats(-1, 1), st.integers(0, 9)),
)
_recent = st.integers(0, 2 * 10**9).map(lambda each: dt.datetime.fromtimestamp(each, dt.UTC))
_typed: list[tuple[pa.DataType, st.SearchStrategy[object]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), _doubles),
    (pa.string(), a_text),
    (pa.large_string(), a_text),
    (pa.binary(), st.binary(max_size=20)),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.uuid(), st.uuids()),
    (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(decimal.Decimal)),
    (pa.decimal128(12, 2), st.decimals(-(10**9), 10**9, places=2)),
    (pa.decimal128(38, 30), st.decimals(-(10**7), 10**7, places=30)),
    (pa.decimal256(60, 9), st.decimals(-(10**20), 10**20, places=9)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.time32("s"), st.times().map(lambda t: t.replace(microsecond=0))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    (pa.timestamp("ms"), st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (pa.timestamp("us", "Europe/Berlin"), _recent),
    (pa.duration("us"), st.timedeltas(dt.timedelta(days=-10**6), dt.timedelta(days=10**6))),
]  # fmt: skip


@pytest.mark.parametrize(("arrow", "values"), _typed, ids=[str(arrow) for arrow, _ in _typed])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_typed_columns_give_the_reference_text_under_every_kind(
    arrow: pa.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    given_values = data.draw(columns_of(values, 6))
    # Part of an array has an offset into its buffers.
    array = pa.array([*given_values[:1], *given_values], arrow)[len(given_values[:1]) :]
    for kind in KINDS:
        assert canonical_array(array, kind, BERLIN).to_pylist() == expected(array.to_pylist(), kind, BERLIN), kind


@given(columns_of(st.integers(-(2**63) + 1, 2**63 - 1)))
@settings(deadline=None)
def test_timestamps_of_any_year_are_values(us: list[int | None]) -> None:
    for kind, tz in ((TIMESTAMP, None), (INSTANT, "UTC")):
        array = pa.array(us, pa.int64()).cast(pa.timestamp("us", tz))
        right = [None if each is None else timestamp_text(each, kind.aware) for each in us]
        assert canonical_array(array, kind).to_pylist() == right
        assert canonical_array(array, TEXT).to_pylist() == right


@given(columns_of(st.integers(-(2**31), 2**31 - 1)))
@settings(deadline=None)
def test_dates_of_any_year_are_values(days: list[int | None]) -> None:
    array = pa.array(days, pa.int32()).cast(pa.date32())
    assert canonical_array(array, DATE).to_pylist() == [None if each is None else date_text(each) for each in days]


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1))
@settings(deadline=None)
def test_nanoseconds_are_rounded_half_up(ns: list[int]) -> None:
    array = pa.array(ns, pa.int64()).cast(pa.timestamp("ns"))
    right = [timestamp_text((each + 500) // 1000, aware=False) for each in ns]
    assert canonical_array(array, TIMESTAMP).to_pylist() == right


def test_a_column_of_nulls_and_a_dictionary_column_are_columns() -> None:
    assert canonical_array(pa.nulls(2), INTEGER).to_pylist() == [None, None]
    encoded = pa.array(["007", None, "7", "7"]).dictionary_encode()
    assert canonical_array(encoded, INTEGER).to_pylist() == ["!007", None, "7", "7"]


def test_a_native_field_is_delivered_in_its_arrow_type_and_reads_back_as_text() -> None:
    field = Field("n", "n", INTEGER, native=True)
    array = delivered(pa.array([1, None, 3], pa.int32()), INTEGER, field)
    assert array.type == pa.int64()
    assert texts(array, field) == ["1", None, "3"]
    assert texts(delivered(pa.array(["1", "x"]), TEXT, Field("n", "n", INTEGER)), Field("n", "n", INTEGER)) == [
        "1",
        "!x",
    ]


@given(st.lists(st.tuples(*[st.one_of(st.none(), st.text(max_size=6))] * 3), max_size=8))
@settings(deadline=None)
def test_digests_equal_the_reference(rows: list[tuple[str | None, ...]]) -> None:
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(3)]
    assert digests(columns, len(rows)) == [digest_of(row) for row in rows]
    assert digests([], 2) == [digest_of(())] * 2


@given(st.lists(st.tuples(st.one_of(st.none(), st.text(max_size=6)), st.integers(-9, 9)), max_size=8))
@settings(deadline=None)
def test_key_texts_equal_the_reference(rows: list[tuple[str | None, int]]) -> None:
    columns = [pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.int64())]
    fields = [Field("a", "a", TEXT, native=True), Field("b", "b", INTEGER, native=True)]
    assert key_texts(columns, fields) == [key_text((a, str(b))) for a, b in rows]


def test_a_million_values_of_every_common_kind_are_converted_in_a_few_seconds() -> None:
    """336,776 rows of 19 columns must not take half a minute; the bound is loose, a loop in Python misses it."""
    count = 200_000
    numbers = pa.array(range(count), pa.int64())
    stamps = pa.array(range(0, count * 7_000_003, 7_000_003), pa.int64()).cast(pa.timestamp("us", "UTC"))
    prices = pa.array([f"{each // 100}.{each % 100:02}" for each in range(count)])
    started = time.monotonic()
    for array, kind in ((numbers, INTEGER), (stamps, INSTANT), (prices, DECIMAL), (prices, FLOAT), (prices, TEXT)):
        assert len(text_array(array, Field("x", "x", kind, native=True))) == count
        assert len(canonical_array(array.cast(pa.string()) if kind is not INSTANT else array, kind)) == count
    assert time.monotonic() - started < 5


_spelled_times = st.datetimes().map(
    lambda each: timestamp_text(int(each.replace(tzinfo=dt.UTC).timestamp() * 1_000_000), False)
)
_versions = st.one_of(
    a_text, st.integers(-(2**70), 2**70).map(str), _spelled_times, _spelled_times.map(lambda each: f"{each}Z")
)


@given(columns_of(_versions), st.sampled_from([INTEGER, TIMESTAMP, INSTANT, DATE]))
@settings(max_examples=400, deadline=None)
def test_versions_are_those_of_the_reference(values: list[str | None], kind: Kind) -> None:
    assert versions(pa.array(values, pa.string()), kind).to_pylist() == [version_of(each, kind) for each in values]
