"""Failures that happened to users of other tools, on the engines they happened on; each retold in one sentence."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison, Counts
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql

Make = Callable[..., Sql]
_number = itertools.count()


def maker(url: str, driver: str, quote: str, cascade: str = "") -> Iterator[Make]:
    sides: list[Sql] = []
    names: list[str] = []
    engine = sa.create_engine(f"{driver}:{url.partition(':')[2]}")

    def made(definition: str, *rows: str, table: str | None = None, before: str = "SELECT 1", **how: Any) -> Sql:
        name = table or f"case{next(_number)}"
        with engine.begin() as connection:
            connection.exec_driver_sql(before)
            connection.exec_driver_sql(f"CREATE TABLE {quote}{name}{quote} ({definition})")
            for row in rows:
                connection.exec_driver_sql(f"INSERT INTO {quote}{name}{quote} VALUES ({row})")
        names.append(name)
        sides.append(Sql(url, name, **how))
        return sides[-1]

    yield made
    for side in sides:
        side.close()
    with engine.begin() as connection:
        for name in names:
            connection.exec_driver_sql(f"DROP TABLE {quote}{name}{quote} {cascade}")
    engine.dispose()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Make]:
    yield from maker(postgres_url, "postgresql+psycopg", '"', "CASCADE")


@pytest.fixture
def mariadb(mariadb_url: str) -> Iterator[Make]:
    yield from maker(mariadb_url, "mysql+pymysql", "`")


def compared(left: Any, right: Any, *, key: Sequence[str] = ("id",), **how: Any) -> Comparison:
    return compare(left, right, plan(left.describe(), right.describe(), key=key, **how))


def keys(found: Comparison) -> list[str]:
    return [each.key for each in found.differences()]


def test_C001_two_engines_hold_the_same_double(postgres: Make, mariadb: Make) -> None:
    """Two engines rounded the same double to text, one tie up and one to even, and an equal row was drift."""
    left = postgres("id int primary key, v double precision", "7, 0.16015625")
    for value, equal in (("0.16015625", True), ("0.16015627", False)):
        with compared(left, mariadb("id int primary key, v double", f"7, {value}")) as found:
            assert found.agree == equal


def test_C002_scales_of_two_columns_do_not_matter_and_no_digit_is_lost(postgres: Make, mariadb: Make) -> None:
    """A small negative amount was printed as -0, and minus zero was told apart from zero."""
    left = postgres("id int primary key, v numeric(10,3)", "1, -0.27", "2, 0.00", "3, -0.00", "4, -0.004")
    right = mariadb("id int primary key, v decimal(10,2)", "1, -0.27", "2, -0.00", "3, 0.00", "4, 0.00")
    with compared(left, right) as found:
        (only,) = found.differences()
        assert only.left is not None
        assert only.right is not None
        assert (only.key, only.left["v"], only.right["v"]) == ('["4"]', "-0.004", "0")
        assert found.notes.compared_as == ("v numeric(10,3) ↔ v decimal(10,2): compared at 3 places",)


def test_C006_a_date_equals_a_datetime_at_midnight_only(postgres: Make, mariadb: Make) -> None:
    """A date was written with a time of zeros by one engine and without by the other; every row differed."""
    left = postgres("id int primary key, d date", "1, '2025-11-03'", "2, '2025-11-04'")
    right = mariadb(
        "id int primary key, d datetime(6)", "1, '2025-11-03 00:00:00.000000'", "2, '2025-11-04 00:00:00.000001'"
    )
    with compared(left, right) as found:
        assert keys(found) == ['["2"]']


def test_C008_a_date_that_does_not_exist_is_null_or_an_oddity_and_ends_nothing(postgres: Make, mariadb: Make) -> None:
    """A zero day in an otherwise real month was no known zero date and stopped the whole run."""
    rows = (
        "1, '0000-00-00 00:00:00'",
        "2, '2023-00-10 00:00:00'",
        "3, '2023-07-00 08:15:00'",
        "4, '2023-07-31 08:15:00'",
    )
    lenient, strict = (
        mariadb("id int primary key, v datetime", *rows, before="SET sql_mode = ''", zero_date=policy)
        for policy in ("null", "strict")
    )
    right = postgres("id int primary key, v timestamp", "1, NULL", "2, NULL", "3, NULL", "4, '2023-07-31 08:15:00'")
    with compared(lenient, right) as found:
        assert found.agree
        assert list(lenient.warnings.values()) == [3]
    with compared(strict, right) as found:
        assert keys(found) == ['["1"]', '["2"]', '["3"]']
        assert {str(each.left["v"])[:2] for each in found.differences() if each.left is not None} == {"!0", "!2"}


def test_C010_a_tinyint_that_is_no_boolean_is_a_difference(postgres: Make, mariadb: Make) -> None:
    """A one-digit integer that was declared a boolean held 2 and -1; they became true and were lost."""
    left = mariadb("id int primary key, v tinyint(1)", "1, 0", "2, 1", "3, 2", "4, -1", "5, NULL")
    right = postgres("id int primary key, v boolean", "1, false", "2, true", "3, true", "4, true", "5, NULL")
    with compared(left, right) as found:
        assert [(each.key, each.left and each.left["v"]) for each in found.differences()] == [
            ('["3"]', "!2"),
            ('["4"]', "!-1"),
        ]


def test_C011_json_types_of_two_engines_are_one_kind(postgres: Make, mariadb: Make) -> None:
    """JSON in a text column was written again with sorted keys on one side; equal data were mismatches."""
    left = postgres("id int primary key, v jsonb", '1, \'{"b":2,"a":1}\'', "2, '[1,2]'", "3, '{\"n\":1.0}'")
    right = mariadb("id int primary key, v longtext", '1, \'{"a": 1, "b": 2}\'', "2, '[2,1]'", "3, '{\"n\":1}'")
    with compared(left, right) as found:
        assert keys(found) == ['["2"]']


def test_C013_bytes_of_two_engines_are_compared_as_bytes(postgres: Make, mariadb: Make) -> None:
    """Bytes that are no text broke the display of a difference."""
    left = postgres("id int primary key, v bytea", "1, '\\xac00ff'", "2, '\\x41'")
    right = mariadb("id int primary key, v varbinary(9)", "1, x'AC00FE'", "2, x'41'")
    with compared(left, right) as found:
        (only,) = found.differences()
        assert only.left is not None
        assert only.right is not None
        assert (only.left["v"], only.right["v"]) == ("ac00ff", "ac00fe")
    with compared(left, postgres("id int primary key, v text", "1, 'AC00FF'", "2, '\\x41'")) as found:
        assert found.agree


def test_C014_an_invalid_enum_is_the_empty_text_and_not_the_last_label(mariadb: Make) -> None:
    """An index shifted by one turned an invalid value into the last allowed label."""
    left = mariadb(
        "id int primary key, v enum('S','M','L')", "1, 'S'", "2, 'L'", "3, 'XXL'", before="SET sql_mode = ''"
    )
    for third, equal in (("", True), ("L", False)):
        held = [{"id": at, "v": each} for at, each in enumerate(("S", "L", third), 1)]
        with compared(left, Memory(held, key="id", columns={"id": "integer", "v": "text"})) as found:
            assert found.agree == equal
            assert found.counts.differ == (not equal)


def test_C019_text_keys_match_by_equality_whatever_the_collations(postgres: Make, mariadb: Make) -> None:
    """Text keys were cut into ranges that two databases order differently, and rows fell between them."""
    words = ("a-1", "a1", "a-2", "A3", "b", "B", "_x", "ä")
    left = postgres("k text primary key", *(f"'{word}'" for word in words))
    right = mariadb(
        "k varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, KEY (k)", *(f"'{word}'" for word in words)
    )
    with compared(left, right, key=("k",)) as found:
        assert found.counts == Counts(left=8, right=8, same=8)


def test_C021_padding_is_no_part_of_a_char_key_and_a_real_blank_is_part_of_another(postgres: Make) -> None:
    """CHAR keys came padded from one engine and trimmed from the other, and matched nothing."""
    left = postgres("k char(6) primary key", "'KX1'", "'KX2'")
    right = postgres("k varchar(6) primary key", "'KX1'", "'KX2'", "'KX2 '")
    with compared(left, right, key=("k",)) as found:
        assert found.counts == Counts(left=2, right=3, same=2, extra=1)
        assert keys(found) == ['["KX2 "]']


def test_C029_quoted_names_of_postgresql_keep_their_case(postgres: Make, postgres_url: str) -> None:
    """A table with capitals in its name was looked for in lower case and skipped, and its differences with it."""
    columns = '"userId" int primary key, "select" text, "a b" text'
    for name, other in (("Emp", "Emp2"), ("order", "Order")):
        left, right = postgres(columns, "1, 'x', 'y'", table=name), postgres(columns, "1, 'x', 'z'", table=other)
        with compared(left, right, key=("userId",)) as found:
            assert [(each.key, each.fields) for each in found.differences()] == [('["1"]', ("a b",))]
