"""Failures that happened to users of other tools, with values and keys; each retold in one sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pytest

from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison, Counts
from trueup.errors import SchemaError
from trueup.model.digest import digest_of
from trueup.sides.files import File
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql


class Table(Protocol):
    """Makes a SQLite table and answers it as a side."""

    def __call__(self, definition: str, rows: Sequence[Sequence[Any]], **how: Any) -> Sql: ...


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    sides: list[Sql] = []

    def made(definition: str, rows: Sequence[Sequence[Any]], **how: Any) -> Sql:
        path = tmp_path / f"{len(sides)}.db"
        connection = sqlite3.connect(path)
        connection.execute(f"CREATE TABLE {how.get('table', 't')} ({definition})")
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {how.get('table', 't')} VALUES ({marks})", rows)
        connection.commit()
        connection.close()
        name = how.pop("table", "t").strip('"')
        sides.append(Sql(f"sqlite:///{path}", name, **how))
        return sides[-1]

    yield made
    for side in sides:
        side.close()


def memory(rows: Sequence[Mapping[str, Any]], **kinds: str) -> Memory:
    return Memory(list(rows), key="id", columns={"id": "integer", **kinds})


def compared(
    left: Any, right: Any, *, key: Sequence[str] = ("id",), strategy: str | None = None, **how: Any
) -> Comparison:
    return compare(left, right, plan(left.describe(), right.describe(), key=key, **how), strategy=strategy)


def differing(found: Comparison) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.key, each.fields) for each in found.differences()]


# ── values ───────────────────────────────────────────────────────────────────────────────────────────


def test_C001_doubles_are_compared_by_value_and_not_as_rounded_text(table: Table) -> None:
    """Two engines rounded the same double to text, one tie up and one to even, and an equal row was drift."""
    left = table("id integer primary key, v double", [(7, 0.16015625)])
    for value, equal in ((0.16015625, True), (0.16015627, False)):
        with compared(left, memory([{"id": 7, "v": value}], v="float")) as found:
            assert found.agree == equal
            assert found.counts.differ == (not equal)


def test_C002_minus_zero_is_zero_and_a_small_negative_amount_keeps_its_digits() -> None:
    """A small negative amount was printed as -0, and minus zero was told apart from zero."""
    left = memory([{"id": at, "v": v} for at, v in enumerate(("-0.27", "0.00", "-0.00", "-0.004"), 1)], v="decimal")
    right = memory([{"id": at, "v": v} for at, v in enumerate(("-0.27", "-0.00", "0.00", "0.00"), 1)], v="decimal")
    with compared(left, right) as found:
        (only,) = found.differences()
        assert found.counts.same == 3
        assert only.left is not None
        assert only.right is not None
        assert (only.key, only.left["v"], only.right["v"]) == ('["4"]', "-0.004", "0")


def test_C003_a_number_may_lack_its_leading_zero_and_columns_do_not_run_together(
    tmp_path: Path,
) -> None:
    """One engine writes .58, the other 0.58; and columns strung together without separator looked alike."""
    (tmp_path / "a.csv").write_text("id,a,b\n1,.58,-.4\n2,12,3\n")
    (tmp_path / "b.csv").write_text("id,a,b\n1,0.58,-0.4\n2,1,23\n")
    left, right = (
        File(tmp_path / name, key="id", columns={"a": "decimal", "b": "decimal"}) for name in ("a.csv", "b.csv")
    )
    with compared(left, right) as found:
        assert differing(found) == [('["2"]', ("a", "b"))]
    assert digest_of(("12", "3")) != digest_of(("1", "23"))


def test_C006_a_date_is_midnight_and_a_microsecond_later_is_not(table: Table) -> None:
    """A date was written with a time of zeros by one engine and without by the other; every row differed."""
    left = table("id integer primary key, d date", [(1, "2025-11-03"), (2, "2025-11-04")])
    right = table(
        "id integer primary key, d datetime", [(1, "2025-11-03 00:00:00.000000"), (2, "2025-11-04 00:00:00.000001")]
    )
    with compared(left, right) as found:
        assert differing(found) == [('["2"]', ("d",))]


def test_C010_a_boolean_is_spelled_in_many_ways_and_two_is_none_of_them(tmp_path: Path, table: Table) -> None:
    """A one-digit integer that was declared a boolean held 2 and -1; they became true and were lost."""
    left = table("id integer primary key, v tinyint", [(1, 0), (2, 1), (3, 2), (4, -1), (5, None)])
    right = table("id integer primary key, v boolean", [(1, 0), (2, 1), (3, 1), (4, 1), (5, None)])
    with compared(left, right) as found:
        assert differing(found) == [('["3"]', ("v",)), ('["4"]', ("v",))]
        (three, _) = found.differences()
        assert three.left is not None
        assert three.left["v"] == "!2"
    (tmp_path / "v.csv").write_text("id,v\n1,F\n2,true\n3,1\n4,y\n5,\n")
    with compared(right, File(tmp_path / "v.csv", key="id")) as found:
        assert differing(found) == [('["4"]', ("v",))]


def test_C011_json_is_compared_as_json_where_it_is_declared_json(table: Table) -> None:
    """JSON in a text column was written again with sorted keys on one side; equal data were mismatches."""
    texts = ('{"b":2,"a":1}', "[1,2]", '{"n":1.0}', '{"a":1,"a":2}', "not json {")
    others = ('{"a": 1, "b": 2}', "[2,1]", '{"n":1}', '{"a":2}', "not json {")
    left, right = (table("id integer primary key, v text", list(enumerate(each, 1))) for each in (texts, others))
    with compared(left, right, kinds={"v": "json"}) as found:
        assert [key for key, _ in differing(found)] == ['["2"]', '["4"]']
        four = list(found.differences())[1]
        assert four.left is not None
        assert four.left["v"] == '!{"a":1,"a":2}'
    with compared(left, right) as found:
        assert [key for key, _ in differing(found)] == ['["1"]', '["2"]', '["3"]', '["4"]']


def test_C012_integers_beyond_two_to_the_53_stay_what_they_are(tmp_path: Path, table: Table) -> None:
    """Large ids went through a JSON float and two of them became one."""
    (tmp_path / "a.jsonl").write_text('{"id":9007199254740992,"v":"x"}\n{"id":9007199254740993,"v":"y"}\n')
    right = table("id integer primary key, v text", [(9007199254740992, "x"), (9007199254740993, "y")])
    with compared(File(tmp_path / "a.jsonl", key="id"), right) as found:
        assert found.counts == Counts(left=2, right=2, same=2)


def test_C013_bytes_are_shown_as_hex_and_equal_their_hex_text(table: Table) -> None:
    """Bytes that are no text broke the display of a difference."""
    left = table("id integer primary key, v blob", [(1, b"\xac\x00\xff"), (2, b"\x41")])
    right = table("id integer primary key, v blob", [(1, b"\xac\x00\xfe"), (2, b"\x41")])
    with compared(left, right) as found:
        (only,) = found.differences()
        assert only.left is not None
        assert only.right is not None
        assert (only.left["v"], only.right["v"]) == ("ac00ff", "ac00fe")
    spelled = table("id integer primary key, v text", [(1, "AC00FF"), (2, "0x41")])
    with compared(left, spelled) as found:
        assert found.agree


def test_C018_null_equals_null_and_nan_equals_nan() -> None:
    """A column that was null everywhere was compared as text, and null was not null."""
    columns = {"t": "text", "f": "float"}
    nan = float("nan")
    equal = memory([{"id": 1, "t": None, "f": nan}, {"id": 2, "t": None, "f": nan}], **columns)
    other = memory([{"id": 1, "t": None, "f": nan}, {"id": 2, "t": "", "f": None}], **columns)
    with compared(equal, equal) as found:
        assert found.agree
    with compared(equal, other) as found:
        assert differing(found) == [('["2"]', ("t", "f"))]


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

WORDS = ("a-1", "a1", "a-2", "A3", "b", "B", "_x", "ä")


@pytest.mark.parametrize("size", range(1, 9))
def test_C019_text_keys_match_by_equality_whatever_their_order(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text keys were cut into ranges that two databases order differently, and rows fell between them."""
    monkeypatch.setattr("trueup.compare.stage.CHUNK_ROWS", size)
    left = Memory([{"k": word} for word in WORDS], key="k", columns={"k": "text"})
    right = Memory([{"k": word} for word in sorted(WORDS, key=str.lower)], key="k", columns={"k": "text"})
    with compared(left, right, key=("k",)) as found:
        assert found.counts == Counts(left=8, right=8, same=8)


