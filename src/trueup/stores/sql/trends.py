"""Drift over time in SQL.

Concurrency: whoever writes closes a run of the pair, and so holds the row of its slot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from trueup.model.trend import Bucket, Length, RunDrift, Streak, added
from trueup.stores.sql.steps import Step
from trueup.stores.sql.storage import Session, Storage, as_json, marks

# The same text for every database: each of them reads these types as its own.
STEP: Final = Step(
    """
    CREATE TABLE trueup_trend (
        pair text NOT NULL,
        length text NOT NULL,
        from_us bigint NOT NULL,
        cause text NOT NULL,
        field text NOT NULL,
        runs bigint NOT NULL,
        records bigint NOT NULL,
        compared bigint NOT NULL,
        PRIMARY KEY (pair, from_us, length, cause, field)
    )
    """,
    """
    CREATE TABLE trueup_streak (
        pair text NOT NULL,
        cause text NOT NULL,
        field text NOT NULL,
        runs bigint NOT NULL,
        since_us bigint NOT NULL,
        run bigint NOT NULL,
        records bigint NOT NULL,
        compared bigint NOT NULL,
        total bigint NOT NULL,
        examples text NOT NULL,
        PRIMARY KEY (pair, cause, field)
    )
    """,
)
_PLACE: Final = ("pair", "length", "from_us", "cause", "field")
_SUMS: Final = ("runs", "records", "compared")
_BUCKET: Final = ", ".join((*_PLACE, *_SUMS))
_ADD: Final = f"""
    INSERT INTO trueup_trend ({_BUCKET}) VALUES ({marks(_BUCKET.split())})
    ON CONFLICT (pair, from_us, length, cause, field) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _SUMS)}
"""
_MERGED: Final = f"DELETE FROM trueup_trend WHERE {' AND '.join(f'{name} = ?' for name in _PLACE)}"
_STREAK: Final = "pair, cause, field, runs, since_us, run, records, compared, total, examples"
_KEEP: Final = f"INSERT INTO trueup_streak ({_STREAK}) VALUES ({marks(_STREAK.split())})"


class SqlTrends:
    """What runs found, in a database."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def trend(self, pair: str) -> list[Bucket]:
        """What the runs of the pair found, in order of time, cause and field."""
        found = self._storage.read(lambda session: _buckets(session, pair))
        return sorted(found, key=lambda each: (each.from_us, each.cause, each.field, each.length))

    def streaks(self, pair: str) -> list[Streak]:
        """What drifts run after run, by cause and field."""
        statement = f"SELECT {_STREAK} FROM trueup_streak WHERE pair = ?"
        found: list[Any] = self._storage.read(lambda session: session.execute(statement, (pair,)).fetchall())
        return sorted((_streak(values) for values in found), key=lambda each: (each.cause, each.field))


def add_drift(session: Session, drift: RunDrift) -> None:
    """Adds what a run found, within the transaction that closes it."""
    known = {each.place: each for each in _buckets(session, drift.pair)}
    after = {each.place: each for each in added(known.values(), drift)}
    merged = sorted(known.keys() - after.keys())
    session.executemany(_MERGED, [(drift.pair, *place) for place in merged])
    changed = [each for place, each in sorted(after.items()) if known.get(place) != each]
    session.executemany(_ADD, [(each.pair, *each.place, each.runs, each.records, each.compared) for each in changed])
    session.execute("DELETE FROM trueup_streak WHERE pair = ?", (drift.pair,))
    session.executemany(_KEEP, [_kept(each) for each in drift.streaks])


def _buckets(session: Session, pair: str) -> list[Bucket]:
    statement = f"SELECT {_BUCKET} FROM trueup_trend WHERE pair = ?"
    found = session.execute(statement, (pair,)).fetchall()
    return [Bucket(of_pair, Length(length), *rest) for of_pair, length, *rest in found]


def _kept(streak: Streak) -> tuple[Any, ...]:
    return (
        streak.pair, streak.cause, streak.field, streak.runs, streak.since_us, streak.run, streak.records,
        streak.compared, streak.total, as_json(streak.examples),
    )  # fmt: skip


def _streak(values: Sequence[Any]) -> Streak:
    named = dict(zip(_STREAK.split(", "), values, strict=True))
    return Streak(**named | {"examples": tuple(json.loads(named["examples"]))})
