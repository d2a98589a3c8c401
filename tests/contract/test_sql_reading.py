"""What the SQL side reads: any name, any condition, versions, one instant in bounded memory."""

from __future__ import annotations

import tracemalloc

import pytest

from sql_tables import Tables, key, projection, rows
from trueup.errors import SchemaError
from trueup.model.kinds import INSTANT, INTEGER, TIMESTAMP
from trueup.ports import Scope, Write

# Names.


@pytest.mark.parametrize(
    "name", ["order", "Emp", "Straße 日本", "a b", "100%", "%(x)s", "semi;colon", "qu'ote", "a?b", "x.y"]
)
def test_names_are_quoted_with_their_exact_case(tables: Tables, name: str) -> None:
    columns = ["select", "userId", "a b", "5%", "größe"]
    quoted = [tables.quoted(column) for column in columns]
    table = tables.table(f"{quoted[0]} int, {', '.join(f'{each} int' for each in quoted[1:])}", name)
    side = tables.side(table, key="select")
    asked = projection(side, *columns[1:], key=("select",))
    assert side.apply(asked, [Write(key("1"), dict(zip(columns[1:], "2345", strict=True)), "")])[0].landed
    assert rows(side, asked) == [("1", "2", "3", "4", "5")]
    assert side.apply(asked, [Write(key("1"), {"5%": "6"}, side.read(asked, [key("1")])[key("1")].token)])[0].landed
    assert side.read(asked, [key("1")])[key("1")].values["5%"] == "6"
    assert side.apply(asked, [Write(key("1"), None, None)])[0].replica is None


@pytest.mark.postgres
def test_a_schema_is_part_of_the_name(on_postgres: Tables) -> None:
    on_postgres.execute('CREATE SCHEMA "Other"')
    on_postgres.execute('CREATE TABLE "Other"."T" (id int PRIMARY KEY, v text)')
    side = on_postgres.side("Other.T")
    assert side.apply(projection(side, "v"), [Write(key("1"), {"v": "a"}, "")])[0].landed
    assert rows(side, projection(side, "v")) == [("1", "a")]
    assert side.describe().key == ("id",)
    on_postgres.execute('DROP SCHEMA "Other" CASCADE')


def test_a_view_is_read_by_its_declared_key(tables: Tables) -> None:
    table = tables.quoted(tables.table("id int, v int"))
    tables.execute(f"INSERT INTO {table} VALUES (1, 10), (2, 20)")
    tables.execute(f"CREATE VIEW big AS SELECT id, v * 2 AS double_v FROM {table} WHERE v > 10")
    side = tables.side("big", key="id")
    assert side.describe().key == ()
    assert rows(side, projection(side, "double_v")) == [("2", "40")]
    assert set(side.read(projection(side, "double_v"), [key("1"), key("2")])) == {key("2")}
    side.close()
    tables.execute("DROP VIEW big")


def test_the_primary_key_is_described_in_its_order(tables: Tables) -> None:
    side = tables.side(tables.table("b int NOT NULL, v int, a int NOT NULL, PRIMARY KEY (a, b)"))
    assert side.describe().key == ("a", "b")
    side = tables.side(tables.table("b int NOT NULL, a int NOT NULL, PRIMARY KEY (a, b)"), key=["b", "a"], version="b")
    assert side.capabilities.reads_by_key
    assert not side.capabilities.version_index
    assert not tables.side(tables.table("a int, b int"), key="b").capabilities.reads_by_key
    assert tables.side(tables.table("a int PRIMARY KEY, b int"), key="a", version="a").capabilities.version_index


# Conditions, versions, clocks.


def test_conditions_are_joined_and_keep_their_own_or(tables: Tables) -> None:
    table = tables.table("id int, shop varchar(9), synced int")
    values = "(1, 'a:b', 0), (2, 'a:b', 1), (3, '100%', 0), (4, '?', 0), (5, 'x', 0)"
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES {values}")
    side = tables.side(table, key="id", where="shop = 'a:b' OR shop LIKE '100%' OR shop = '?' -- mine")
    asked = projection(side, "shop")
    assert [row[0] for row in rows(side, asked)] == ["1", "2", "3", "4"]
    assert [row[0] for row in rows(side, asked, Scope(where="synced = 0 OR 1 = 2"))] == ["1", "3", "4"]
    assert set(side.read(asked, [key("1"), key("5")])) == {key("1")}
    assert side.selects(asked, [key("1"), key("2"), key("5")], "synced = 0") == {key("1")}


VERSIONS = [
    ("2026-01-01 00:00:00", "1"), ("2026-03-29 02:30:00", "2"), ("2026-10-25 02:30:00", "3"),
    ("2026-12-01 00:00:00", "4"),
]  # fmt: skip


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_since_on_a_wall_clock_is_exact(tables: Tables, zone: str | None) -> None:
    table = tables.table(f"id int, {tables.quoted('at')} {tables.types[str(TIMESTAMP)]}")
    for at, number in [*VERSIONS, (None, "5")]:
        spelled = "NULL" if at is None else f"'{at}'"
        tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES ({number}, {spelled})")
    side = tables.side(table, key="id", version="at", zone=zone)
    asked = projection(side, version="at")
    assert asked.version is not None
    assert asked.version.kind == (TIMESTAMP if zone is None else INSTANT)
    every = {row[0]: row[1] for row in rows(side, asked)}
    hours = 0 if zone != "Europe/Berlin" else 1
    assert every["1"] == (1767225600 - hours * 3600) * 1_000_000
    assert every["5"] is None
    for version in (every["1"], every["3"], every["3"] + 1, every["4"], every["4"] + 1, 0):
        expected = [(number, at) for number, at in every.items() if at is not None and at >= version]
        assert rows(side, asked, Scope(since=version)) == sorted(expected, key=lambda row: row[1])
    assert {found.version for found in side.read(asked, [key("1"), key("5")]).values()} == {every["1"], None}


