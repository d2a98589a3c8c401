"""Who is at work, in SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from trueup.model.presence import REMEMBERED_US, Presence
from trueup.ports import Clock
from trueup.stores.sql.storage import Session, Storage

_COLUMNS: Final = "name, host, pid, threads, pairs, stays, ended, started_us, beat_us"
_BEAT: Final = f"""
    INSERT INTO trueup_worker ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET ended = excluded.ended, beat_us = excluded.beat_us
"""


class SqlPresences:
    """Workers in a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def beat(self, presence: Presence) -> None:
        """Says that this worker lives now; forgets those that have long been silent."""

        def beat(session: Session) -> None:
            now_us = self._storage.now_us(session, self._clock)
            session.execute(
                _BEAT,
                (
                    presence.name, presence.host, presence.pid, presence.threads, json.dumps(presence.pairs),
                    int(presence.stays), presence.ended, now_us, now_us,
                ),
            )  # fmt: skip
            session.execute("DELETE FROM trueup_worker WHERE beat_us < ?", (now_us - REMEMBERED_US,))

        self._storage.write(beat)

    def leave(self, name: str) -> None:
        """Says that this worker is gone."""
        self._storage.write(lambda session: session.execute("DELETE FROM trueup_worker WHERE name = ?", (name,)))

    def presences(self) -> list[Presence]:
        """Everybody who did not take their leave, by start and name."""
        statement = f"SELECT {_COLUMNS} FROM trueup_worker ORDER BY started_us, name"
        return [_presence(row) for row in self._storage.read(lambda session: session.execute(statement).fetchall())]


def _presence(values: Sequence[Any]) -> Presence:
    named = dict(zip(_COLUMNS.split(", "), values, strict=True))
    return Presence(**named | {"pairs": tuple(json.loads(named["pairs"])), "stays": bool(named["stays"])})
