"""The SQL side keeps the contract of sides on every engine."""

from __future__ import annotations

import pytest

from trueup.model.kinds import INSTANT, INTEGER, TEXT, TIMESTAMP
from trueup.model.times import parse_us
from trueup.model.window import Windows
from trueup.ports import Scope
from trueup.sides.sql import Sql
from trueup.testing.sides import (
    DivisibleSideContract,
    MarkableSideContract,
    WindowedSideContract,
    WritableSideContract,
)
from trueup.testing.sides.asking import projection_of, row, scanned


class TestSQLite(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self, on_sqlite):
        return on_sqlite.make


class TestDuckDB(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self, on_duckdb):
        return on_duckdb.make


@pytest.mark.postgres
class TestPostgreSQL(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self, on_postgres):
        return on_postgres.make


@pytest.mark.mariadb
class TestMariaDB(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self, on_mariadb):
        return on_mariadb.make


def keyed(tables):
    """A factory whose tables have a primary key where it is made of integers."""

    def make(columns, key, version=None, rows=()):
        whole = all(columns[name].name == "integer" for name in key)
        constraint = f", PRIMARY KEY ({', '.join(map(tables.quoted, key))})" if whole else ""
        return tables.make(columns, key, version, rows, constraint)

    return make


class TestSQLiteInPieces(DivisibleSideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, on_sqlite):
        return keyed(on_sqlite)


class TestDuckDBInPieces(DivisibleSideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, on_duckdb):
        return keyed(on_duckdb)


@pytest.mark.postgres
class TestPostgreSQLInPieces(DivisibleSideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, on_postgres):
        return keyed(on_postgres)


@pytest.mark.mariadb
class TestMariaDBInPieces(DivisibleSideContract, WindowedSideContract):
    @pytest.fixture
    def make(self, on_mariadb):
        return keyed(on_mariadb)


def test_a_table_without_an_index_on_its_key_is_not_cut(on_sqlite):
    side = on_sqlite.make({"id": INTEGER, "name": TEXT}, ["id"], None, [row(str(at), name="n") for at in range(100)])
    assert side.cut(projection_of(side, ["id"], ["name"]), 4) == []


ENGINES = [
    "on_sqlite",
    "on_duckdb",
    pytest.param("on_postgres", marks=pytest.mark.postgres),
    pytest.param("on_mariadb", marks=pytest.mark.mariadb),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("constraint", "key", "found"),
    [
        (", PRIMARY KEY (id, part)", "id,part", (True, True)),
        (", PRIMARY KEY (part, id)", "id,part", (True, True)),
        (", UNIQUE (id)", "id,part", (True, False)),
        (", PRIMARY KEY (id, part)", "id", (False, True)),
        (", PRIMARY KEY (id, part)", "part", (False, False)),
        ("", "id", (False, False)),
    ],
)
def test_whether_a_key_is_unique_and_led_to_is_told_by_its_indexes(engine, constraint, key, found, request):
    tables = request.getfixturevalue(engine)
    side = tables.side(tables.table(f"id int NOT NULL, part int NOT NULL{constraint}"), key=key.split(","))
    examined = side.examine()
    assert (examined.unique_key, examined.key_index) == found


@pytest.mark.parametrize("engine", ENGINES)
def test_wall_clocks_of_a_declared_zone_lie_in_the_window_of_their_instant(engine, request):
    # Berlin's clocks showed 02:30 twice; the hour after the change belongs to another hour of UTC.
    texts = ["2026-10-25T01:59:59", "2026-10-25T02:30:00", "2026-10-25T03:00:00", "2026-10-25T03:30:00"]
    rows = [row(str(at), at=text) for at, text in enumerate(texts)]
    made = request.getfixturevalue(engine).make({"id": INTEGER, "at": TIMESTAMP}, ["id"], None, rows)
    side = Sql(made._url.render_as_string(hide_password=False), made.label, key="id", zone="Europe/Berlin")
    windows = Windows("at", "at", "UTC", unit="h")
    found = []
    for text in ("2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"):
        window = windows.at(parse_us(text, aware=True, zone=None))
        scope = Scope(window=windows.span(window.from_us, window.to_us))
        found.append([each["id"] for each in scanned(side, projection_of(side, ["id"], []), scope)])
    side.close()
    assert found == [["0"], ["1"], [], ["2", "3"]]


@pytest.mark.parametrize("engine", ENGINES[2:])
def test_a_window_is_summed_up_where_it_is(engine, request):
    rows = [row(str(at), at="2026-11-01T12:00:00Z", name="n") for at in range(3)]
    side = keyed(request.getfixturevalue(engine))({"id": INTEGER, "at": INSTANT, "name": TEXT}, ["id"], None, rows)
    windows = Windows("at", "at", "UTC")
    window = windows.at(parse_us("2026-11-01T12:00:00Z", aware=True, zone=None))
    found = side.window_sum(projection_of(side, ["id"], ["name"]), windows.span(window.from_us, window.to_us))
    assert found is not None
    assert found.count == 3
