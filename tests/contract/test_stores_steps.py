"""Programs of several versions on one state store: who goes on, who is refused, what an upgrade leaves as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from trueup.errors import StateError
from trueup.model.change import Change, Outcome
from trueup.model.row import Finish
from trueup.model.run import Run
from trueup.stores.sql import SqlStore, sqlite
from trueup.stores.sql.postgresql import PostgresqlStore
from trueup.stores.sql.postgresql import migrations as postgresql
from trueup.stores.sql.steps import Step

ADDED = Step("CREATE TABLE trueup_added (id INTEGER)", "ALTER TABLE trueup_row ADD COLUMN added TEXT")
BROKEN = Step("ALTER TABLE trueup_cursor RENAME TO trueup_place", additive=False)
LATER = Step("CREATE TABLE trueup_later (id INTEGER)")


class Programs:
    """Opens one store, as programs that know more or fewer steps do."""

    def __init__(self, monkeypatch, where, make, connect):
        self._monkeypatch, self._where, self._make, self.connect = monkeypatch, where, make, connect
        self._open = []
        self.known = getattr(*where)

    def open(self, steps=None):
        with self._monkeypatch.context() as patched:
            patched.setattr(*self._where, self.known if steps is None else steps)
            self._open.append(self._make())
        return self._open[-1]

    def close(self):
        for store in self._open:
            store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def programs(request, monkeypatch, tmp_path):
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/state.db"
        programs = Programs(
            monkeypatch, (sqlite, "MIGRATIONS"), lambda: SqlStore(url),
            lambda: closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)),
        )  # fmt: skip
        yield programs
        programs.close()
        return
    server = request.getfixturevalue("postgres_url")
    programs = Programs(
        monkeypatch, (postgresql, "STEPS"), lambda: PostgresqlStore(f"{server}?schema=steps"),
        lambda: psycopg.connect(server, autocommit=True, options="-c search_path=steps"),
    )  # fmt: skip
    yield programs
    programs.close()
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("DROP SCHEMA steps CASCADE")


def _works(store, version):
    """Whether a record and a run get through from beginning to end."""
    store.ledger.settle("orders")
    assert store.ledger.offer([Change("orders", '["1"]', version=version, digest="a")]) == [Outcome.PENDING]
    claims = store.ledger.claim(["orders"], 1, "w", 1_000_000, 5)
    done = [Finish(claim, "done", action="upsert", version=version, digest="a", replica="a") for claim in claims]
    run = store.archive.begin_run(Run("orders", "run", version), "w", 60_000_000)
    return store.ledger.finish(done) == [True] and store.archive.close_run(
        replace(run, ended="done", ended_us=1), {"orders": version}
    )


def test_programs_go_on_beside_and_after_an_upgrade_that_adds(programs):
    """Given a program that runs and a newer one that adds steps, I expect both to work, and an old one to start."""
    before = programs.open()
    newer = programs.open((*programs.known, ADDED, LATER))
    after = programs.open()
    assert all([_works(before, 1), _works(newer, 2), _works(after, 3)])
    assert before.archive.cursor("orders") == 3
    with programs.connect() as connection:
        done, needed = connection.execute("SELECT max(step), max(needs) FROM trueup_schema").fetchone()
    assert (done, needed) == (len(programs.known) + 2, 0)


def test_a_program_that_knows_too_little_is_refused(programs):
    """Given a step that old programs can't live with, I expect them to be refused, whatever was added later."""
    steps = (*programs.known, ADDED, BROKEN, LATER)
    programs.open(steps)
    known = len(programs.known)
    for count in (known, known + 1):
        expected = rf"newer trueup \(step {known + 3}, for programs that know step {known + 2}; this one knows {count}"
        with pytest.raises(StateError, match=expected) as refused:
            programs.open(steps[:count])
        assert "Upgrade trueup" in refused.value.hint
    programs.open(steps[: known + 2])


def test_an_upgrade_keeps_what_was_there(programs):
    """Given a store of the first release with its runs, I expect them unchanged, and new ones beside them."""
    programs.open(programs.known[:2])
    with programs.connect() as connection:
        connection.execute(
            "INSERT INTO trueup_run (pair, what, started_us, cutoff_us, ended_us, ended, error, counts) "
            "VALUES ('orders', 'run', 1, 2, 3, 'done', NULL, '{\"same\":4}'), "
            "('orders', 'run', 5, NULL, NULL, 'open', NULL, '{}')"
        )
    upgraded = programs.open()
    left, done = upgraded.archive.runs("orders")
    assert done == Run("orders", "run", 1, 2, done.number, 3, "done", counts={"same": 4})
    assert left == Run("orders", "run", 5, number=left.number)
    # A run whose process ended before there were slots is nobody's, and in nobody's way.
    assert _works(upgraded, 1)
    assert upgraded.archive.forget_plans(2**62) == 0
