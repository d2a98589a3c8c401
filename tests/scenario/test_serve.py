"""`trueup serve` and `trueup worker` as real processes: a webhook becomes a write, and a stop is graceful."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

CONFIG = """
[system.platform]
limit = "600/minute"

[pair.people]
authority = { url = "sqlite:///school.db", table = "people", key = "id", version = "v" }
replica = { url = "sqlite:///platform.db", table = "people", key = "id" }
settle = 0
system = "platform"

[source.school]
style = "github"
secrets = ["${SCHOOL_SECRET}"]

[[source.school.events]]
pair = "people"
values = { id = "person.id", name = "person.name", v = "person.v" }
"""
VARIABLES = {"SCHOOL_SECRET": "between-us", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trueup.toml").write_text(CONFIG, "utf-8")
    for name in ("school", "platform"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER)")
            db.execute("INSERT INTO people VALUES (1, 'old', 1)")
            db.commit()
    return tmp_path


@contextmanager
def running(folder: Path, *arguments: str, variables: Mapping[str, str] = VARIABLES) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | variables
    command = [sys.executable, "-m", "trueup", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=30)
    return process.returncode, out + error


def on_platform(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "platform.db")) as db:
        return str(db.execute("SELECT name FROM people WHERE id = 1").fetchone()[0])


def wait_for_name(folder: Path, name: str) -> None:
    deadline = time.monotonic() + 30
    while on_platform(folder) != name and time.monotonic() < deadline:
        time.sleep(0.05)
    assert on_platform(folder) == name


def post(url: str, body: bytes, secret: bytes = b"between-us") -> int:
    signature = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
    request = urllib.request.Request(
        url, body, {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": body.hex()[:20]}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def change(folder: Path, name: str, version: int) -> None:
    with closing(sqlite3.connect(folder / "school.db")) as db:
        db.execute("UPDATE people SET name = ?, v = ?", (name, version))
        db.commit()


@pytest.mark.slow
def test_a_webhook_becomes_a_write_and_a_stop_is_graceful(folder: Path) -> None:
    with running(folder, "serve", "--port", "0") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http://\S+/events/", line)))
        change(folder, "new", 2)
        assert post(url + "school", b'{"person": {"id": 1, "name": "new", "v": 2}}') == 200
        wait_for_name(folder, "new")
        assert post(url + "school", b'{"person": {"id": 1, "name": "stale", "v": 1}}') == 200
        assert post(url + "school", b'{"person": {"id": 1, "name": "forged", "v": 9}}', b"wrong") == 401
        time.sleep(0.3)
        assert on_platform(folder) == "new"
        code, said = stopped(process)
    assert code == 0, said
    assert "1 done" in said


@pytest.mark.slow
def test_a_worker_works_what_is_due_and_stops_on_sigterm(folder: Path) -> None:
    with running(folder, "worker") as process:
        assert process.stdout is not None
        assert "working" in process.stdout.readline()
        change(folder, "offered", 3)
        offer = "import trueup; trueup.load('trueup.toml').find('people').offer({'id': 1, 'name': 'offered', 'v': 3})"
        environment = os.environ | {"SCHOOL_SECRET": "x"}
        subprocess.run([sys.executable, "-W", "ignore", "-c", offer], cwd=folder, env=environment, check=True)
        wait_for_name(folder, "offered")
        code, said = stopped(process)
    assert code == 0, said
    assert "stopped: 1 done" in said


@pytest.mark.slow
def test_pause_holds_the_work_until_resume(folder: Path) -> None:
    def trueup(*arguments: str) -> str:
        environment = os.environ | {"SCHOOL_SECRET": "x"}
        command = [sys.executable, "-m", "trueup", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True).stdout

    trueup("adopt", "people")
    assert "trueup resume platform" in trueup("pause", "platform", "--reason", "upgrade")
    change(folder, "later", 4)
    trueup("run", "people")
    assert on_platform(folder) == "old"
    assert "upgrade" in trueup("status")
    trueup("resume", "platform")
    trueup("run", "people")
    assert on_platform(folder) == "later"
