"""PostgreSQL rows found again by where they lie, for keys in no order: the answer of rows, and no key is sent."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from sql_tables import Tables
from trueup.compare import hashed, placed
from trueup.compare.choose import compare
from trueup.compare.expected import UNKNOWN, Expected
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.sides.sql import Sql

pytestmark = pytest.mark.postgres
_number = itertools.count()
UUID_KEY = ("id uuid PRIMARY KEY", ["id"], "md5(n::text)::uuid")
TWO_KEYS = ("part int, code text, PRIMARY KEY (code, part)", ["part", "code"], "n % 7, 'code ' || n")


@pytest.fixture(autouse=True)
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given bounds so small, a thousand records are many, and so few are at their ends that these tell nothing."""
    monkeypatch.setattr(hashed, "_SMALL_ROWS", -1)
    monkeypatch.setattr(hashed, "_END_ROWS", 3)


def side(tables: Tables, rows: str, key: tuple[str, list[str], str] = UUID_KEY, value: str = "n") -> Sql:
    """A table of these numbers. rows: a condition on n. value: SQL for the field."""
    columns, names, sql = key
    table = tables.table(f"{columns}, v bigint")
    every = f"SELECT {sql}, {value} FROM generate_series(1, 1000) n WHERE {rows}"
    tables.execute(f"INSERT INTO {tables.quoted(table)} ({', '.join(names)}, v) {every}")
    return tables.side(table, key=names)


def answered(
    left: Sql, right: Sql, strategy: str | None = None, expected: Expected = UNKNOWN
) -> tuple[Comparison, Sequence[str]]:
    """By whatever is chosen, checked against rows; and what was asked of the left side."""
    asked = plan(left.describe(), right.describe(), key=left.describe().key)
    with compare(left, right, asked, strategy=strategy, expected=expected) as found:
        with compare(left, right, asked, strategy="rows") as rows:
            assert found.counts == rows.counts
            assert list(found.differences()) == list(rows.differences())
        return found, found.read[0].statements


def by_place(statements: Sequence[str]) -> bool:
    return any("ctid FROM" in each for each in statements)


@pytest.mark.parametrize("at_once", [70, 10_000])
@pytest.mark.parametrize("key", [UUID_KEY, TWO_KEYS], ids=["uuid", "two columns"])
def test_what_differs_is_found_without_sending_a_key(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch, key: tuple[str, list[str], str], at_once: int
) -> None:
    """Given records that are missing, extra and different, here and there, I expect the answer of rows."""
    monkeypatch.setattr(placed, "_ROWS_AT_ONCE", at_once)
    changed = "CASE n % 10 WHEN 3 THEN -n WHEN 4 THEN NULL ELSE n END"
    left, right = side(on_postgres, "n % 9 > 0", key), side(on_postgres, "n % 11 > 0", key, changed)
    found, statements = answered(left, right, "keyhash")
    assert (found.strategy, by_place(statements)) == ("keyhash", True)
    assert min(found.counts.missing, found.counts.extra, found.counts.differ, found.counts.same) > 50


@pytest.mark.parametrize(("left", "right"), [("false", "true"), ("true", "false"), ("false", "false")])
def test_an_empty_table_has_no_places(on_postgres: Tables, left: str, right: str) -> None:
    _, statements = answered(side(on_postgres, left), side(on_postgres, right), "keyhash")
    assert by_place(statements)


def test_a_row_is_found_where_it_lay_after_others_have_changed_it(on_postgres: Tables) -> None:
    """Given a table that is rewritten and cleaned up after its hashes were taken, I expect the records as they were."""
    right = side(on_postgres, "true")
    asked = plan(right.describe(), right.describe(), key=["id"]).left
    table = on_postgres.quoted(right.describe().label.split(".")[-1])
    with closing(right.snapshot(asked)) as snapshot:
        batches = snapshot.placed(snapshot.functions[0])
        assert batches is not None
        places = [batch.column("p") for batch in batches]
        on_postgres.execute(f"UPDATE {table} SET v = -v")
        on_postgres.execute(f"DELETE FROM {table} WHERE v < -500")
        values: list[Any] = []
        for each in places:
            for batch in snapshot.placed_records(each):
                values += batch.column(1).to_pylist()
    assert sorted(values) == list(range(1, 1001))


