"""The gate says *agree* only where strategy rows would, on every engine that hashes in place."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from trueup.compare.choose import compare
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Comparison
from trueup.errors import ConfigError
from trueup.model.record import Rule
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql

Make = Callable[..., Sql]
_number = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Given column definitions and rows of literals, a fresh table as a side, on each engine in turn."""
    engine_name = request.param
    if engine_name == "sqlite":
        path = tmp_path / "gate.db"
        sqlite3.connect(path).close()
        url = f"sqlite:///{path}"
    else:
        url = request.getfixturevalue("postgres_url" if engine_name == "postgresql" else "mariadb_url")
    sides: list[Sql] = []

    def built(definition: str, rows: Sequence[str] = (), **how: Any) -> Sql:
        name = f"gate{next(_number)}"
        execute(url, f"CREATE TABLE {name} ({definition})", *(f"INSERT INTO {name} VALUES ({row})" for row in rows))
        side = Sql(url, name, **how)
        sides.append(side)
        return side

    yield built
    for side in sides:
        side.close()


def execute(url: str, *statements: str) -> None:
    driver = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql"}
    scheme = url.partition(":")[0]
    engine = sa.create_engine(url.replace(scheme, driver.get(scheme, scheme), 1))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def made(left: Any, right: Any, key: Sequence[str] = ("id",), **how: Any) -> Plan:
    return plan(left.describe(), right.describe(), key=key, **how)


def answer(left: Any, right: Any, **how: Any) -> Comparison:
    """By whatever strategy is chosen; checked against rows."""
    planned = made(left, right, **how)
    with compare(left, right, planned) as chosen, compare(left, right, planned, strategy="rows") as rows:
        assert (chosen.agree, chosen.counts) == (rows.agree, rows.counts)
        return chosen


TABLE = "id integer primary key, name varchar(40), amount decimal(12,2), score double precision"
ROWS = ("1, 'Ann', 1.50, 0.1", "2, 'Bob', NULL, -0.5", "3, '', 0.00, NULL")


def test_equal_tables_pass_the_gate(make: Make) -> None:
    found = answer(make(TABLE, ROWS), make(TABLE, ROWS[::-1]))
    assert found.strategy == "gate"
    assert found.agree
    assert found.counts.same == found.counts.left == found.counts.right == 3
    assert "equal" in found.reason


def test_empty_tables_pass_the_gate(make: Make) -> None:
    assert answer(make(TABLE), make(TABLE)).strategy == "gate"


@pytest.mark.parametrize("other", ["1, 'ann', 1.50, 0.1", "1, 'Ann', 1.51, 0.1", "1, 'Ann', 1.50, 0.10000000000000002",
                                   "1, 'Ann', NULL, 0.1", "4, 'Ann', 1.50, 0.1"])  # fmt: skip
def test_one_changed_value_is_read_and_found(make: Make, other: str) -> None:
    found = answer(make(TABLE, ROWS), make(TABLE, (other, *ROWS[1:])))
    assert found.strategy == "rows"
    assert not found.agree


def test_values_swapped_between_rows_and_between_columns_are_found(make: Make) -> None:
    """A sum of row hashes that is linear in the values would not see the first."""
    table = "id integer primary key, a varchar(9), b varchar(9)"
    rows = ("1, 'x', 'p'", "2, 'y', 'q'")
    for swapped in (("1, 'y', 'p'", "2, 'x', 'q'"), ("2, 'x', 'p'", "1, 'y', 'q'"), ("1, 'p', 'x'", "2, 'q', 'y'")):
        found = answer(make(table, rows), make(table, swapped))
        assert found.strategy == "rows"
        assert found.counts.differ == 2


def test_text_that_merely_collates_alike_is_different(make: Make) -> None:
    table = "id integer primary key, a varchar(9)"
    for left, right in (("'a'", "'A'"), ("'e'", "'é'"), ("'a'", "'a '"), ("''", "NULL")):
        assert answer(make(table, (f"1, {left}",)), make(table, (f"1, {right}",))).counts.differ == 1


def test_shifted_boundaries_are_different(make: Make) -> None:
    table = "id integer primary key, a varchar(9), b varchar(9)"
    assert answer(make(table, ("1, 'ab', 'c'",)), make(table, ("1, 'a', 'bc'",))).counts.differ == 1


def test_other_orders_of_columns_and_other_names_are_no_difference(make: Make) -> None:
    left = make("id integer primary key, a varchar(9), b integer", ("1, 'x', 5",))
    right = make("c integer, id integer primary key, a varchar(9)", ("5, 1, 'x'",))
    assert answer(left, right, rename={"b": "c"}).strategy == "gate"


def test_percent_signs_and_quotes_in_names_are_names(make: Make) -> None:
    quote = "`" if "mariadb" in make("id integer primary key").describe().system.lower() else '"'
    table = f"id integer primary key, {quote}50%s off{quote} integer"
    assert (
        answer(make(table.replace("%", "%%"), ("1, 5",)), make(table.replace("%", "%%"), ("1, 5",))).strategy == "gate"
    )


def test_a_key_that_may_repeat_is_read(make: Make) -> None:
    """Two equal tables whose keys repeat are duplicates, not agreement."""
    table = "id integer, v integer"
    found = answer(make(table, ("1, 1", "1, 1")), make(table, ("1, 1", "1, 1")))
    assert (found.strategy, found.counts.duplicate) == ("rows", 1)


