"""What is logged: one JSON object a line, with the event's name and the facts that are declared for it."""

from __future__ import annotations

import ast
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trueup.cli import logs
from trueup.cli.logs import EVENTS, Format, Level, set_up
from trueup.engine.outages import through_outages
from trueup.engine.scheduler import Performed, logged
from trueup.errors import StateError

SOURCES = Path(logs.__file__).parent.parent


class Written:
    """What the program wrote to standard error since."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self.text = capsys, ""

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read().splitlines()]

    def read(self) -> str:
        self.text = self._capsys.readouterr().err
        return self.text


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    root, ours = logging.getLogger(), logging.getLogger("trueup")
    before, level = list(root.handlers), ours.level
    yield Written(capsys)
    root.handlers[:] = before
    ours.setLevel(level)


def test_a_run_that_failed_is_one_object(written: Written) -> None:
    set_up(Format.JSON, Level.WARNING)
    logged(Performed("orders", "sweep", "failed", late_us=1, took_us=2, passed=3, error="Unreachable: no answer"))
    failed, missed = written.objects()
    assert failed | {"time": ""} == {
        "time": "", "level": "error", "logger": "trueup.engine.scheduler", "event": "run_failed", "pair": "orders",
        "what": "sweep", "error": "Unreachable: no answer",
        "message": "pair orders: its sweep failed: Unreachable: no answer",
    }  # fmt: skip
    assert failed["time"].endswith("+00:00")
    assert (missed["event"], missed["missed"]) == ("runs_missed", 3)


def test_the_level_says_how_much(written: Written) -> None:
    set_up(Format.JSON, Level.INFO)
    logged(Performed("orders", "sweep", "done", late_us=1, took_us=2))
    [ended] = written.objects()
    assert {name: ended[name] for name in ("event", "how", "late_us", "took_us")} == {
        "event": "turn_ended", "how": "done", "late_us": 1, "took_us": 2,
    }  # fmt: skip
    set_up(Format.JSON, Level.WARNING)
    logged(Performed("orders", "sweep", "done", late_us=1, took_us=2))
    assert written.objects() == []


def test_text_is_the_message(written: Written) -> None:
    set_up(Format.TEXT, Level.INFO)
    stop = threading.Event()

    def step() -> None:
        stop.set()
        raise StateError("the store is away.")

    through_outages(stop, step, lambda _: None, "work waits")
    assert written.read() == "work waits for 1 s: the store is away.\n"
    assert not logs.for_programs()


def test_foreign_exceptions_are_told_by_their_type(written: Written) -> None:
    set_up(Format.JSON, Level.WARNING)
    try:
        raise ValueError("a value of a record")
    except ValueError:
        logging.getLogger("trueup.x").exception("it broke")
    [said] = written.objects()
    assert (said["event"], said["exception"]) == ("message", "ValueError")
    assert "a value of a record" not in written.text


def test_every_event_that_is_logged_is_declared_with_its_facts() -> None:
    logged_events = {
        name: {key.value for key in node.keys if isinstance(key, ast.Constant)}
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Dict)
        for key, name in [(k, v.value) for k, v in zip(node.keys, node.values, strict=True)
                          if isinstance(k, ast.Constant) and k.value == "event" and isinstance(v, ast.Constant)]
        if isinstance(name, str)
    }  # fmt: skip
    assert set(logged_events) == set(EVENTS)
    for name, facts in logged_events.items():
        assert facts - {"event"} <= set(EVENTS[name])


def test_every_event_is_documented_and_no_other() -> None:
    page = (SOURCES.parent.parent / "docs" / "reference" / "logs.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(EVENTS)
    for name, facts in EVENTS.items():
        assert f"| `{name}` | {', '.join(f'`{each}`' for each in facts)} |" in page
