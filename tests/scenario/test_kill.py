"""kill -9 of a worker at every step of a job, on real processes and files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from dying_worker import LEASE_S, declare

from trueup.model.change import Outcome
from trueup.model.row import Finish

SCRIPT = Path(__file__).with_name("dying_worker.py")
# Found by `test_steps_are_all_of_a_job`, which fails when a job gains a step that is not killed here.
STEPS = [
    "ledger.claim",
    "authority.read",
    "replica.read",
    "ledger.attempt",
    "ledger.renew",
    "replica.apply",
    "ledger.finish",
]


def prepare(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "a.db")) as db:
        db.executescript("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER NOT NULL)")
        db.execute("INSERT INTO people VALUES (1, 'old', 1)")
        db.commit()
    with closing(sqlite3.connect(folder / "r.db")) as db:
        db.executescript("""
            CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, row_version INTEGER NOT NULL DEFAULT 0);
            CREATE TRIGGER stamp AFTER UPDATE OF name ON people
            BEGIN UPDATE people SET row_version = row_version + 1 WHERE id = new.id; END;
        """)
        db.execute("INSERT INTO people VALUES (1, 'old', 0)")
        db.commit()


def change(folder: Path, name: str, version: int) -> None:
    with closing(sqlite3.connect(folder / "a.db")) as db:
        db.execute("UPDATE people SET name = ?, v = ?", (name, version))
        db.commit()


def on_replica(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "r.db")) as db:
        return str(db.execute("SELECT name FROM people WHERE id = 1").fetchone()[0])


def run_worker(folder: Path, step: int, when: str, tokens: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(folder), str(step), when, tokens]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def wanted(folder: Path, tokens: str) -> None:
    """An adopted pair with one change waiting that must be read again (an event without its version)."""
    prepare(folder)
    with declare(folder, versioned=tokens == "version") as project:
        pair = project.find("people")
        pair.adopt()
        change(folder, "new", 2)
        assert pair.offer({"id": 1}) == [Outcome.REFETCH]


@pytest.mark.slow
def test_steps_are_all_of_a_job(tmp_path: Path) -> None:
    wanted(tmp_path, "digest")
    ended = run_worker(tmp_path, 99, "before", "digest")
    assert ended.returncode == 0, ended.stderr
    assert set(ended.stdout.split()) <= set(STEPS)
    assert ended.stdout.split().count("replica.apply") == 1


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["digest", "version"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", range(1, 8))
def test_killed_at_a_step_nothing_is_lost_and_the_next_holder_finishes(
    tmp_path: Path, step: int, when: str, tokens: str
) -> None:
    wanted(tmp_path, tokens)
    ended = run_worker(tmp_path, step, when, tokens)
    killed = ended.returncode == -9
    assert killed or ended.returncode == 0, ended.stderr
    with declare(tmp_path, versioned=tokens == "version") as project:
        pair = project.find("people")
        if killed:  # meanwhile the authority moves on; the newer event arrives before the dead worker's lease ends
            change(tmp_path, "newest", 3)
            pair.offer({"id": 1, "name": "newest", "v": 3})
        time.sleep(LEASE_S + 0.1)
        pair._project.worker(threads=1).drain(2_000_000)
        assert on_replica(tmp_path) == ("newest" if killed else "new")
        row = project.ledger.rows("people", ['["1"]'])['["1"]']
        assert row.state == "idle"
        assert row.done_version == (3 if killed else 2)
        assert pair.run().exit_code == 0
        assert project.archive.count_cases("people") == 0


def test_the_late_finish_of_a_dead_worker_is_refused_and_the_row_is_read_again(tmp_path: Path) -> None:
    wanted(tmp_path, "digest")
    with declare(tmp_path, versioned=False) as project:
        pair, ledger = project.find("people"), project.ledger
        [frozen] = ledger.claim(["people"], 1, "frozen", 100_000, 5)
        time.sleep(0.2)
        project.worker(threads=1).drain(1_000_000)
        assert on_replica(tmp_path) == "new"
        late = Finish(frozen, "done", action="upsert", version=1, digest="0" * 32, replica="0" * 32)
        assert ledger.finish([late]) == [False]
        row = ledger.rows("people", ['["1"]'])['["1"]']
        assert (row.state, row.refetch, row.done_version) == ("pending", True, 2)
        project.worker(threads=1).drain(1_000_000)
        assert pair.run().exit_code == 0
        assert on_replica(tmp_path) == "new"
