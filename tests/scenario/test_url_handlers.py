"""Handlers that are signed URLs, with a real receiver on loopback: every answer, trouble, and once only."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from test_serve import running, stopped

import trueup
from api import Api, Call, Reply, serving
from school import COLUMNS, School, key, person
from trueup.errors import ConfigError
from trueup.integrations.url import Url
from trueup.integrations.url_answer import REFUSED
from trueup.integrations.url_handler import ANSWER_MAX
from trueup.model.row import State
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_SECRET = "whsec_b2xkIHNlY3JldCwgc3RpbGwga25vd24="


class Receiver(Api):
    """Takes changes once each, by their ids; `answers` may say something else."""

    def __init__(self) -> None:
        super().__init__()
        self.done: dict[str, Any] = {}
        self.answers: Callable[[Call], Reply | None] = lambda call: None

    def answer(self, call: Call) -> Reply:
        self.calls.append(call)
        said = self.answers(call)
        if said is None or said.status // 100 == 2:
            for change in changes_in(call):
                self.done.setdefault(change["id"], change)
        return said or Reply(200)


def changes_in(call: Call) -> list[Any]:
    data = call.json["data"]
    return data if isinstance(data, list) else [data]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving(Receiver()) as api:
        assert isinstance(api, Receiver)
        yield api


class Wired:
    """A school without a replica whose handler is the receiver."""

    def __init__(self, receiver: Receiver, *, batch: int | None = None, timeout_s: float = 5.0, **options: Any) -> None:
        self.receiver = receiver
        self.clock = ManualClock()
        self.project = trueup.Project("memory:", clock=self.clock, seed=3, threads=1)
        rows = [person(at) for at in range(1, 6)]
        self.authority = Memory(rows, key="id", version="v", columns=COLUMNS, clock=self.clock)
        self.pair = self.project.pair("people", authority=self.authority, **({"settle": 0} | options))
        self.pair.on("*", batch=batch)(Url(receiver.url + "/hook?token=in-the-url", [SECRET], timeout_s))
        self.pair.run()

    def change(self, *idents: int) -> None:
        for ident in idents:
            values = person(ident, name="changed", v=100)
            self.authority.put(values)
            self.pair.offer(values)

    def work(self) -> None:
        self.project.worker().once(self.project.chance())

    def row(self, ident: int = 1) -> Any:
        return self.project.ledger.rows("people", [key(ident)])[key(ident)]

    def health(self) -> Any:
        return self.project.budgets.health("people")

    def once(self, reply: Reply | None, ident: int = 1) -> Any:
        """The row after one call that was answered like this."""
        self.receiver.answers = lambda call: reply
        self.change(ident)
        self.work()
        return self.row(ident)


@pytest.fixture
def wired(receiver: Receiver) -> Iterator[Wired]:
    wired = Wired(receiver)
    yield wired
    wired.project.close()


# What is sent


def test_a_change_is_posted_with_a_schema_that_is_promised(wired: Wired, receiver: Receiver) -> None:
    wired.change(1)
    wired.work()
    [call] = receiver.calls
    assert (call.method, call.path, call.query) == ("POST", "/hook", {"token": "in-the-url"})
    assert call.headers["content-type"] == "application/json"
    change = call.json["data"]
    assert call.json["type"] == "trueup.change"
    assert change == {
        "id": call.headers["webhook-id"], "pair": "people", "key": {"id": "1"}, "action": "upsert", "version": 100,
        "values": {"id": 1, "name": "changed", "fee": Decimal("1.5"), "status": "registered", "v": 100},
        "attempt": 1,
    }  # fmt: skip
    assert b'"fee":1.5,' in call.body, "numbers are exact"
    assert wired.row().done_version == 100


def test_a_delete_has_a_key_and_no_values(wired: Wired, receiver: Receiver) -> None:
    wired.authority.remove(2)
    wired.pair.offer({"id": 2}, deleted=True)
    wired.work()
    [change] = changes_in(receiver.calls[0])
    assert (change["action"], change["key"], change["values"]) == ("delete", {"id": "2"}, {})


@pytest.mark.parametrize("secrets", [[SECRET], [OLD_SECRET, SECRET], [SECRET, OLD_SECRET]])
def test_the_library_of_standard_webhooks_accepts_what_we_sign(
    receiver: Receiver, secrets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", secrets[0])
    with trueup.Project("memory:", threads=1) as project:
        rows = [{"id": 1, "name": "Žofie", "v": 1}]
        pair = project.pair("people", authority=Memory(rows, key="id", version="v"), settle=0)
        pair.on_change(Url(receiver.url, ["${HOOK_SECRET}", *secrets[1:]], headers={"Authorization": "${HOOK_SECRET}"}))
        pair.offer(rows[0])
        pair.run()
    [call] = receiver.calls
    assert Webhook(SECRET).verify(call.body, dict(call.headers))["data"]["values"]["name"] == "Žofie"
    assert call.headers["authorization"] == secrets[0]


# Every answer


DONE = [
    Reply(200), Reply(204), Reply(202, {"ok": True}), Reply(200, []), Reply(200, raw=b"null"),
    Reply(200, {"outcome": "done"}), Reply(200, raw=b"OK", headers={"Content-Type": "text/plain"}),
]  # fmt: skip


@pytest.mark.parametrize("reply", DONE)
def test_2xx_is_done(wired: Wired, reply: Reply) -> None:
    row = wired.once(reply)
    assert (row.state, row.done_version) == (State.IDLE, 100)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"outcome": "reject", "reason": "unknown SKU"}),
        Reply(422, {"reason": "unknown SKU"}),
        Reply(413, {"reason": "unknown\nSKU" + " " * 500}),
    ],
)
def test_a_refusal_parks_the_record_with_its_reason(wired: Wired, reply: Reply) -> None:
    row = wired.once(reply)
    assert (row.state, row.rejected, row.park_reason) == (State.PARKED, True, "rejected: unknown SKU")
    assert wired.health().probes == 0


def test_a_refusal_without_a_reason_names_the_receiver(wired: Wired) -> None:
    assert wired.once(Reply(422)).park_reason == "rejected: the handler at 127.0.0.1 refuses it (422)"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"outcome": "retry", "after_s": 30, "reason": "busy"}),
        Reply(200, raw=b'{"outcome": "retry", "after_s": 30.0, "reason": "busy"}'),
    ],
)
def test_retry_waits_as_long_as_it_says(wired: Wired, reply: Reply) -> None:
    row = wired.once(reply)
    assert (row.state, row.tries, row.last_error) == (State.PENDING, 1, "busy")
    assert 30_000_000 <= row.due_at - wired.clock.now_us() < 36_000_000


def test_wait_for_sleeps_until_the_other_record_is_done(wired: Wired) -> None:
    row = wired.once(Reply(200, {"outcome": "wait_for", "pair": "people", "key": 2}))
    assert (row.waits_for, row.tries) == ('people ["2"]', 0)
    assert wired.once(None, 2).done_version == 100
    assert wired.row(1).due_at <= wired.clock.now_us()


@pytest.mark.parametrize("status", [400, 402, 406, 409, 415, 423, 425])
def test_any_other_4xx_is_tried_again_and_parked_at_last(wired: Wired, status: int) -> None:
    row = wired.once(Reply(status))
    assert (row.state, row.tries, row.last_error) == (
        State.PENDING, 1, f"the handler at 127.0.0.1 answered {status}",
    )  # fmt: skip
    assert wired.health().probes == 0
    for _ in range(10):
        wired.clock.advance(4_000)
        wired.work()
    row = wired.row()
    assert (row.state, row.rejected, row.tries) == (State.PARKED, False, 5)
    assert [each["attempt"] for call in wired.receiver.calls for each in changes_in(call)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, raw=b'{"outcome": "ret'),
        Reply(200, {"outcome": "perhaps"}),
        Reply(200, {"outcome": "retry", "after_s": -1}),
        Reply(200, {"outcome": "retry", "after_s": "soon"}),
        Reply(200, {"outcome": "retry", "after_s": 1e300}),
        Reply(200, {"outcome": "wait_for", "pair": "people", "key": [{}]}),
        Reply(200, {"outcome": "wait_for", "pair": "people"}),
        Reply(200, {"outcomes": []}),
        Reply(200, {"outcomes": {"somebody": {"outcome": "done"}}}),
        Reply(200, raw=b'{"outcome": "done", "x": "' + b"x" * ANSWER_MAX + b'"}'),
    ],
)
def test_an_answer_that_can_t_be_understood_is_not_done(wired: Wired, reply: Reply) -> None:
    row = wired.once(reply)
    assert (row.state, row.tries, row.done_version) == (State.PENDING, 1, None)
    assert "the handler at 127.0.0.1" in row.last_error
    assert wired.health().probes == 0


TROUBLE = [
    *(Reply(status) for status in (401, 403, 404, 405, 408, 410, 500, 502, 503, 504)),
    Reply(301, headers={"Location": "/elsewhere"}), Reply(307, headers={"Location": "/elsewhere"}), Reply(drop=True),
    Reply(200, raw=b"<!doctype html><title>Log in</title>", headers={"Content-Type": "text/html"}),
]  # fmt: skip


@pytest.mark.parametrize("reply", TROUBLE)
def test_trouble_of_the_receiver_pauses_it_and_charges_nobody(wired: Wired, reply: Reply) -> None:
    wired.receiver.answers = lambda call: reply
    wired.change(1, 2, 3)
    wired.work()
    assert len(wired.receiver.calls) == 1, "the first trouble ends the batch, and no redirect is followed"
    assert wired.health().probes == 1
    wired.work()
    assert len(wired.receiver.calls) == 1, "a paused system is not called"
    for _ in range(9):
        wired.clock.advance(400)
        wired.work()
    assert len(wired.receiver.calls) == 10, "one job probes after each pause"
    assert [wired.row(ident).tries for ident in (1, 2, 3)] == [0, 0, 0]
    wired.receiver.answers = lambda call: None
    wired.project.worker().drain(10_000_000_000)
    assert [wired.row(ident).done_version for ident in (1, 2, 3)] == [100] * 3
    assert wired.health().probes == 0


def test_a_receiver_that_is_not_there_pauses_too(wired: Wired) -> None:
    project = trueup.Project("memory:", clock=wired.clock, seed=3, threads=1)
    pair = project.pair("people", authority=wired.authority, settle=0)
    pair.on_change(Url("http://127.0.0.1:9/hook", [SECRET]))
    pair.run()
    pair.offer(person(1, v=100))
    project.worker().once(project.chance())
    row = project.ledger.rows("people", [key(1)])[key(1)]
    assert (row.tries, row.last_error.partition(" (")[0]) == (0, "the handler at 127.0.0.1 can't be reached")
    assert project.budgets.health("people").probes == 1
    project.close()


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (Reply(429, headers={"Retry-After": "120"}), 120),
        (Reply(429), 60),
        (Reply(429, headers={"Retry-After": "soon"}), 60),
        (Reply(503, headers={"Retry-After": "7"}), 7),
    ],
)
def test_a_pause_that_is_asked_for_is_kept(wired: Wired, reply: Reply, seconds: int) -> None:
    row = wired.once(reply)
    assert (row.tries, row.due_at - wired.clock.now_us()) == (0, seconds * 1_000_000)
    assert wired.health().paused_until_us - wired.clock.now_us() == seconds * 1_000_000
    assert "asked for a pause" in row.last_error


def test_a_receiver_that_says_at_once_for_ever_is_asked_ever_later(wired: Wired) -> None:
    wired.once(Reply(429, headers={"Retry-After": "0"}))
    for _ in range(40):
        wired.clock.advance(1)
        wired.work()
    assert len(wired.receiver.calls) < 12
    assert wired.row().tries == 0


# Once


def test_a_receiver_that_times_out_after_it_did_the_work_does_it_once(receiver: Receiver) -> None:
    wired = Wired(receiver, timeout_s=0.3)
    row = wired.once(Reply(200, delay_s=2))
    assert (row.state, row.tries) == (State.PENDING, 0)
    assert "did not answer within 0.3 s" in row.last_error
    receiver.answers = lambda call: None
    wired.project.worker().drain(10_000_000_000)
    assert wired.row().done_version == 100
    assert len(receiver.calls) == 2
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1, "the same id for every attempt"
    assert len(receiver.done) == 1
    wired.project.close()


def test_a_newer_change_has_another_id(wired: Wired, receiver: Receiver) -> None:
    wired.once(Reply(500))
    values = person(1, name="newer", v=101)
    wired.authority.put(values)
    wired.pair.offer(values)
    receiver.answers = lambda call: None
    wired.project.worker().drain(10_000_000_000)
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 2
    assert [each["values"]["name"] for each in receiver.done.values()] == ["newer"]


def test_a_readable_replica_is_read_back_and_saves_the_second_call(receiver: Receiver) -> None:
    school = School().adopted()
    school.pair.on_change(Url(receiver.url, [SECRET], timeout_s=0.3))

    def late(call: Call) -> Reply:
        [change] = changes_in(call)
        school.replica.put({name: value for name, value in change["values"].items() if name != "v"})
        return Reply(200, delay_s=2)

    receiver.answers = late
    changed = person(1, name="changed", v=100)
    school.authority.put(changed)
    school.pair.offer(changed)
    school.drain()
    assert (school.row(1).done_version, len(receiver.calls)) == (100, 1)
    school.project.close()


# Batches


def test_a_batch_is_one_call_with_an_outcome_for_each(receiver: Receiver) -> None:
    wired = Wired(receiver, batch=10)

    def some(call: Call) -> Reply:
        ids = {each["key"]["id"]: each["id"] for each in call.json["data"]}
        outcomes = {ids["2"]: {"outcome": "reject", "reason": "no"}, ids["3"]: {"outcome": "retry", "after_s": 9}}
        return Reply(200, {"outcomes": outcomes | {ids["4"]: {"outcome": "perhaps"}}})

    receiver.answers = some
    wired.change(1, 2, 3, 4)
    wired.work()
    [call] = receiver.calls
    assert call.json["type"] == "trueup.changes"
    assert call.headers["webhook-id"] not in {each["id"] for each in call.json["data"]}
    assert (wired.row(1).done_version, wired.row(2).park_reason) == (100, "rejected: no")
    assert 9_000_000 <= wired.row(3).due_at - wired.clock.now_us() < 11_000_000
    assert (wired.row(4).state, wired.row(4).tries) == (State.PENDING, 1)
    wired.project.close()


def test_an_outcome_for_the_whole_batch_holds_for_those_not_named(receiver: Receiver) -> None:
    wired = Wired(receiver, batch=10)
    receiver.answers = lambda call: Reply(
        200, {"outcome": "retry", "after_s": 5, "outcomes": {call.json["data"][0]["id"]: {"outcome": "done"}}}
    )
    wired.change(1, 2, 3)
    wired.work()
    assert [wired.row(ident).done_version for ident in (1, 2, 3)] == [100, None, None]
    wired.project.close()


@pytest.mark.parametrize("status", sorted(REFUSED))
def test_a_batch_that_is_refused_is_halved_until_the_culprit_is_alone(receiver: Receiver, status: int) -> None:
    wired = Wired(receiver, batch=10)
    receiver.answers = lambda call: (
        Reply(status, {"reason": "3 is not welcome"}) if "3" in str([e["key"] for e in changes_in(call)]) else None
    )
    wired.change(1, 2, 3, 4, 5)
    wired.work()
    assert [wired.row(ident).done_version for ident in (1, 2, 4, 5)] == [100] * 4
    assert wired.row(3).park_reason == "rejected: 3 is not welcome"
    assert len(receiver.calls) <= 7
    wired.project.close()


# Gate and lease


def test_calls_pass_the_gate_of_the_pair_s_system(receiver: Receiver) -> None:
    project = trueup.Project("memory:", clock=(clock := ManualClock()), seed=3, threads=1)
    system = project.system("hooks", limit="2/minute", reserve=0.0)
    authority = Memory([person(at) for at in range(1, 6)], key="id", version="v", clock=clock)
    pair = project.pair("people", authority=authority, settle=0, system=system)
    pair.on_change(Url(receiver.url, [SECRET]))
    pair.run()
    pair.offer([person(at, v=100 + at) for at in range(1, 6)])
    project.worker().once(project.chance())
    assert len(receiver.calls) == 2
    start_us = clock.now_us()
    project.worker().drain(10_000_000_000)
    assert len(receiver.calls) == 5
    assert clock.now_us() - start_us >= 60_000_000
    project.close()


def test_a_paused_system_is_not_called(wired: Wired) -> None:
    wired.project.budgets.pause("people", "upgrade")
    wired.change(1)
    wired.work()
    assert wired.receiver.calls == []


def test_a_lease_that_was_lost_at_the_gate_calls_nobody(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    wired.change(1)
    wired.project.worker()
    [handler] = wired.pair.url_handlers
    assert handler.gate is not None

    def wait_too_long(kind: str) -> None:
        wired.clock.advance(100)
        monkeypatch.setattr(wired.project.ledger, "renew", lambda claims, lease_us: [False] * len(claims))

    monkeypatch.setattr(handler.gate, "enter", wait_too_long)
    wired.work()
    assert wired.receiver.calls == []
    assert wired.row().done_version is None


# What can't be meant


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://x/"}, "no HTTP address"),
        ({"url": "https://"}, "no HTTP address"),
        ({"url": "https://x:port/"}, "no HTTP address"),
        ({"url": "https://ann:open-sesame@x/"}, "holds a user or password"),
        ({"url": "https://x/${NO_SUCH_VARIABLE}"}, "NO_SUCH_VARIABLE is not set"),
        ({"secrets": []}, "no list of secrets"),
        ({"secrets": SECRET}, "no list of secrets"),
        ({"secrets": ["not base 64!"]}, "not base64"),
        ({"secrets": ["whsec_"]}, "empty"),
        ({"timeout_s": 0}, "not positive"),
        ({"headers": {"X": "${NO_SUCH_VARIABLE}"}}, "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_what_can_t_be_meant_fails_where_it_is_declared(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Url(**({"url": "https://hooks.example/", "secrets": [SECRET]} | options))
    assert "open-sesame" not in str(caught.value)


def test_a_timeout_that_does_not_fit_into_the_lease_fails_at_start(receiver: Receiver) -> None:
    with pytest.raises(ConfigError, match="may take 50 s, and the lease allows 45 s"):
        Wired(receiver, timeout_s=50)
    Wired(receiver, timeout_s=50, lease="70s").project.close()


def test_neither_log_nor_story_nor_repr_holds_a_secret_or_a_value(
    wired: Wired, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for reply in (Reply(404), Reply(500), Reply(400), Reply(drop=True)):
            wired.clock.advance(1_000)
            wired.once(reply)
    story = str(wired.pair.explain(key(1)).events)
    said = story + caplog.text + str(wired.health()) + repr(Url(wired.receiver.url + "/?token=in-the-url", [SECRET]))
    assert "the handler at 127.0.0.1" in said
    for secret in ("in-the-url", SECRET, SECRET.removeprefix("whsec_"), "changed"):
        assert secret not in said


# Without Python


TOML = """\
[system.hooks]
limit = "6000/minute"

