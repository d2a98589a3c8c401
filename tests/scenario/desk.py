"""A project in a folder, processes that serve it, and a receiver on loopback that hears what people are told."""

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

from standardwebhooks import Webhook

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


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens as long as the context."""

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
    try:
        yield found
    finally:
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

    def declare(
        self, health: str, pair: str = "", more: str = "", *, authority: str = "sqlite:///shop.db",
        state: str = "sqlite:///trueup.db",
    ) -> None:  # fmt: skip
        (self.folder / "trueup.toml").write_text(
            f"""
state = "{state}"

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


@contextmanager
def opened(folder: Path) -> Iterator[Desk]:
    """A desk in this folder, whose processes end with the context."""
    with receiving() as receiver, ExitStack() as stack:
        yield Desk(folder, receiver, stack)


def about(condition: dict[str, Any], name: str, command: str, cause: str) -> None:
    """The right cause, the command that mends it, and the page that says more."""
    assert condition["command"] == command
    assert cause in condition["cause"]
    assert condition["runbook"] == f"https://runbook.example/{name}.md"
