"""The plain function: PostgreSQL and MariaDB hash equal records alike, and no others."""

from __future__ import annotations

import datetime as dt
import itertools
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.test_compare_hashing import asked, check, expected, hashes
from sql_tables import Tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.digest import HashSum
from trueup.model.kinds import INTEGER, TEXT, Kind, kind_named
from trueup.model.record import Projection, key_text
from trueup.sides.sql import Sql
from trueup.sides.sql.hashing.plain import PLAIN

pytestmark = [pytest.mark.postgres, pytest.mark.mariadb]


def plain(side: Sql, projection: Projection) -> dict[str, int | None]:
    """Hash by key text; every engine here has the function, and none takes its own for it."""
    return hashes(side, projection, name_of(side, projection) or "") or {}


def name_of(side: Sql, projection: Projection) -> str | None:
    with closing(side.snapshot(projection)) as snapshot:
        return next((name for name in snapshot.functions if name.startswith(PLAIN)), None)


def filled(tables: Tables, declared: str, values: list[str]) -> Sql:
    """A table of these values, numbered."""
    table = tables.table(f"id int NOT NULL PRIMARY KEY, {declared}")
    if values:
        rows = ", ".join(f"({at}, {value})" for at, value in enumerate(values))
        tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES {rows}")
    return tables.side(table, key="id")


# ── values ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "made"), [
    (k.TEXT, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)),
    (k.TEXT, st.text("0123,~ ", max_size=6)),
    (k.INTEGER, st.integers(-(2**63), 2**63 - 1)),
    (Kind("decimal", scale=4, precision=20), st.decimals(-(10**15), 10**15, places=4)),
    (Kind("decimal", scale=4, precision=20), st.sampled_from(["0", "-0.1", "0.1", "100", "-100", "0.1000", "0.0001"])),
    (Kind("decimal", scale=0, precision=9), st.integers(-(10**9) + 1, 10**9 - 1)),
    (k.BOOLEAN, st.booleans()),
    (k.BYTES, st.binary(max_size=12)),
    (k.UUID, st.uuids(version=4)),
    (k.DATE, st.dates()),
    (k.TIME, st.times()),
    (k.TIMESTAMP, st.datetimes()),
    (k.TIMESTAMP, st.datetimes().map(lambda at: at.replace(microsecond=at.microsecond // 100_000 * 100_000))),
    (k.INSTANT, st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2037, 1, 1), timezones=st.just(dt.UTC))),  # noqa: DTZ001
], ids=lambda value: str(value) if isinstance(value, Kind) else "")  # fmt: skip
@given(data=st.data())
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_generated_values_hash_alike_just_where_they_are_equal(
    on_postgres: Tables, on_mariadb: Tables, kind: Kind, made: Any, data: st.DataObject
) -> None:
    pool = data.draw(st.lists(st.none() | made, min_size=2, max_size=6))
    values = [data.draw(st.lists(st.sampled_from(pool), min_size=16, max_size=16)) for _ in range(2)]
    texts = [[canonical_text(each, kind) for each in some] for some in values]
    sides = [
        tables.make(
            {"id": INTEGER, "v": kind}, ("id",), rows=[{"id": str(at), "v": text} for at, text in enumerate(some)],
            constraint=", PRIMARY KEY (id)",
        )
        for tables, some in zip((on_postgres, on_mariadb), texts, strict=True)
    ]  # fmt: skip
    # MariaDB's text of a boolean is that of a number.
    for asked_kind in (kind,) if kind == k.BOOLEAN else (kind, TEXT):
        projections = [asked(side, ("v", asked_kind)) for side in sides]
        left, right = (plain(*each) for each in zip(sides, projections, strict=True))
        assert len(left) == 16
        for at, (one, other) in enumerate(zip(*texts, strict=True)):
            key = key_text([str(at)])
            assert left[key] is not None
            assert (left[key] == right[key]) == (one == other)
    for side in sides:
        side.close()


