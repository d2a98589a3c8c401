"""What goes wrong on the SQL side is said in one sentence that names the place and no value."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sql_tables import Tables, key, projection, rows
from trueup.errors import ConfigError, IncompleteScan, SchemaError, SideError, Unreachable
from trueup.model.kinds import BOOLEAN, INTEGER
from trueup.model.record import Field, Projection
from trueup.ports import Write
from trueup.sides.sql import Sql


def test_unknown_names_are_met_with_the_nearest_known(tables: Tables) -> None:
    tables.table("id int, amount int", "shipments")
    for side, name in (
        (tables.side("shipmenst", key="id"), "shipments"),
        (tables.side("shipments", key="idd"), "id"),
        (tables.side("shipments", key="id", version="amuont"), "amount"),
        (tables.side("shipments", key="id", columns={"amont": "text"}), "amount"),
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
    batches = side.scan(projection(side, "v"))
    next(batches)
    on_postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'trueup' AND state = 'active' AND datname = current_database()"
    )
    with pytest.raises(IncompleteScan, match="ended early"):
        list(batches)
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
