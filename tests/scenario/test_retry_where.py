"""`trueup retry --where`: which failing records are tried again, after they were shown."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from trueup.cli.main import main
from trueup.model.failing import Failing, FailingFilter, failing
from trueup.model.row import Row, State

MODULE = """
import os
import trueup

project = trueup.Project("sqlite:///state.db", seed=1)
orders = project.pair(
    "orders", authority=trueup.Sql("sqlite:///shop.db", table="orders", key="id", version="rev"),
    unsynced="not synced", mark="synced = true", settle=0, tries=2,
)


@orders.on_change
def push(change):
    if os.environ.get("MENDED"):
        return
    match change.values["id"]:
        case 1:
            raise trueup.Reject("unknown SKU")
        case 2 | 3:
            raise ValueError("no such warehouse")
        case 4:
            raise KeyError("unit")
        case 5:
            raise trueup.Retry("busy", after_s=3600)
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A shop of six orders, of which one went through; answers exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "retrying_shop.py").write_text(MODULE, "utf-8")
    with closing(sqlite3.connect("shop.db")) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, rev INTEGER, synced INTEGER)")
        db.executemany("INSERT INTO orders VALUES (?, 1, 0)", [(each,) for each in range(1, 7)])
        db.commit()

    def trueup(*arguments: str) -> tuple[int, str]:
        code = main(["--project", "retrying_shop", *arguments], standalone=False)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert trueup("run", "orders")[0] == 1
    return trueup


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (["status=rejected"], 1),
        (["status=out-of-tries"], 3),
        (["status=waiting"], 1),
        (["error=valueerror"], 2),
        (["error=unit", "status=out-of-tries"], 1),
        (["error=unit", "status=rejected"], 0),
        (["older=0s"], 5),
        (["older=1h"], 0),
    ],
)
def test_conditions_select(run: Run, where: list[str], count: int) -> None:
    arguments = [each for condition in where for each in ("--where", condition)]
    code, out = run("retry", "orders", *arguments, "--yes", "--json")
    assert (code, json.loads(out)) == (0, {"pair": "orders", "retried": count})


def test_what_is_selected_is_shown_by_kind_and_then_done(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = run("retry", "or*", "--where", "status=out-of-tries", "--yes")
    assert code == 0
    assert "2  orders  out-of-tries  ValueError" in out
    assert "1  orders  out-of-tries  KeyError" in out
    assert "3 records will be tried again" in out
    monkeypatch.setenv("MENDED", "1")
    _, out = run("run", "orders")
    with closing(sqlite3.connect("shop.db")) as db:
        done = [order for (order,) in db.execute("SELECT id FROM orders WHERE synced ORDER BY id")]
    assert done == [2, 3, 4, 6]


def test_nothing_is_done_unless_somebody_says_yes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = run("retry", "orders", "--where", "status=rejected")
    assert code == 2
    assert "--yes" in out
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question: False)
    assert run("retry", "orders", "--where", "status=rejected")[0] == 1
    assert "4 parked" in run("status")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--where", "state=rejected"), "no such condition"),
        (("--where", "status=broken"), "no such status"),
        (("--where", "rejected"), "not NAME=VALUE"),
        (("--where", "older=soon"), "not a duration"),
        (("1", "--where", "status=rejected"), "two ways"),
    ],
)
def test_what_can_not_be_meant_is_said(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out = run("retry", "orders", *arguments)
    assert code == 2
    assert said in out


def test_a_record_that_waits_for_another_does_not_fail() -> None:
    row = Row("p", '["1"]', State.PENDING, last_error="waits for users 7", waits_for='users ["7"]')
    assert failing(row) is None
    assert not FailingFilter().fits(row)
    assert failing(Row("p", '["1"]', State.PENDING, last_error="ValueError: x")) is Failing.WAITING
