"""Texts that Spark spells are the canonical texts of the reference, or marked; equal texts mean equal values."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from trueup.model import kinds as k
from trueup.model.columns import canonical_array, text_array
from trueup.model.digest import digest_of
from trueup.model.kinds import Kind
from trueup.model.record import Field, Rule
from trueup.sides.spark.spelling import framed, judged
from trueup.sides.spark.types import kind_of

D = decimal.Decimal
FLOAT32 = Kind("float", bits=32)
_DAY = dt.timedelta(days=1)


def _floats(seed: int) -> list[float]:
    chance = random.Random(seed)
    many = [chance.uniform(-1e6, 1e6) for _ in range(60)] + [round(chance.uniform(-1e6, 1e6), 2) for _ in range(120)]
    many += [chance.choice((-1, 1)) * 10.0 ** chance.randint(-320, 308) for _ in range(60)]
    many += [float(chance.randint(-(2**60), 2**60)) for _ in range(30)]
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, 2e-3, 1e-3, 9.99e-4, 1e15, 1e16]
    return [*many, *odd, 2.0**53, 2.0**53 + 2, 9007199254740993.0, 0.1, 0.30000000000000004, 1e23, 2.2e-322, 1e7, 1.5e7]


def _decimals(precision: int, scale: int, seed: int) -> list[decimal.Decimal]:
    chance = random.Random(seed)
    top = 10**precision - 1
    units = [
        0,
        1,
        -1,
        top,
        -top,
        10**scale,
        5 * 10 ** max(scale - 1, 0),
        *(chance.randint(-top, top) for _ in range(40)),
    ]
    return [decimal.Context(prec=60).scaleb(D(each), -scale) for each in units]


_DATES = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1900, 2, 28), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
_MOMENTS = [
    *(f"{day}T00:00:00" for day in _DATES), "1969-12-31T23:59:59.999999", "2021-03-28T02:30:00",
    "2021-10-31T02:30:00.120000", "2000-01-01T00:00:00.000001",
]  # fmt: skip
_TEXTS = [
    "", " ", "a", "\ta b\n", "ÄÖ", "STRASSE", "straße", "İ", "é", "e\u0301", "?a", "!a", "~", "1:", "'", '"', "\x00",
    "\x1f x", "0", "-0", "00", "007", "7", "-7", "+7", "7.0", "7.10", ".5", "1e2", "1E5", "nan", "infinity", "true",
    "TRUE", "t", "1", "0.001", "2020-02-30", "2020-02-29", "2020-02-29 01:02:03", "2020-02-29T01:02:03Z",
    "2020-02-29T01:02:03", "12:30:00", "24:00:00", "0aff", "0AFF", "\\x0aff", "0a-ff", "9" * 60,
    "8c5a1f8e-0000-4000-8000-000000000000", "8C5A1F8E-0000-4000-8000-000000000000", "12345678901234567.5",
    "0.1000000000000000055511151231257827", "1.2345678901234567", "2020-02-29T01:02:03.1000", '{"a":1}', "[1]", "😀",
    "7\n",
]  # fmt: skip

COLUMNS: dict[str, pa.Array[Any]] = {
    "boolean": pa.array([True, False, None]),
    "tinyint": pa.array([0, 1, -128, 127, None], pa.int8()),
    "integer": pa.array([0, 1, -(2**31), 2**31 - 1, None], pa.int32()),
    "bigint": pa.array([0, 1, -(2**63), 2**63 - 1, 2**53 + 1, 1_500_000, None], pa.int64()),
    "float": pa.array([*(min(max(x, -3e38), 3e38) for x in _floats(1)), 0.1, 3.4028235e38, None], pa.float32()),
    "double": pa.array([*_floats(2), None]),
    "money": pa.array([*_decimals(12, 2, 3), None], pa.decimal128(12, 2)),
    "tiny": pa.array([*_decimals(38, 37, 4), None], pa.decimal128(38, 37)),
    "huge": pa.array([*_decimals(38, 0, 5), None], pa.decimal128(38, 0)),
    "text": pa.array([*_TEXTS, None]),
    "bytes": pa.array([b"", b"\x00\xff", b"abcdefghijklmnop", None]),
    "date": pa.array([*_DATES, None]),
    "wall": pa.array([*_MOMENTS, None]).cast(pa.timestamp("us")),
    "instant": pa.array([*_MOMENTS, None]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
}
SCALAR_KINDS = (
    k.BOOLEAN, k.INTEGER, k.DECIMAL, Kind("decimal", bits=32), k.FLOAT, FLOAT32, k.TEXT, k.ENUM, k.BYTES, k.UUID,
    k.DATE, k.TIME, k.TIMESTAMP, k.INSTANT,
)  # fmt: skip
RULES = (
    Rule(), Rule(places=0), Rule(places=2), Rule(places=-2), Rule(trim=True), Rule(casefold=True),
    Rule(trim=True, casefold=True, nfc=True),
)  # fmt: skip
# The own kind of each type is spelled canonically for every value; of floats, for those with few digits.
EXACT = sorted(set(COLUMNS) - {"float", "double"})


def _frame(spark: Any, name: str) -> Any:
    # Without being told, Spark takes wall-clock times for instants.
    schema = "c timestamp_ntz" if name == "wall" else None
    return spark.createDataFrame(pa.table({"c": COLUMNS[name]}), schema)


def _spelled(spark: Any, name: str, fields: list[Field]) -> list[list[str | None]]:
    frame = _frame(spark, name)
    type_ = frame.schema.fields[0].dataType
    # One partition keeps the order.
    answer = frame.coalesce(1).select(
        *(judged(F.col("c"), type_, each).alias(f"t{i}") for i, each in enumerate(fields))
    )
    return [column.to_pylist() for column in answer.toArrow().columns]


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_a_text_is_the_judged_canonical_text_or_marked(spark: Any, name: str) -> None:
    fields = [Field("", "", kind, rule=rule) for kind in SCALAR_KINDS for rule in RULES]
    for field, texts in zip(fields, _spelled(spark, name, fields), strict=True):
        canonical = canonical_array(COLUMNS[name], field.kind).to_pylist()
        expected = [field.rule.judged(text, field.kind) for text in canonical]
        wrong = [
            (field.kind, field.rule, text, wanted)
            for text, wanted in zip(texts, expected, strict=True)
            if text != wanted and not (text or "").startswith("?")
        ]
        assert wrong == []
        meaning: dict[str | None, set[str | None]] = {}
        for text, wanted in zip(texts, expected, strict=True):
            meaning.setdefault(text, set()).add(wanted)
        assert {text: found for text, found in meaning.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", EXACT)
def test_the_own_kind_of_a_type_is_never_marked_and_its_digest_is_the_reference_s(spark: Any, name: str) -> None:
    frame = _frame(spark, name).coalesce(1)
    type_ = frame.schema.fields[0].dataType
    field = Field("", "", kind_of(type_))
    text = judged(F.col("c"), type_, field)
    found = frame.select(text.alias("t"), F.md5(F.concat(framed(text), framed(text))).alias("d")).toArrow()
    expected = canonical_array(COLUMNS[name], field.kind).to_pylist()
    assert found.column("t").to_pylist() == expected
    assert found.column("d").to_pylist() == [digest_of([each, each]) for each in expected]


def test_money_in_floats_is_spelled_as_decimals_are(spark: Any) -> None:
    amounts = [round(random.Random(7).uniform(-1e9, 1e9), 2) for _ in range(500)]
    COLUMNS["amounts"] = pa.array(amounts)
    texts = _spelled(spark, "amounts", [Field("", "", k.DECIMAL), Field("", "", k.FLOAT)])
    del COLUMNS["amounts"]
    assert texts[0] == text_array(canonical_array(pa.array(amounts), k.DECIMAL), Field("", "", k.DECIMAL)).to_pylist()
    assert texts[1] == texts[0]


def test_days_and_times_beyond_python_s_calendar(spark: Any) -> None:
    frame = spark.sql(
        """SELECT date_from_unix_date(d) AS d, timestamp_micros(t) AS t,
                  timestampadd(MICROSECOND, t, timestamp_ntz'1970-01-01') AS w
           FROM VALUES (-719163, -62135596800000001L), (2932897, 253402300800000000L),
                       (-1000000, -100000000000000000L) v(d, t)"""
    ).coalesce(1)
    types = [field.dataType for field in frame.schema.fields]
    asked = [Field("", "", kind_of(type_)) for type_ in types]
    texts = [judged(F.col(name), type_, field) for name, type_, field in zip("dtw", types, asked, strict=True)]
    found = frame.select(*texts).toArrow()
    arrays = [pa.array([-719163, 2932897, -1000000], pa.int32()).cast(pa.date32())]
    us = pa.array([-62135596800000001, 253402300800000000, -100000000000000000], pa.int64())
    arrays += [us.cast(pa.timestamp("us", "UTC")), us.cast(pa.timestamp("us"))]
    expected = [canonical_array(array, field.kind).to_pylist() for array, field in zip(arrays, asked, strict=True)]
    assert [column.to_pylist() for column in found.columns] == expected


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("time'12:30:00.120'", "12:30:00.12"),
        ("time'00:00:00'", "00:00:00"),
        ("cast(1.5D AS float)", "1.5"),
        ("cast('a' AS char(3))", "a"),
        ("null", None),
    ],
)
def test_other_types(spark: Any, sql: str, texts: str | None) -> None:
    frame = spark.sql(f"SELECT {sql} AS c")
    type_ = frame.schema.fields[0].dataType
    field = Field("", "", kind_of(type_))
    assert frame.select(judged(F.col("c"), type_, field)).collect()[0][0] == texts


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("array('a', null)", "array(null, 'a')"),
        ("array('a', '1:b')", "array('a1:b')"),
        ("array(array(1), array())", "array(array(), array(1))"),
        ("map('a', 'b', 'c', 'd')", "map('a', 'd', 'c', 'b')"),
        ("named_struct('a', 1, 'b', null)", "named_struct('a', null, 'b', 1)"),
        ("array(struct(timestamp'2020-01-01 00:00:00.000001'))", "array(struct(timestamp'2020-01-01 00:00:00'))"),
    ],
)  # fmt: skip
def test_nested_values_are_equal_only_if_they_are(spark: Any, left: str, right: str) -> None:
    frame = spark.sql(f"SELECT {left} AS a, {right} AS b, {left} AS c")
    texts = []
    for field in frame.schema.fields:
        texts.append(judged(F.col(field.name), field.dataType, Field("", "", kind_of(field.dataType))))
    a, b, c = frame.select(*texts).collect()[0]
    assert a == c
    assert a != b


def test_maps_are_equal_whatever_the_order_of_their_entries(spark: Any) -> None:
    frame = spark.sql("SELECT map('a', 1, 'b', 2) AS a, map('b', 2, 'a', 1) AS b")
    type_ = frame.schema.fields[0].dataType
    texts = [judged(F.col(name), type_, Field("", "", k.JSON)) for name in "ab"]
    a, b = frame.select(*texts).collect()[0]
    assert a == b
