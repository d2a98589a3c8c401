"""One canonical text for each value of each kind, whichever system spelled it."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from strategies import BERLIN, FLOAT32, any_kind, any_text, any_value, any_zone, fitting, json_values
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text, is_odd, plain_text
from trueup.model.kinds import Kind
from trueup.model.natural import natural
from trueup.model.numbers import round_decimal_text

thorough = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def _holds_oddity(text: str, kind: Kind) -> bool:
    return is_odd(text, kind) or (kind.name == "array" and '"!' in text)


# Laws of every kind


@thorough
@given(any_value, any_kind, any_zone)
def test_any_value_under_any_kind_gives_text_or_null_and_never_raises(value: Any, kind: Kind, zone: Any) -> None:
    text = canonical_text(value, kind, zone)
    assert (text is None) == (value is None)
    assert text is None or type(text) is str


@thorough
@given(fitting)
def test_a_value_that_fits_its_kind_is_no_oddity(fit: tuple[Kind, Any]) -> None:
    kind, value = fit
    text = canonical_text(value, kind)
    element = kind.element if kind.name == "array" else kind
    # Text under JSON is JSON text, and most text is not; a double may be too large for 32 bits.
    assume(element.name != "json" and element != FLOAT32)
    assert text is None or not _holds_oddity(text, kind) or (kind.name == "array" and element.name in ("text", "enum"))


@thorough
@given(st.one_of(fitting, st.tuples(any_kind, any_value)), any_zone)
def test_a_canonical_text_is_its_own_canonical_text(pick: tuple[Kind, Any], zone: Any) -> None:
    kind, value = pick
    text = canonical_text(value, kind, zone)
    assume(text is not None and not _holds_oddity(text, kind))
    assert canonical_text(text, kind, zone) == text


@thorough
@given(st.one_of(fitting, st.tuples(any_kind, any_value)), any_zone)
def test_natural_brings_a_value_back(pick: tuple[Kind, Any], zone: Any) -> None:
    kind, value = pick
    text = canonical_text(value, kind, zone)
    assume(text is not None and not _holds_oddity(text, kind))
    # A Python str under JSON is JSON text, so a JSON string can't come back as one.
    assume(kind.name != "json" or not text.startswith('"'))
    assume(kind.name != "array" or kind.element.name != "json")
    assert canonical_text(natural(text, kind), kind, zone) == text


@thorough
@given(any_text, any_kind, any_zone)
def test_natural_brings_back_the_raw_text_of_an_oddity(raw: str, kind: Kind, zone: Any) -> None:
    text = canonical_text(raw, kind, zone)
    assume(is_odd(text, kind))
    assert text == f"!{raw}"
    assert natural(text, kind) == raw


@thorough
@given(any_text, any_text, any_kind)
def test_two_oddities_are_equal_only_if_their_raw_texts_are(one: str, other: str, kind: Kind) -> None:
    a, b = canonical_text(one, kind), canonical_text(other, kind)
    assume(is_odd(a, kind) and is_odd(b, kind))
    assert (a == b) == (one == other)


@pytest.mark.parametrize("kind", [k.TEXT, k.ENUM])
@given(raw=st.text())
def test_text_is_never_an_oddity_and_never_altered(kind: Kind, raw: str) -> None:
    text = canonical_text(raw, kind)
    assert text == raw
    assert not is_odd(text, kind)


def test_a_value_whose_own_kind_does_not_fit_is_shown_as_python_shows_it() -> None:
    # Once an endless recursion: a decimal too wide for the decimal rule.
    assert canonical_text(Decimal("1e999999"), k.DECIMAL) == "!1E+999999"
    assert plain_text(Decimal("1e999999")) == "1E+999999"


# Examples of each kind; None in the second place means: odd


def _id(value: object) -> str:
    return repr(value)[:40]


@pytest.mark.parametrize("value", [0, "0", "f", "F", "false", "FALSE", " false ", False, 0.0, Decimal("0.00")])
def test_false_is_spelled_in_these_ways(value: Any) -> None:
    assert canonical_text(value, k.BOOLEAN) == "false"


@pytest.mark.parametrize("value", [1, "1", "t", "T", "true", "True", True, 1.0, Decimal("1.00")])
def test_true_is_spelled_in_these_ways(value: Any) -> None:
    assert canonical_text(value, k.BOOLEAN) == "true"


@pytest.mark.parametrize(
    ("value", "text"), [(2, "!2"), (-1, "!-1"), ("y", "!y"), ("yes", "!yes"), ("", "!"), (0.5, "!0.5"), ("on", "!on")]
)
def test_nothing_else_is_a_boolean(value: Any, text: str) -> None:
    assert canonical_text(value, k.BOOLEAN) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (-0, "0"),
        ("-0", "0"),
        (True, "1"),
        (9007199254740993, "9007199254740993"),
        ("9007199254740993", "9007199254740993"),
        ("7.00", "7"),
        (Decimal("7E+2"), "700"),
        ("1e3", "1000"),
        (7.0, "7"),
        (2**200, str(2**200)),
        (7.5, "!7.5"),
        ("007", "!007"),
        ("+7", "!+7"),
        (" 7", "! 7"),
        ("٣", "!٣"),
        ("1_000", "!1_000"),
        ("", "!"),
        (math.nan, "!nan"),
    ],
    ids=_id,
)
def test_integers(value: Any, text: str) -> None:
    assert canonical_text(value, k.INTEGER) == text


@given(st.integers())
def test_an_integer_of_any_size_is_its_decimal_digits(value: int) -> None:
    assert canonical_text(value, k.INTEGER) == canonical_text(str(value), k.INTEGER) == str(value)


def test_integers_are_not_bounded_by_the_digits_that_python_converts() -> None:
    text = canonical_text(10**10_000, k.INTEGER)
    assert text == "1" + "0" * 10_000
    assert natural(text, k.INTEGER) == 10**10_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.5"),
        ("1.50", "1.5"),
        (".58", "0.58"),
        ("-.4", "-0.4"),
        ("+3.", "3"),
        (Decimal("-0.00"), "0"),
        ("1E-3", "0.001"),
        ("1e+3", "1000"),
        (" 12.5 ", "12.5"),
        (0.1, "0.1"),
        (5, "5"),
        ("NaN", "nan"),
        ("Infinity", "infinity"),
        ("-inf", "-infinity"),
        (Decimal("Infinity"), "infinity"),
        ("12,5", "!12,5"),
        ("1 000", "!1 000"),
        ("", "!"),
        ("0x10", "!0x10"),
    ],
    ids=_id,
)
def test_decimals(value: Any, text: str) -> None:
    assert canonical_text(value, k.DECIMAL) == text


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 6))
def test_decimals_do_not_depend_on_scale_or_spelling(value: Decimal, zeros: int) -> None:
    text = canonical_text(value, k.DECIMAL)
    assert text is not None
    if not is_odd(text, k.DECIMAL):
        wide = decimal.Context(prec=400_000)
        rescaled = wide.quantize(value, Decimal(1).scaleb(value.as_tuple().exponent - zeros))  # type: ignore[operator]
        assert canonical_text(rescaled, k.DECIMAL) == text
        assert canonical_text(str(value), k.DECIMAL) == text
        assert Decimal(text) == value


@given(st.decimals(allow_nan=False, places=6, min_value=-(10**12), max_value=10**12), st.integers(-3, 8))
def test_rounding_to_places_is_idempotent_and_at_most_half_a_unit_away(value: Decimal, places: int) -> None:
    text = canonical_text(value, k.DECIMAL) or ""
    rounded = round_decimal_text(text, places)
    assert round_decimal_text(rounded, places) == rounded
    assert abs(Decimal(rounded) - value) <= Decimal(1).scaleb(-places) / 2


@pytest.mark.parametrize(
    ("text", "places", "rounded"),
    [
        ("0.125", 2, "0.13"),
        ("-0.125", 2, "-0.13"),
        ("2.5", 0, "3"),
        ("-0.004", 2, "0"),
        ("15", -1, "20"),
        ("nan", 2, "nan"),
        ("-infinity", 2, "-infinity"),
        ("!12,5", 2, "!12,5"),
    ],
)
def test_ties_are_rounded_away_from_zero(text: str, places: int, rounded: str) -> None:
    assert round_decimal_text(text, places) == rounded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (0.16015625, "0.16015625"),
        (-0.0, "0"),
        (1e16, "1e+16"),
        ("1E16", "1e+16"),
        (5e-324, "5e-324"),
        (3, "3"),
        (Decimal("0.5"), "0.5"),
        (math.nan, "nan"),
        ("-NaN", "!-NaN"),
        (math.inf, "infinity"),
        ("-Infinity", "-infinity"),
        ("1e400", "!1e400"),
        (Decimal("-1e400"), "!-1" + "0" * 400),
        (10**400, "!1" + "0" * 400),
        ("", "!"),
    ],
    ids=_id,
)
def test_floats(value: Any, text: str) -> None:
    assert canonical_text(value, k.FLOAT) == text


@given(st.floats(allow_nan=False))
def test_a_float_reads_back_as_the_same_float(value: float) -> None:
    text = canonical_text(value, k.FLOAT)
    assert text is not None
    assert float(text) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_32_bit_float_is_the_shortest_text_that_reads_back_at_32_bits(value: float) -> None:
    text = canonical_text(value, FLOAT32)
    assert text is not None
    assert struct.pack("f", float(text)) == struct.pack("f", value + 0.0)
    digits = len(text.lstrip("-").partition("e")[0].replace(".", "").strip("0"))
    for fewer in range(1, digits):
        assert struct.pack("f", float(f"{value:.{fewer}g}")) != struct.pack("f", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (struct.unpack("f", struct.pack("f", 0.1))[0], "0.1"),
        (16777217.0, "16777216"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (1e-46, "0"),
        (math.inf, "infinity"),
        (1e39, "!1e+39"),
    ],
)
def test_32_bit_floats(value: float, text: str) -> None:
    assert canonical_text(value, FLOAT32) == text


def test_a_32_bit_float_meets_a_decimal_by_its_own_shortest_text() -> None:
    # Drivers hand out 32-bit floats widened to 64, with digits that the column never held.
    widened = struct.unpack("f", struct.pack("f", 19.99))[0]
    assert canonical_text(widened, Kind("decimal", bits=32)) == canonical_text(Decimal("19.99"), k.DECIMAL) == "19.99"
    assert canonical_text(widened, k.DECIMAL) == "19.989999771118164"


@pytest.mark.parametrize(
    "raw", ["0xAC00FF", "\\xac00ff", "AC00ff", " ac00ff ", b"\xac\x00\xff", bytearray(b"\xac\x00\xff")]
)
def test_bytes_are_lower_case_hex(raw: Any) -> None:
    assert canonical_text(raw, k.BYTES) == "ac00ff"


@pytest.mark.parametrize("raw", ["abc", "ac 00", "zz", "0x0x00", "٣٣"])
def test_text_that_is_not_hex_is_no_bytes(raw: str) -> None:
    assert canonical_text(raw, k.BYTES) == f"!{raw}"


def test_no_bytes_and_null_differ() -> None:
    assert canonical_text(b"", k.BYTES) == ""
    assert canonical_text(None, k.BYTES) is None


@given(st.uuids())
def test_a_uuid_is_lower_case_with_hyphens_however_it_is_spelled(value: uuid.UUID) -> None:
    spellings = [value, value.bytes, value.hex, str(value).upper(), f"{{{value}}}", f"urn:uuid:{value}"]
    assert {canonical_text(each, k.UUID) for each in spellings} == {str(value)}


@pytest.mark.parametrize("raw", ["", "123", "+" + "1" * 31, "1_" * 16, "g" * 32, "0-" * 16 + "0" * 16])
def test_text_that_merely_converts_is_no_uuid(raw: str) -> None:
    assert canonical_text(raw, k.UUID) == f"!{raw}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"b":2, "a":1}', '{"a":1,"b":2}'),
        ({"b": 2, "a": 1}, '{"a":1,"b":2}'),
        ("[1, 2]", "[1,2]"),
        ("[2,1]", "[2,1]"),
        ('{"n":1.0}', '{"n":1}'),
        ("-0.0", "0"),
        ("1e2", "100"),
        ("9007199254740993", "9007199254740993"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("null", "null"),
        ('"é\\u00e9\\/"', '"éé/"'),
        ('"\\ud83d\\ude00"', '"😀"'),
        ('"\\ud800"', '"\\ud800"'),
        ("{}", "{}"),
        ([], "[]"),
        (True, "true"),
        (b'{"a":1}', '{"a":1}'),
        ({1: "x"}, '{"1":"x"}'),
        ({"when": dt.date(2024, 5, 1)}, '{"when":"2024-05-01"}'),
        ('{"a":1,"a":2}', '!{"a":1,"a":2}'),
        ("not json {", "!not json {"),
        ("[NaN]", "![NaN]"),
        ("", "!"),
    ],
    ids=_id,
)
def test_json(value: Any, text: str) -> None:
    assert canonical_text(value, k.JSON) == text


@given(json_values)
def test_json_is_the_same_as_text_and_as_python_values_in_any_key_order(value: Any) -> None:
    spelled = json.dumps(value)
    reordered = json.dumps(_reversed(value), indent=1, ensure_ascii=False)
    text = canonical_text(spelled, k.JSON)
    assert text is not None
    assert canonical_text(reordered, k.JSON) == text
    if value is not None and not isinstance(value, str):
        assert canonical_text(value, k.JSON) == text
    assert json.loads(text, parse_int=float) == json.loads(spelled, parse_int=float)


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(each) for name, each in reversed(value.items())}
    return [_reversed(each) for each in value] if isinstance(value, list) else value


def test_numbers_in_json_are_not_bounded_by_what_python_converts() -> None:
    text = canonical_text("[1e5000]", k.JSON)
    assert text == "[1" + "0" * 5000 + "]"
    assert canonical_text(text, k.JSON) == text


def test_json_nested_beyond_any_depth_is_an_oddity_not_a_crash() -> None:
    raw = "[" * 100_000 + "]" * 100_000
    assert canonical_text(raw, k.JSON) == f"!{raw}"


@pytest.mark.parametrize(
    ("value", "item", "text"),
    [
        ([1, None, 3], k.INTEGER, '["1",null,"3"]'),
        ("[1, null, 3]", k.INTEGER, '["1",null,"3"]'),
        ([[1, 2], [3, None]], k.INTEGER, '[["1","2"],["3",null]]'),
        ([], k.INTEGER, "[]"),
        ((Decimal("1.50"), "x"), k.DECIMAL, '["1.5","!x"]'),
        (['a"b', "", None], k.TEXT, '["a\\"b","",null]'),
        ([dt.date(2024, 2, 29)], k.DATE, '["2024-02-29"]'),
        (["{1}"], k.JSON, '["!{1}"]'),
        ([{"b": 1, "a": [2]}, [3]], k.JSON, '["{\\"a\\":[2],\\"b\\":1}","[3]"]'),
        ("{1,2}", k.INTEGER, "!{1,2}"),
        ("abc", k.TEXT, "!abc"),
    ],
    ids=_id,
)
def test_arrays(value: Any, item: Kind, text: str) -> None:
    assert canonical_text(value, Kind("array", item=item)) == text


def test_dimensions_may_or_may_not_be_part_of_an_array_type() -> None:
    flat, nested = Kind("array", item=k.INTEGER), Kind("array", item=Kind("array", item=k.INTEGER))
    assert canonical_text([[1], None], flat) == canonical_text([[1], None], nested) == '[["1"],null]'
    assert natural('[["1"],null]', nested) == [[1], None]


def test_arrays_that_differ_only_in_nesting_differ() -> None:
    kind = Kind("array", item=k.TEXT)
    texts = {canonical_text(value, kind) for value in (["a", "b"], [["a"], ["b"]], ["a,b"], [["a", "b"]], ['a","b'])}
    assert len(texts) == 5


# Natural values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (None, k.INTEGER, None),
        ("true", k.BOOLEAN, True),
        ("7", k.INTEGER, 7),
        ("1.5", k.DECIMAL, Decimal("1.5")),
        ("0.1", k.FLOAT, 0.1),
        ("ac", k.BYTES, b"\xac"),
        ("2024-02-29", k.DATE, dt.date(2024, 2, 29)),
        ("+10000-01-01", k.DATE, "+10000-01-01"),
        ("12:30:00", k.TIME, dt.time(12, 30)),
        ("-25:00:00", k.TIME, dt.timedelta(hours=-25)),
        ("24:00:00", k.TIME, dt.timedelta(hours=24)),
        ("2024-02-29T12:00:00Z", k.INSTANT, dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)),
        ("infinity", k.INSTANT, "infinity"),
        ("PT-0.5S", k.INTERVAL, dt.timedelta(seconds=-0.5)),
        ("P1M", k.INTERVAL, "P1M"),
        ('{"a":[1.5]}', k.JSON, {"a": [Decimal("1.5")]}),
        ("!12,5", k.DECIMAL, "12,5"),
        ("!x", k.TEXT, "!x"),
    ],
)
def test_handlers_receive_python_values(text: str | None, kind: Kind, value: Any) -> None:
    found = natural(text, kind)
    assert found == value
    assert type(found) is type(value)


@given(st.datetimes(), st.booleans())
def test_a_wall_clock_time_becomes_an_instant_only_by_a_declared_zone(value: dt.datetime, fold: bool) -> None:
    wall = value.replace(fold=int(fold))
    without = canonical_text(wall, k.INSTANT)
    assert without is not None
    assert without.startswith("!")
    zoned = wall.replace(tzinfo=BERLIN)
    assert canonical_text(wall, k.INSTANT, BERLIN) == canonical_text(zoned, k.INSTANT)
    assert (canonical_text(zoned, k.TIMESTAMP) or "").startswith("!")
