"""The SQL side keeps the contract of sides on every engine."""

from __future__ import annotations

import pytest

from trueup.testing.sides import MarkableSideContract, WritableSideContract


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
