"""Every archive keeps the contract of archives."""

from __future__ import annotations

import pytest

from trueup.stores.memory import MemoryArchive
from trueup.stores.sql import SqlStore
from trueup.stores.sql.postgresql import PostgresqlStore
from trueup.testing.ledgers import ArchiveContract


class TestMemory(ArchiveContract):
    @pytest.fixture
    def make(self):
        return MemoryArchive


class TestSqlite(ArchiveContract):
    @pytest.fixture
    def make(self, tmp_path):
        return lambda clock: SqlStore(f"sqlite:///{tmp_path}/state.db", clock).archive


@pytest.mark.postgres
class TestPostgresql(ArchiveContract):
    @pytest.fixture
    def make(self, postgres_state):
        return lambda clock: PostgresqlStore(postgres_state(), clock).archive
