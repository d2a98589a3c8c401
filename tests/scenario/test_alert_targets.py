"""Targets of alerts: a signed webhook, a service through Apprise, and several processes that tell once together."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.errors import ConfigError, SideError, TrueupError, Unreachable
from trueup.model.alert import Message
from trueup.model.alert_text import notice_of
from trueup.model.condition import Condition, Severity
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock

NOTICE = notice_of(
    Message("m-1", 0, (Condition("overdue", "orders", Severity.CRITICAL, "why", "trueup serve"),)), "shop", "https://r/"
)


class Watcher:
    """Keeps what is posted; `status` is what it answers."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.status = 200
        self.delay_s = 0.0
        self.port = 0


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    found = Watcher()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(found.delay_s)
            found.paths.append(self.path)
            found.bodies.append(json.loads(body))
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(found.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    threading.Thread(target=server.serve_forever).start()
    yield found
    server.shutdown()
    server.server_close()


def test_apprise_hands_the_message_over(watcher: Watcher) -> None:
    """Given an address of a service that Apprise knows, I expect title, text and kind to arrive there."""
    target = trueup.Apprise(f"json://127.0.0.1:{watcher.port}/desk")
    target.send(NOTICE)
    [body] = watcher.bodies
    assert (body["title"], body["type"]) == ("shop: 1 critical", "failure")
    assert body["message"] == "CRITICAL overdue: orders\nwhy.\n→ trueup serve\nhttps://r/overdue.md"
    watcher.status = 500
    with pytest.raises(SideError) as error:
        target.send(NOTICE)
    assert error.value.message == "json did not take the message."


def test_an_address_that_apprise_does_not_know_is_named_without_it() -> None:
    with pytest.raises(SideError) as error:
        trueup.Apprise("nosuch://s3cret@host").send(NOTICE)
    assert error.value.message == "Apprise can't use the address for nosuch."


@pytest.mark.parametrize(("status", "message"), [(302, "answered 302"), (404, "answered 404"), (500, "answered 500")])
def test_a_webhook_takes_nothing_but_acceptance(watcher: Watcher, status: int, message: str) -> None:
    watcher.status = status
    target = trueup.Webhook(f"http://127.0.0.1:{watcher.port}/t0ken", headers={"X-Desk": "1"})
    with pytest.raises(SideError) as error:
        target.send(NOTICE)
    assert error.value.message == f"the webhook at 127.0.0.1 {message}."
    # What was meant for one address is not taken to another.
    assert (watcher.paths, watcher.headers[0]["x-desk"], watcher.headers[0]["webhook-id"]) == (["/t0ken"], "1", "m-1")
    assert "webhook-signature" not in watcher.headers[0]


def test_a_webhook_that_does_not_answer_in_time_is_unreachable(watcher: Watcher) -> None:
    watcher.delay_s = 2
    with pytest.raises(Unreachable) as error:
        trueup.Webhook(f"http://127.0.0.1:{watcher.port}/t0ken", timeout_s=0.2).send(NOTICE)
    assert "t0ken" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: trueup.Webhook("nowhere"), "the webhook's url is no HTTP address."),
        (lambda: trueup.Webhook("https://u:p@h/"), "the webhook's url holds a user or password."),
        (lambda: trueup.Webhook("https://h/", secrets=["%"]), "the webhook at h: the secret is not base64."),
        (lambda: trueup.Webhook("https://h/${NOT_SET_ANYWHERE}"), "the webhook's url: the variable NOT_SET_ANYWHERE"),
        (lambda: trueup.Apprise([]), "an address for Apprise is none."),
    ],
)
def test_a_target_that_is_declared_wrongly_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert error.value.message.startswith(message)


def project(folder: Path, url: str) -> Project:
    made = Project(f"sqlite:///{folder}/state.db")
    rows = [{"id": 1, "name": "a"}]
    made.pair("orders", authority=Memory(rows, key="id"), replica=Memory(rows, key="id"), health={"paused": 0})
    made.alert("desk", trueup.Webhook(url))
    return made


