"""Roles with few rights and servers of other settings: the same answer, or a sentence that says why there is none."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
import sqlalchemy as sa

from sql_tables import Tables
from trueup.compare import hashed, keyhash, segments
from trueup.compare.choose import STRATEGIES, compare
from trueup.compare.plan import plan
from trueup.errors import IncompleteScan, Unreachable
from trueup.sides.sql import Sql
from trueup.sides.sql.hashing import mysql


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyhash, "ROWS_WANTED", 8)
    monkeypatch.setattr(segments, "_ROWS_WANTED", 8)
    monkeypatch.setattr(hashed, "_SMALL_ROWS", -1)
    monkeypatch.setattr(mysql, "_PAGE_ROWS", 8)


@pytest.fixture
def guest(on_postgres: Tables) -> Iterator[str]:
    """The name, and the password, of a role that may read nothing yet. Roles are of all databases of a server."""
    name = f"guest_{uuid.uuid4().hex[:8]}"
    on_postgres.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
    yield name
    on_postgres.execute(f"DROP OWNED BY {name}")
    on_postgres.execute(f"DROP ROLE {name}")


def found(left: Sql, right: Sql, strategy: str | None, *columns: str) -> dict[str, str]:
    planned = plan(left.describe(), right.describe(), key=("id",), columns=columns or None)
    with compare(left, right, planned, strategy=strategy) as answer:
        return {each.key: each.kind for each in answer.differences()}


@pytest.mark.postgres
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
@pytest.mark.parametrize("declared", ["bigint", "text"])
def test_a_role_may_read_only_the_columns_that_are_compared(
    on_postgres: Tables, guest: str, declared: str, strategy: str | None
) -> None:
    """Given a table with a column that a role may not read, I expect it to compare the others, by any strategy."""
    names = [on_postgres.table(f"id {declared} PRIMARY KEY, secret int, v text NOT NULL") for _ in range(2)]
    for name in names:
        table = on_postgres.quoted(name)
        on_postgres.execute(f"INSERT INTO {table} SELECT i, random() * 9, 'v' || i FROM generate_series(1, 40) AS i")
        on_postgres.execute(f"GRANT SELECT (id, v) ON {table} TO {guest}")
    on_postgres.execute(f"UPDATE {on_postgres.quoted(names[1])} SET v = 'x' WHERE id IN ('7', '23')")
    url = sa.make_url(on_postgres.url).set(username=guest, password=guest).render_as_string(hide_password=False)
    with closing(Sql(url, names[0])) as left, closing(Sql(url, names[1])) as right:
        assert found(left, right, strategy, "v") == {'["7"]': "differ", '["23"]': "differ"}


def in_modes(tables: Tables) -> str:
    """The URL of a server that confuses null with an empty text, and reads a backslash as itself."""
    modes = "ORACLE,NO_BACKSLASH_ESCAPES,EMPTY_STRING_IS_NULL,PAD_CHAR_TO_FULL_LENGTH"
    return sa.make_url(tables.url).update_query_dict({"sql_mode": modes}).render_as_string(hide_password=False)


@pytest.mark.mariadb
@pytest.mark.postgres
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_modes_of_a_server_change_no_answer(on_mariadb: Tables, on_postgres: Tables, strategy: str | None) -> None:
    declared = "id bigint PRIMARY KEY, v varchar(40), w varchar(40)"
    rows = [(at, f"'v{at}'", "'1'") for at in range(30)]
    rows[3], rows[4] = (3, "NULL", "''"), (4, "'a\"b'", "NULL")
    names = []
    for tables in (on_mariadb, on_postgres):
        names.append(tables.table(declared))
        values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        tables.execute(f"INSERT INTO {tables.quoted(names[-1])} VALUES {values}")
    on_postgres.execute(f"UPDATE {on_postgres.quoted(names[1])} SET v = '' WHERE id = 3")
    with closing(Sql(in_modes(on_mariadb), names[0])) as left:
        assert found(left, on_postgres.side(names[1]), strategy) == {'["3"]': "differ"}


@pytest.mark.mariadb
def test_what_the_server_cuts_is_no_answer(on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an answer that is cut, and more warnings than a server keeps, I expect an error and no equal tables."""
    name = on_mariadb.table("id bigint PRIMARY KEY, v varchar(40)")
    values = ", ".join(f"({at}, '{at} notes')" for at in range(200))
    on_mariadb.execute(f"INSERT INTO {on_mariadb.quoted(name)} VALUES {values}")
    left, right = (on_mariadb.side(name, where="v > -1") for _ in range(2))
    assert found(left, right, "keyhash") == {}
    for most in (100, 103, 110):
        monkeypatch.setattr(mysql, "_PACKED_BYTES_MAX", most)
        with pytest.raises(IncompleteScan, match="max_allowed_packet"):
            found(left, right, "keyhash")


@pytest.mark.postgres
@pytest.mark.parametrize("strategy", ["gate", "keyhash", "rows"])
def test_a_standby_that_has_to_end_a_statement_is_out_of_reach(on_postgres: Tables, strategy: str) -> None:
    """Given what a standby says whose rows have to go, I expect to be told to try again."""
    name = on_postgres.table("id bigint PRIMARY KEY, v text")
    on_postgres.execute(f"INSERT INTO {on_postgres.quoted(name)} VALUES (1, 'a'), (2, 'b')")
    on_postgres.execute("""CREATE FUNCTION conflicts() RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$""")
    left, right = on_postgres.side(name), on_postgres.side(name, where="conflicts()")
    with pytest.raises(Unreachable, match="another session") as caught:
        found(left, right, strategy)
    assert "Try again" in str(caught.value.hint)
    on_postgres.execute("DROP FUNCTION conflicts")
