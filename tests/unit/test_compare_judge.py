"""Rules on columns judge what the rules on values judge."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare.judge import judged, same
from trueup.model.canonical import canonical_text
from trueup.model.columns import text_array
from trueup.model.kinds import DECIMAL, FLOAT, INSTANT, INTEGER, TEXT, TIMESTAMP, Kind
from trueup.model.record import EXACT, Field, Rule

MONEY = Kind("decimal", scale=4, precision=18)
_bounds = st.sampled_from(
    [None, Decimal(0), Decimal("0.01"), Decimal("0.1"), Decimal(1), Decimal("1e-30"), Decimal("1e30")]
)
rules = st.builds(
    Rule,
    places=st.sampled_from([None, None, 0, 2, 3, -1]),
    absolute=_bounds,
    relative=_bounds,
    seconds=_bounds,
    trim=st.booleans(),
    casefold=st.booleans(),
    nfc=st.booleans(),
)
_near = st.integers(-300, 300).map(lambda each: each / 100)
_ticks = st.one_of(st.integers(-3_000_000, 3_000_000), st.integers(-(2**62), 2**62))
_cent = st.decimals(-(10**6), 10**6, places=4)
_whole = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
_single = st.one_of(st.floats(-2, 2, width=32), st.floats(width=32))
_words = st.one_of(st.text(max_size=4), st.text("aA \t\x1c\u00a0éßK\u0301", max_size=4))
Given = tuple[Kind, pa.DataType, st.SearchStrategy[object]]
COLUMNS: list[Given] = [
    (INTEGER, pa.int64(), _whole),
    (FLOAT, pa.float64(), st.one_of(_near, st.floats())),
    (Kind("float", bits=32), pa.float32(), _single),
    (MONEY, pa.decimal128(18, 4), st.one_of(_cent, st.decimals(-1, 1, places=4))),
    (TIMESTAMP, pa.timestamp("us"), _ticks),
    (INSTANT, pa.timestamp("us", "UTC"), _ticks),
    (TEXT, pa.string(), _words),
]
_spelled = st.one_of(
    _near.map(str),
    st.decimals(-2, 2, places=3).map(str),
    st.sampled_from(["nan", "infinity", "-infinity", "x", "1e400", "-0.0", "9" * 40, "0." + "0" * 40 + "1"]),
    st.integers(0, 3 * 10**6).map(lambda us: f"2024-01-01T00:00:0{us / 10**6:.6f}Z"),
    st.integers(0, 3 * 10**6).map(lambda us: f"2024-01-01T00:00:0{us / 10**6:.6f}"),
)


@pytest.mark.parametrize(("kind", "arrow", "values"), COLUMNS, ids=[str(kind) for kind, _, _ in COLUMNS])
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_native_columns_are_judged_as_values_are(
    kind: Kind, arrow: pa.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    pairs = data.draw(st.lists(st.tuples(st.one_of(st.none(), values), st.one_of(st.none(), values)), max_size=8))
    field = Field("f", "f", kind, native=True, rule=data.draw(rules))
    left, right = (pa.array([pair[at] for pair in pairs], arrow) for at in (0, 1))
    check(left, right, field)


@given(
    st.lists(st.tuples(st.one_of(st.none(), _spelled), st.one_of(st.none(), _spelled)), max_size=8),
    st.sampled_from([INTEGER, DECIMAL, FLOAT, TIMESTAMP, INSTANT]),
    rules,
)
@settings(max_examples=600, deadline=None)
def test_canonical_texts_are_judged_as_values_are(
    pairs: list[tuple[str | None, str | None]], kind: Kind, rule: Rule
) -> None:
    left, right = (pa.array([canonical_text(pair[at], kind) for pair in pairs], pa.string()) for at in (0, 1))
    check(left, right, Field("f", "f", kind, rule=rule))


def check(left: pa.Array, right: pa.Array, field: Field) -> None:
    a, b = (text_array(each, field).to_pylist() for each in (left, right))
    rule, kind = field.rule, field.kind
    assert text_array(judged(left, field), field).to_pylist() == [rule.judged(text, kind) for text in a]
    assert same(left, right, field).to_pylist() == [rule.same(x, y, kind) for x, y in zip(a, b, strict=True)]


def test_a_tolerance_that_is_met_exactly_is_met() -> None:
    field = Field("f", "f", MONEY, native=True, rule=Rule(absolute=Decimal("0.01")))
    left = pa.array([Decimal("1.00"), Decimal("1.00")], pa.decimal128(18, 4))
    right = pa.array([Decimal("1.01"), Decimal("1.0101")], pa.decimal128(18, 4))
    assert same(left, right, field).to_pylist() == [True, False]


def test_nan_equals_nan_and_minus_zero_is_zero() -> None:
    field = Field("f", "f", FLOAT, native=True, rule=EXACT)
    left, right = pa.array([float("nan"), -0.0, None, 1.0]), pa.array([float("nan"), 0.0, None, None])
    assert same(left, right, field).to_pylist() == [True, True, True, False]


def test_rounding_ties_go_away_from_zero() -> None:
    field = Field("f", "f", Kind("decimal", scale=3, precision=3), native=True, rule=Rule(places=2))
    values = [decimal.Decimal(each) for each in ("0.125", "-0.125", "0.999")]
    column = judged(pa.array(values, pa.decimal128(3, 3)), field)
    assert text_array(column, field).to_pylist() == ["0.13", "-0.13", "1"]
