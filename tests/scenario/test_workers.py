"""Workers as others see them: who lives, who died, what a working process shows."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.cli.main import main
from trueup.engine.presence import alive
from trueup.model.presence import BEAT_S, SILENT_US, Presence

PROJECT = """
import time
import trueup

project = trueup.Project("sqlite:///state.db")
side = trueup.Sql("sqlite:///school.db", table="people", key="id", version="v")
people = project.pair("people", authority=side, settle=0)


@people.on_change
def handle(change):
    time.sleep(0.01)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people_project.py").write_text(PROJECT, "utf-8")
    with closing(sqlite3.connect(tmp_path / "school.db")) as db:
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, v INTEGER)")
        db.executemany("INSERT INTO people VALUES (?, 1)", [(at,) for at in range(40)])
        db.commit()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Iterator[trueup.Project]:
    sys.modules.pop("people_project", None)
    with trueup.load("people_project") as loaded:
        yield loaded


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "trueup", "-p", "people_project", *arguments]
    chosen: dict[str, Any] = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    process = subprocess.Popen(command, **chosen)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(true: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert true()


def offer(project: trueup.Project, count: int = 40) -> None:
    project.find("people").offer([{"id": at, "v": 1} for at in range(count)])


def status(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    main(["-p", "people_project", "status", *arguments], standalone=False)
    return capsys.readouterr().out


def done(project: trueup.Project) -> int:
    return project.ledger.counts("people")["idle"]


# ── presence ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_status_tells_a_living_worker_from_a_dead_one(
    project: trueup.Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("worker", "--threads", "3") as process:
        until(project.workers)
        [worker] = project.workers()
        assert (worker.pid, worker.threads, worker.pairs, worker.stays) == (process.pid, 3, ("people",), True)
        shown = status(capsys=capsys)
        assert f"pid {process.pid}  alive for" in shown
        assert "no worker" not in shown
        process.kill()
        process.wait()
    offer(project)
    now_us = project.ledger.now_us()
    assert alive(project.archive, now_us, "people") == [worker]  # nobody can know yet
    monkeypatch.setattr(type(project.ledger), "now_us", lambda self: now_us + SILENT_US + 10_000_000)
    shown = status(capsys=capsys)
    assert f"pid {process.pid}  dead since" in shown
    assert "40 jobs wait, and no worker is alive: start one with `trueup worker`" in shown
    [told] = json.loads(status("--json", capsys=capsys))["workers"]
    assert (told["pid"], told["alive"], told["pairs"]) == (process.pid, False, ["people"])


@pytest.mark.slow
def test_a_worker_that_is_stopped_takes_its_leave(project: trueup.Project) -> None:
    with running("worker") as process:
        until(project.workers)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert project.workers() == []


def test_jobs_that_wait_without_a_worker_are_said(project: trueup.Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no worker" not in status(capsys=capsys)
    offer(project, 1)
    assert "1 job waits, and no worker is alive: start one with `trueup worker`" in status(capsys=capsys)


def test_a_worker_of_other_pairs_does_not_count(project: trueup.Project, capsys: pytest.CaptureFixture[str]) -> None:
    offer(project, 2)
    project.archive.beat(Presence("x", "host", 1, 2, ("orders",), stays=True))
    assert "2 jobs wait, and no worker is alive" in status(capsys=capsys)


def test_a_worker_inside_a_program_beats_too(project: trueup.Project) -> None:
    stop = threading.Event()
    serving = threading.Thread(target=project.worker(threads=2).serve, args=(stop,))
    serving.start()
    try:
        offer(project)
        until(lambda: done(project) == 40)
        [worker] = project.workers()
        assert worker.pid == os.getpid()
        until(lambda: project.workers()[0].ended == 40, BEAT_S * 3)
    finally:
        stop.set()
        serving.join()
    assert project.workers() == []


def test_a_run_is_seen_while_it_works_but_nobody_relies_on_it() -> None:
    seen = []
    with trueup.Project("memory:") as project:
        side = trueup.Memory([{"id": 1, "v": 1}], key="id", version="v")
        people = project.pair("people", authority=side, settle=0)

        @people.on_change
        def handle(change: trueup.Change) -> None:
            seen.append((project.workers(), alive(project.archive, project.ledger.now_us())))

        people.offer({"id": 1, "v": 1})
        people.run()
        [(workers, relied_on)] = seen
        assert [each.stays for each in workers] == [False]
        assert relied_on == []
        assert project.workers() == []


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_programs_read_an_object_at_each_interval(project: trueup.Project) -> None:
    with running("worker", "--json", "--every", "0.2") as process:
        until(project.workers)
        offer(project)
        until(lambda: done(project) == 40)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=30)
        assert process.returncode == 0, error
    *looks, last = [json.loads(each) for each in out.splitlines()]
    assert len(looks) >= 3
    assert all(set(each) == {"at_us", "jobs_per_s", "ended", "pairs", "paused"} for each in looks)
    assert looks[-1]["ended"] == {"done": 40}
    assert looks[-1]["jobs_per_s"] > 0
    assert last == {"stopped": True, "ended": {"done": 40}}


@pytest.mark.slow
def test_a_log_gets_a_line_where_something_ended(project: trueup.Project) -> None:
    with running("worker", "--every", "0.3") as process:
        until(project.workers)
        time.sleep(0.7)
        offer(project)
        until(lambda: done(project) == 40)
        time.sleep(0.8)
        process.send_signal(signal.SIGTERM)
        lines = process.communicate(timeout=30)[0].splitlines()
    assert lines[0] == "working; stop with Ctrl-C"
    assert lines[-1] == "stopped: 40 done"
    assert len(lines) < 8
    assert all(re.fullmatch(r"so far: [\d,]+ done; [\d.]+ jobs/s; \d+ pending", each) for each in lines[1:-1])


@pytest.mark.slow
def test_a_terminal_shows_what_is_done_and_what_waits(project: trueup.Project) -> None:
    project.budgets.pause("people", "upgrade")
    offer(project)
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    shown = ""
    with running("worker", stdout=theirs, stderr=theirs, stdin=theirs, env=environment, text=False) as process:
        os.close(theirs)

        def reads(pattern: str) -> bool:
            nonlocal shown
            while select.select([ours], [], [], 0.1)[0]:
                try:
                    shown += os.read(ours, 65_536).decode()
                except OSError:  # the other end is closed
                    break
            return re.search(pattern, shown) is not None

        until(lambda: reads("people  40 pending, due for "))
        assert "people is paused until trueup resume people: upgrade" in shown
        project.budgets.resume("people")
        until(lambda: reads("40 done"))
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert process.returncode == 0
        assert reads("stopped: 40 done")
    os.close(ours)
