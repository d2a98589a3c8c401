"""What the SQL side writes: exactly the record it was told, under its precondition, whoever else writes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sql_tables import Tables, key, projection, rows
from trueup.errors import BadInput
from trueup.model.kinds import INSTANT, INTEGER, TEXT, Kind
from trueup.ports import Write

# DuckDB has no triggers and no cascades.
WITH_TRIGGERS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres),
                 pytest.param("mariadb", marks=pytest.mark.mariadb)]  # fmt: skip

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


@pytest.mark.parametrize("tables", WITH_TRIGGERS, indirect=True)
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
    stored = "" if tables.url.startswith("duckdb") else " STORED"
    table = tables.table(f"id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2){stored}")
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


BUMP = {
    "mariadb": ["CREATE TRIGGER bump BEFORE UPDATE ON marked FOR EACH ROW SET NEW.at = OLD.at + 1"],
    "sqlite": [
        (
            "CREATE TRIGGER bump AFTER UPDATE OF synced ON marked"
            " BEGIN UPDATE marked SET at = at + 1 WHERE id = NEW.id; END"
        )
    ],
    "postgresql": [
        (
            "CREATE OR REPLACE FUNCTION bump() RETURNS trigger AS"
            " $$ BEGIN NEW.at = OLD.at + 1; RETURN NEW; END $$ LANGUAGE plpgsql"
        ),
        "CREATE TRIGGER bump BEFORE UPDATE ON marked FOR EACH ROW EXECUTE FUNCTION bump()",
    ],
}


@pytest.mark.parametrize("tables", WITH_TRIGGERS, indirect=True)
def test_a_trigger_changes_what_is_read_back(tables: Tables) -> None:
    """Given a trigger that moves the version, I expect mark to answer the version as it is after it."""
    table = tables.quoted(tables.table("id int PRIMARY KEY, at bigint, synced int", "marked"))
    tables.execute(f"INSERT INTO {table} VALUES (1, 5, 0)")
    for statement in BUMP[tables.url.partition(":")[0]]:
        tables.execute(statement)
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
    table = tables.table(f"id int PRIMARY KEY, {tables.quoted('at')} int, v int")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES (1, 5, 0)")
    side = tables.side(table, version="at")
    asked = projection(side, "v")
    token = side.read(asked, [key("1")])[key("1")].token
    tables.execute(f"UPDATE {tables.quoted(table)} SET v = 7")
    (written,) = side.apply(asked, [Write(key("1"), {"v": "1"}, token)])
    assert not written.landed
    assert rows(side, asked) == [("1", "7")]
