"""What earlier comparisons found decides how the next one begins, and never what it answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sql_tables import Tables
from trueup.compare import hashed, sampled
from trueup.compare.choose import compare, compare_in_place
from trueup.compare.expected import UNKNOWN, Expected
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.model.record import Rule
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql

AGREED = Expected(agreed=10, compared=10)
DIFFERED = Expected(agreed=0, compared=10)
ROWS = [{"id": str(number), "v": f"v{number}"} for number in range(200)]
CHANGED = [{**row, "v": "other"} if row["id"] == "77" else row for row in ROWS]


@pytest.fixture(autouse=True)
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given bounds so small, two hundred records are many, and a few at their ends tell nothing."""
    monkeypatch.setattr(hashed, "_SMALL_ROWS", -1)
    monkeypatch.setattr(hashed, "_END_ROWS", 5)
    monkeypatch.setattr(sampled, "_RANGE_ROWS", 2)


def side(tables: Tables, rows: Sequence[dict[str, str]], key: str = "varchar(9)") -> Sql:
    name = tables.table(f"id {key} PRIMARY KEY, v varchar(9)")
    values = ", ".join(f"('{row['id']}', '{row['v']}')" for row in rows)
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES {values}")
    return tables.side(name, key=["id"])


def answered(left: Sql, right: Sql, expected: Expected) -> Comparison:
    """By whatever is chosen; checked against rows."""
    planned = plan(left.describe(), right.describe(), key=("id",))
    with compare(left, right, planned, expected=expected) as found:
        with compare(left, right, planned, strategy="rows") as rows:
            assert (found.agree, found.counts) == (rows.agree, rows.counts)
            assert [each.key for each in found.differences()] == [each.key for each in rows.differences()]
        return found


def asked_for_sums(found: Comparison) -> bool:
    return any("count(*)" in statement for statement in found.read[0].statements)


@pytest.mark.parametrize(
    ("expected", "agreement"),
    [(UNKNOWN, None), (Expected(1, 1), 2 / 3), (AGREED, 11 / 12), (DIFFERED, 1 / 12), (Expected(5, 10), 1 / 2)],
)
def test_what_happened_often_is_likely_and_never_certain(expected: Expected, agreement: float | None) -> None:
    assert expected.agreement == agreement


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("expected", "sums"), [(UNKNOWN, True), (AGREED, True), (DIFFERED, False), (Expected(3, 10), False)], ids=str
)
def test_a_pair_that_mostly_differs_is_not_asked_for_one_sum_first(
    on_postgres: Tables, expected: Expected, sums: bool
) -> None:
    """Given keys in no order, of which one record differs, I expect a gate only where it may well pass."""
    found = answered(side(on_postgres, ROWS), side(on_postgres, CHANGED), expected)
    assert (found.strategy, asked_for_sums(found)) == ("keyhash", sums)
    if not sums:
        assert f"{expected.agreed} of the last 10 comparisons found no difference" in found.reason


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("expected", "strategy", "statements"),
    [(AGREED, "gate", 1), (UNKNOWN, "segments", 3), (DIFFERED, "segments", 3), (Expected(1, 1), "segments", 3)],
    ids=str,
)
def test_a_pair_that_always_agreed_begins_with_the_gate(
    on_postgres: Tables, expected: Expected, strategy: str, statements: int
) -> None:
    """Given keys that could be asked for in ranges, I expect one statement where a sum is all that is likely needed."""
    found = answered(side(on_postgres, ROWS, "integer"), side(on_postgres, ROWS, "integer"), expected)
    assert (found.strategy, len(found.read[0].statements)) == (strategy, statements)