def test_C024_equal_duplicates_are_told_once_and_never_multiplied() -> None:
    """A key that repeats was joined many to many: two rows against two gave four pairs and false changes."""
    a, b = [{"id": 5, "v": "red"}, {"id": 5, "v": "blue"}, {"id": 6, "v": "green"}], [{"id": 6, "v": "green"}]
    left = memory(a, v="text")
    for other in (a, [a[1], a[0], a[2]]):
        with compared(left, memory(other, v="text")) as found:
            assert found.counts == Counts(left=3, right=3, same=1, duplicate=1)
            (only,) = found.differences()
            assert (only.left_copies, only.right_copies) == (2, 2)
            assert only.left_only == only.right_only == ()
    with compared(left, memory([a[0], a[0], *b], v="text")) as found:
        (only,) = found.differences()
        assert [each["v"] for each in only.left_only] == ["blue"]
        assert [each["v"] for each in only.right_only] == ["red"]


def test_C025_copies_are_matched_by_value_and_not_by_position() -> None:
    """Duplicates were paired in order, so that a false mismatch was shown and the equal pair dropped."""
    columns = {"id": "text", "v": "integer"}
    left = Memory([{"id": "t1", "v": 10}, {"id": "t2", "v": 20}, {"id": "t1", "v": 50}], key="id", columns=columns)
    right = Memory([{"id": "t1", "v": 50}, {"id": "t2", "v": 20}], key="id", columns=columns)
    with compared(left, right) as found:
        assert found.counts == Counts(left=3, right=2, same=1, duplicate=1)
        (only,) = found.differences()
        assert ([each["v"] for each in only.left_only], only.right_only) == (["10"], ())


