"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from services import mariadb_database, postgres_database

# A machine that is busy with other workers is no failure of a law. In CI, Hypothesis brings such a profile itself.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:
    settings.load_profile("desk")


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
