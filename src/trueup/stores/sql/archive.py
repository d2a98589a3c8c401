"""Runs, cursors and cases in SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trueup.model.case import Case
from trueup.model.run import Run
from trueup.ports import Clock
from trueup.stores.sql.letters import SqlLetters
from trueup.stores.sql.storage import Session, Storage

ROWS_MAX: Final = 2**62

_RUN = "pair, what, started_us, cutoff_us, number, ended_us, ended, error, counts"
_CASE = (
    "pair, key, drift, opened_us, authority, replica, fields, ancestor, run, detail, number, closed_us, closed, extra"
)
_OPEN = """
    INSERT INTO trueup_case (pair, key, drift, opened_us, authority, replica, fields, ancestor, run, detail, extra)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (pair, key) WHERE closed_us IS NULL DO UPDATE SET
        drift = excluded.drift, authority = excluded.authority, replica = excluded.replica, fields = excluded.fields,
        ancestor = excluded.ancestor, run = excluded.run, detail = excluded.detail, extra = excluded.extra
"""


class SqlArchive(SqlLetters):
    """Runs, cursors, cases and dead letters in a database.

    clock: when cases are closed; by default the storage's.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(storage)
        self._clock = clock

    def open_run(self, run: Run) -> Run:
        """Stores a run that begins and gives it its number."""
        statement = (
            "INSERT INTO trueup_run (pair, what, started_us, cutoff_us, ended_us, ended, error, counts) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        values = (
            run.pair, run.what, run.started_us, run.cutoff_us, run.ended_us, run.ended, run.error, _json(run.counts),
        )  # fmt: skip
        storage = self._storage
        # Done twice it would leave a run that never ends.
        number = storage.write(lambda session: storage.inserted(session, statement, values), repeatable=False)
        return replace(run, number=number)

    def close_run(self, run: Run, cursors: Mapping[str, int] | None = None) -> None:
        """Stores how it ended and, in the same transaction, moves cursors (by name)."""

        def close(session: Session) -> None:
            session.execute(
                "UPDATE trueup_run SET cutoff_us = ?, ended_us = ?, ended = ?, error = ?, counts = ? WHERE number = ?",
                (run.cutoff_us, run.ended_us, run.ended, run.error, _json(run.counts), run.number),
            )
            session.executemany(
                "INSERT INTO trueup_cursor VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                sorted((cursors or {}).items()),
            )

        self._storage.write(close)

    def runs(self, pair: str, limit: int = 20) -> list[Run]:
        """The newest runs first."""
        found = self._all(f"SELECT {_RUN} FROM trueup_run WHERE pair = ? ORDER BY number DESC LIMIT ?", (pair, limit))
        return [_run(values) for values in found]

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved."""
        found = self._all("SELECT value FROM trueup_cursor WHERE name = ?", (name,))
        return int(found[0][0]) if found else None

    def open_cases(self, cases: Sequence[Case]) -> int:
        """Opens cases; an open case about the same record is refreshed instead. Answers how many are new."""

        def open_(session: Session) -> int:
            last = session.execute("SELECT coalesce(max(number), 0) FROM trueup_case").fetchone()[0]
            counting = "SELECT count(*) FROM trueup_case WHERE number > ? AND pair = ?"
            # In the order of the keys, so that two programs never wait for each other.
            for case in sorted(cases, key=lambda case: (case.pair, case.key)):
                session.executemany(_OPEN, [_kept(case)])
            opened = [
                session.execute(counting, (last, pair)).fetchone() for pair in sorted({case.pair for case in cases})
            ]
            return sum(int(count) for (count,) in opened)

        return self._storage.write(open_)

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> int:
        """Closes the open cases about these records, with the reason."""

        def close(session: Session) -> int:
            now_us = self._storage.now_us(session, self._clock)
            statement = (
                "UPDATE trueup_case SET closed_us = ?, closed = ? WHERE pair = ? AND key = ? AND closed_us IS NULL"
            )
            return sum(session.execute(statement, (now_us, how, pair, key)).rowcount for key in sorted(set(keys)))

        return self._storage.write(close)

    def cases(self, pair: str, *, open_only: bool = True, limit: int | None = None) -> list[Case]:
        """Cases, oldest first."""
        which = "AND closed_us IS NULL" if open_only else ""
        found = self._all(
            f"SELECT {_CASE} FROM trueup_case WHERE pair = ? {which} ORDER BY opened_us, number LIMIT ?",
            (pair, ROWS_MAX if limit is None else limit),
        )
        return [_case(values) for values in found]

    def count_cases(self, pair: str) -> int:
        """How many cases wait for a person."""
        return int(self._all("SELECT count(*) FROM trueup_case WHERE pair = ? AND closed_us IS NULL", (pair,))[0][0])

    def close(self) -> None:
        """Gives back connections."""
        self._storage.close()

    def _all(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        found: list[Any] = self._storage.read(lambda session: session.execute(statement, parameters).fetchall())
        return found


def _json(value: Mapping[str, Any] | Sequence[Any] | None) -> str | None:
    if value is None:
        return None
    plain = dict(value) if isinstance(value, Mapping) else list(value)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _kept(case: Case) -> tuple[Any, ...]:
    return (
        case.pair, case.key, case.drift, case.opened_us, _json(case.authority), _json(case.replica),
        _json(case.fields), case.ancestor, case.run, case.detail, _json(case.extra),
    )  # fmt: skip


def _run(values: Sequence[Any]) -> Run:
    named = dict(zip(_RUN.split(", "), values, strict=True))
    return Run(**named | {"counts": json.loads(named["counts"])})


def _case(values: Sequence[Any]) -> Case:
    named = dict(zip(_CASE.split(", "), values, strict=True))
    for name in ("authority", "replica", "fields", "extra"):
        named[name] = None if named[name] is None else json.loads(named[name])
    return Case(**named | {"fields": tuple(named["fields"])})
