"""Runs, cursors and cases in SQL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trueup.model.case import Case
from trueup.model.run import Run
from trueup.ports import Clock
from trueup.stores.sql.letters import SqlLetters
from trueup.stores.sql.sqlite import SqliteFile

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

    clock: when cases are closed; by default this machine's.
    """

    def __init__(self, file: SqliteFile, clock: Clock | None = None) -> None:
        super().__init__(file)
        self._clock = clock

    def open_run(self, run: Run) -> Run:
        """Stores a run that begins and gives it its number."""
        with self._file.writing() as connection:
            inserted = connection.execute(
                "INSERT INTO trueup_run (pair, what, started_us, cutoff_us, ended_us, ended, error, counts) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.pair,
                    run.what,
                    run.started_us,
                    run.cutoff_us,
                    run.ended_us,
                    run.ended,
                    run.error,
                    _json(run.counts),
                ),
            )
        return replace(run, number=inserted.lastrowid or 0)

    def close_run(self, run: Run, cursors: Mapping[str, int] | None = None) -> None:
        """Stores how it ended and, in the same transaction, moves cursors (by name)."""
        with self._file.writing() as connection:
            connection.execute(
                "UPDATE trueup_run SET cutoff_us = ?, ended_us = ?, ended = ?, error = ?, counts = ? WHERE number = ?",
                (run.cutoff_us, run.ended_us, run.ended, run.error, _json(run.counts), run.number),
            )
            connection.executemany(
                "INSERT INTO trueup_cursor VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                list((cursors or {}).items()),
            )

    def runs(self, pair: str, limit: int = 20) -> list[Run]:
        """The newest runs first."""
        with self._file.reading() as connection:
            found = connection.execute(
                f"SELECT {_RUN} FROM trueup_run WHERE pair = ? ORDER BY number DESC LIMIT ?", (pair, limit)
            ).fetchall()
        return [_run(values) for values in found]

    def cursor(self, name: str) -> int | None:
        """A cursor's value, or None where it was never moved."""
        with self._file.reading() as connection:
            found = connection.execute("SELECT value FROM trueup_cursor WHERE name = ?", (name,)).fetchone()
        return None if found is None else int(found[0])

    def open_cases(self, cases: Sequence[Case]) -> int:
        """Opens cases; an open case about the same record is refreshed instead. Answers how many are new."""
        with self._file.writing() as connection:
            before = _opened_ever(connection)
            connection.executemany(_OPEN, [_kept(case) for case in cases])
            return _opened_ever(connection) - before

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> int:
        """Closes the open cases about these records, with the reason."""
        now_us = time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()
        with self._file.writing() as connection:
            closed = connection.executemany(
                "UPDATE trueup_case SET closed_us = ?, closed = ? WHERE pair = ? AND key = ? AND closed_us IS NULL",
                [(now_us, how, pair, key) for key in dict.fromkeys(keys)],
            )
            return max(0, closed.rowcount)

    def cases(self, pair: str, *, open_only: bool = True, limit: int | None = None) -> list[Case]:
        """Cases, oldest first."""
        which = "AND closed_us IS NULL" if open_only else ""
        with self._file.reading() as connection:
            found = connection.execute(
                f"SELECT {_CASE} FROM trueup_case WHERE pair = ? {which} ORDER BY opened_us, number LIMIT ?",
                (pair, -1 if limit is None else limit),
            ).fetchall()
        return [_case(values) for values in found]

    def count_cases(self, pair: str) -> int:
        """How many cases wait for a person."""
        with self._file.reading() as connection:
            found = connection.execute(
                "SELECT count(*) FROM trueup_case WHERE pair = ? AND closed_us IS NULL", (pair,)
            ).fetchone()
        return int(found[0])

    def close(self) -> None:
        """Gives back connections."""
        self._file.close()


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


def _opened_ever(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM trueup_case").fetchone()[0])
