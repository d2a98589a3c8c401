"""PostgreSQL's chained hashes: unlike values, columns and rows never hash alike; equal ones always do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing

import pytest

from contract.test_compare_hashing import asked
from sql_tables import Tables

# Values that the engine's own functions take for each other, or give back the seed for, and their neighbours.
VALUES = {
    "bigint": ["0", "1", "-1", "4294967295", "4294967296", "4294967297", "8589934593", "-4294967296", "-4294967297",
               "9223372036854775807", "-9223372036854775808"],
    "integer": ["0", "1", "2", "-1", "-2", "2147483647", "-2147483648"],
    "smallint": ["0", "1", "-1", "32767", "-32768"],
    "numeric": ["0", "1", "-1", "0.1", "-0.1", "10000", "100000000", "-10000", "0.0001", "1e30", "-1e30",
                "'nan'", "'infinity'", "'-infinity'"],
    "numeric(12,4)": ["0", "1", "-1", "0.1", "-0.1", "10000", "-10000", "0.0001", "'nan'"],
    "double precision": ["0", "1", "-1", "0.1", "-0.1", "5e-324", "1e308", "'nan'", "'infinity'", "'-infinity'"],
    "real": ["0", "1", "-1", "0.1", "1e-45", "'nan'", "'infinity'", "'-infinity'"],
    "boolean": ["true", "false"],
    "date": ["'2000-01-01'", "'1999-12-31'", "'2024-02-29'", "'0001-01-01'", "'4713-01-01 BC'", "'5874897-12-31'",
             "'infinity'", "'-infinity'"],
    "timestamp": ["'2000-01-01'", "'2000-01-01 01:11:34.967296'", "'2000-01-01 01:11:34.967297'",
                  "'2000-01-01 00:00:00.000001'", "'1999-12-31 23:59:59.999999'", "'1999-12-31 22:48:25.032704'",
                  "'1999-12-31 23:24:12.516352'", "'1999-12-31 22:48:25.032702'",
                  "'2026-11-30 10:00:00.5'", "'1973-02-01'", "'4714-11-24 BC'",
                  "'294276-12-31 23:59:59.999999'", "'infinity'", "'-infinity'"],
    "timestamptz": ["'2000-01-01+00'", "'2000-01-01 01:11:34.967296+00'", "'2000-01-01 01:11:34.967297+00'",
                    "'1999-12-31 23:59:59.999999+00'", "'1999-12-31 22:48:25.032702+00'",
                    "'2026-11-30+00'", "'4714-11-25 BC'", "'infinity'",
                    "'-infinity'"],
    "time": ["'00:00'", "'00:00:00.000001'", "'01:11:34.967296'", "'01:11:34.967297'", "'24:00'"],
    "text": ["''", "' '", "'a'", "'A'", "'ä'", "'a '", "repeat('a', 12)", "repeat('a', 13)", "'0'"],
    "varchar(9)": ["''", "'a'", "'a '"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'00000000-0000-0000-0000-000000000001'"],
    "bytea": ["''", "'\\x00'", "'\\x0000'", "'\\x61'"],
    "jsonb": ["'0'", "'\"0\"'", "'null'", "'{}'"],
}  # fmt: skip

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("declared", VALUES)]


def hashed(on_postgres: Tables, columns: str, rows: Sequence[Sequence[str]]) -> list[int]:
    """The hash of each row, in their order: they all lie in a few pages, which are read one after the other."""
    table = on_postgres.table(f"id int, {columns}")
    literals = ", ".join(f"({', '.join(row)})" for row in rows)
    on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} VALUES {literals}")
    side = on_postgres.side(table)
    fields = [(column.name, column.kind) for column in side.describe().columns if column.name != "id"]
    with closing(side.snapshot(asked(side, *fields))) as snapshot:
        assert snapshot.functions[0] != "canonical"
        return [hash_ for batch in snapshot.hashes(snapshot.functions[0]) for hash_ in batch["h"].to_pylist()]


def test_no_two_values_of_a_pair_of_columns_hash_alike(on_postgres: Tables, declared: str) -> None:
    """Null among them, beside each other in either order, as the last column and before another."""
    values = [*VALUES[declared], "NULL"]
    rows = [("1", a, b) for a, b in itertools.product(values, repeat=2)]
    found = hashed(on_postgres, f"a {declared}, b {declared}", rows)
    assert len(found) == len(rows)
    assert len(set(found)) == len(rows), _alike(rows, found)


def test_a_column_without_nulls_hashes_as_one_that_may_have_some(on_postgres: Tables, declared: str) -> None:
    rows = [("1", value) for value in VALUES[declared]]
    assert hashed(on_postgres, f"v {declared} NOT NULL", rows) == hashed(on_postgres, f"v {declared}", rows)


def test_a_sum_sees_values_that_two_rows_exchange(on_postgres: Tables, declared: str) -> None:
    values = [*VALUES[declared], "NULL"]
    first, second = (hashed(on_postgres, f"v {declared}", [(key, value) for value in values]) for key in ("1", "2"))
    for a, b in itertools.combinations(range(len(values)), 2):
        assert first[a] + second[b] != first[b] + second[a], (values[a], values[b])


def _alike(rows: Sequence[Sequence[str]], found: Sequence[int]) -> list[tuple[Sequence[str], Sequence[str]]]:
    return [(rows[a], rows[b]) for a, b in itertools.combinations(range(len(rows)), 2) if found[a] == found[b]]
