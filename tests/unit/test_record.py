"""How values are judged equal, and how keys, versions and payloads are spelled."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import SCALARS, any_kind, any_text, any_value
from trueup.errors import SchemaError
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.kinds import Kind
from trueup.model.record import EXACT, Field, Payload, Projection, Rule, key_parts, key_text, version_of

texts = st.one_of(st.none(), st.text())
tolerances = st.one_of(st.none(), st.decimals(min_value=0, max_value=10, places=3))
rules = st.builds(
    Rule,
    places=st.one_of(st.none(), st.integers(0, 6)),
    absolute=tolerances,
    relative=tolerances,
    seconds=tolerances,
    trim=st.booleans(),
    casefold=st.booleans(),
    nfc=st.booleans(),
)
MONEY = Kind("decimal", scale=2, precision=10)


# Judging


@given(rules, any_kind, any_value)
def test_a_value_equals_itself_under_every_rule(rule: Rule, kind: Kind, value: Any) -> None:
    text = canonical_text(value, kind)
    assert rule.same(text, text, kind)
    assert not rule.same(text, None, kind) or text is None


@given(rules, st.sampled_from(SCALARS), any_value, any_value)
def test_only_a_relative_tolerance_depends_on_which_side_is_the_authority(
    rule: Rule, kind: Kind, one: Any, other: Any
) -> None:
    a, b = canonical_text(one, kind), canonical_text(other, kind)
    if rule.relative is None:
        assert rule.same(a, b, kind) == rule.same(b, a, kind)
    else:
        rule.same(a, b, kind)


@given(rules, any_kind, any_text)
def test_judging_twice_is_judging_once(rule: Rule, kind: Kind, value: str) -> None:
    once = rule.judged(canonical_text(value, kind), kind)
    if not rule.nfc or not rule.casefold:  # case folding may leave form C
        assert rule.judged(once, kind) == once


@given(rules, st.decimals(-1000, 1000, places=4), st.decimals(-1000, 1000, places=4))
def test_a_wider_tolerance_never_makes_equal_values_differ(rule: Rule, one: Decimal, other: Decimal) -> None:
    a, b = canonical_text(one, k.DECIMAL), canonical_text(other, k.DECIMAL)
    wider = Rule(places=rule.places, absolute=(rule.absolute or Decimal(0)) + 1, relative=rule.relative)
    if rule.same(a, b, k.DECIMAL):
        assert wider.same(a, b, k.DECIMAL)


@pytest.mark.parametrize(
    ("rule", "kind", "left", "right", "same"),
    [
        (EXACT, k.DECIMAL, "1.5", "1.5", True),
        (EXACT, k.DECIMAL, "1.5", "1.50", False),  # canonical texts have no trailing zeros
        (EXACT, k.TEXT, None, None, True),
        (EXACT, k.TEXT, None, "", False),
        (EXACT, k.FLOAT, "nan", "nan", True),
        (Rule(places=2), k.DECIMAL, "1.004", "1", True),
        (Rule(places=2), k.DECIMAL, "1.005", "1", False),
        (Rule(places=0), k.DECIMAL, "!x", "!x", True),
        (Rule(places=2), k.FLOAT, "1.004", "1", False),
        (Rule(absolute=Decimal("0.01")), k.DECIMAL, "100", "100.01", True),
        (Rule(absolute=Decimal("0.01")), k.DECIMAL, "100", "100.010000001", False),
        (Rule(absolute=Decimal("0.01")), k.FLOAT, "0.1", "0.11", True),
        (Rule(absolute=Decimal(1)), k.FLOAT, "nan", "1", False),
        (Rule(absolute=Decimal(1)), k.FLOAT, "infinity", "-infinity", False),
        (Rule(absolute=Decimal(1)), k.INTEGER, "!x", "1", False),
        (Rule(absolute=Decimal(0)), k.DECIMAL, "1" + "0" * 40, "1" + "0" * 39 + "1", False),
        (Rule(absolute=Decimal(1)), k.DECIMAL, "1" + "0" * 40, "1" + "0" * 39 + "1", True),
        (Rule(absolute=Decimal(100)), k.TEXT, "1", "2", False),
        (Rule(relative=Decimal("0.1")), k.DECIMAL, "100", "110", True),
        (Rule(relative=Decimal("0.1")), k.DECIMAL, "90", "100", False),
        (Rule(relative=Decimal("0.1")), k.DECIMAL, "100", "90", True),
        (Rule(relative=Decimal("0.1")), k.DECIMAL, "-100", "-110", True),
        (Rule(relative=Decimal("0.1")), k.DECIMAL, "0", "0.001", False),
        (Rule(seconds=Decimal(2)), k.INSTANT, "2024-05-01T10:00:00Z", "2024-05-01T10:00:02Z", True),
        (Rule(seconds=Decimal(2)), k.INSTANT, "2024-05-01T10:00:00Z", "2024-05-01T10:00:02.000001Z", False),
        (Rule(seconds=Decimal("0.5")), k.TIMESTAMP, "2024-05-01T10:00:00", "2024-05-01T09:59:59.5", True),
        (Rule(seconds=Decimal(2)), k.INSTANT, "infinity", "2024-05-01T10:00:02Z", False),
        (Rule(trim=True), k.TEXT, " KX1  ", "KX1", True),
        (EXACT, k.TEXT, "KX1 ", "KX1", False),
        (Rule(casefold=True), k.TEXT, "STRASSE", "straße", True),
        (Rule(casefold=True), k.ENUM, "A", "a", True),
        (Rule(nfc=True), k.TEXT, "e\u0301", "é", True),
        (EXACT, k.TEXT, "e\u0301", "é", False),
        (Rule(trim=True, casefold=True), k.TEXT, None, "", False),
        (Rule(casefold=True), k.JSON, '"A"', '"a"', False),
    ],
)
def test_rules(rule: Rule, kind: Kind, left: str | None, right: str | None, same: bool) -> None:
    assert rule.same(left, right, kind) is same


def test_exact_and_tolerant_say_what_a_rule_is() -> None:
    assert EXACT.exact
    assert not EXACT.tolerant
    assert Rule(seconds=Decimal(1)).tolerant
    assert not Rule(places=2).tolerant
    assert not Rule(trim=True).exact


# Records

PROJECTION = Projection(
    key=(Field("id", "id", k.INTEGER),),
    fields=(Field("name", "name", k.TEXT, rule=Rule(trim=True)), Field("fee", "amount", MONEY, rule=Rule(places=2))),
    version=Field("at", "at", k.INSTANT),
    extra=(Field("note", "note", k.TEXT),),
)


def test_columns_come_in_the_order_key_version_fields_extra() -> None:
    assert [field.name for field in PROJECTION.columns] == ["id", "at", "name", "fee", "note"]


def test_a_digest_covers_the_judged_fields_only() -> None:
    values = {"id": "1", "at": "2024-05-01T10:00:00Z", "name": "Ann", "fee": "1.5", "note": "x"}
    digest = PROJECTION.digest(values)
    assert PROJECTION.digest({**values, "name": " Ann ", "fee": "1.501"}) == digest
    assert PROJECTION.digest({**values, "id": "2", "at": None, "note": "y"}) == digest
    assert PROJECTION.digest({**values, "name": None}) != digest
    assert PROJECTION.digest({**values, "fee": "1.51"}) != digest


def test_changed_fields_are_named_in_order() -> None:
    left = {"name": "Ann", "fee": "1.5"}
    assert PROJECTION.changed_fields(left, {"name": "Ann ", "fee": "1.504"}) == ()
    assert PROJECTION.changed_fields(left, {"name": "Bob"}) == ("name", "fee")


# Keys


@given(st.lists(texts, max_size=4))
def test_a_key_text_gives_its_parts_back(parts: list[str | None]) -> None:
    assert key_parts(key_text(parts)) == tuple(parts)


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_two_keys_have_one_text_only_if_all_parts_are_equal(one: list[str | None], other: list[str | None]) -> None:
    assert (key_text(one) == key_text(other)) == (one == other)


def test_a_key_text_is_compact_and_readable() -> None:
    assert key_text(["eu", "Müller", None]) == '["eu","Müller",null]'


@pytest.mark.parametrize("key", ["", "42", '"a"', "[1]", '{"a":1}', "[", "[[]]", '["a",true]'])
def test_what_is_no_key_is_refused_with_an_example(key: str) -> None:
    with pytest.raises(SchemaError) as caught:
        key_parts(key)
    assert '["42"]' in (caught.value.hint or "")


# Versions


@given(st.integers(-(2**70), 2**70))
def test_a_version_is_an_int64_or_none(number: int) -> None:
    version = version_of(str(number), k.INTEGER)
    assert version == (number if -(2**63) <= number < 2**63 else None)


@pytest.mark.parametrize(
    ("text", "kind", "version"),
    [
        (str(2**63 - 1), k.INTEGER, 2**63 - 1),
        (str(-(2**63)), k.INTEGER, -(2**63)),
        (str(2**63), k.INTEGER, None),
        ("9" * 5000, k.INTEGER, None),
        ("1970-01-01T00:00:00.000001Z", k.INSTANT, 1),
        ("1969-12-31T23:59:59Z", k.INSTANT, -1_000_000),
        ("1970-01-01T00:00:01", k.TIMESTAMP, 1_000_000),
        ("+294276-12-31T23:59:59.999999Z", k.INSTANT, None),
        ("infinity", k.INSTANT, None),
        ("!0000-00-00", k.TIMESTAMP, None),
        ("1.5", k.DECIMAL, None),
        ("v7", k.TEXT, None),
        (None, k.INTEGER, None),
    ],
)
def test_versions(text: str | None, kind: Kind, version: int | None) -> None:
    assert version_of(text, kind) == version


@given(any_kind, any_value)
def test_any_value_is_a_version_or_none(kind: Kind, value: Any) -> None:
    version = version_of(canonical_text(value, kind), kind)
    assert version is None or -(2**63) <= version < 2**63


# Payloads


@given(st.dictionaries(st.text(), st.tuples(any_kind, any_value), max_size=5))
def test_a_payload_gives_values_and_kinds_back(record: dict[str, tuple[Kind, Any]]) -> None:
    values = {name: canonical_text(value, kind) for name, (kind, value) in record.items()}
    kinds = {name: kind for name, (kind, _) in record.items()}
    payload = Payload(values, kinds)
    loaded = Payload.loads(payload.dumps())
    assert loaded.values == values
    for name, kind in kinds.items():
        if values[name] is not None:
            again = loaded.kinds[name]
            assert (again.name, again.aware) == (kind.name, kind.aware)
    if "nan" not in payload.dumps():
        assert loaded.natural() == payload.natural()


def test_a_payload_is_typed_json() -> None:
    payload = Payload(
        {"id": "7", "name": "Ann", "at": "2024-05-01T10:00:00Z", "tags": '["1"]', "gone": None},
        {"id": k.INTEGER, "at": k.INSTANT, "tags": Kind("array", item=k.INTEGER)},
    )
    assert payload.dumps() == (
        '{"id":{"integer":"7"},"name":"Ann","at":{"instant":"2024-05-01T10:00:00Z"},'
        '"tags":{"array:integer":"[\\"1\\"]"},"gone":null}'
    )


def test_no_payload_is_no_values() -> None:
    assert Payload.loads(None).values == {}
