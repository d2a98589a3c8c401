"""Somebody is told, once, within the declared time, why and what to type; and once more when it is over.

Real processes, a real receiver on loopback, and faults as they happen: a scheduler that is gone or stands still, a
login that is refused, a source that answers nothing, a worker that dies in a loop, a budget that is full.
"""

from __future__ import annotations

import datetime as dt
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from desk import EVERY_S, GROUP_S, SLACK_S, Desk, Receiver, about, opened

from services import restartable_postgres
from trueup.model.presence import SILENT_US


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened(tmp_path) as desk:
        yield desk


# From a condition's beginning to word of it: somebody looks, and what comes about that moment is one message.
TOLD_S = EVERY_S + GROUP_S


def in_time(condition: dict[str, Any], after_s: float) -> None:
    """By its own account it was told no sooner after it began than declared, and hardly later."""
    told = dt.datetime.fromisoformat(condition["told_at"]).timestamp()  # whole seconds
    waited_s = told - condition["since_us"] / 1e6
    assert after_s - 1 < waited_s <= after_s + TOLD_S + SLACK_S, condition


def stopped(desk: Desk, process: subprocess.Popen[str]) -> None:
    """Stops a scheduler where it stands between two runs, and holds no lock: else a lease would have to end first."""
    process.send_signal(signal.SIGSTOP)
    while not (desk.writable() and between_runs(desk)):
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)


def between_runs(desk: Desk) -> bool:
    with closing(sqlite3.connect(desk.folder / "trueup.db", timeout=30)) as db:
        return not db.execute("SELECT count(*) FROM trueup_schedule WHERE owner <> ''").fetchone()[0]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_is_gone_or_frozen_is_reported_by_a_worker(desk: Desk, how: signal.Signals) -> None:
    """Given a scheduler that is killed, or stands still, I expect the worker that lives to tell, and of the end."""
    desk.declare('overdue = "4s"\nstuck = "4s"', 'sweep = "1s"')
    desk.run("adopt", "orders")
    scheduler = desk.start("serve", "--only", "scheduler")
    desk.start("worker")
    desk.until(lambda: desk.ran() >= 3)
    stopped(desk, scheduler)
    scheduler.send_signal(how)
    found = desk.receiver.wait("began", "overdue", 1 + 4 + TOLD_S)
    about(found, "overdue", "trueup serve --only scheduler", "nobody starts it")
    in_time(found, 4)
    assert found["severity"] == "critical"
    desk.quiet_for(3)
    if how is signal.SIGSTOP:
        scheduler.send_signal(signal.SIGCONT)
    else:
        desk.start("serve", "--only", "scheduler")
    desk.receiver.wait("ended", "overdue", 1 + TOLD_S)
    assert len(desk.receiver.told("began", "overdue")) == 1


@pytest.mark.slow
@pytest.mark.postgres
def test_a_login_that_is_refused_is_reported(desk: Desk) -> None:
    """Given that the authority's role may no longer log in, I expect one word of it, and one when it may again."""
    with restartable_postgres() as server, psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE reader LOGIN PASSWORD 'open-sesame'")
        admin.execute("CREATE TABLE orders (id bigint PRIMARY KEY, total bigint, v bigint)")
        admin.execute("INSERT INTO orders SELECT n, n, 1 FROM generate_series(0, 39) n")
        admin.execute("GRANT SELECT ON orders TO reader")
        host = f"{admin.info.host}:{admin.info.port}/{admin.info.dbname}"
        # A role that is not there any more is refused whatever the server takes for a password.
        desk.declare('trouble = "2s"', 'compare = "1s"', authority=f"postgresql://reader:open-sesame@{host}")
        desk.run("adopt", "orders")
        desk.start("serve", "--only", "scheduler")
        desk.until(lambda: desk.ran() >= 2)
        admin.execute("ALTER ROLE reader NOLOGIN")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
        found = desk.receiver.wait("began", "unreachable", 1 + 2 + TOLD_S)
        about(found, "unreachable", "trueup doctor", "fails")
        in_time(found, 2)
        desk.quiet_for(3)
        admin.execute("ALTER ROLE reader LOGIN")
        desk.run("run", "orders")
        desk.run("schedule", "now", "orders")
        desk.receiver.wait("ended", "unreachable", TOLD_S)
    assert len(desk.receiver.told("began", "unreachable")) == 1
    assert "open-sesame" not in json.dumps(desk.receiver.messages)


