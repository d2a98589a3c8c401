"""Schedules on the command line: `trueup schedule`, `status`, and `trueup serve` in one process or in parts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from trueup.cli.main import main
from trueup.loading import load

CONFIG = """
runs_at_once = 3

[pair.people]
authority = { url = "sqlite:///school.db", table = "people", key = "id", version = "v" }
replica = { url = "sqlite:///platform.db", table = "people", key = "id" }
settle = 0
sweep = "1s"
compare = "0 3 * * *"
compare_changed = "1h"
zone = "Europe/Berlin"
start_jitter = "5m"
blackout = ["Sat 01:00-02:00"]

[pair.other]
authority = { url = "sqlite:///school.db", table = "people", key = "id", version = "v" }
replica = { url = "sqlite:///platform.db", table = "people", key = "id" }
"""


@pytest.fixture
def trueup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line in a folder with a project; answers exit code and output."""
    (tmp_path / "trueup.toml").write_text(CONFIG, "utf-8")
    for name in ("school", "platform"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, v INTEGER)")
            db.execute("INSERT INTO people VALUES (1, 'old', 1)")
            db.commit()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)

    def run(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert run("adopt", "people")[0] == 0
    return run


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "trueup", "serve", *arguments]
    process = subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], pattern: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in iter(process.stdout.readline, ""):
        lines.append(line)
        if re.search(pattern, line):
            return lines
    raise AssertionError("".join(lines))


