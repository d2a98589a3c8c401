"""What the SQL side does beyond the contract of sides: names, conditions, versions, races, and what goes wrong."""

from __future__ import annotations

import sqlite3
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sql_tables import Tables

from trueup.errors import BadInput, ConfigError, SchemaError, SideError, TrueupError, Unreachable
from trueup.model.columns import texts
from trueup.model.kinds import BOOLEAN, INSTANT, INTEGER, TEXT, TIMESTAMP, Kind
from trueup.model.record import Field, Projection, key_text
from trueup.ports import Scope, Write
from trueup.sides.sql import Sql


def projection(side: Sql, *fields: str, key: tuple[str, ...] = ("id",), version: str | None = None) -> Projection:
    def field(name: str) -> Field:
        column = side.describe().column(name)
        assert column is not None
        return Field(name, name, column.kind, native=column.native)

    return Projection(tuple(map(field, key)), tuple(map(field, fields)), field(version) if version else None)


def rows(side: Sql, asked: Projection, scope: Scope | None = None) -> list[tuple[Any, ...]]:
    answer: list[tuple[Any, ...]] = []
    for batch in side.scan(asked, scope or Scope()):
        columns = [
            array.to_pylist() if field is asked.version else texts(array, field)
            for array, field in zip(batch.columns, asked.columns, strict=True)
        ]
        answer += zip(*columns, strict=True)
    return answer


def key(*parts: str | None) -> str:
    return key_text(parts)


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
    tables.execute(
        f"INSERT INTO {tables.quoted(table)} VALUES (1, 'a:b', 0), (2, 'a:b', 1), (3, '100%', 0), (4, '?', 0), (5, 'x', 0)"
    )
    side = tables.side(table, key="id", where="shop = 'a:b' OR shop LIKE '100%' OR shop = '?' -- mine")
    asked = projection(side, "shop")
    assert [row[0] for row in rows(side, asked)] == ["1", "2", "3", "4"]
    assert [row[0] for row in rows(side, asked, Scope(where="synced = 0 OR 1 = 2"))] == ["1", "3", "4"]
    assert set(side.read(asked, [key("1"), key("5")])) == {key("1")}
    assert side.selects(asked, [key("1"), key("2"), key("5")], "synced = 0") == {key("1")}


VERSIONS = [
    ("2026-01-01 00:00:00", "1"), ("2026-03-29 02:30:00", "2"), ("2026-10-25 02:30:00", "3"), ("2026-12-01 00:00:00", "4"),
]  # fmt: skip


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_since_on_a_wall_clock_is_exact(tables: Tables, zone: str | None) -> None:
    table = tables.table(f"id int, at {tables.types[str(TIMESTAMP)]}")
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
    side = tables.side(tables.table("id int, at varchar(40)"), key="id", version="at")
    with pytest.raises(SchemaError, match="at .* can't be a version"):
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
    on_mariadb.execute(
        f"INSERT INTO {on_mariadb.quoted(table)} VALUES (1, '0000-00-00 00:00:00', NULL), (2, '2023-00-10 00:00:00', NULL),"
        "(3, '2023-07-00 08:15:00', '2000-01-01'), (4, '2023-07-31 08:15:00', '2000-01-01')"
    )
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


# Keys.


@pytest.mark.mariadb
@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_bin"])
def test_keys_are_equal_byte_for_byte_whatever_the_collation(on_mariadb: Tables, collation: str) -> None:
    """Given keys that a collation takes for equal, I expect each to be read, written and deleted alone."""
    table = on_mariadb.table(f"code varchar(20) CHARACTER SET utf8mb4 COLLATE {collation}, n int")
    codes = ["a-1", "A-1", "ä-1", "a-1 ", "b"]
    for number, code in enumerate(codes):
        on_mariadb.execute(f"INSERT INTO {on_mariadb.quoted(table)} VALUES ('{code}', {number})")
    side = on_mariadb.side(table, key="code")
    asked = projection(side, "n", key=("code",))
    assert {name: found.copies for name, found in side.read(asked, [key(code) for code in codes]).items()} == {
        key(code): 1 for code in codes
    }
    assert side.apply(asked, [Write(key("A-1"), {"n": "9"}, None), Write(key("a-1 "), None, None)])
    assert sorted(rows(side, asked)) == [("A-1", "9"), ("a-1", "0"), ("b", "4"), ("ä-1", "2")]


