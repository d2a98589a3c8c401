"""Fixtures that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from services import mariadb_database, postgres_database
from sql_tables import Tables, duckdb_tables, mariadb_tables, postgres_tables, sqlite_tables

# How long an example takes says something about the machine, nothing about the law.
settings.register_profile("laws", settings(), deadline=None)
settings.load_profile("laws")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL database that is empty when the session (or xdist worker) starts."""
    with postgres_database() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """The URL of a MariaDB database that is empty when the session (or xdist worker) starts."""
    with mariadb_database() as url:
        yield url


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Tables]:
    """Tables in a SQLite file whose name needs care in a URL."""
    with sqlite_tables(tmp_path / "a b%20.db") as tables:
        yield tables


@pytest.fixture
def on_duckdb(tmp_path: Path) -> Iterator[Tables]:
    """Tables in a DuckDB file whose name needs care in a URL."""
    with duckdb_tables(tmp_path / "a b%20.duckdb") as tables:
        yield tables


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Tables]:
    """Tables in a PostgreSQL database."""
    with postgres_tables(postgres_url) as tables:
        yield tables


@pytest.fixture
def on_mariadb(mariadb_url: str) -> Iterator[Tables]:
    """Tables in a MariaDB database."""
    with mariadb_tables(mariadb_url) as tables:
        yield tables


@pytest.fixture(
    params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres),
            pytest.param("mariadb", marks=pytest.mark.mariadb)]
)  # fmt: skip
def tables(request: pytest.FixtureRequest) -> Tables:
    """Tables on each SQL engine in turn."""
    made: Tables = request.getfixturevalue(f"on_{request.param}")
    return made