@pytest.mark.postgres
def test_a_gate_that_fails_after_all_is_followed_by_what_fits(on_postgres: Tables) -> None:
    found = answered(side(on_postgres, ROWS, "integer"), side(on_postgres, CHANGED, "integer"), AGREED)
    assert found.strategy == "keyhash"
    assert asked_for_sums(found)


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("expected", "right", "strategy"),
    [(AGREED, ROWS, "gate"), (AGREED, CHANGED, "rows"), (UNKNOWN, ROWS, "rows"), (DIFFERED, ROWS, "rows"),
     (Expected(6, 10), ROWS, "rows")],
)  # fmt: skip
def test_two_servers_that_always_agreed_need_not_send_their_records(
    on_postgres: Tables, on_mariadb: Tables, expected: Expected, right: list[dict[str, str]], strategy: str
) -> None:
    """Given a hash as dear as the records, and keys in no order, I expect sums only where they are probably equal."""
    sides = [side(on_postgres, ROWS), side(on_mariadb, right)]
    for tables, each in zip((on_postgres, on_mariadb), sides, strict=True):
        tables.execute(f"ALTER TABLE {tables.quoted(each.label)} ADD d timestamp NULL")
    # The cheap hash has no days that are none.
    left = on_postgres.side(sides[0].label, key=["id"], zone="UTC")
    strict = on_mariadb.side(sides[1].label, key=["id"], zero_date="strict")
    assert answered(left, strict, expected).strategy == strategy


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("expected", "right", "strategy"),
    [(AGREED, ROWS, "gate"), (AGREED, CHANGED, "keyhash"), (UNKNOWN, ROWS, "gate"), (DIFFERED, ROWS, "keyhash"),
     (Expected(6, 10), ROWS, "gate")],
)  # fmt: skip
def test_two_servers_with_a_cheap_hash_send_it_rather_than_records(
    on_postgres: Tables, on_mariadb: Tables, expected: Expected, right: list[dict[str, str]], strategy: str
) -> None:
    """Given unlike servers and keys in no order, I expect hashes, and sums first unless they were rarely equal."""
    assert answered(side(on_postgres, ROWS), side(on_mariadb, right), expected).strategy == strategy


@pytest.mark.parametrize(
    ("expected", "right", "strategy", "sums"),
    [(UNKNOWN, ROWS, "rows", False), (DIFFERED, ROWS, "rows", False), (AGREED, ROWS, "gate", True),
     (AGREED, CHANGED, "rows", True)],
)  # fmt: skip
def test_two_sqlite_files_whose_keys_have_no_ranges_are_read(
    on_sqlite: Tables, expected: Expected, right: list[dict[str, str]], strategy: str, sums: bool
) -> None:
    """Given an engine that hashes no faster than it reads, I expect sums only where they will probably be equal."""
    found = answered(side(on_sqlite, ROWS), side(on_sqlite, right), expected)
    assert (found.strategy, asked_for_sums(found)) == (strategy, sums)


def test_few_records_that_mostly_differ_are_read_at_once(on_sqlite: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 1_000)
    left, right = side(on_sqlite, ROWS), side(on_sqlite, CHANGED)
    assert asked_for_sums(answered(left, right, UNKNOWN))
    found = answered(left, right, DIFFERED)
    assert (found.strategy, asked_for_sums(found)) == ("rows", False)
    assert "they are few, and 0 of the last 10 comparisons found no difference" in found.reason


class TestInPlace:
    """Comparisons that may only use hashes."""

    @pytest.fixture
    def sides(self, on_sqlite: Tables) -> tuple[Sql, Sql]:
        return side(on_sqlite, ROWS, "integer"), side(on_sqlite, CHANGED, "integer")

    def test_hashes_answer(self, sides: tuple[Sql, Sql]) -> None:
        planned = plan(sides[0].describe(), sides[1].describe(), key=("id",))
        found = compare_in_place(*sides, planned)
        assert found is not None
        with found:
            assert [(each.key, each.fields) for each in found.differences()] == [('["77"]', ("v",))]
            assert found.read[0].rows < 3 * len(ROWS)

    def test_nothing_is_answered_where_records_must_be_read(self, sides: tuple[Sql, Sql]) -> None:
        """Given a rule, or sides without a hash, I expect that whoever asked reads the records."""
        folded = plan(sides[0].describe(), sides[1].describe(), key=("id",), rules={"v": Rule(casefold=True)})
        assert compare_in_place(*sides, folded) is None
        memories = [Memory([{"id": 1, "v": "x"}], key="id", columns={"id": "integer", "v": "text"}) for _ in range(2)]
        planned = plan(memories[0].describe(), memories[1].describe(), key=("id",))
        assert compare_in_place(memories[0], memories[1], planned) is None