def test_of_several_processes_one_tells(tmp_path: Path, watcher: Watcher) -> None:
    """Given six that look at the same moment, I expect one message of what began and one of its end."""
    watcher.delay_s = 0.2
    made = [project(tmp_path, f"http://127.0.0.1:{watcher.port}/") for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made[0].budgets.pause("orders", "upgrade", "ann")
        list(pool.map(lambda each: each.alerting().send(), made))
        made[0].budgets.resume("orders")
        list(pool.map(lambda each: each.alerting().send(), made))
    assert [body["data"]["title"] for body in watcher.bodies] == ["trueup: 1 warning", "trueup: 1 recovered"]
    for each in made:
        each.close()


class Failing:
    """A target that is told what happens to it."""

    who = "a target of this test"

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.told = list(errors), 0

    def send(self, notice: object) -> None:
        self.told += 1
        if self.errors:
            raise self.errors.pop(0)

    def close(self) -> None:
        pass


def test_trouble_of_one_target_is_not_that_of_another_and_holds_no_secret(tmp_path: Path) -> None:
    made = Project(f"sqlite:///{tmp_path}/state.db", clock=ManualClock())
    made.pair("orders", authority=Memory([{"id": 1}], key="id"), replica=Memory([{"id": 1}], key="id"))
    bad, good = Failing(ValueError("s3cret"), TrueupError("no.")), Failing()
    made.alert("bad", bad)
    made.alert("good", good)
    made.budgets.pause("orders", "x")
    assert isinstance(made.clock, ManualClock)
    made.clock.advance(3_700)
    assert {told.target: told.error for told in made.alerting().send()} == {"bad": "ValueError", "good": None}
    assert made.alerting().send() == []  # not before its time
    for _ in range(2):
        made.clock.advance(60)
        made.alerting().send()
    assert (bad.told, good.told) == (3, 1)
    made.close()


def test_quiet_hours_hold_warnings_and_let_through_what_is_critical(tmp_path: Path) -> None:
    """Given a pause at night and a run that does not start, I expect word of the run, and of the pause at seven."""
    clock = ManualClock()
    made = Project(f"sqlite:///{tmp_path}/state.db", clock=clock)
    for name, sweep in (("orders", None), ("refunds", "10m")):
        sides = [Memory([{"id": 1}], key="id", clock=clock) for _ in range(2)]
        made.pair(name, authority=sides[0], replica=sides[1], sweep=sweep)
    hour = time.gmtime(clock.now_us() / 1e6).tm_hour
    made.alerts(quiet=[f"{hour:02}:00-{(hour + 3) % 24:02}:00"], name="shop")
    target = Failing()
    made.alert("desk", target)
    made.scheduler().declare()
    made.budgets.pause("orders", "x")
    clock.advance(7_000)
    [told] = made.alerting().send()
    assert [each.name for each in told.message.began] == ["overdue"]
    assert made.alerting().send() == []
    clock.advance(4 * 3_600)
    [told] = made.alerting().send()
    assert [each.ident for each in told.message.began] == ["paused orders"]
    made.close()


def test_the_loop_goes_on_whatever_happens_to_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given looks that raise, ours and others, I expect the loop to go on, and word in the end."""
    made = Project(f"sqlite:///{tmp_path}/state.db")
    rows = [{"id": 1}]
    made.pair("orders", authority=Memory(rows, key="id"), replica=Memory(rows, key="id"), health={"paused": 0})
    target = Failing()
    made.alert("desk", target)
    made.alerts(every=0.5, group=0)
    made.budgets.pause("orders", "x")
    troubles: list[Exception] = [ValueError("a bug"), TrueupError("the store is away.")]
    look = made.conditions

    def conditions() -> list[Condition]:
        if troubles:
            raise troubles.pop()
        return look()

    monkeypatch.setattr(made, "conditions", conditions)
    stop = threading.Event()
    thread = threading.Thread(target=made.alerting().serve, args=(stop,))
    thread.start()
    deadline = time.monotonic() + 30
    while not target.told and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.2)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert (target.told, troubles) == (1, [])
    made.close()
