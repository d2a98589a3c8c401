"""Counts of what all processes did, in SQL; and the place in a record's row for the trace of what is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from trueup.model.metric import Count
from trueup.stores.sql.steps import Step
from trueup.stores.sql.storage import Session, Storage

# The same text for every database: each of them reads these types as its own.
STEP: Final = Step(
    """
    CREATE TABLE trueup_tally (
        metric text NOT NULL,
        labels text NOT NULL,
        total double precision NOT NULL,
        PRIMARY KEY (metric, labels)
    )
    """,
    "ALTER TABLE trueup_row ADD COLUMN trace text",
)
_ADD: Final = """
    INSERT INTO trueup_tally (metric, labels, total) VALUES (?, ?, ?)
    ON CONFLICT (metric, labels) DO UPDATE SET total = trueup_tally.total + excluded.total
"""


class SqlTallies:
    """Counts in a database."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def tally(self, added: Mapping[Count, float]) -> None:
        """Adds to each of these counts."""
        # In one order, so that processes that add to the same counts never wait for each other in a circle.
        rows = sorted((name, json.dumps(labels, ensure_ascii=False), more) for (name, labels), more in added.items())

        def add(session: Session) -> None:
            session.executemany(_ADD, rows)

        self._storage.write(add, durable=False)

    def tallies(self) -> dict[Count, float]:
        """Every count that was ever added to."""
        found = self._storage.read(
            lambda session: session.execute("SELECT metric, labels, total FROM trueup_tally").fetchall()
        )
        return {Count(metric, tuple(json.loads(labels))): float(total) for metric, labels, total in found}