# Two columns each; a comma, a length or null may stand where one value ends and the next begins.
SHIFTED = {
    "texts": ("a text, b text", "a varchar(40) NOT NULL DEFAULT '', b longtext", None,
              ["'a', 'b'", "'a,1', 'b'", "'a', '1,b'", "'', 'a'", "'a', ''", "'', ''", "'a,1,b', ''", "'', '1,a'"]),
    "texts with null": ("a text, b text", "a varchar(40), b text", None,
                        ["NULL, NULL", "'', NULL", "NULL, ''", "'', ''", "',', NULL", "NULL, ','", "'0,', NULL"]),
    "numbers": ("a int, b numeric(9,2)", "a int, b decimal(9,2)", None,
                ["NULL, 1", "1, NULL", "1, 1", "11, 0.1", "1, 10.1", "0, 0", "NULL, NULL", "0, -0.01", "1, 100"]),
    "bytes": ("a bytea, b int", "a varbinary(9), b int", None, ["'', 1", "NULL, 1", "'1', NULL", "'0', 1", "'0,', 1"]),
    "collations": ("a text, b varchar(9)",
                   "a varchar(9) COLLATE latin1_swedish_ci, b varchar(9) COLLATE utf8mb4_unicode_ci", None,
                   ["'ä', 'a'", "'a', 'ä'", "'A', 'ä'", "'a', 'ä '", "NULL, 'a'"]),
    "scales": ("a numeric, b numeric(12,4)", "a decimal(9,2), b decimal(8,1)", ("decimal", "decimal"),
               ["1.50, 1", "1.5, 1.0", "150, 10", "-1.50, 100", "0, -0.1", "0.00, 0"]),
    "fractions": ("a timestamp, b timestamp(0)", "a datetime(6), b datetime", None,
                  ["'2026-03-01', '2026-03-01'", "'2026-03-01 00:00:00.5', NULL", "NULL, '2026-03-01'",
                   "'2026-03-01 00:00:00.000005', NULL", "'0001-01-01', '9999-12-31 23:59:59'", "'2026-03-01', NULL"]),
    "dates and times": ("a timestamp, b date", "a date, b date", ("timestamp", "date"),
                        ["'2026-03-01', '2026-03-01'", "'2026-03-01', NULL", "NULL, '2026-03-01'"]),
    "padded": ("a int, b numeric(9,2)", "a int(9) zerofill, b decimal(9,2) zerofill", None,
               ["7, 7", "70, 0.7", "700, 0.07", "0, 0", "NULL, 70"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SHIFTED)
def test_no_value_runs_into_its_neighbour(on_postgres: Tables, on_mariadb: Tables, case: str) -> None:
    """Given each row on one side beside each on the other, I expect equal hashes where the reference has them."""
    first, second, kinds, rows = SHIFTED[case]
    every = list(itertools.product(rows, repeat=2))
    told, reference = [], []
    for at, (tables, declared) in enumerate(((on_postgres, first), (on_mariadb, second))):
        side = filled(tables, declared, [pair[at] for pair in every])
        own = [(each.name, each.kind) for each in side.describe().columns[1:]]
        projection = asked(side, *zip("ab", map(kind_named, kinds), strict=True)) if kinds else asked(side, *own)
        assert check(side, projection) is True
        told.append(plain(side, projection))
        reference.append(expected(side, projection))
    equal = [key for key in reference[0] if reference[0][key] == reference[1][key]]
    assert len(rows) <= len(equal) < len(every)
    assert None not in told[0].values()
    assert [key for key in told[0] if told[0][key] == told[1][key]] == equal


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        # What no other engine has is never equal to what it has.
        (("timestamp", "'infinity'"), ("datetime(6)", "NULL"), False),
        (("timestamp", "'0044-03-15 BC'"), ("datetime(6)", "'0044-03-15'"), False),
        (("date", "'-infinity'"), ("date", "NULL"), False),
        (("numeric(9,2)", "'nan'"), ("decimal(9,2)", "0"), False),
        # It is null for the reader, and merely read.
        (("timestamp", "NULL"), ("datetime(6)", "'0000-00-00'"), True),
        (("date", "NULL"), ("date", "'2026-00-10'"), True),
        (("double precision", "1e300"), ("double", "1e300"), True),
        (("double precision", "0.1"), ("double", "0.1"), True),
    ],
)
def test_odd_values_are_judged_right(
    on_postgres: Tables, on_mariadb: Tables, left: tuple[str, str], right: tuple[str, str], same: bool
) -> None:
    on_mariadb.execute("SET sql_mode = ''")
    sides = [
        filled(tables, f"v {declared}", [value, "NULL"])
        for tables, (declared, value) in ((on_postgres, left), (on_mariadb, right))
    ]
    planned = plan(sides[0].describe(), sides[1].describe(), key=("id",))
    assert name_of(sides[0], planned.left) == name_of(sides[1], planned.right) is not None
    for strategy in ("segments", "keyhash", None):
        with compare(*sides, planned, strategy=strategy) as found:
            assert (found.counts.same, found.counts.differ) == ((2, 0) if same else (1, 1)), strategy


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_sum_sees_values_that_two_rows_exchange(on_postgres: Tables, on_mariadb: Tables) -> None:
    totals: list[HashSum | None] = []
    for tables, values in ((on_postgres, "12"), (on_mariadb, "12"), (on_mariadb, "21")):
        side = filled(tables, "v int", list(values))
        projection = asked(side, ("v", INTEGER))
        with closing(side.snapshot(projection)) as snapshot:
            totals.append(snapshot.total(name_of(side, projection) or ""))
    assert totals[0] == totals[1] != totals[2]
    assert totals[2] is not None


