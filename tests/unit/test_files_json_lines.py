"""JSON Lines: numbers stay exact, kinds come from the first records, and what is wrong is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.errors import BadInput
from trueup.model.kinds import JSON, TEXT
from trueup.sides.files import File
from trueup.testing.sides.asking import projection_of, scanned


def rows(side, *names, kinds=None):
    """All records of a side as texts, the first column being the key."""
    return scanned(side, projection_of(side, names[:1], names[1:], kinds=kinds))


@pytest.fixture
def jsonl(tmp_path):
    def write(*lines, **options):
        path = tmp_path / "orders.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return File(path, **{"key": "id", **options})

    return write


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "null", "-2"], "integer"),
        (["1", "2.50"], "decimal"),
        (["true", "null"], "boolean"),
        (['"a"', '"2026-01-01"'], "text"),
        (["null", "null"], "text"),
        (['{"a":1}', "null"], "json"),
        (["[1]", '["a"]'], "json"),
        (['{"a":1}', "[1]"], "json"),
        (["1", '"a"'], "text"),
        (["true", "1"], "text"),
    ],
)
def test_kinds_are_the_narrowest_that_hold_all_values(jsonl, values, kind):
    side = jsonl(*(f'{{"id":{at},"value":{value}}}' for at, value in enumerate(values)))
    assert {column.name: str(column.kind) for column in side.describe().columns} == {"id": "integer", "value": kind}


def test_numbers_are_exact(jsonl):
    side = jsonl(
        '{"id":9007199254740993,"n":0.1000000000000000055511151231257827}',
        '{"id":1,"n":1e-7}',
        '{"id":2,"n":12345678901234567890123}',
    )
    assert rows(side, "id", "n") == [
        {"id": "9007199254740993", "n": "0.1000000000000000055511151231257827"},
        {"id": "1", "n": "0.0000001"},
        {"id": "2", "n": "12345678901234567890123"},
    ]


def test_a_missing_member_is_null_and_blank_lines_are_nothing(jsonl):
    side = jsonl('{"id":1,"a":"x"}', "", '{"id":2}', "   ", '{"id":3,"a":null}')
    assert [row["a"] for row in rows(side, "id", "a")] == ["x", None, None]


def test_a_later_value_of_another_kind_is_an_oddity(jsonl):
    side = jsonl(
        *(f'{{"id":{at},"n":{at}}}' for at in range(10_000)), '{"id":10000,"n":"soon"}', '{"id":10001,"n":1.5}'
    )
    assert [row["n"] for row in rows(side, "id", "n")[-3:]] == ["9999", "!soon", "!1.5"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id":2,"a":"x"', "orders.jsonl line 3, column 16: not JSON"),
        ("[1,2]", "orders.jsonl line 3: not a JSON object"),
        ('{"id":2,"id":3}', "orders.jsonl line 3: repeated key"),
        ('{"id":NaN}', "orders.jsonl line 3: NaN is not JSON"),
        ("[" * 100_000, "orders.jsonl line 3: not JSON"),
    ],
)
def test_a_line_that_is_no_object_is_named(jsonl, line, message):
    with pytest.raises(BadInput, match=message):
        rows(jsonl('{"id":1}', "", line), "id")


def test_a_declared_value_that_does_not_parse_is_named(jsonl):
    side = jsonl('{"id":1,"fee":"1.50"}', "", '{"id":2,"fee":"free"}', columns={"fee": "decimal"})
    with pytest.raises(BadInput, match=r"orders\.jsonl line 3, column fee: not a value of kind decimal"):
        rows(side, "id", "fee")


def test_a_member_that_the_first_records_never_showed_is_not_lost(jsonl):
    lines = [f'{{"id":{at}}}' for at in range(10_000)]
    with pytest.raises(BadInput, match="line 10,001: its member late") as caught:
        rows(jsonl(*lines, '{"id":10000,"late":1}'), "id")
    assert "columns=" in str(caught.value.hint)
    side = jsonl(*lines, '{"id":10000,"late":1}', columns={"late": "integer"})
    assert rows(side, "id", "late")[-1]["late"] == "1"


def test_half_a_surrogate_pair_is_named(jsonl):
    side = jsonl('{"id":1,"a":"x"}', '{"id":2,"a":"\\ud800"}')
    with pytest.raises(BadInput, match="line 2, column a: it holds half of a surrogate pair"):
        rows(side, "id", "a")


def test_members_are_renamed(jsonl):
    side = jsonl('{"id":1,"userId":7}', rename={"userId": "user_id"})
    assert rows(side, "id", "user_id") == [{"id": "1", "user_id": "7"}]


def test_mixed_values_meet_as_text(jsonl):
    side = jsonl('{"id":1,"v":"a"}', '{"id":2,"v":{"b":1,"a":[1.50]}}', '{"id":3,"v":true}', '{"id":4,"v":2.50}')
    assert [row["v"] for row in rows(side, "id", "v")] == ["a", '{"a":[1.5],"b":1}', "true", "2.5"]
    assert [row["v"] for row in rows(side, "id", "v", kinds={"v": TEXT})][1] == '{"a":[1.5],"b":1}'
    assert [row["v"] for row in rows(side, "id", "v", kinds={"v": JSON})] == ["!a", '{"a":[1.5],"b":1}', "true", "2.5"]


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner), max_leaves=5)


@settings(deadline=None)
@given(st.lists(_VALUES, min_size=1, max_size=8))
def test_whatever_json_holds_comes_back_as_json(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("law") / "records.jsonl"
    path.write_text("".join(json.dumps({"id": at, "v": [value]}) + "\n" for at, value in enumerate(values)))
    found = rows(File(path, key="id"), "id", "v")
    assert [json.loads(row["v"]) for row in found] == [[value] for value in values]
