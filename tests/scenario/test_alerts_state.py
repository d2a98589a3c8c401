"""Where the state store itself is gone, people hear of it all the same: once, why and what to type, and of the end.

Real processes, a real receiver on loopback, a PostgreSQL server that is ended or stands still, and an SQLite file whose
lock somebody holds.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from desk import Desk, about, opened

from services import RestartablePostgres, restartable_postgres
from trueup.errors import StateError
from trueup.stores import check_store

# What a store is waited for before it is an error: a server that restarts, and a file that another program writes.
PATIENCE_S, BUSY_S = 30.0, 10.0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened(tmp_path) as desk:
        yield desk


def ran(server: RestartablePostgres) -> int:
    """How many runs were seen to their end."""
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT count(*) FROM trueup.trueup_run WHERE ended = 'done'").fetchone()
    assert found is not None
    return int(found[0])


def signalled(server: RestartablePostgres, how: signal.Signals) -> None:
    """The server and every process of it, each of which leads a group of its own."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("ascii").split()
    for pid in (server.pid, *map(int, children)):
        with suppress(ProcessLookupError):  # one that could go on has ended already
            os.kill(pid, how)


def one_outage(desk: Desk, began: int = 1) -> None:
    """Every process told, and told of the end; whoever counts by ident counts the outage once or twice."""
    said = [desk.receiver.told(what, "state") for what in ("began", "ended")]
    assert [len(each) for each in said] == [began, began]
    for what in ("began", "ended"):
        idents = {ident for ident in desk.receiver.idents if f"-state-{what}-" in ident}
        assert 1 <= len(idents) <= 2
        assert all(ident.startswith("shop-desk-state-") for ident in idents)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGSTOP])
def test_a_server_that_is_gone_or_frozen_is_told_without_it(desk: Desk, how: signal.Signals) -> None:
    """Given that PostgreSQL, which holds the state, ends or stands still, I expect word of it, and of its return."""
    with restartable_postgres() as server:
        desk.declare('state = "4s"', 'sweep = "1s"', state=server.url)
        desk.run("adopt", "orders")
        process = desk.start("serve", "--only", "scheduler")
        desk.until(lambda: ran(server) >= 2)
        if how is signal.SIGSTOP:
            signalled(server, how)
        else:
            server.end(how)
        found = desk.receiver.wait("began", "state", 4 + PATIENCE_S)
        about(found, "state", "trueup doctor", "the state store does not answer")
        assert (found["severity"], found["subject"]) == ("critical", "state store")
        assert found["cause"].startswith("PostgreSQL at 127.0.0.1:")
        desk.quiet_for(3)
        if how is signal.SIGSTOP:
            signalled(server, signal.SIGCONT)
        else:
            assert "Next: trueup doctor" in desk.run("status")
            assert "state store does not answer" in desk.run("doctor")
            server.start()
        desk.receiver.wait("ended", "state", PATIENCE_S)
        assert process.poll() is None
        desk.quiet_for(2)
    one_outage(desk)
    password = urlsplit(server.url).password
    assert password
    assert password not in json.dumps(desk.receiver.messages)


@pytest.mark.slow
def test_a_file_that_another_program_keeps_locked_is_told_although_it_can_be_read(desk: Desk) -> None:
    """Given a program that stands still with the lock of the SQLite file, I expect every process that lives to tell."""
    desk.declare('state = "3s"', 'sweep = "1s"')
    desk.run("adopt", "orders")
    processes = [desk.start("serve", "--only", "scheduler"), desk.start("worker")]
    desk.until(lambda: desk.ran() >= 2)
    with closing(sqlite3.connect(desk.folder / "trueup.db", isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        desk.until(lambda: len(desk.receiver.told("began", "state")) == len(processes), 3 + 2 * BUSY_S)
        found = desk.receiver.told("began", "state")[0]
        about(found, "state", "trueup doctor", "trueup.db: the state store")
        with pytest.raises(StateError, match="is locked by another program"):
            check_store(f"sqlite:///{desk.folder}/trueup.db")
        desk.quiet_for(BUSY_S)
        db.execute("ROLLBACK")
    desk.until(lambda: len(desk.receiver.told("ended", "state")) == len(processes), 2 * BUSY_S)
    assert [process.poll() for process in processes] == [None, None]
    one_outage(desk, len(processes))


@pytest.mark.slow
def test_what_a_receiver_that_was_down_has_missed_is_told_later(desk: Desk) -> None:
    """Given that nobody takes messages either, I expect the outage and its end to be told afterwards, in order."""
    desk.declare('state = "1s"')
    desk.run("adopt", "orders")
    desk.start("worker")
    desk.until(desk.writable)
    desk.receiver.status = 500
    with closing(sqlite3.connect(desk.folder / "trueup.db", isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        desk.until(lambda: len(desk.receiver.idents) > 0, 60)
        db.execute("ROLLBACK")
    desk.receiver.status = 200
    desk.receiver.wait("ended", "state", 60)
    assert ["began" if each["data"]["began"] else "ended" for each in desk.receiver.messages] == ["began", "ended"]
    one_outage(desk)
