"""Drift of every kind, injected with a fixed seed into the two databases, and a record of it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from trueup.demo.flights import KEY
from trueup.model.record import key_text

Key = tuple[str, str, int]
WHERE = " AND ".join(f"{name} = ?" for name in KEY)


@dataclass
class Injected:
    """What was done to the data: key texts by the drift that should be found."""

    keys: dict[str, list[str]] = field(default_factory=dict)

    def add(self, drift: str, keys: Sequence[Key]) -> None:
        """Notes that these records were made to drift in this way."""
        self.keys.setdefault(drift, []).extend(key_text(str(part) for part in key) for key in keys)

    @property
    def total(self) -> int:
        """How many records were made to drift."""
        return sum(len(keys) for keys in self.keys.values())


class Injector:
    """Changes the databases behind trueup's back, as people and lost events do. Keys are never used twice."""

    def __init__(self, authority: Path, replica: Path, seed: int) -> None:
        self._authority, self._replica = authority, replica
        chance = random.Random(seed)  # noqa: S311  reproducible, not secret
        with closing(sqlite3.connect(authority)) as db:
            keys = db.execute(
                f"SELECT {', '.join(KEY)} FROM flights WHERE carrier <> 'OO' ORDER BY revision"
            ).fetchall()
            odd = db.execute(f"SELECT {', '.join(KEY)} FROM flights WHERE carrier = 'OO' ORDER BY revision").fetchall()
        self._unused = chance.sample(keys, 40_000)
        self._normalised = chance.sample(odd, 8)
        self.injected = Injected()

    def take(self, number: int) -> list[Key]:
        """Keys that nothing was done to yet."""
        taken, self._unused = self._unused[:number], self._unused[number:]
        return taken

    def before_adoption(self) -> None:
        """Records that differ before anybody watched: nothing tells who moved."""
        keys = self.take(40)
        self._at_replica("UPDATE departures SET dep_delay = coalesce(dep_delay, 0) + 5 WHERE", keys)
        self.injected.add("unknown", keys)

    def after_adoption(self) -> None:
        """Lost events, hand edits and deletions on both sides, since the two were known to agree."""
        inject = self.injected.add
        lost = self.take(120)
        self._at_authority("UPDATE flights SET arr_delay = coalesce(arr_delay, 0) + 7 WHERE", lost)
        inject("behind", lost)
        gone = self.take(60)
        self._at_replica("DELETE FROM departures WHERE", gone)
        inject("removed", gone)
        edited = self.take(45)
        self._at_replica("UPDATE departures SET tailnum = 'N0EDIT' WHERE", edited)
        inject("edited", edited)
        both = self.take(15)
        self._at_authority("UPDATE flights SET distance = distance + 1 WHERE", both)
        self._at_replica("UPDATE departures SET air_time = coalesce(air_time, 0) + 3 WHERE", both)
        inject("conflict", both)
        deleted = self.take(20)
        self._at_authority("DELETE FROM flights WHERE", deleted)
        inject("orphaned", deleted)
        twice = self.take(10)
        self._at_replica("INSERT INTO departures SELECT * FROM departures WHERE", twice)
        inject("duplicate", twice)
        inject("missing", self._created("flights", self.take(50), revised=True))
        inject("foreign", self._created("departures", self.take(12), revised=False))

    def changed_in_order(self) -> list[Key]:
        """Changes that carry a new revision, but whose events were lost: a sweep finds them."""
        keys = self.take(80)
        with closing(sqlite3.connect(self._authority)) as db:
            top = db.execute("SELECT max(revision) FROM flights").fetchone()[0]
            for at, key in enumerate(keys, start=1):
                db.execute(f"UPDATE flights SET dep_time = 1234, revision = ? WHERE {WHERE}", (top + at, *key))
            db.commit()
        self.injected.add("behind (new revision)", keys)
        return keys

    def normalised(self) -> None:
        """Changes of records that the replica will not store as they are given."""
        self._at_authority("UPDATE flights SET air_time = coalesce(air_time, 0) + 1 WHERE", self._normalised)
        self.injected.add("unlike", self._normalised)

    def _created(self, table: str, like: Sequence[Key], *, revised: bool) -> list[Key]:
        """New records on one side only, copied from others under flight numbers that do not exist."""
        keys: list[Key] = [(time_hour, carrier, flight + 90_000) for time_hour, carrier, flight in like]
        path = self._authority if revised else self._replica
        with closing(sqlite3.connect(path)) as db:
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            chosen = ", ".join(
                "flight + 90000" if name == "flight" else "0" if name == "revision" else name for name in names
            )
            db.executemany(f"INSERT INTO {table} SELECT {chosen} FROM {table} WHERE {WHERE}", like)
            db.commit()
        return keys

    def _at_authority(self, statement: str, keys: Sequence[Key]) -> None:
        _each(self._authority, statement, keys)

    def _at_replica(self, statement: str, keys: Sequence[Key]) -> None:
        _each(self._replica, statement, keys)


def _each(path: Path, statement: str, keys: Sequence[Key]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executemany(f"{statement} {WHERE}", keys)
        db.commit()