def test_more_columns_than_a_function_takes(on_postgres: Tables, on_mariadb: Tables) -> None:
    """Given more columns than PostgreSQL takes as arguments, I expect the same hashes, and each column seen."""
    declared = ", ".join(f"c{at} int" for at in range(200))
    rows = [", ".join("1" if at == which else "NULL" for at in range(200)) for which in range(0, 200, 9)]
    told = []
    for tables in (on_postgres, on_mariadb):
        side = filled(tables, declared, rows)
        told.append(plain(side, asked(side, *((f"c{at}", INTEGER) for at in range(200)))))
    assert told[0] == told[1]
    assert len(set(told[0].values())) == len(rows)


def test_nulls_that_a_table_inherits_are_no_shorter_lines(on_postgres: Tables, on_mariadb: Tables) -> None:
    """Given a null where the parent declares none, I expect it to be told from a value that moves up."""
    child, parent = on_postgres.table("id int"), on_postgres.table("id int PRIMARY KEY, a int NOT NULL, b int NOT NULL")
    names = {"parent": on_postgres.quoted(parent), "child": on_postgres.quoted(child)}
    for statement in (
        "DROP TABLE {child}", "CREATE TABLE {child} () INHERITS ({parent})",
        "ALTER TABLE {child} ALTER a DROP NOT NULL",
        "INSERT INTO {child} VALUES (1, NULL, 5)", "INSERT INTO {parent} VALUES (2, 7, 8)",
    ):  # fmt: skip
        on_postgres.execute(statement.format(**names))
    left, right = on_postgres.side(parent), filled(on_mariadb, "a int, b int", ["0, 0", "NULL, 5", "7, 8"])
    fields = (("a", INTEGER), ("b", INTEGER))
    told, other = plain(left, asked(left, *fields)), plain(right, asked(right, *fields))
    assert told == {key: other[key] for key in told}
    assert len(told) == 2


# ── where it is ──────────────────────────────────────────────────────────────────────────────────────


def test_zero_dates_that_are_values_leave_it_out(on_mariadb: Tables) -> None:
    """Given two sides of which one takes a zero date for null, I expect no function that can't tell."""
    table = filled(on_mariadb, "v datetime", ["NULL"]).label
    for zero_date in ("null", "strict"):
        side = on_mariadb.side(table, key="id", zero_date=zero_date)
        projection = asked(side, ("v", k.TIMESTAMP))
        assert (name_of(side, projection) is None) == (zero_date == "strict")


def test_columns_without_a_canonical_text_leave_it_out(on_postgres: Tables, on_mariadb: Tables) -> None:
    for tables in (on_postgres, on_mariadb):
        side = filled(tables, "v json", [])
        assert name_of(side, asked(side, ("v", k.JSON))) is None


def test_unlike_servers_compare_by_it(on_postgres: Tables, on_mariadb: Tables) -> None:
    rows = [f"{at}, 'x{at}', {at}.50" for at in range(40)]
    left = filled(on_postgres, "a int, b text, c numeric(9,2)", rows)
    right = filled(on_mariadb, "a bigint, b varchar(9), c decimal(12,4)", [*rows[:-1], "39, 'x39', 39.51"])
    planned = plan(left.describe(), right.describe(), key=("id",))
    for strategy in ("segments", "keyhash"):
        with compare(left, right, planned, strategy=strategy) as found:
            assert (found.counts.same, found.counts.differ, found.strategy) == (39, 1, strategy)
            assert all(any("sha" in each.lower() for each in side.statements) for side in found.read)
