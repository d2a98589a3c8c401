"""Every store of budgets keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from trueup.ports import Budgets, Clock
from trueup.stores.budgets import MemoryBudgets
from trueup.stores.sql import SqlStore
from trueup.testing.budgets import BudgetsContract


class TestMemoryBudgets(BudgetsContract):
    @pytest.fixture
    def make(self) -> Callable[[Clock], Budgets]:
        return MemoryBudgets

    @pytest.fixture
    def beside(self, budgets: Budgets) -> Budgets:
        return budgets


class TestSqliteBudgets(BudgetsContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Callable[[Clock], Budgets]]:
        stores: list[SqlStore] = []

        def made(clock: Clock) -> Budgets:
            stores.append(SqlStore(f"sqlite:///{tmp_path}/state.db", clock, durable=False))
            return stores[-1].budgets

        yield made
        for store in stores:
            store.close()


@pytest.mark.postgres
class TestPostgresqlBudgets(BudgetsContract):
    @pytest.fixture
    def make(self, postgres_url: str) -> Iterator[Callable[[Clock], Budgets]]:
        from trueup.stores.sql.postgresql import PostgresqlStore

        stores: list[PostgresqlStore] = []
        separator = "&" if "?" in postgres_url else "?"
        url = f"{postgres_url}{separator}schema=b{uuid4().hex[:12]}"

        def made(clock: Clock) -> Budgets:
            stores.append(PostgresqlStore(url, clock))
            return stores[-1].budgets

        yield made
        for store in stores:
            store.close()
