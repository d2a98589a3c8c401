"""The SQL side keeps the contract of sides on every engine."""

from __future__ import annotations

import pytest

from trueup.model.kinds import INTEGER, TEXT
from trueup.testing.sides import (
    DivisibleSideContract,
    MarkableSideContract,
    WindowedSideContract,
    WritableSideContract,
)
from trueup.testing.sides.asking import projection_of, row


class TestSQLite(WritableSideContract, MarkableSideContract):
    @pytest.fixture
    def make(self, on_sqlite):
        return on_sqlite.make


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
