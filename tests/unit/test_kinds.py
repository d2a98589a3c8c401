"""Which kind two columns are compared as, and whether both may come natively."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import FLOAT32, SCALARS, any_kind
from trueup.errors import ConfigError, SchemaError
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.kinds import KIND_NAMES, Column, Kind, common_kind, kind_named

MONEY = Kind("decimal", scale=2, precision=10)


def _common(left: Kind, right: Kind, *, native: bool = True) -> tuple[Kind, bool]:
    return common_kind(Column("a", left, native=native), Column("b", right, native=native))


@given(any_kind, any_kind)
def test_the_order_of_the_sides_does_not_matter(left: Kind, right: Kind) -> None:
    try:
        found = _common(left, right)
    except SchemaError:
        with pytest.raises(SchemaError):
            _common(right, left)
    else:
        assert _common(right, left) == found


@given(any_kind)
def test_a_kind_is_compared_with_itself_as_itself(kind: Kind) -> None:
    assert str(_common(kind, kind)[0]) == str(kind if kind.name != "array" else Kind("array", item=kind.element))


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (k.INTEGER, k.BOOLEAN, k.BOOLEAN),
        (k.INTEGER, MONEY, k.DECIMAL),
        (k.INTEGER, k.FLOAT, k.DECIMAL),
        (k.DECIMAL, k.FLOAT, k.DECIMAL),
        (MONEY, FLOAT32, Kind("decimal", bits=32)),
        (k.DATE, k.TIMESTAMP, k.TIMESTAMP),
        (k.DATE, k.INSTANT, k.INSTANT),
        (k.TIME, k.INTERVAL, k.INTERVAL),
        (k.TEXT, k.ENUM, k.TEXT),
        (k.TEXT, k.INTEGER, k.INTEGER),
        (k.TEXT, MONEY, k.DECIMAL),
        (k.ENUM, k.DATE, k.DATE),
        (k.TEXT, k.JSON, k.JSON),
        (Kind("array", item=k.INTEGER), k.JSON, k.JSON),
        (k.BYTES, k.UUID, k.UUID),
        (k.FLOAT, FLOAT32, FLOAT32),
        (MONEY, Kind("decimal", scale=4, precision=8), Kind("decimal", scale=4, precision=12)),
        (MONEY, k.DECIMAL, k.DECIMAL),
        (Kind("array", item=k.INTEGER), Kind("array", item=k.TEXT), Kind("array", item=k.INTEGER)),
        (
            Kind("array", item=k.INTEGER),
            Kind("array", item=Kind("array", item=k.INTEGER)),
            Kind("array", item=k.INTEGER),
        ),
    ],
    ids=str,
)
def test_two_kinds_meet_in_one_that_hides_no_difference(left: Kind, right: Kind, kind: Kind) -> None:
    assert _common(left, right)[0] == kind


@pytest.mark.parametrize(
    ("left", "right"),
    [(k.TIMESTAMP, k.INSTANT), (k.DATE, k.INTEGER), (k.UUID, k.INTEGER), (k.JSON, k.BOOLEAN), (k.BYTES, k.INTEGER)],
    ids=str,
)
def test_kinds_without_a_rule_are_refused_with_both_columns_named(left: Kind, right: Kind) -> None:
    with pytest.raises(SchemaError, match=r"column a.*with b") as caught:
        _common(left, right)
    assert caught.value.hint


def test_a_wall_clock_time_against_an_instant_asks_for_the_zone() -> None:
    with pytest.raises(SchemaError) as caught:
        _common(k.TIMESTAMP, k.INSTANT)
    assert "zone" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "kind", [k.BOOLEAN, k.INTEGER, k.FLOAT, FLOAT32, k.TEXT, k.BYTES, k.DATE, k.INSTANT, MONEY], ids=str
)
def test_both_sides_deliver_arrow_only_if_both_surely_fit(kind: Kind) -> None:
    assert _common(kind, kind) == (kind, True)
    for left, right in itertools.product((True, False), repeat=2):
        native = common_kind(Column("a", kind, native=left), Column("b", kind, native=right))[1]
        assert native == (left and right)


@pytest.mark.parametrize(
    ("left", "right"),
    [(k.INTEGER, k.BOOLEAN), (k.INTEGER, k.FLOAT), (k.DATE, k.TIMESTAMP), (k.TEXT, k.INTEGER), (k.FLOAT, FLOAT32)],
    ids=str,
)
def test_different_kinds_never_meet_in_arrow(left: Kind, right: Kind) -> None:
    # A cast of Arrow knows no oddities: 2 would become true, and 1e39 infinity.
    assert _common(left, right)[1] is False


@pytest.mark.parametrize(
    "kind", [k.UUID, k.TIME, k.INTERVAL, k.JSON, k.DECIMAL, Kind("array", item=k.INTEGER)], ids=str
)
def test_kinds_that_arrow_does_not_hold_exactly_travel_as_text(kind: Kind) -> None:
    assert kind.arrow() is None
    assert _common(kind, kind)[1] is False


def test_a_decimal_wider_than_38_digits_travels_as_text() -> None:
    assert Kind("decimal", scale=2, precision=38).arrow() == pa.decimal128(38, 2)
    assert Kind("decimal", scale=2, precision=39).arrow() is None


def test_every_kind_has_a_rule() -> None:
    for name in KIND_NAMES:
        assert canonical_text(None, Kind(name)) is None
        assert canonical_text(object, Kind(name)) is not None


@given(st.sampled_from([*SCALARS, Kind("array", item=k.DATE), Kind("array", item=FLOAT32)]))
def test_a_kind_is_named_as_it_is_printed(kind: Kind) -> None:
    assert kind_named(str(kind)) == kind
    assert kind_named(kind) is kind


def test_an_unknown_kind_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as caught:
        kind_named("integr")
    assert "integer" in (caught.value.hint or "")