@pytest.mark.parametrize(
    ("parent", "child"),
    [("", "() INHERITS ({})"), ("PARTITION BY HASH (id)", "PARTITION OF {} FOR VALUES WITH (MODULUS 1, REMAINDER 0)")],
    ids=["child", "partition"],
)
def test_rows_in_files_of_other_tables_are_found_by_key(on_postgres: Tables, parent: str, child: str) -> None:
    """Given records of two files, in which places repeat, I expect each to be found."""
    names = [f"parent{next(_number)}", f"parent{next(_number)}"]
    sides = []
    for name in names:
        on_postgres.execute(f"CREATE TABLE {name} (id uuid NOT NULL PRIMARY KEY, v bigint) {parent}")
        on_postgres.execute(f"CREATE TABLE {name}_child {child.format(name)}")
        sides.append(on_postgres.side(name, key=["id"]))
    for name, into, first in itertools.product(names, ("", "_child"), (1, 501)):
        if (into, first) in (("", 1), ("_child", 501)):
            value = "n" if name == names[0] else "CASE n % 100 WHEN 3 THEN -n ELSE n END"
            some = f"SELECT md5(n::text)::uuid, {value} FROM generate_series({first}, {first} + 499) n"
            on_postgres.execute(f"INSERT INTO {name}{into} {some}")
    try:
        found, statements = answered(sides[0], sides[1], "keyhash")
        assert (found.counts.differ, found.counts.same, by_place(statements)) == (10, 990, False)
    finally:
        for name in names:
            on_postgres.execute(f"DROP TABLE {name} CASCADE")


def test_files_are_made_once_whether_or_not_rows_tell_where_they_lie(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a table that can't tell places, and one that can, I expect one workspace for each comparison."""
    parted = f"parted{next(_number)}"
    on_postgres.execute(f"CREATE TABLE {parted} (id uuid NOT NULL PRIMARY KEY, v bigint) PARTITION BY HASH (id)")
    try:
        plain, other = side(on_postgres, "false"), on_postgres.side(parted, key=["id"])
        asked = plan(plain.describe(), plain.describe(), key=["id"])
        made: list[int] = []
        workspace = hashed.Workspace
        monkeypatch.setattr(hashed, "Workspace", lambda memory_mb: made.append(memory_mb) or workspace(memory_mb))
        for right in (plain, other):
            made.clear()
            with compare(plain, right, asked, strategy="keyhash") as found:
                assert by_place(found.read[1].statements) == (right is plain)
            assert len(made) == 1
    finally:
        on_postgres.execute(f"DROP TABLE {parted}")


@pytest.mark.parametrize(
    ("right", "expected", "sums"),
    [("n <> 500", UNKNOWN, True), ("n <> 1000", UNKNOWN, False), ("n > 0", UNKNOWN, True),
     ("n <> 1000", Expected(10, 10), True)],
)  # fmt: skip
def test_no_sum_is_asked_for_where_the_first_or_last_records_differ(
    on_postgres: Tables, right: str, expected: Expected, sums: bool
) -> None:
    """Given a difference among the records at an end, I expect no gate, unless both sides have mostly agreed."""
    key = ("number bigint, part int, PRIMARY KEY (number, part)", ["number", "part"], "n, 1")
    _, statements = answered(side(on_postgres, "true", key), side(on_postgres, right, key), expected=expected)
    assert any("sum(" in each for each in statements) == sums


def test_ends_that_share_nothing_do_not_tell_against_a_gate(on_postgres: Tables) -> None:
    """Given sides whose ends are different records, as where they sort differently, I expect a gate all the same."""
    key = ("number bigint, part int, PRIMARY KEY (number, part)", ["number", "part"], "n, 1")
    _, statements = answered(side(on_postgres, "true", key), side(on_postgres, "n BETWEEN 100 AND 900", key))
    assert any("sum(" in each for each in statements)


def test_ends_are_the_first_and_the_last_by_an_index(on_postgres: Tables) -> None:
    every = side(on_postgres, "true", TWO_KEYS)
    few = side(on_postgres, "'code ' || n IN ('code 1', 'code 10', 'code 998', 'code 999')", TWO_KEYS)
    unled = on_postgres.side(on_postgres.table("id uuid, v bigint"), key=["id"])
    told = []
    for each in (every, few, unled):
        with closing(
            each.snapshot(plan(each.describe(), each.describe(), key=each.describe().key or ["id"]).left)
        ) as open_:
            ends = open_.ends(open_.functions[0], 2)
            told.append(None if ends is None else sorted(ends.to_pylist()))
    assert told[0] == told[1]
    assert told[0] is not None
    assert len(told[0]) == 4
    assert told[2] is None
