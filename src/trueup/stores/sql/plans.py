"""Suspects and plans of runs in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from trueup.model.drift import Drift, Verdict
from trueup.model.plan import ItemState, PlanItem
from trueup.model.run import OPEN
from trueup.stores.sql.storage import ROWS_MAX, Session, Storage, as_json, batches, marks

_ITEM: Final = (
    "key, drift, verdict, action, run, state, authority, replica, fields, version, authority_digest, replica_digest, "
    "revision, removes"
)
_PLAN: Final = f"""
    INSERT INTO trueup_item ({_ITEM}) VALUES ({marks(_ITEM.split())})
    ON CONFLICT (run, key) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _ITEM.split(", ") if name not in ("run", "key"))}
    WHERE trueup_item.state = '{ItemState.PLANNED.value}'
"""
_TABLES: Final = ("trueup_piece", "trueup_suspect", "trueup_item")
_OLD: Final = f"FROM trueup_run WHERE forgotten = 0 AND ended <> '{OPEN}' AND ended_us < ?"
# So that the next call does not ask again of each run what it has.
_MARK_EMPTY: Final = f"""
    UPDATE trueup_run SET forgotten = 1 WHERE number IN (SELECT number {_OLD}) AND
    {" AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.run = trueup_run.number)" for table in _TABLES)}
"""
_FORGETTABLE: Final = f"""
    SELECT number {_OLD} AND NOT EXISTS (SELECT 1 FROM trueup_item t
        WHERE t.run = trueup_run.number AND t.state = '{ItemState.HELD.value}') ORDER BY number
"""


class SqlPlans:
    """Plans in a database."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def suspects(self, run: int, limit: int) -> list[str]:
        """Keys that differed and are not confirmed yet, in order; the first `limit`."""
        statement = "SELECT key FROM trueup_suspect WHERE run = ? ORDER BY key LIMIT ?"
        found = self._storage.read(lambda session: session.execute(statement, (run, limit)).fetchall())
        return [str(key) for (key,) in found]

    def count_suspects(self, run: int) -> int:
        """How many keys are not confirmed yet."""
        statement = "SELECT count(*) FROM trueup_suspect WHERE run = ?"
        return int(self._storage.read(lambda session: session.execute(statement, (run,)).fetchone()[0]))

    def plan(self, run: int, items: Sequence[PlanItem], confirmed: Sequence[str]) -> None:
        """Stores items, but for those that something came of, and forgets the suspects that were confirmed."""

        # In the order of the keys, so that two programs never wait for each other.
        rows = [_kept(run, item) for item in sorted(items, key=lambda item: item.key)]

        def plan(session: Session) -> None:
            session.executemany(_PLAN, rows)
            for these, parameters in _of_keys(run, confirmed):
                session.execute(f"DELETE FROM trueup_suspect WHERE {these}", parameters)

        self._storage.write(plan)

    def items(
        self, run: int, *, state: ItemState | None = None, after: str = "", limit: int | None = None
    ) -> list[PlanItem]:
        """Items in key order, behind the key `after`."""
        where, asked = ("", ()) if state is None else ("AND state = ?", (str(state),))
        statement = f"SELECT {_ITEM} FROM trueup_item WHERE run = ? {where} AND key > ? ORDER BY key LIMIT ?"
        parameters = (run, *asked, after, ROWS_MAX if limit is None else limit)
        return [
            _item(values)
            for values in self._storage.read(lambda session: session.execute(statement, parameters).fetchall())
        ]

    def count_items(self, run: int) -> dict[tuple[str, str, bool, str], int]:
        """How many items, by (drift, verdict, removes, state)."""
        by = "drift, verdict, removes, state"
        statement = f"SELECT {by}, count(*) FROM trueup_item WHERE run = ? GROUP BY {by}"
        found = self._storage.read(lambda session: session.execute(statement, (run,)).fetchall())
        return {(drift, verdict, bool(removes), state): int(count) for drift, verdict, removes, state, count in found}

    def move_items(self, run: int, keys: Sequence[str], state: ItemState) -> int:
        """Sets the state of these items; answers how many there were."""

        def move(session: Session) -> int:
            moved = 0
            for these, parameters in _of_keys(run, keys):
                statement = f"UPDATE trueup_item SET state = ? WHERE {these}"
                moved += session.execute(statement, (str(state), *parameters)).rowcount
            return moved

        return self._storage.write(move)

    def forget_plans(self, older_than_us: int) -> int:
        """Drops pieces, suspects and items of runs that ended before; answers of how many runs there were any."""

        self._storage.write(lambda session: session.execute(_MARK_EMPTY, (older_than_us,)))
        old = self._storage.read(lambda session: session.execute(_FORGETTABLE, (older_than_us,)).fetchall())
        # A transaction for each, because a plan may be large and others wait meanwhile.
        return sum(self._storage.write(partial(_forget, run)) for (run,) in old)


def _of_keys(run: int, keys: Sequence[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Conditions that together fit these keys of the run, in their order, each with its parameters.

    The range is said too: a planner that knows nothing of the table yet would read all of the run for each of them.
    """
    for batch in batches(sorted(set(keys))):
        yield f"run = ? AND key BETWEEN ? AND ? AND key IN ({marks(batch)})", (run, batch[0], batch[-1], *batch)


def _forget(run: int, session: Session) -> int:
    for table in _TABLES:
        session.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    statement = "UPDATE trueup_run SET forgotten = 1 WHERE number = ? AND forgotten = 0"
    return int(session.execute(statement, (run,)).rowcount)


def _kept(run: int, item: PlanItem) -> tuple[Any, ...]:
    return (
        item.key, str(item.drift), str(item.verdict), item.action, run, str(item.state), as_json(item.authority),
        as_json(item.replica), as_json(item.fields), item.version, item.authority_digest, item.replica_digest,
        item.revision, int(item.removes),
    )  # fmt: skip


def _item(values: Sequence[Any]) -> PlanItem:
    named = dict(zip(_ITEM.split(", "), values, strict=True))
    for name in ("authority", "replica", "fields"):
        named[name] = None if named[name] is None else json.loads(named[name])
    read = {"drift": Drift, "verdict": Verdict, "state": ItemState, "removes": bool, "fields": tuple}
    return PlanItem(**named | {name: how(named[name]) for name, how in read.items()})