def test_sqlite_keys_past_a_collation(on_sqlite: Tables) -> None:
    table = on_sqlite.table("code TEXT COLLATE NOCASE, n INTEGER")
    on_sqlite.execute(f"INSERT INTO {on_sqlite.quoted(table)} VALUES ('a', 1), ('A', 2)")
    side = on_sqlite.side(table, key="code")
    asked = projection(side, "n", key=("code",))
    assert side.apply(asked, [Write(key("A"), {"n": "9"}, None)])[0].landed
    assert sorted(rows(side, asked)) == [("A", "9"), ("a", "1")]


@pytest.mark.parametrize("rows_many", [1_200])
def test_many_composite_keys_with_spelled_times(tables: Tables, rows_many: int) -> None:
    columns: dict[str, Kind] = {"at": INSTANT, "code": TEXT, "n": INTEGER}
    given = [
        {"at": f"2026-01-{1 + number % 28:02}T10:00:00Z", "code": f"c{number}", "n": str(number)}
        for number in range(rows_many)
    ]
    side = tables.make(columns, ["at", "code"], None, [])
    asked = projection(side, "n", key=("at", "code"))
    keys = [key(row["at"], row["code"]) for row in given]
    assert all(
        each.landed
        for each in side.apply(asked, [Write(k, {"n": r["n"]}, "") for k, r in zip(keys, given, strict=True)])
    )
    absent = [key(row["at"], "none") for row in given[:50]]
    found = side.read(asked, [*keys, *absent])
    assert {name: each.values["n"] for name, each in found.items()} == {
        k: r["n"] for k, r in zip(keys, given, strict=True)
    }


# Writing.


def test_c128_children_of_an_updated_row_survive(tables: Tables) -> None:
    """Given a parent whose children would be deleted with it, I expect an update to leave them and its row alone."""
    parent = tables.quoted(tables.table("id int PRIMARY KEY, name varchar(9), UNIQUE (name)", "parent"))
    child = tables.table(f"id int PRIMARY KEY, of int, FOREIGN KEY (of) REFERENCES {parent} (id) ON DELETE CASCADE")
    tables.execute(f"INSERT INTO {parent} VALUES (1, 'a')")
    tables.execute(f"INSERT INTO {tables.quoted(child)} VALUES (10, 1), (11, 1)")
    side, children = tables.side("parent"), tables.side(child)
    asked = projection(side, "name")
    token = side.read(asked, [key("1")])[key("1")].token
    assert side.apply(asked, [Write(key("1"), {"name": "b"}, token)])[0].landed
    assert rows(side, asked) == [("1", "b")]
    assert len(rows(children, projection(children, "of"))) == 2
    side.close()
    children.close()
    tables._names.reverse()


def test_what_the_engine_computes_is_never_written(tables: Tables) -> None:
    table = tables.table("id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED")
    side = tables.side(table)
    asked = projection(side, "a", "twice")
    (written,) = side.apply(asked, [Write(key("1"), {"a": "2", "twice": "99"}, "")])
    assert written.replica is not None
    assert written.replica.values == {"id": "1", "a": "2", "twice": "4"}
    (written,) = side.apply(asked, [Write(key("1"), {"a": "3", "twice": "99"}, written.replica.token)])
    assert written.replica is not None
    assert written.replica.values["twice"] == "6"