def test_C026_the_smallest_keys_are_read_too(table: Table) -> None:
    """Paging began above zero, so keys at or below it were neither copied nor missed."""
    ids = (-9223372036854775808, -1, 0, 1, 2, 9223372036854775807)
    left, right = (table("id integer primary key", [(each,) for each in some]) for some in (ids, ids[3:]))
    with compared(left, right) as found:
        assert found.counts == Counts(left=6, right=3, same=3, missing=3)
        assert [each.key for each in found.differences()] == ['["-9223372036854775808"]', '["-1"]', '["0"]']


def test_C028_an_empty_side_is_an_answer_and_the_same_one_every_time(table: Table) -> None:
    """An empty side was an error or an empty result, depending on which thread came first."""
    one, none = memory([{"id": 42, "v": "x"}], v="text"), memory([], v="text")

    def run(_: int) -> Counts:
        with compared(one, none) as found:
            return found.counts

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(run, range(50))) == {Counts(left=1, missing=1)}
    with compared(none, none) as found:
        assert found.agree
    left, right = (table("id integer primary key", [(1,)], where="1 = 0") for _ in range(2))
    with compared(left, right) as found:
        assert found.agree
        assert found.counts == Counts()


def test_C029_names_keep_their_case_and_a_table_that_is_not_there_is_an_error(table: Table) -> None:
    """A table with capitals in its name was looked for in lower case and skipped, and its differences with it."""
    columns = '"userId" integer primary key, "select" text, "a b" text'
    for name in ('"Emp"', '"order"'):
        left, right = (table(columns, [(1, "x", value)], table=name) for value in ("y", "z"))
        with compared(left, right, key=("userId",)) as found:
            assert differing(found) == [('["1"]', ("a b",))]
    absent = Sql(f"sqlite:///{left.place}", "ordr")
    with pytest.raises(SchemaError, match="ordr"):
        compared(left, absent)
    absent.close()


def test_C030_columns_are_matched_by_name() -> None:
    """The same columns in another order were compared by position."""
    left = memory([{"id": 1, "first": "Ann", "last": "Lee"}], first="text", last="text")
    right = Memory(
        [{"last": "Lee", "id": 1, "first": "Ann"}], key="id", columns={"last": "text", "id": "integer", "first": "text"}
    )
    with compared(left, right) as found:
        assert found.agree


def test_C031_a_column_on_one_side_is_said_whichever_side_it_is_on() -> None:
    """An extra column of the source was listed, one of the target was not, and the check said that all is well."""
    few, more = ({"id": 1, "a": 1, "b": 1, "c": 1}, {"id": 1, "a": 1, "b": 1, "c": 1, "d": 1})
    small, large = (memory([each], **dict.fromkeys(each, "integer")) for each in (few, more))
    with compared(small, large) as found:
        assert (found.notes.only_left, found.notes.only_right, found.agree) == ((), ("d",), False)
    with compared(large, small) as found:
        assert (found.notes.only_left, found.notes.only_right, found.agree) == (("d",), (), False)
    with compared(small, large, ignore=["d"]) as found:
        assert found.agree
    other = memory([{"id": 1, "a": 1, "b": 1, "C": 1}], a="integer", b="integer", C="integer")
    with compared(small, other) as found:
        assert (found.notes.case_only, found.agree) == ((("c", "C"),), False)
    with compared(small, other, rename={"c": "C"}) as found:
        assert found.agree


def test_C034_integer_keys_are_never_floats_and_null_is_a_key(table: Table) -> None:
    """An integer key went through a float in a join and came back as another key."""
    left, right = (
        table("id integer", [(each,) for each in ids])
        for ids in ((1, 412349558619761321, None), (412349558619761321, 412349558619761344))
    )
    with compared(left, right) as found:
        assert found.counts == Counts(left=3, right=2, same=1, missing=2, extra=1)
        told = [(each.kind, each.key) for each in found.differences()]
        assert sorted(told) == [("extra", '["412349558619761344"]'), ("missing", '["1"]'), ("missing", "[null]")]