def test_null_keys_are_read(make: Make) -> None:
    table = "id integer unique, v integer"
    assert answer(make(table, ("NULL, 1", "NULL, 1")), make(table, ("NULL, 1", "NULL, 1"))).counts.duplicate == 1


def test_part_of_a_primary_key_is_no_key_and_more_than_it_is(make: Make) -> None:
    table = "a integer, b integer, v integer, primary key (a, b)"
    rows = ("1, 1, 1", "1, 2, 1")
    assert answer(make(table, rows), make(table, rows), key=("a",)).counts.duplicate == 1
    assert answer(make(table, rows), make(table, rows), key=("a", "b", "v")).strategy == "gate"


def test_a_condition_bounds_what_is_hashed(make: Make) -> None:
    table = "id integer primary key, v integer"
    left, right = make(table, ("1, 1", "2, 2"), where="v < 2"), make(table, ("1, 1",))
    found = answer(left, right)
    assert (found.strategy, found.counts.left) == ("gate", 1)


def test_rules_are_judged_on_records(make: Make) -> None:
    left, right = make(TABLE, ROWS), make(TABLE, ROWS)
    assert answer(left, right, rules={"name": Rule(casefold=True)}).strategy == "rows"
    assert answer(left, right, absent_when={"name": ["x"]}).strategy == "rows"


def test_different_zones_are_different_functions(make: Make) -> None:
    """The same wall clock in two zones is not the same instant."""
    column = "datetime(6)" if "mariadb" in make("id integer primary key").describe().system.lower() else "timestamp"
    table, row = f"id integer primary key, at {column}", "1, '2024-01-01 12:00:00'"
    left, right = make(table, (row,), zone="Europe/Berlin"), make(table, (row,), zone="America/New_York")
    assert answer(left, right).counts.differ == 1
    assert answer(left, make(table, (row,), zone="Europe/Berlin")).strategy == "gate"


def test_columns_declared_unlike_are_read_and_still_agree(make: Make) -> None:
    left = make("id integer primary key, v varchar(9)", ("1, '7'",))
    right = make("id integer primary key, v integer", ("1, 7",))
    found = answer(left, right)
    assert (found.strategy, found.agree) == ("rows", True)


def test_a_one_sided_column_is_no_agreement_though_the_gate_passes(make: Make) -> None:
    left, right = make("id integer primary key, v integer", ("1, 7",)), make("id integer primary key", ("1",))
    with compare(left, right, made(left, right)) as found:
        assert found.strategy == "gate"
        assert not found.agree


def test_postgresql_types_are_equal_only_where_their_canonical_values_are(postgres_url: str) -> None:
    """A month is not thirty days, though PostgreSQL counts them equal; 1.0 is 1.00."""
    number = itertools.count()

    def side(type_: str, value: str) -> Sql:
        name = f"types{next(number)}"
        create = f"CREATE TABLE {name} (id int PRIMARY KEY, v {type_})"
        execute(postgres_url, create, f"INSERT INTO {name} VALUES (1, {value})")
        return Sql(postgres_url, name)

    different = [
        ("interval", "'1 month'", "'30 days'"),
        ("jsonb", "'[1,2]'", "'[2,1]'"),
        ("timetz", "'12:00+00'", "'13:00+01'"),
        ("text[]", "'{a,b}'", "'{b,a}'"),
    ]
    equal = [
        ("numeric", "1.0", "1.00"),
        ("char(5)", "'a'", "'a  '"),
        ("float8", "'-0'", "0"),
        ("float8", "'nan'", "'nan'"),
    ]
    plain = [
        ("json", "'{\"a\":1}'"),
        ("bytea", "'\\x00ff'"),
        ("timestamptz", "'infinity'"),
        ("inet", "'10.0.0.1'"),
        ("money", "1.5"),
    ]
    sides = []
    try:
        for type_, a, b in [*different, *equal, *((type_, value, value) for type_, value in plain)]:
            left, right = side(type_, a), side(type_, b)
            sides += [left, right]
            found = answer(left, right)
            assert found.agree == ((type_, a, b) not in different), type_
            assert found.strategy == ("rows" if (type_, a, b) in different else "gate"), type_
    finally:
        for each in sides:
            each.close()


def test_engines_that_differ_are_read(postgres_url: str, tmp_path: Path) -> None:
    execute(postgres_url, "CREATE TABLE IF NOT EXISTS unlike (id int PRIMARY KEY, v int)")
    path = tmp_path / "a.db"
    execute(f"sqlite:///{path}", "CREATE TABLE t (id integer PRIMARY KEY, v integer)")
    left, right = Sql(postgres_url, "unlike"), Sql(f"sqlite:///{path}", "t")
    try:
        found = answer(left, right)
        assert (found.strategy, found.agree) == ("rows", True)
        assert "no faster" in found.reason
    finally:
        left.close()
        right.close()


def test_a_strategy_that_is_none_is_refused() -> None:
    side = Memory([], key="id", columns={"id": "integer"})
    with pytest.raises(ConfigError, match="rows"):
        compare(side, side, replace(made(side, side)), strategy="fast")
