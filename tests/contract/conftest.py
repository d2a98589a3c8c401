"""Fixtures of the suites that every store keeps."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import psycopg
import pytest

TABLES = (
    "row", "pair", "history", "run", "slot", "piece", "suspect", "item", "cursor", "case", "delivery", "letter",
    "system", "worker", "comment", "decision", "acceptance", "schedule", "seal",
    "evidence", "chain", "telling", "pulse", "trend", "streak", "tally", "anchored", "secret",
)  # fmt: skip
SCHEMA = 'state of % "Zoë" \'n co'


@pytest.fixture
def postgres_state(postgres_url: str) -> Callable[[], str]:
    """Gives the URL of a state store that is empty each time, in a schema whose name needs care."""

    def empty() -> str:
        with psycopg.connect(postgres_url) as connection:
            found = connection.execute("SELECT to_regnamespace(%s)", (f'"{SCHEMA.replace(chr(34), chr(34) * 2)}"',))
            if found.fetchone() != (None,):
                for table in TABLES:
                    name = psycopg.sql.Identifier(SCHEMA, f"trueup_{table}")
                    connection.execute(psycopg.sql.SQL("DELETE FROM {}").format(name))
        return f"{postgres_url}?{urlencode({'schema': SCHEMA})}"

    return empty