[pair.people]
authority = {{ url = "sqlite:///school.db", table = "people", key = "id", version = "v" }}
system = "hooks"
settle = 0
action_field = "status"

[pair.people.handler]
url = "{url}/any"
secrets = "${{HOOK_SECRET}}"
batch = 50

[pair.people.handlers]
dropped = {{ url = "{url}/dropped", secrets = ["${{HOOK_SECRET}}"], timeout_s = 5 }}

[source.school]
style = "standard"
secrets = ["${{SCHOOL_SECRET}}"]

[[source.school.events]]
pair = "people"
values = {{ id = "person.id", name = "person.name", status = "person.status", v = "person.v" }}
"""


def post(url: str, event: Any) -> int:
    body, at = json.dumps(event), dt.datetime.now(dt.UTC)
    headers = {
        "webhook-id": f"msg_{event['person']['v']}", "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(OLD_SECRET).sign(f"msg_{event['person']['v']}", at, body),
    }  # fmt: skip
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers), timeout=20) as answer:
        return int(answer.status)


@pytest.mark.slow
def test_a_webhook_reaches_a_url_without_a_line_of_python(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "trueup.toml").write_text(TOML.format(url=receiver.url), "utf-8")
    with closing(sqlite3.connect(tmp_path / "school.db")) as db:
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, status TEXT, v INTEGER)")
        db.execute("INSERT INTO people VALUES (1, 'Ann', 'registered', 1)")
        db.commit()
    variables = {"HOOK_SECRET": SECRET, "SCHOOL_SECRET": OLD_SECRET, "PYTHONUNBUFFERED": "1"}
    with running(tmp_path, "serve", "--port", "0", variables=variables) as process:
        assert process.stdout is not None
        url = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/events/", line)))
        assert post(url + "school", {"person": {"id": 1, "name": "Ann", "status": "registered", "v": 1}}) == 200
        until(lambda: len(receiver.done) == 1)
        with closing(sqlite3.connect(tmp_path / "school.db")) as db:
            db.execute("UPDATE people SET status = 'dropped', v = 2")
            db.commit()
        assert post(url + "school", {"person": {"id": 1, "name": "Ann", "status": "dropped", "v": 2}}) == 200
        until(lambda: len(receiver.done) == 2)
        code, said = stopped(process)
    assert code == 0, said
    assert [(call.path, changes_in(call)[0]["action"]) for call in receiver.calls] == [
        ("/any", "registered"), ("/dropped", "dropped"),
    ]  # fmt: skip
    for call in receiver.calls:
        Webhook(SECRET).verify(call.body, dict(call.headers))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("batch = 50", "bach = 50", "there is no option 'bach'. Did you mean 'batch'?"),
        ('secrets = "${HOOK_SECRET}"\n', "", "pair.people.handler.secrets: it is missing"),
        ("batch = 50", "batch = 0", "pair.people.handler.batch: input should be greater than or equal to 1"),
        ("${HOOK_SECRET}", "${NO_SUCH_VARIABLE}", "the variable NO_SUCH_VARIABLE is not set"),
        ("timeout_s = 5", "timeout_s = 50", "may take 50 s, and the lease allows 45 s"),
        ("timeout_s = 5", "timeout_s = 5, method = 'PUT'", "there is no option 'method'"),
        ('handler]\nurl = "http', 'handler]\nurl = "ftp', "the handler's url is no HTTP address"),
    ],
)
def test_a_mistake_in_the_toml_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, message: str
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("SCHOOL_SECRET", OLD_SECRET)
    text = TOML.format(url="http://hooks.example")
    assert before in text
    (tmp_path / "trueup.toml").write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ConfigError) as caught:
        trueup.load(str(tmp_path / "trueup.toml"))
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