def stopped(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, out
    return out


def change(name: str, version: int) -> None:
    with closing(sqlite3.connect("school.db")) as db:
        db.execute("UPDATE people SET name = ?, v = ?", (name, version))
        db.commit()


def on_platform() -> str:
    with closing(sqlite3.connect("platform.db")) as db:
        return str(db.execute("SELECT name FROM people").fetchone()[0])


def age(seconds: float) -> None:
    """As if the intervals had been due that long ago. (Lateness of a cron line depends on the time of day.)"""
    with closing(sqlite3.connect("trueup.db")) as db:
        past_us = round((time.time() - seconds) * 1e6)
        db.execute("UPDATE trueup_schedule SET due_us = ?, ready_us = ? WHERE what <> 'compare'", (past_us, past_us))
        db.commit()


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_option_of_the_file_reaches_the_pair(trueup: Any) -> None:
    with load("trueup.toml") as project:
        found = project.pairs["people"].pair.schedules
        assert {what: str(each) for what, each in found.items()} == {
            "sweep": "every 1s", "compare": "0 3 * * * Europe/Berlin", "changed": "every 1h",
        }  # fmt: skip
        assert {each.zone for each in found.values()} == {"Europe/Berlin"}
        assert all(0 <= each.shift_us < 300_000_000 and each.blackout.windows for each in found.values())
        assert project._runs_at_once == 3


def test_a_wrong_schedule_in_the_file_says_what_is_wrong(trueup: Any) -> None:
    Path("trueup.toml").write_text(CONFIG.replace('"0 3 * * *"', '"0 25 * * *"'), "utf-8")
    code, said = trueup("status")
    assert code == 2
    assert "pair people: compare: '0 25 * * *' is not a cron line: its hour is wrong" in said


def test_the_list_says_what_waits_for_a_scheduler(trueup: Any) -> None:
    code, said = trueup("schedule")
    assert code == 0
    assert "people  sweep every 1s: waits for trueup serve" in said
    assert "other" not in said


def test_schedules_can_be_held_and_let_go(trueup: Any) -> None:
    assert "trueup schedule resume people" in trueup("schedule", "pause", "people", "--reason", "month's end")[1]
    said = trueup("status", "people")[1]
    assert said.count(": paused by ") == 3
    assert ": month's end" in said
    assert "in agreement" in said
    trueup("schedule", "resume", "people")
    code, listed = trueup("schedule", "list", "people", "--json")
    schedules = json.loads(listed)["schedules"]
    assert [(each["what"], each["paused_by"]) for each in schedules] == [
        ("sweep", None), ("compare", None), ("changed", None),
    ]  # fmt: skip
    assert code == 0


def test_a_run_can_be_asked_for(trueup: Any) -> None:
    assert trueup("schedule", "now", "people", "--only", "compare") == (0, "people: due now\n")
    assert "compare 0 3 * * * Europe/Berlin: due now" in trueup("schedule")[1]
    trueup("schedule", "pause", "people")
    assert trueup("schedule", "now", "people") == (0, "people: paused, or a run is under way\n")


@pytest.mark.parametrize(("arguments", "says"), [
    (["now", "other"], "pair other has no schedule"),
    (["pause", "nobody"], "there is no pair nobody"),
    (["now", "people", "--only", "everything"], "is not one of"),
])  # fmt: skip
def test_a_schedule_that_is_not_there_is_said(trueup: Any, arguments: list[str], says: str) -> None:
    code, said = trueup("schedule", *arguments)
    assert code == 2
    assert says in said


def test_a_run_that_nobody_starts_is_overdue(trueup: Any) -> None:
    trueup("schedule", "resume", "people")
    age(200)
    assert trueup("status", "people")[0] == 0  # five minutes are nothing
    age(400)
    code, said = trueup("status", "people")
    assert code == 1
    assert "people  overdue" in said
    assert "sweep every 1s: overdue for 6 min" in said
    assert "changed every 1h: due now" in said
    assert "→ trueup serve" in said
    assert trueup("schedule")[0] == 1
    [pair] = json.loads(trueup("status", "people", "--json")[1])["pairs"]
    assert [(each["what"], each["overdue"]) for each in pair["schedules"]] == [
        ("sweep", True), ("compare", False), ("changed", False),
    ]  # fmt: skip
    trueup("pause", "people")
    code, said = trueup("status", "people")
    assert (code, "overdue" in said) == (0, False)


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_serve_starts_runs_and_works_what_they_find(trueup: Any) -> None:
    with serving("--port", "0") as process:
        lines_until(process, "people: sweep in")
        change("new", 2)
        deadline = time.monotonic() + 30
        while on_platform() != "new" and time.monotonic() < deadline:
            time.sleep(0.1)
        assert on_platform() == "new"
        said = stopped(process)
    assert "1 done" in said


@pytest.mark.slow
def test_the_scheduler_alone_leaves_the_work_to_others(trueup: Any) -> None:
    with serving("--only", "scheduler", "--json") as process:
        change("new", 2)
        lines_until(process, '"what": "sweep", "how": "done"')
        lines_until(process, '"what": "sweep", "how": "done"')
        stopped(process)
    assert on_platform() == "old"
    assert "1 job waits, and no worker is alive" in trueup("status", "people")[1]
    with serving("--only", "workers") as process:
        deadline = time.monotonic() + 30
        while on_platform() != "new" and time.monotonic() < deadline:
            time.sleep(0.1)
        said = stopped(process)
    assert on_platform() == "new"
    assert "sweep" not in said


@pytest.mark.slow
def test_after_kill_9_the_next_scheduler_goes_on(trueup: Any) -> None:
    """Given a scheduler that was killed while it held a turn, I expect its run when the claim has ended."""
    with serving("--only", "scheduler") as process:
        lines_until(process, "people: sweep in")
        process.kill()
    with load("trueup.toml") as project:
        [turn] = [each for each in project.archive.turns(["people"]) if each.what == "sweep"]
        project.archive.hasten_turns("people", "sweep")
        [turn] = [each for each in project.archive.turns(["people"]) if each.what == "sweep"]
        assert project.archive.claim_turn(turn, "killed", 1_500_000) is not None
    with serving("--only", "scheduler") as process:
        lines = lines_until(process, "people: sweep in")
        stopped(process)
    assert "stands for" in lines[-1]


@pytest.mark.slow
def test_a_part_that_fails_ends_the_others(trueup: Any) -> None:
    """Given a port that is taken, I expect neither a scheduler nor workers to go on without webhooks."""
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as taken,
        serving("--port", str(taken.getsockname()[1])) as process,
    ):
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 2
        assert "error: can't listen on 127.0.0.1" in out
        assert "Traceback" not in out


def test_a_scheduler_without_schedules_says_so(trueup: Any) -> None:
    Path("trueup.toml").write_text(CONFIG[CONFIG.index("[pair.other]") :], "utf-8")
    code, said = trueup("serve", "--only", "scheduler")
    assert code == 2
    assert "no pair has a schedule" in said
    assert "no pair has a schedule" in trueup("schedule")[1]