@pytest.mark.postgres
def test_an_identity_key_is_put_as_given(on_postgres: Tables) -> None:
    side = on_postgres.side(on_postgres.table("id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int"))
    assert side.apply(projection(side, "a"), [Write(key("7"), {"a": "2"}, ""), Write(key("8"), {"a": "2"}, None)])
    assert side.apply(projection(side, "a"), [Write(key("7"), {"a": "3"}, None)])[0].landed
    assert rows(side, projection(side, "a")) == [("8", "2"), ("7", "3")]


def test_a_trigger_changes_what_is_read_back(tables: Tables) -> None:
    """Given a trigger that moves the version, I expect mark to answer the version as it is after it."""
    table = tables.quoted(tables.table("id int PRIMARY KEY, at bigint, synced int", "marked"))
    tables.execute(f"INSERT INTO {table} VALUES (1, 5, 0)")
    if tables.quote == "`":
        tables.execute("CREATE TRIGGER bump BEFORE UPDATE ON marked FOR EACH ROW SET NEW.at = OLD.at + 1")
    elif tables.url.startswith("sqlite"):
        tables.execute(
            "CREATE TRIGGER bump AFTER UPDATE OF synced ON marked BEGIN UPDATE marked SET at = at + 1 WHERE id = NEW.id; END"
        )
    else:
        tables.execute(
            "CREATE OR REPLACE FUNCTION bump() RETURNS trigger AS $$ BEGIN NEW.at = OLD.at + 1; RETURN NEW; END $$ LANGUAGE plpgsql"
        )
        tables.execute("CREATE TRIGGER bump BEFORE UPDATE ON marked FOR EACH ROW EXECUTE FUNCTION bump()")
    side = tables.side("marked", version="at")
    asked = projection(side, version="at")
    assert side.mark(asked, key("1"), 4, "synced = 1") == (False, 5)
    assert side.mark(asked, key("1"), 5, "synced = 1") == (True, 6)
    assert side.selects(asked, [key("1")], "synced = 1") == {key("1")}
    side.close()


def test_a_row_that_a_constraint_refuses_does_not_take_others_along(tables: Tables) -> None:
    side = tables.side(tables.table("id int PRIMARY KEY, name varchar(9) NOT NULL"))
    asked = projection(side, "name")
    writes = [
        Write(key("1"), {"name": "a"}, ""),
        Write(key("2"), {"name": None}, ""),
        Write(key("3"), {"name": "c"}, ""),
    ]
    with pytest.raises(BadInput, match="constraint") as caught:
        side.apply(asked, writes)
    assert caught.value.hint
    assert rows(side, asked) == [("1", "a")]


def test_another_unique_value_is_an_error_and_not_a_lost_race(tables: Tables) -> None:
    side = tables.side(tables.table("id int PRIMARY KEY, mail varchar(20) UNIQUE"))
    asked = projection(side, "mail")
    side.apply(asked, [Write(key("1"), {"mail": "secret@example"}, "")])
    with pytest.raises(BadInput) as caught:
        side.apply(asked, [Write(key("2"), {"mail": "secret@example"}, "")])
    assert "secret" not in str(caught.value)


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize("tables", ["postgres", "mariadb"], indirect=True)  # SQLite takes any value in any column
def test_values_that_do_not_fit_are_refused_without_being_shown(tables: Tables) -> None:
    side = tables.side(tables.table("id int PRIMARY KEY, n smallint, s varchar(3)"))
    asked = projection(side, "n", "s")
    for values in ({"n": "123456"}, {"n": "!secret"}, {"s": "secret"}):
        with pytest.raises(BadInput) as caught:
            side.apply(asked, [Write(key("1"), values, "")])
        assert "secret" not in str(caught.value)
        assert "123456" not in str(caught.value)
    assert rows(side, asked) == []


