"""An outside watcher hears of every run, and no run waits for it."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import trueup
from trueup.errors import ConfigError, RunUnderWay, SideError
from trueup.integrations import ping as pinging
from trueup.model.run import Run
from trueup.project import Project
from trueup.sides.memory import Memory

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """What a watcher hears, in order; the first entry is its address."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            heard.append(f"{self.path} {body}".rstrip())
            self.send_response(500 if "refused" in self.path else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    heard.append(f"http://127.0.0.1:{server.server_port}")
    yield heard
    server.shutdown()
    server.server_close()


def project(folder: Path, address: str) -> Project:
    made = trueup.Project(f"sqlite:///{folder}/state.db")
    rows = [{"id": 1, "name": "a"}]
    made.pair("orders", authority=Memory(rows, key="id"), replica=Memory(rows, key="id"), settle=0, ping=address)
    made.find("orders").adopt()
    return made


def test_start_and_success_of_a_run_carry_its_uuid(tmp_path: Path, calls: list[str]) -> None:
    with project(tmp_path, f"{calls[0]}/check?token=t") as made:
        number = made.find("orders").run().number
        made.find("orders").run(dry_run=True)
    start, success = calls[1:]  # neither adopt nor a dry run said a word
    assert (found := re.fullmatch(rf"/check/start\?token=t&rid=({UUID})", start))
    assert success == f"/check?token=t&rid={found[1]} run {number}: exit code 0"


def test_a_run_that_fails_says_so_without_its_message(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with project(tmp_path, f"{calls[0]}/check") as made:

        def scan(*_: object, **__: object) -> None:
            raise SideError("Zoë owes 12.50")

        monkeypatch.setattr(made.find("orders").pair.authority, "scan", scan)
        with pytest.raises(SideError):
            made.find("orders").run()
    assert re.fullmatch(rf"/check/fail\?rid={UUID} SideError", calls[-1])


def test_a_run_that_finds_another_under_way_is_silent(tmp_path: Path, calls: list[str]) -> None:
    with project(tmp_path, f"{calls[0]}/check") as made:
        assert made.archive.begin_run(Run("orders", "run", 1), "other", 60_000_000)
        with pytest.raises(RunUnderWay):
            made.find("orders").run()
    assert calls[1:] == []


def test_a_run_does_not_wait_for_a_watcher_that_does_not_answer(tmp_path: Path) -> None:
    """Given a watcher that accepts connections and says nothing, I expect a run to take no longer, and a count."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        made = project(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}/check")
        began = time.monotonic()
        made.find("orders").run()
        took_s = time.monotonic() - began
        made.close()
    assert took_s < pinging.TIMEOUT_S
    assert time.monotonic() - began < pinging.TIMEOUT_S * 2 + pinging.LAST_S
    with project_again(tmp_path) as made:
        pulse = made.archive.pulses(["orders"])["orders"]
        assert pulse.pings_failed >= 1
        assert re.fullmatch(r"the watcher at 127.0.0.1 does not answer \(TimeoutError\)\.", pulse.ping_error)


def project_again(folder: Path) -> Project:
    return trueup.Project(f"sqlite:///{folder}/state.db")


def test_pings_that_are_refused_become_a_condition_until_one_arrives(tmp_path: Path, calls: list[str]) -> None:
    with project(tmp_path, f"{calls[0]}/refused") as made:
        for _ in range(2):
            made.find("orders").run()
    with project(tmp_path, f"{calls[0]}/check") as made:
        [condition] = made.conditions()
        assert (condition.name, condition.subject) == ("pings", "orders")
        assert condition.cause.endswith("the watcher at 127.0.0.1 answered 500")
        made.find("orders").run()
    with project(tmp_path, f"{calls[0]}/check") as made:
        assert made.conditions() == []


def test_more_pings_than_there_is_room_for_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[str, str | None]] = []
    busy, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        busy.set()
        go_on.wait(10)

    monkeypatch.setattr(pinging, "post", slow)
    monkeypatch.setattr(pinging, "ROOM", 2)
    pinger = pinging.Pinger(lambda pair, error: noted.append((pair, error)))
    pings = pinging.PairPings("orders", "http://watch.example/x", pinger)
    pings.started("")
    assert busy.wait(10)
    for _ in range(5):  # two wait, three find no room
        pings.started("")
    go_on.set()
    pinger.close()
    assert [error for _, error in noted].count(None) == 3
    assert [error for _, error in noted if error].count("2 pings waited already") == 3


@pytest.mark.parametrize("address", ["ftp://x/y", "https://user:pass@x/y", "x"])
def test_an_address_that_is_none_is_refused_without_repeating_it(tmp_path: Path, address: str) -> None:
    with project(tmp_path, address) as made, pytest.raises(ConfigError) as error:
        made.find("orders").run()
    assert "pass" not in error.value.message.replace("password", "")
