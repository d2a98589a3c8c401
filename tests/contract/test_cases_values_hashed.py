"""Values at which other tools saw differences that were none: hashed inside each engine, compared between any two."""

from __future__ import annotations

from itertools import combinations

import pytest

from contract.test_compare_hashing import asked, check
from sql_tables import Tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model.kinds import kind_named

ENGINES = ("postgres", "mariadb", "duckdb", "sqlite")
# What happened to users, the kind that is compared, and how each engine declares and spells the values.
CASES = {
    "C001: a double that lies between two roundings": ("float", {
        "postgres": "double precision", "mariadb": "double", "duckdb": "double", "sqlite": "REAL",
    }, ["0.16015625", "0.1", "-2.5", "0", "NULL"]),
    "C002: minus zero, and a small negative amount": ("decimal(10,2)", {
        "postgres": "numeric(10,2)", "mariadb": "decimal(10,2)", "duckdb": "decimal(10,2)", "sqlite": "NUMERIC",
    }, ["-0.27", "0.00", "-0.00", "100", "NULL"]),
    "C003: a zero before the point": ("decimal", {
        "postgres": "numeric", "mariadb": "decimal(12,4)", "duckdb": "decimal(12,4)", "sqlite": "NUMERIC",
    }, [".58", "-.58", "0.5"]),
    "C006: a date on one side is a time on another": ("timestamp", {
        "postgres": "date", "mariadb": "datetime(6)", "duckdb": "timestamp", "sqlite": "DATETIME",
    }, ["'2025-11-03'", "'2025-11-04'", "NULL"]),
    "C010: a boolean that holds 2": ("boolean", {
        "postgres": "smallint", "mariadb": "tinyint(1)", "duckdb": "tinyint", "sqlite": "BOOLEAN",
    }, ["0", "1", "2", "-1", "NULL"]),
    "C012: numbers beyond 2^53": ("integer", {
        "postgres": "bigint", "mariadb": "bigint", "duckdb": "bigint", "sqlite": "INTEGER",
    }, ["9007199254740992", "9007199254740993", "-9007199254740993"]),
    "C018: null everywhere, and an empty text": ("text", {
        "postgres": "text", "mariadb": "varchar(9)", "duckdb": "varchar", "sqlite": "TEXT",
    }, ["NULL", "NULL", "''", "'~'", "'0:'"]),
}  # fmt: skip


@pytest.fixture
def on(on_postgres: Tables, on_mariadb: Tables, on_duckdb: Tables, on_sqlite: Tables) -> dict[str, Tables]:
    return dict(zip(ENGINES, (on_postgres, on_mariadb, on_duckdb, on_sqlite), strict=True))


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize("case", CASES)
def test_every_engine_hashes_alike(on: dict[str, Tables], case: str) -> None:
    kind, declared, values = CASES[case]
    sides = {}
    for engine, tables in on.items():
        table = tables.table(f"id integer NOT NULL PRIMARY KEY, v {declared[engine]}")
        rows = ", ".join(f"({at}, {value})" for at, value in enumerate(values))
        tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES {rows}")
        sides[engine] = tables.side(table, key="id")
    for engine in ENGINES[:3]:
        # A record that SQL can't spell canonically has no hash; the others have the reference's.
        assert check(sides[engine], asked(sides[engine], ("v", kind_named(kind)))) is ("C010" not in case)
    for first, second in combinations(ENGINES, 2):
        planned = plan(sides[first].describe(), sides[second].describe(), key=("id",), kinds={"v": kind})
        for strategy in ("keyhash", "segments"):
            with compare(sides[first], sides[second], planned, strategy=strategy) as found:
                assert found.counts.same == len(values), (first, second)
                assert found.agree
                assert found.strategy == strategy, found.reason
