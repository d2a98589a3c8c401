"""Strategy rows: every kind of difference, duplicates, tolerance, absence, bounded memory, and its files."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import stage, workspace
from trueup.compare.choose import compare
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Agreement, Comparison, Counts, Difference
from trueup.errors import IncompleteScan, TrueupError
from trueup.model.kinds import FLOAT, INSTANT, INTEGER, TEXT, Column, Kind
from trueup.model.record import Field, Found, Projection, Rule, key_text
from trueup.ports import EVERYTHING, Capabilities, Description, Scope
from trueup.sides.memory import Memory


class Batches:
    """A side whose scan is the given Arrow data, natively; it may also fail on the way."""

    capabilities = Capabilities()
    key: tuple[str, ...] = ()
    version = None

    def __init__(
        self,
        data: Mapping[str, pa.Array[Any]],
        kinds: Mapping[str, Kind],
        *,
        size: int = 7,
        fail: Exception | None = None,
    ) -> None:
        self.label = "batches"
        self.open = False
        self._data, self._kinds, self._size, self._fail = data, kinds, size, fail

    def describe(self) -> Description:
        columns = tuple(Column(name, kind, native=kind.arrow() is not None) for name, kind in self._kinds.items())
        return Description(self.label, "Arrow", columns)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        table = pa.table({str(at): self._data[field.source] for at, field in enumerate(projection.columns)})
        self.open = True
        try:
            yield from table.to_batches(self._size)
            if self._fail is not None:
                raise self._fail
        finally:
            self.open = False

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        raise NotImplementedError

    def now_us(self) -> int | None:
        return None

    def close(self) -> None:
        pass


def compared(left: Any, right: Any, *, key: Sequence[str] = ("id",), memory_mb: int = 256, **how: Any) -> Comparison:
    return compare(left, right, planned(left, right, key=key, **how), strategy="rows", memory_mb=memory_mb)


def planned(left: Any, right: Any, *, key: Sequence[str] = ("id",), **how: Any) -> Plan:
    return plan(left.describe(), right.describe(), key=key, **how)


def memory(rows: Sequence[Mapping[str, Any]], **kinds: str) -> Memory:
    return Memory(list(rows), key="id", columns={"id": "integer", **kinds})


def told(found: Comparison) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.kind, each.key, each.fields) for each in found.differences()]


# ── what is found ────────────────────────────────────────────────────────────────────────────────────


def test_each_kind_of_difference_is_told_with_its_values_in_key_order() -> None:
    left = memory([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 10, "v": "c"}], v="text")
    right = memory([{"id": 10, "v": "C"}, {"id": 3, "v": "d"}, {"id": 1, "v": "a"}], v="text")
    with compared(left, right) as found:
        assert found.counts == Counts(left=3, right=3, same=1, missing=1, extra=1, differ=1)
        assert not found.agree
        assert found.differing_fields == {"v": 1}
        by_key = {each.key: each for each in found.differences()}
        assert by_key['["2"]'] == Difference("missing", '["2"]', {"id": "2", "v": "b"}, None, (), 1, 0)
        assert by_key['["3"]'] == Difference("extra", '["3"]', None, {"id": "3", "v": "d"}, (), 0, 1)
        assert by_key['["10"]'] == Difference(
            "differ", '["10"]', {"id": "10", "v": "c"}, {"id": "10", "v": "C"}, ("v",), 1, 1
        )


def test_native_integer_keys_come_in_numeric_order_and_text_keys_in_byte_order() -> None:
    numbers = {"id": pa.array([10, 9, -1, None]), "v": pa.array([1, 1, 1, 1])}
    nothing = {"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}
    kinds = {"id": INTEGER, "v": INTEGER}
    with compared(Batches(numbers, kinds), Batches(nothing, kinds)) as found:
        assert [each.key for each in found.differences()] == ["[null]", '["-1"]', '["9"]', '["10"]']
    words = {"id": pa.array(["b", "B", "ä", "a", "_"]), "v": pa.array([1] * 5)}
    with compared(Batches(words, {"id": TEXT, "v": INTEGER}), Batches({**nothing, "id": pa.array([], pa.string())}, {"id": TEXT, "v": INTEGER})) as found:  # fmt: skip  # noqa: E501
        assert [each.key for each in found.differences()] == ['["B"]', '["_"]', '["a"]', '["b"]', '["ä"]']


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("step", [1, 150, 400], ids=["in order", "in no order", "backwards"])
def test_records_are_told_with_their_values_in_whatever_order_they_come(
    monkeypatch: pytest.MonkeyPatch, step: int, copies: int
) -> None:
    """Given sides of many ranges and files, one in key order and one in any, I expect one answer."""
    monkeypatch.setattr(workspace, "_RANGE_KEYS", 50)
    monkeypatch.setattr(stage, "CHUNK_ROWS", 40)
    a = [(at, f"value {at}") for at in range(401) if at % 5]
    b = [(at, f"value {at % 300}") for at in (each * step % 401 for each in range(401)) if at % 7]
    b += [(8, "copy")] * copies
    sides = [
        Batches(
            {"id": pa.array([at for at, _ in some]), "v": pa.array([v for _, v in some])}, {"id": INTEGER, "v": TEXT}
        )
        for some in (a, b)
    ]
    lone = [dict(Counter(some) - Counter(others)) for some, others in ((a, b), (b, a))]
    first, second = ({at: {"id": str(at), "v": value} for at, value in some} for some in lone)
    expected = [(key_text([str(at)]), first.get(at), second.get(at)) for at in sorted({*first, *second})]
    with compared(*sides) as found:
        assert [(each.key, each.left, each.right) for each in found.differences()] == expected
        assert found.counts.duplicate == copies
    with compared(*reversed(sides)) as found:
        assert [(each.key, each.right, each.left) for each in found.differences()] == expected
        assert found.counts.different == len(expected)


def test_a_limit_bounds_the_list_and_never_the_counts() -> None:
    left = memory([{"id": at, "v": at} for at in range(20)], v="integer")
    right = memory([{"id": at, "v": at + (at == 3)} for at in range(10)], v="integer")
    with compared(left, right) as found:
        assert found.counts.missing == 10
        assert len(list(found.differences(0))) == 0
        assert len(list(found.differences(4))) == 4
        assert len(list(found.differences(400))) == 11
        assert list(found.differences(3)) == list(found.differences())[:3]


def test_tolerated_keys_do_not_use_up_the_limit() -> None:
    rule = {"v": Rule(absolute=Decimal(1))}
    left = memory([{"id": at, "v": at} for at in range(10)], v="integer")
    right = memory([{"id": at, "v": at + (5 if at > 7 else 1)} for at in range(10)], v="integer")
    with compared(left, right, rules=rule) as found:
        assert (found.counts.same, found.counts.differ) == (8, 2)
        assert len(list(found.differences(2))) == 2


def test_two_empty_sides_agree_and_one_empty_side_is_all_missing() -> None:
    empty, one = memory([], v="text"), memory([{"id": 1, "v": "x"}], v="text")
    with compared(empty, empty) as found:
        assert found.agree
        assert found.counts == Counts()
        assert list(found.differences()) == list(found.agreements()) == []
    with compared(one, empty) as found:
        assert found.counts == Counts(left=1, missing=1)


def test_a_key_without_fields_is_compared_for_presence() -> None:
    left, right = (Memory([{"id": at} for at in ids], key="id", columns={"id": "integer"}) for ids in ((1, 2), (2, 3)))
    with compared(left, right) as found:
        assert found.counts == Counts(left=2, right=2, same=1, missing=1, extra=1)
        assert [len(batch) for batch in found.agreements()] == [1]


def test_null_keys_match_null_keys_and_composite_keys_match_part_by_part() -> None:
    kinds = {"a": TEXT, "b": INTEGER, "v": FLOAT}
    left = {"a": pa.array(["x", None, None]), "b": pa.array([1, 1, None]), "v": pa.array([1.0, 2.0, 3.0])}
    right = {"a": pa.array([None, "x", ""]), "b": pa.array([1, 1, None]), "v": pa.array([2.0, 1.5, 3.0])}
    with compared(Batches(left, kinds), Batches(right, kinds), key=("a", "b")) as found:
        assert found.counts == Counts(left=3, right=3, same=1, missing=1, extra=1, differ=1)
        assert told(found) == [
            ("missing", "[null,null]", ()),
            ("extra", '["",null]', ()),
            ("differ", '["x","1"]', ("v",)),
        ]


def test_nan_equals_nan_and_minus_zero_equals_zero_but_null_equals_neither() -> None:
    kinds = {"id": INTEGER, "v": FLOAT}
    left = {"id": pa.array([1, 2, 3, 4]), "v": pa.array([float("nan"), -0.0, None, None])}
    right = {"id": pa.array([1, 2, 3, 4]), "v": pa.array([float("nan"), 0.0, None, float("nan")])}
    with compared(Batches(left, kinds), Batches(right, kinds)) as found:
        assert (found.counts.same, found.counts.differ) == (3, 1)


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────


def test_equal_duplicates_are_reported_once_and_pair_one_to_one() -> None:
    rows = [{"id": 5, "v": "red"}, {"id": 5, "v": "blue"}]
    with compared(memory(rows, v="text"), memory(rows[::-1], v="text")) as found:
        assert found.counts == Counts(left=2, right=2, duplicate=1)
        assert list(found.differences()) == [Difference("duplicate", '["5"]', left_copies=2, right_copies=2)]


def test_copies_without_an_equal_are_shown_even_where_their_numbers_are_the_same() -> None:
    left = memory([{"id": 5, "v": "red"}, {"id": 5, "v": "blue"}], v="text")
    right = memory([{"id": 5, "v": "red"}, {"id": 5, "v": "red"}], v="text")
    with compared(left, right) as found:
        (only,) = found.differences()
        assert [each["v"] for each in only.left_only] == ["blue"]
        assert [each["v"] for each in only.right_only] == ["red"]
        assert only.fields == ("v",)


def test_a_key_twice_on_one_side_and_never_on_the_other_is_a_duplicate() -> None:
    twice, none = memory([{"id": 1, "v": "a"}] * 2, v="text"), memory([], v="text")
    for left, right, copies in ((twice, none, (2, 0)), (none, twice, (0, 2))):
        with compared(left, right) as found:
            (only,) = found.differences()
            assert (only.kind, only.left_copies, only.right_copies) == ("duplicate", *copies)


def test_a_key_carried_by_every_record_neither_explodes_nor_fills_memory() -> None:
    many = 50_000
    kinds = {"id": INTEGER, "v": INTEGER}
    left = Batches({"id": pa.array([1] * many), "v": pa.array(range(many))}, kinds, size=10_000)
    right = Batches({"id": pa.array([1] * many), "v": pa.array(range(1, many + 1))}, kinds, size=10_000)
    with compared(left, right) as found:
        (only,) = found.differences()
        assert (only.left_copies, only.right_copies) == (many, many)
        assert ([each["v"] for each in only.left_only], [each["v"] for each in only.right_only]) == (["0"], [str(many)])


def test_a_tolerance_makes_copies_cancel_out() -> None:
    left = memory([{"id": 1, "v": 10}, {"id": 1, "v": 20}], v="integer")
    right = memory([{"id": 1, "v": 21}, {"id": 1, "v": 12}], v="integer")
    with compared(left, right, rules={"v": Rule(absolute=Decimal(1))}) as found:
        (only,) = found.differences()
        assert [each["v"] for each in only.left_only] == ["10"]
        assert [each["v"] for each in only.right_only] == ["12"]


# ── rules, absence, agreements ───────────────────────────────────────────────────────────────────────


def test_a_rule_decides_what_counts_as_different() -> None:
    columns = {"price": "decimal", "name": "text", "at": "instant"}
    left = memory([{"id": 1, "price": "9.99", "name": " Ann", "at": "2024-01-01T00:00:00Z"}], **columns)
    right = memory([{"id": 1, "price": "10", "name": "ANN ", "at": "2024-01-01T00:00:01Z"}], **columns)
    lenient = {
        "price": Rule(absolute=Decimal("0.01")),
        "name": Rule(trim=True, casefold=True),
        "at": Rule(seconds=Decimal(1)),
    }
    strict = {"price": Rule(absolute=Decimal("0.009")), "name": Rule(trim=True), "at": Rule(seconds=Decimal("0.9"))}
    with compared(left, right, rules=lenient) as found:
        assert found.agree
    with compared(left, right, rules=strict) as found:
        assert found.differing_fields == {"price": 1, "name": 1, "at": 1}


def test_a_state_that_means_absence_agrees_where_the_right_side_lacks_the_record() -> None:
    left = memory([{"id": at, "state": "dropped" if at > 1 else "on"} for at in (1, 2, 3)], state="text")
    right = memory([{"id": 1, "state": "on"}, {"id": 3, "state": "dropped"}], state="text")
    with compared(left, right, absent_when={"state": ["dropped"]}, action_field="state") as found:
        assert found.counts == Counts(left=3, right=2, same=2, differ=1)
        assert told(found) == [("differ", '["3"]', ("state",))]
        agreed = {each.key: each for batch in found.agreements() for each in batch}
        assert agreed['["1"]'].left == agreed['["1"]'].right is not None
        # Its state is known all the same: what is offered of it later is recognised.
        digest = agreed['["2"]'].left
        assert digest != agreed['["1"]'].left
        assert agreed['["2"]'] == Agreement('["2"]', digest, None, None, "dropped")


def test_a_state_that_the_right_side_has_no_column_for_is_read_on_the_left() -> None:
    left = memory([{"id": 1, "state": "dropped", "v": 1}, {"id": 2, "state": "on", "v": 1}], state="text", v="integer")
    right = memory([{"id": 2, "v": 1}], v="integer")
    with compared(left, right, absent_when={"state": ["dropped"]}) as found:
        assert found.agree
        assert found.counts.same == 2


def test_agreements_carry_digests_and_versions() -> None:
    left = Memory(
        [{"id": at, "v": at, "n": at * 10} for at in (1, 2, 3)], key="id", version="n",
        columns={"id": "integer", "v": "integer", "n": "integer"},
    )  # fmt: skip
    right = memory([{"id": 1, "v": 1}, {"id": 2, "v": 3}, {"id": 3, "v": 9}], v="integer")
    rev = Field("rev", "v", INTEGER)
    how = planned(left, right, version_left="n", rules={"v": Rule(absolute=Decimal(1))})
    with compare(left, right, replace(how, right=replace(how.right, version=rev)), strategy="rows") as found:
        assert sum(map(len, found.agreements())) == 2
    with compared(left, right, version_left="n", rules={"v": Rule(absolute=Decimal(1))}) as found:
        agreed = {each.key: each for batch in found.agreements() for each in batch}
    asked = planned(left, right, version_left="n").left
    assert agreed['["1"]'] == Agreement('["1"]', asked.digest({"v": "1"}), asked.digest({"v": "1"}), 10)
    assert agreed['["2"]'] == Agreement('["2"]', asked.digest({"v": "2"}), asked.digest({"v": "3"}), 20)
    assert set(agreed) == {'["1"]', '["2"]'}


# ── against an oracle ────────────────────────────────────────────────────────────────────────────────

_value = st.one_of(st.none(), st.integers(-2, 2), st.sampled_from([2**53, -(2**63)]))
_record = st.tuples(
    st.one_of(st.none(), st.integers(0, 4)), _value, st.one_of(st.none(), st.sampled_from(["", "a", "A", "ab"]))
)
_KINDS = {"id": INTEGER, "n": INTEGER, "t": TEXT}


def side(rows: list[tuple[Any, ...]]) -> Batches:
    types = {"id": pa.int64(), "n": pa.int64(), "t": pa.string()}
    data = {name: pa.array([row[at] for row in rows], types[name]) for at, name in enumerate(_KINDS)}
    return Batches(data, _KINDS, size=3)


@given(
    st.lists(_record, max_size=8),
    st.lists(_record, max_size=8),
    st.sampled_from([{}, {"n": Rule(absolute=Decimal(1))}]),
)
@settings(max_examples=60, deadline=None)
def test_every_key_is_told_as_a_comparison_in_python_tells_it(
    left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], rules: dict[str, Rule]
) -> None:
    a, b = side(left), side(right)
    projection = planned(a, b, rules=rules).left
    with compared(a, b, rules=rules) as found:
        differences = {each.key: each for each in found.differences()}
        agreed = {each.key: each for batch in found.agreements() for each in batch}
        counts = found.counts
    expected = by_key(left, right)
    kinds: Counter[str] = Counter()
    for key, (ours, theirs) in expected.items():
        kind = kind_of(ours, theirs, projection)
        kinds[kind] += 1
        if kind == "same":
            assert key not in differences
            assert agreed.pop(key).left == projection.digest(ours[0])
        else:
            assert differences[key].kind == kind
            if kind == "differ":
                assert differences[key].fields == projection.changed_fields(ours[0], theirs[0])
                assert (differences[key].left, differences[key].right) == (ours[0], theirs[0])
    assert not agreed
    assert {name: getattr(counts, name) for name in kinds} == dict(kinds)
    assert (counts.left, counts.right) == (len(left), len(right))


Texts = dict[str, str | None]


def by_key(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> dict[str, tuple[list[Texts], list[Texts]]]:
    found: dict[str, tuple[list[Texts], list[Texts]]] = defaultdict(lambda: ([], []))
    for at, rows in enumerate((left, right)):
        for row in rows:
            texts = {name: None if each is None else str(each) for name, each in zip(_KINDS, row, strict=True)}
            found[key_text([texts["id"]])][at].append(texts)
    return found


def kind_of(ours: list[Texts], theirs: list[Texts], projection: Projection) -> str:
    if len(ours) > 1 or len(theirs) > 1:
        return "duplicate"
    if not theirs or not ours:
        return "missing" if ours else "extra"
    return "differ" if projection.changed_fields(ours[0], theirs[0]) else "same"


# ── chunks, files, failures ──────────────────────────────────────────────────────────────────────────


def test_many_chunks_give_the_same_answer_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"id": INTEGER, "at": INSTANT, "v": TEXT}
    count = 5_000
    ids = pa.array(range(count))
    at = pa.array([each * 1_000_001 for each in range(count)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    left = {"id": ids, "at": at, "v": pa.array([f"v{each}" for each in range(count)])}
    right = {"id": ids, "at": at, "v": pa.array([f"v{each + (each % 100 == 0)}" for each in range(count)])}
    answers = []
    for rows in (10**6, 777):
        monkeypatch.setattr("trueup.compare.stage.CHUNK_ROWS", rows)
        with compared(Batches(left, kinds, size=100), Batches(right, kinds, size=333)) as found:
            agreed = sorted((each.key, each.left) for batch in found.agreements() for each in batch)
            answers.append((found.counts, list(found.differences()), agreed))
    assert answers[0] == answers[1]
    assert answers[0][0] == Counts(left=count, right=count, same=count - 50, differ=50)
    assert answers[0][1][0].left == {"id": "0", "at": "1970-01-01T00:00:00Z", "v": "v0"}


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Names of what lies in the directory for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: [each.name for each in tmp_path.iterdir()]


def test_files_are_removed_when_the_answer_is_closed_and_once_is_enough(
    private: Callable[[], list[str]],
) -> None:
    one = memory([{"id": 1, "v": "a"}], v="text")
    found = compared(one, memory([], v="text"))
    assert len(private()) == 1
    found.close()
    found.close()
    assert private() == []


def test_files_are_removed_and_the_cause_is_told_when_a_side_fails(private: Callable[[], list[str]]) -> None:
    kinds = {"id": INTEGER, "v": INTEGER}
    data = {"id": pa.array(range(100)), "v": pa.array(range(100))}
    broken = Batches(data, kinds, fail=IncompleteScan("the scan of batches ended early."))
    for left, right in ((broken, Batches(data, kinds)), (Batches(data, kinds), broken)):
        with pytest.raises(IncompleteScan, match="ended early"):
            compared(left, right)
        assert private() == []
        assert not left.open
        assert not right.open


def test_a_lack_of_memory_is_an_error_with_a_way_out(private: Callable[[], list[str]]) -> None:
    kinds = {"id": INTEGER, "v": INTEGER}
    data = {"id": pa.array(range(200_000)), "v": pa.array(range(200_000))}
    with pytest.raises(TrueupError, match="TMPDIR"):
        compared(Batches(data, kinds, size=50_000), Batches(data, kinds, size=50_000), memory_mb=2)
    assert private() == []


def test_half_of_the_records_may_differ_in_less_memory_than_a_side_takes(private: Callable[[], list[str]]) -> None:
    count = 400_000
    kinds = {"id": TEXT, "v": TEXT}
    ids = pa.array([f"key {each * 7919 % count:060}" for each in range(count)])
    left = {"id": ids, "v": pa.array([f"value {each:060}" for each in range(count)])}
    right = {"id": ids, "v": pa.array([f"value {each + each % 2:060}" for each in range(count)])}
    with compared(Batches(left, kinds, size=20_000), Batches(right, kinds, size=20_000), memory_mb=40) as found:
        assert found.counts == Counts(left=count, right=count, same=count // 2, differ=count // 2)
        keys = [each.key for each in found.differences()]
        assert len(keys) == count // 2
        assert keys == sorted(keys)
    assert private() == []


def test_progress_counts_the_records_of_both_sides() -> None:
    left, right = memory([{"id": 1, "v": "a"}], v="text"), memory([{"id": 1, "v": "a"}, {"id": 2, "v": "a"}], v="text")
    steps: list[int] = []
    made = planned(left, right)
    with compare(left, right, made, strategy="rows", progress=lambda done, total: steps.append(done)):
        assert max(steps) == 3