def test_only_one_of_many_writers_wins(tables: Tables) -> None:
    """Given eight threads that write against the same token, I expect exactly one to land, for update and insert."""
    side = tables.side(tables.table("id int PRIMARY KEY, v int"))
    asked = projection(side, "v")
    side.apply(asked, [Write(key("1"), {"v": "0"}, "")])
    token = side.read(asked, [key("1")])[key("1")].token
    for name, expect in (("1", token), ("2", "")):
        landed: list[str] = []
        barrier = threading.Barrier(8)

        def write(
            number: int, name: str = name, expect: str = expect, barrier: Any = barrier, into: Any = landed
        ) -> None:
            barrier.wait()
            (written,) = side.apply(asked, [Write(key(name), {"v": str(100 + number)}, expect)])
            if written.landed:
                into.append(str(100 + number))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(landed) == 1
        assert side.read(asked, [key(name)])[key(name)].values["v"] == landed[0]


def test_bulk_writers_in_opposite_order_do_not_lose_each_other(tables: Tables) -> None:
    side = tables.side(tables.table("id int PRIMARY KEY, v int"))
    asked = projection(side, "v")
    keys = [key(str(number)) for number in range(100)]
    side.apply(asked, [Write(each, {"v": "0"}, "") for each in keys[:50]])
    failures: list[BaseException] = []

    def write(order: list[str], value: str) -> None:
        try:
            for _ in range(5):
                assert all(each.landed for each in side.apply(asked, [Write(k, {"v": value}, None) for k in order]))
        except BaseException as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=write, args=(keys, "1")),
        threading.Thread(target=write, args=(keys[::-1], "2")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(rows(side, asked)) == 100


def test_a_hand_edit_that_leaves_the_version_alone_is_not_overwritten(tables: Tables) -> None:
    table = tables.table("id int PRIMARY KEY, at int, v int")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES (1, 5, 0)")
    side = tables.side(table, version="at")
    asked = projection(side, "v")
    token = side.read(asked, [key("1")])[key("1")].token
    tables.execute(f"UPDATE {tables.quoted(table)} SET v = 7")
    (written,) = side.apply(asked, [Write(key("1"), {"v": "1"}, token)])
    assert not written.landed
    assert rows(side, asked) == [("1", "7")]


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


# What goes wrong.


def test_unknown_names_are_met_with_the_nearest_known(tables: Tables) -> None:
    tables.table("id int, amount int", "orders")
    for side, name in (
        (tables.side("ordesr", key="id"), "orders"),
        (tables.side("orders", key="idd"), "id"),
        (tables.side("orders", key="id", version="amuont"), "amount"),
        (tables.side("orders", key="id", columns={"amont": "text"}), "amount"),
    ):
        with pytest.raises(SchemaError) as caught:
            side.describe()
        assert name in str(caught.value.hint)


def test_a_condition_that_is_no_sql_is_a_schema_error(tables: Tables) -> None:
    side = tables.side(tables.table("id int"), key="id", where="no_such_column = 1")
    with pytest.raises(SchemaError, match="no_such_column"):
        rows(side, projection(side))


def test_a_missing_sqlite_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(SideError, match="no such file"):
        Sql(f"sqlite:///{path}", "t").describe()
    assert not path.exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes and no database at all. " * 100)
    with pytest.raises(SideError, match="not a database"):
        Sql(f"sqlite:///{path}", "t").describe()


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize("engine", ["postgres_url", "mariadb_url"])
def test_refused_logins_name_the_host_and_no_password(request: pytest.FixtureRequest, engine: str) -> None:
    from sqlalchemy.engine import make_url

    url = make_url(request.getfixturevalue(engine))
    for changed in (url.set(password="wr0ng-passw0rd"), url.set(username="nobody"), url.set(database="nowhere")):
        side = Sql(changed.render_as_string(hide_password=False), "t")
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1") as caught:
            side.describe()
        side.close()
        assert "wr0ng" not in str(caught.value)
        assert "passw0rd" not in repr(caught.value)
        assert "true/up" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "mysql", "mariadb"])