def test_a_version_in_microseconds_survives(tables: Tables) -> None:
    side = tables.make({"id": INTEGER, "at": INSTANT}, ["id"], "at", [{"id": "1", "at": "2026-01-02T03:04:05.123457Z"}])
    asked = projection(side, version="at")
    assert rows(side, asked, Scope(since=1767323045123457)) == [("1", 1767323045123457)]
    assert rows(side, asked, Scope(since=1767323045123458)) == []


def test_text_can_not_be_a_version(tables: Tables) -> None:
    side = tables.side(tables.table(f"id int, {tables.quoted('at')} varchar(40)"), key="id", version="at")
    with pytest.raises(SchemaError, match=r"at .* can't be a version"):
        rows(side, projection(side, version="at"), Scope(since=1))


def test_the_clock_is_the_servers(tables: Tables) -> None:
    side = tables.side(tables.table("id int"), key="id")
    first = side.now_us()
    assert 1_700_000_000_000_000 < first < 4_000_000_000_000_000
    assert first <= side.now_us()


@pytest.mark.mariadb
def test_c008_zero_dates_are_null_and_counted_or_stay_what_they_are(on_mariadb: Tables) -> None:
    """Given a zero date, a zero month and a zero day, I expect three nulls and one warning that counts three."""
    table = on_mariadb.table("id int PRIMARY KEY, at datetime, day date")
    on_mariadb.execute("SET sql_mode = ''")
    days = ["0000-00-00 00:00:00", "2023-00-10 00:00:00", "2023-07-00 08:15:00", "2023-07-31 08:15:00"]
    for number, day in enumerate(days, 1):
        on_mariadb.execute(f"INSERT INTO {on_mariadb.quoted(table)} VALUES ({number}, '{day}', NULL)")
    lenient, strict = (
        on_mariadb.side(table, zero_date="null", key="id"),
        on_mariadb.side(table, zero_date="strict", key="id"),
    )
    for _ in range(2):
        assert rows(lenient, projection(lenient, "at")) == [
            ("1", None), ("2", None), ("3", None), ("4", "2023-07-31T08:15:00"),
        ]  # fmt: skip
        assert lenient.warnings == {"zero dates read as null": 3}
    assert lenient.read(projection(lenient, "at"), [key("2")])[key("2")].values["at"] is None
    assert rows(strict, projection(strict, "at"))[:3] == [
        ("1", "!0000-00-00 00:00:00"), ("2", "!2023-00-10 00:00:00"), ("3", "!2023-07-00 08:15:00"),
    ]  # fmt: skip
    assert strict.warnings == {}


# Size.


def test_a_scan_is_bounded_in_memory_and_sees_one_instant(tables: Tables) -> None:
    """Given 200,000 rows, of which many change during the scan, I expect the rows as they were, in small batches."""
    name = tables.table("id int PRIMARY KEY, v varchar(200)")
    table = tables.quoted(name)
    values = ", ".join(f"({number}, '{'x' * 100}')" for number in range(1_000))
    tables.execute(f"INSERT INTO {table} VALUES {values}")
    for step in range(1, 200):
        tables.execute(f"INSERT INTO {table} SELECT id + {1_000 * step}, v FROM {table} WHERE id < 1000")
    side = tables.side(name)
    if tables.url.startswith("sqlite"):
        tables.execute("PRAGMA journal_mode = WAL")  # without it, SQLite would make the writer below wait
    tracemalloc.start()
    seen = changed = 0
    for batch in side.scan(projection(side, "v")):
        if not seen:
            tables.execute(f"UPDATE {table} SET v = 'changed' WHERE id >= 100000")
        seen += batch.num_rows
        changed += batch.column(1).to_pylist().count("changed")
        assert batch.num_rows <= 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (seen, changed) == (200_000, 0)
    assert peak < 40_000_000


def test_an_abandoned_scan_leaves_the_side_usable(tables: Tables) -> None:
    name = tables.table("id int PRIMARY KEY, v varchar(200)")
    values = ", ".join(f"({number}, '{'x' * 150}')" for number in range(20_000))
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES {values}")
    for step in range(1, 8):
        table = tables.quoted(name)
        tables.execute(f"INSERT INTO {table} SELECT id + {20_000 * step}, v FROM {table} WHERE id < 20000")
    side = tables.side(name)
    asked = projection(side, "v")
    for _ in range(12):  # more than the pool has connections
        batches = side.scan(asked)
        next(batches)
        batches.close()
    assert sum(batch.num_rows for batch in side.scan(asked)) == 160_000
