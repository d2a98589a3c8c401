"""Somebody is told, once, within the declared time, why and what to type; and once more when it is over.

Real processes, a real receiver on loopback, and faults as they happen: a scheduler that is gone or stands still, a
login that is refused, a source that answers nothing, a worker that dies in a loop, a budget that is full.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from standardwebhooks import Webhook

from services import restartable_postgres

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
# Machines that run tests are slow: what is reported this much after its declared time is still in time.
SLACK_S = 15.0
EVERY_S, GROUP_S = 0.5, 0.5


class Receiver:
    """Takes what is posted, checks who signed it, and keeps it; `status` may refuse."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.messages: list[dict[str, Any]] = []
        self.idents: list[str] = []
        self.calls: list[str] = []
        self.status = 200

    def took(self, path: str, headers: Any, body: bytes) -> int:
        self.calls.append(path)
        if path == "/alerts":
            Webhook(SECRET).verify(body, dict(headers.items()))
            self.idents.append(headers["webhook-id"])
            if self.status == 200:
                self.messages.append(json.loads(body))
        return self.status

    def told(self, what: str, name: str) -> list[dict[str, Any]]:
        """All that was said to have begun, or ended, under this name, with the time of the message."""
        return [
            {**each, "told_at": message["timestamp"]}
            for message in list(self.messages)
            for each in message["data"][what]
            if each["name"] == name
        ]

    def wait(self, what: str, name: str, within_s: float) -> dict[str, Any]:
        """The one condition of this name that began or ended; it has to come in time."""
        deadline = time.monotonic() + within_s + SLACK_S
        while not (found := self.told(what, name)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(found) == 1, (what, name, self.messages)
        return found[0]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(found.took(self.path, self.headers, body))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


class Desk:
    """A project in a folder, and the processes that serve it."""

    def __init__(self, folder: Path, receiver: Receiver, stack: ExitStack) -> None:
        self.folder, self.receiver, self._stack = folder, receiver, stack
        self.variables = os.environ | {"ALERT_SECRET": SECRET, "PYTHONUNBUFFERED": "1"}
        for name in ("shop", "erp"):
            with closing(sqlite3.connect(folder / f"{name}.db")) as db:
                db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER, v INTEGER)")
                db.executemany("INSERT INTO orders VALUES (?, ?, 1)", [(number, number) for number in range(40)])
                db.commit()

    def declare(self, health: str, pair: str = "", more: str = "", authority: str = "sqlite:///shop.db") -> None:
        (self.folder / "trueup.toml").write_text(
            f"""
[health]
{health}

[alerts]
every = {EVERY_S}
group = {GROUP_S}
name = "shop"
runbook = "https://runbook.example/"

[alerts.target.desk]
url = "{self.receiver.url}/alerts"
secrets = ["${{ALERT_SECRET}}"]

[pair.orders]
authority = {{ url = "{authority}", table = "orders", key = "id", version = "v" }}
replica = {{ url = "sqlite:///erp.db", table = "orders", key = "id" }}
settle = 0
{pair}
{more}
""",
            "utf-8",
        )

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "trueup", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, text=True, capture_output=True, check=False)
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trueup", *arguments, "--quiet"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.variables, text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait()

    def at(self, database: str, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / f"{database}.db", timeout=30)) as db:
            db.execute(statement)
            db.commit()

    def until(self, holds: Callable[[], bool], within_s: float = 60) -> None:
        deadline = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def ran(self) -> int:
        """How many runs the scheduler has seen to their end."""
        with closing(sqlite3.connect(self.folder / "trueup.db", timeout=30)) as db:
            return int(db.execute("SELECT count(*) FROM trueup_run WHERE ended = 'done'").fetchone()[0])

    def writable(self) -> bool:
        """Whether nobody stands still who holds the lock of the state: with SQLite nobody else could write then."""
        with closing(sqlite3.connect(self.folder / "trueup.db", timeout=2, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            db.execute("ROLLBACK")
            return True

    def quiet_for(self, seconds: float) -> None:
        """Nothing that was told is told again."""
        count = len(self.receiver.messages)
        time.sleep(seconds)
        assert len(self.receiver.messages) == count


@pytest.fixture
def desk(tmp_path: Path, receiver: Receiver) -> Iterator[Desk]:
    with ExitStack() as stack:
        yield Desk(tmp_path, receiver, stack)


def about(condition: dict[str, Any], name: str, command: str, cause: str) -> None:
    """The right cause, the command that mends it, and the page that says more."""
    assert condition["command"] == command
    assert cause in condition["cause"]
    assert condition["runbook"] == f"https://runbook.example/{name}.md"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_is_gone_or_frozen_is_reported_by_a_worker(desk: Desk, how: signal.Signals) -> None:
    """Given a scheduler that is killed, or stands still, I expect the worker that lives to tell, and of the end."""
    desk.declare('overdue = "4s"\nstuck = "4s"', 'sweep = "1s"')
    desk.run("adopt", "orders")
    scheduler = desk.start("serve", "--only", "scheduler")
    desk.start("worker")
    desk.until(lambda: desk.ran() >= 3)
    # Not in the middle of a run: its lease would have to end first.
    before = desk.ran()
    desk.until(lambda: desk.ran() > before)
    scheduler.send_signal(how)
    while how is signal.SIGSTOP and not desk.writable():
        scheduler.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        scheduler.send_signal(how)
    found = desk.receiver.wait("began", "overdue", 60 + 4)
    about(found, "overdue", "trueup serve --only scheduler", "nobody starts it")
    assert found["severity"] == "critical"
    desk.quiet_for(3)
    if how is signal.SIGSTOP:
        scheduler.send_signal(signal.SIGCONT)
    else:
        desk.start("serve", "--only", "scheduler")
    desk.receiver.wait("ended", "overdue", 60)
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
        found = desk.receiver.wait("began", "unreachable", 2 + 60)
        about(found, "unreachable", "trueup doctor", "fails")
        desk.quiet_for(3)
        admin.execute("ALTER ROLE reader LOGIN")
        desk.run("run", "orders")
        desk.run("schedule", "now", "orders")
        desk.receiver.wait("ended", "unreachable", 90)
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
    found = desk.receiver.wait("began", "few-records", 10)
    about(found, "few-records", "trueup run orders --only compare", "the authority held 0 records")
    assert found["severity"] == "critical"
    desk.quiet_for(3)
    desk.at("shop", "INSERT INTO orders SELECT id - 1000, total, v FROM kept")
    desk.receiver.wait("ended", "few-records", 15)
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
    found = desk.receiver.wait("began", "workers", 30)
    about(found, "workers", "trueup worker", "3 workers died since")
    desk.quiet_for(2)
    desk.receiver.wait("ended", "workers", 30)
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
    found = desk.receiver.wait("began", "budget", 5)
    about(found, "budget", "trueup status orders", "3/hour of erp is used up until")
    assert found["severity"] == "critical"
    desk.quiet_for(3)
    assert desk.receiver.calls.count("/erp") == 3
    worker.terminate()
    worker.wait()
    desk.declare('budget = "1m"', calls, limit.format(1000))
    desk.start("worker")
    desk.receiver.wait("ended", "budget", 10)
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
