"""What is compared with what, and what is said about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from trueup.compare.plan import Plan, plan
from trueup.errors import ConfigError, SchemaError, TrueupError
from trueup.model.kinds import BOOLEAN, DATE, DECIMAL, FLOAT, INSTANT, INTEGER, TEXT, TIMESTAMP, Column, Kind
from trueup.model.record import Rule
from trueup.pair import FieldSpec
from trueup.ports import Description

MONEY = Kind("decimal", scale=2, precision=12)


def side(label: str = "orders", **kinds: Kind) -> Description:
    return Description(label, "Test", tuple(Column(name, kind, native=True) for name, kind in kinds.items()))


def made(left: Description, right: Description, *, key: Sequence[str] = ("id",), **how: Any) -> Plan:
    return plan(left, right, key=key, **how)


def names(planned: Plan) -> list[str]:
    return [field.name for field in planned.left.fields]


def test_columns_that_both_sides_have_are_compared_under_one_kind_each() -> None:
    planned = made(
        side(id=INTEGER, a=MONEY, b=TEXT), side(b=TEXT, a=Kind("decimal", scale=4, precision=12), id=INTEGER)
    )
    assert names(planned) == ["a", "b"]
    assert planned.left.fields == planned.right.fields
    assert planned.left.fields[0].kind == Kind("decimal", scale=4, precision=14)
    assert planned.left.fields[0].native
    assert planned.notes.compared_as == ("a decimal(12,2) ↔ a decimal(12,4): compared at 4 places",)
    assert planned.notes.clean


def test_renamed_columns_meet_and_the_replica_names_its_own_key() -> None:
    left, right = side(id=INTEGER, total=MONEY), side(number=INTEGER, amount=MONEY)
    planned = made(left, right, rename={"total": "amount"}, key_right=["number"])
    assert [(field.name, field.source) for field in planned.right.columns] == [("id", "number"), ("total", "amount")]
    assert planned.notes.clean
    assert made(left, right, rename={"total": "amount", "id": "number"}) == planned


def test_an_unlike_pair_is_said_and_read_as_text() -> None:
    planned = made(side(id=INTEGER, v=INTEGER), side(id=INTEGER, v=TEXT))
    (field,) = planned.left.fields
    assert (field.kind, field.native) == (INTEGER, False)
    assert planned.notes.compared_as == ("v integer ↔ v text: compared as integer",)


def test_the_version_is_read_on_the_left_and_compared_on_neither() -> None:
    table = side(id=INTEGER, v=INTEGER, at=INSTANT)
    planned = made(table, table, version_left="at")
    assert names(planned) == ["v"]
    assert planned.left.version is not None
    assert planned.right.version is None
    assert planned.notes.clean


def test_columns_asked_for_by_name_leave_nothing_open() -> None:
    left, right = side(id=INTEGER, a=TEXT, b=TEXT), side(id=INTEGER, a=TEXT, c=TEXT)
    assert not made(left, right).notes.clean
    for how in ({"columns": ["a"]}, {"fields": [FieldSpec("a")]}, {"ignore": ["b", "c"]}):
        planned = made(left, right, **how)
        assert names(planned) == ["a"]
        assert planned.notes.clean


def test_names_that_differ_in_case_only_are_said_and_not_compared() -> None:
    planned = made(side(id=INTEGER, c=TEXT), side(id=INTEGER, C=TEXT))
    assert names(planned) == []
    assert planned.notes.case_only == (("c", "C"),)
    assert not planned.notes.clean


def test_a_state_that_only_the_left_side_has_is_read_beside_the_fields() -> None:
    planned = made(
        side(id=INTEGER, state=TEXT), side(id=INTEGER), absent_when={"state": ["gone"]}, action_field="state"
    )
    assert [field.name for field in planned.left.extra] == ["state"]
    assert planned.right.extra == ()
    assert planned.notes.clean
    assert not planned.exact


def test_a_numeric_tolerance_makes_text_a_number() -> None:
    table = side(id=INTEGER, v=TEXT, f=FLOAT)
    rules = {"v": Rule(absolute=Decimal(1)), "f": Rule(places=2)}
    assert [field.kind for field in made(table, table, rules=rules).left.fields] == [DECIMAL, DECIMAL]
    assert made(table, table, rules={"f": Rule(absolute=Decimal(1))}).left.fields[1].kind == FLOAT


def test_a_declared_kind_wins() -> None:
    table = side(id=INTEGER, v=TEXT)
    (field,) = made(table, table, kinds={"v": "instant"}).left.fields
    assert (field.kind, field.native) == (INSTANT, False)
    (field,) = made(table, table, fields=[FieldSpec("v", kind="text")]).left.fields
    assert (field.kind, field.native) == (TEXT, True)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"key": ["idd"]}, SchemaError, "left has no column idd. Did you mean 'id'?"),
        ({"key": ["ID"]}, SchemaError, "left has no column ID. Did you mean 'id'?"),
        ({"key": ["id"], "key_right": ["numer"]}, SchemaError, "right has no column numer"),
        ({"key": []}, ConfigError, "no key"),
        ({"key": ["id"], "key_right": ["id", "v"]}, ConfigError, "1 and 2 columns"),
        ({"columns": ["w"]}, SchemaError, "left has no column w"),
        ({"ignore": ["w"]}, SchemaError, "left has no column w"),
        ({"rename": {"v": "w"}}, SchemaError, "right has no column w"),
        ({"rules": {"w": Rule(trim=True)}}, ConfigError, "a rule is declared for w, which is not compared"),
        ({"kinds": {"w": "text"}}, ConfigError, "a kind is declared for w, which is not compared"),
        ({"kinds": {"v": "txt"}}, ConfigError, "Did you mean text?"),
        ({"rules": {"b": Rule(absolute=Decimal(1))}}, ConfigError, "numeric tolerance can't be used on boolean"),
        ({"rules": {"v": Rule(seconds=Decimal(1))}}, ConfigError, "seconds can't be used on text"),
        ({"absent_when": {"w": ["x"]}}, SchemaError, "left has no column w"),
        ({"version_left": "w"}, SchemaError, "left has no column w"),
    ],
)
def test_a_declaration_that_can_not_be_meant_is_refused_by_name(
    how: dict[str, Any], error: type[TrueupError], message: str
) -> None:
    left, right = side("left", id=INTEGER, v=TEXT, b=BOOLEAN), side("right", id=INTEGER, v=TEXT, b=BOOLEAN)
    with pytest.raises(error) as caught:
        made(left, right, **how)
    assert message in str(caught.value)
    assert caught.value.hint


def test_columns_that_no_rule_makes_comparable_are_refused() -> None:
    for other in (INSTANT, BOOLEAN):
        with pytest.raises(SchemaError, match="can't be compared"):
            made(side(id=INTEGER, v=TIMESTAMP if other is INSTANT else DATE), side(id=INTEGER, v=other))