def test_nobody_listens(scheme: str) -> None:
    side = Sql(f"{scheme}://user:s3cret@127.0.0.1:1/db", "t")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1") as caught:
        side.describe()
    assert "s3cret" not in str(caught.value)
    assert caught.value.hint
    side.close()


@pytest.mark.postgres
def test_a_missing_right_is_said(on_postgres: Tables) -> None:
    from sqlalchemy.engine import make_url

    table = on_postgres.table("id int PRIMARY KEY")
    on_postgres.execute("DROP ROLE IF EXISTS guest")
    on_postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    url = make_url(on_postgres.url).set(username="guest", password="guest")
    side = Sql(url.render_as_string(hide_password=False), table)
    with pytest.raises(Unreachable, match="permission denied") as caught:
        rows(side, projection(side))
    assert "Grant" in str(caught.value.hint)
    side.close()
    on_postgres.execute("DROP ROLE guest")


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Sql("oracle://host/db", "t"), "oracle"),
    (lambda: Sql("no url", "t"), "URL"),
    (lambda: Sql("sqlite:///x.db", "t", zone="Mars/Base"), "Mars"),
    (lambda: Sql("sqlite:///x.db", "t", columns={"a": "integre"}), "integre"),
    (lambda: Sql("sqlite:///x.db", "t", zero_date="maybe"), "zero_date"),  # type: ignore[arg-type]
    (lambda: Sql("sqlite://", "t").describe(), "file"),
])  # fmt: skip
def test_declarations_that_can_not_be_meant(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize(("url", "extra"), [("postgres://h/d", "trueup[postgres]"), ("mariadb://h/d", "trueup[mysql]")])
def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, url: str, extra: str) -> None:
    import sys

    for driver in ("psycopg", "pymysql", "pymysql.converters"):
        monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(ConfigError) as caught:
        Sql(url, "t").describe()
    assert extra in str(caught.value.hint)


@pytest.mark.postgres
def test_a_connection_that_dies_in_a_scan_is_no_end(on_postgres: Tables) -> None:
    name = on_postgres.table("id int PRIMARY KEY, v text")
    on_postgres.execute(
        f"INSERT INTO {on_postgres.quoted(name)} SELECT g, repeat('x', 1000) FROM generate_series(1, 60000) g"
    )
    side = on_postgres.side(name)
    with pytest.raises(TrueupError, match="ended early|does not answer"):
        for number, _ in enumerate(side.scan(projection(side, "v"))):
            if number == 0:
                on_postgres.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'trueup' AND state = 'active'"
                )
    assert len(rows(side, projection(side))) == 60_000


def test_a_locked_sqlite_file_is_waited_for(on_sqlite: Tables) -> None:
    side = on_sqlite.side(on_sqlite.table("id int PRIMARY KEY, v int"))
    asked = projection(side, "v")
    side.describe()
    path = on_sqlite.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        release.start()
        assert side.apply(asked, [Write(key("1"), {"v": "1"}, "")])[0].landed
        release.join()


def test_asked_kinds_are_delivered(tables: Tables) -> None:
    """C010: given tinyint values asked as boolean, I expect 2 and -1 to be oddities and never true."""
    table = tables.table("id int PRIMARY KEY, v smallint")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES (1, 0), (2, 1), (3, 2), (4, -1), (5, NULL)")
    side = tables.side(table)
    asked = Projection((Field("id", "id", INTEGER),), (Field("v", "v", BOOLEAN),))
    expected = [("1", "false"), ("2", "true"), ("3", "!2"), ("4", "!-1"), ("5", None)]
    assert rows(side, asked) == expected
    found = side.read(asked, [key(str(number)) for number in range(1, 6)])
    assert [(each.values["id"], each.values["v"]) for each in found.values()] == expected
    assert side.apply(asked, [Write(key("1"), {"v": "true"}, None)])[0].replica == found[key("2")].__class__(
        key("1"), {"id": "1", "v": "true"}, None, found[key("2")].token
    )