@pytest.mark.slow
def test_a_source_that_answers_nothing_is_reported(desk: Desk) -> None:
    desk.declare('drift = "1h"', 'compare = "1s"')
    desk.run("adopt", "orders")
    desk.start("serve", "--only", "scheduler")
    desk.until(lambda: desk.ran() >= 2)
    desk.at("shop", "UPDATE orders SET id = id + 1000")
    desk.at("shop", "CREATE TABLE kept AS SELECT * FROM orders")
    desk.at("shop", "DELETE FROM orders")
    found = desk.receiver.wait("began", "few-records", 1 + TOLD_S)
    about(found, "few-records", "trueup run orders --only compare", "the authority held 0 records")
    assert found["severity"] == "critical"
    in_time(found, 0)
    desk.quiet_for(3)
    desk.at("shop", "INSERT INTO orders SELECT id - 1000, total, v FROM kept")
    desk.receiver.wait("ended", "few-records", 1 + TOLD_S)
    assert len(desk.receiver.told("began", "few-records")) == 1


@pytest.mark.slow
def test_workers_that_die_in_a_loop_are_reported(desk: Desk) -> None:
    """Given three workers that are killed one after the other, I expect the scheduler's process to tell."""
    desk.declare('deaths = 3\ndeaths_within = "30s"\noverdue = "1h"', 'sweep = "1h"')
    desk.run("adopt", "orders")
    desk.start("serve", "--only", "scheduler")
    for number in range(1, 4):
        worker = desk.start("worker")
        desk.until(lambda known=number: presences(desk) >= known)
        worker.kill()
    found = desk.receiver.wait("began", "workers", SILENT_US / 1e6 + TOLD_S)
    about(found, "workers", "trueup worker", "3 workers died since")
    desk.quiet_for(2)
    ended = desk.receiver.wait("ended", "workers", 30 - SILENT_US / 1e6 + TOLD_S)
    in_time(ended, 30)
    assert len(desk.receiver.told("began", "workers")) == 1


def presences(desk: Desk) -> int:
    with closing(sqlite3.connect(desk.folder / "trueup.db", timeout=30)) as db:
        return int(db.execute("SELECT count(*) FROM trueup_worker").fetchone()[0])


@pytest.mark.slow
def test_a_budget_that_is_full_is_reported(desk: Desk) -> None:
    """Given a limit of three calls an hour and five changes, I expect word that it is used up, and of its end."""
    calls = f"""
handler = {{ url = "{desk.receiver.url}/erp", secrets = ["${{ALERT_SECRET}}"] }}
system = "erp"
"""
    limit = '[system.erp]\nlimit = "{}/hour"\nreserve = 0'
    desk.declare('budget = "1m"', calls, limit.format(3))
    desk.run("adopt", "orders")
    worker = desk.start("worker")
    offer = "import trueup; p = trueup.load('trueup.toml').find('orders');"
    offer += "p.offer([{'id': n, 'total': n + 1, 'v': 2} for n in range(5)])"
    desk.at("shop", "UPDATE orders SET total = total + 1, v = 2 WHERE id < 5")
    subprocess.run([sys.executable, "-W", "ignore", "-c", offer], cwd=desk.folder, env=desk.variables, check=True)
    desk.until(lambda: desk.receiver.calls.count("/erp") == 3)
    found = desk.receiver.wait("began", "budget", TOLD_S)
    about(found, "budget", "trueup status orders", "3/hour of erp is used up until")
    assert found["severity"] == "critical"
    desk.quiet_for(3)
    assert desk.receiver.calls.count("/erp") == 3
    worker.terminate()
    worker.wait()
    desk.declare('budget = "1m"', calls, limit.format(1000))
    desk.start("worker")
    desk.receiver.wait("ended", "budget", TOLD_S)
    assert len(desk.receiver.told("began", "budget")) == 1


@contextmanager
def refusing(receiver: Receiver) -> Iterator[None]:
    receiver.status = 500
    yield
    receiver.status = 200


@pytest.mark.slow
def test_cron_tells_what_a_receiver_that_was_down_has_missed_once(desk: Desk) -> None:
    """Given no process that lives and a receiver that is down, I expect `alerts send` to tell it later, once."""
    desk.declare('overdue = "1s"', 'sweep = "1s"')
    desk.run("adopt", "orders")
    assert "target desk" in desk.run("alerts", "list")
    desk.run("schedule", "now", "orders")
    time.sleep(1.5)
    with refusing(desk.receiver):
        assert "answered 500" in desk.run("alerts", "send")
    assert "1 delivery failed" in desk.run("alerts", "list")
    desk.until(lambda: "told of 1 condition" in desk.run("alerts", "send"), 30)
    # Every attempt was the same message, for whoever counts them by their id.
    assert len(set(desk.receiver.idents)) == 1
    assert "nothing changed" in desk.run("alerts", "send")
    desk.run("schedule", "pause", "orders")
    assert "1 recovered" in desk.run("alerts", "send")
    assert [len(desk.receiver.told(what, "overdue")) for what in ("began", "ended")] == [1, 1]
