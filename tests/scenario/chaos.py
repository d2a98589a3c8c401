"""What chaos tests share: two tables, worker processes to freeze and kill, and what the replica held over time."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from chaos_worker import Plan

from trueup.bound import BoundPair
from trueup.model.row import State
from trueup.project import Project

REPLICA = """
    CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, row_version INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE held (number INTEGER PRIMARY KEY, id INTEGER, name TEXT);
    CREATE TABLE performed (id INTEGER, version INTEGER, process INTEGER);
    CREATE TRIGGER stamp AFTER UPDATE OF name ON people BEGIN
        UPDATE people SET row_version = row_version + 1 WHERE id = new.id;
        INSERT INTO held (id, name) VALUES (new.id, new.name);
    END;
"""


def prepare(folder: Path, count: int = 1) -> None:
    """Two tables that agree on `count` records named `old`, version 1."""
    with closing(sqlite3.connect(folder / "a.db")) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER NOT NULL)")
        db.executemany("INSERT INTO people VALUES (?, 'old', 1)", [(ident,) for ident in range(1, count + 1)])
    with closing(sqlite3.connect(folder / "r.db")) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(REPLICA)
        db.executemany("INSERT INTO people (id, name) VALUES (?, 'old')", [(ident,) for ident in range(1, count + 1)])


def change(pair: BoundPair, folder: Path, name: str, version: int, idents: Iterable[int] = (1,)) -> None:
    """The authority changes these records, and says so."""
    idents = list(idents)
    with closing(sqlite3.connect(folder / "a.db", timeout=20)) as db, db:
        db.executemany("UPDATE people SET name = ?, v = ? WHERE id = ?", [(name, version, each) for each in idents])
    pair.offer([{"id": ident, "name": name, "v": version} for ident in idents])


def asked(folder: Path, statement: str) -> list[tuple[object, ...]]:
    """What the replica's own database answers."""
    with closing(sqlite3.connect(folder / "r.db", timeout=20)) as db:
        return db.execute(statement).fetchall()


def held(folder: Path) -> list[object]:
    """Every name that record 1 had at the replica since it was `old`, in order."""
    return [name for (name,) in asked(folder, "SELECT name FROM held WHERE id = 1 ORDER BY number")]


def performed(folder: Path) -> Counter[tuple[object, ...]]:
    """How often the handler was called for each (id, version)."""
    return Counter(asked(folder, "SELECT id, version FROM performed"))


def until(true: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Waits for it; fails where it does not come."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@contextmanager
def worker(plan: Plan, *, threads: int = 1, grace_s: float = 20) -> Iterator[subprocess.Popen[str]]:
    """`trueup worker` as a process of its own; killed at the end, if it still runs."""
    command = [sys.executable, "-m", "trueup", "--project", "chaos_worker", "worker", "--threads", str(threads)]
    process = subprocess.Popen(
        [*command, "--grace", str(grace_s)], cwd=Path(__file__).parent, env=plan.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        print(f"worker {process.pid} ended with {process.returncode}: {process.communicate()[0]}")


def stopped(process: subprocess.Popen[str]) -> tuple[int, str]:
    """SIGTERM: the exit code, and everything that the worker said."""
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


def is_frozen(process: subprocess.Popen[str]) -> bool:
    """Whether the process stands still; it must not have ended."""
    state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert state is None or state.si_code == os.CLD_STOPPED, f"the worker ended: {process.communicate()[0]}"
    return state is not None


def leased_by(project: Project, process: subprocess.Popen[str]) -> list[str]:
    """Keys of the records that this process holds now."""
    now_us = project.ledger.now_us()
    rows = [row for rows in project.ledger.scan("people", "pending") for row in rows]
    return [row.key for row in rows if row.leased(now_us) and f":{process.pid}:" in (row.lease_owner or "")]


def all_done(project: Project) -> bool:
    """Whether nothing is left to do; nothing may be parked."""
    counts = project.ledger.counts("people")
    assert not counts["parked"]
    return not counts["pending"]


def story(pair: BoundPair, what: str) -> list[str]:
    """What the history of record 1 says about its claims, finishes, …, oldest first."""
    return [detail for _, kind, detail in pair.explain('["1"]').events if kind == what]


def agreed(project: Project, versions: dict[int, int]) -> None:
    """Every record is done at exactly this version, and a comparison of both sides finds nothing."""
    rows = {row.key: row for rows in project.ledger.scan("people") for row in rows}
    assert {row.state for row in rows.values()} == {State.IDLE}
    assert {ident: rows[f'["{ident}"]'].done_version for ident in versions} == versions
    report = project.find("people").run()
    assert report.exit_code == 0
    assert not report.plan
    assert project.archive.count_cases("people") == 0
