"""Webhooks from the wire to the ledger: signed, durable, once, and never lost in silence."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from school import School, key, person
from trueup.errors import ConfigError, StateError, Unreachable
from trueup.events.signature import Style
from trueup.events.webhook import Event, Source
from trueup.model.letter import BODY_KEPT, LETTERS_KEPT
from trueup.model.row import State
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.stores.base import DELIVERIES_KEPT_US
from trueup.web.ingest import WAITING_MAX, app

SECRET = "between the two of us"
TIMED = Style(
    "X-Signature", signed="{timestamp}.{body}", timestamp="X-Timestamp", delivery="X-Delivery",
)  # fmt: skip
URL = "/events/school"


def to_people(event: Any) -> Event:
    return Event("people", event["record"], deleted=event.get("deleted", False))


class Wire:
    """A sender, the application and its project."""

    def __init__(self, project: Project, **options: Any) -> None:
        self.project = project
        self.source = Source("school", TIMED, [SECRET], **({"route": to_people} | options))
        self.app = app(project, [self.source])
        self.client = TestClient(self.app)

    def signed(self, body: bytes, delivery: str | None = None) -> dict[str, str]:
        at = str(self.project.clock.now_us() // 1_000_000)
        signature = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"X-Timestamp": at, "X-Signature": signature}
        return headers | ({} if delivery is None else {"X-Delivery": delivery})

    def send(self, body: object, delivery: str | None = None) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(URL, content=raw, headers=self.signed(raw, delivery))

    def record(self, delivery: str | None = None, **record: Any) -> Any:
        return self.send({"record": record}, delivery)

    @property
    def letters(self) -> Any:
        return self.project.archive.letters("school")

    def count(self, status: int) -> int:
        return int(self.app.state.ingest.counts["school", status])


@pytest.fixture
def school() -> School:
    return School().adopted()


@pytest.fixture
def wire(school: School) -> Wire:
    return Wire(school.project)


def sqlite_project(tmp_path: Path) -> Project:
    authority = Memory([person(at) for at in range(1, 4)], key="id", version="v", label="school")
    project = Project(f"sqlite:///{tmp_path / 'state.db'}", threads=1, seed=1)
    project.pair("people", authority=authority, settle=0)
    return project


# The live path


def test_a_signed_event_reaches_the_replica(school: School, wire: Wire) -> None:
    changed = person(1, name="by webhook", v=10)
    school.authority.put(changed)
    response = wire.record("d-1", **changed)
    assert (response.status_code, response.json()) == (200, {"pending": 1})
    assert school.drain() == {"done": 1}
    assert school.replica.get(1)["name"] == "by webhook"


def test_the_story_of_a_record_names_the_delivery(school: School, wire: Wire) -> None:
    wire.record("d-77", **person(1, v=10))
    assert any("delivery school/d-77" in detail for _, _, detail in school.pair.explain(key(1)).events)


def test_an_event_with_only_a_key_makes_the_worker_read(school: School, wire: Wire) -> None:
    school.authority.put(person(2, name="really", v=11))
    assert wire.record(id=2).json() == {"refetch": 1}
    school.drain()
    assert school.replica.get(2)["name"] == "really"


def test_an_event_that_is_not_for_us_is_ignored_and_says_so(school: School) -> None:
    wire = Wire(school.project, route=lambda event: None)
    response = wire.send({"type": "ping"})
    assert response.status_code == 200
    assert "ignored" in response.json()


def test_a_mapping_from_options_offers_deletes_too(school: School) -> None:
    options = {
        "style": {"header": "X-Signature"}, "secrets": [SECRET],
        "events": [{"pair": "people", "values": {"id": "data.id"}, "deleted_when": "type == 'gone'"}],
    }  # fmt: skip
    client = TestClient(app(school.project, [Source.from_options("school", options)]))
    body = b'{"type": "gone", "data": {"id": 3}}'
    school.authority.remove(3)
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert client.post(URL, content=body, headers={"X-Signature": signature}).status_code == 200
    school.drain()
    assert school.replica.get(3) is None


def test_it_lives_whatever_the_store_does(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.project.ledger, "offer", _fails(StateError("the disk is full.")))
    assert wire.client.get("/healthz/live").json() == {"status": "live"}


# Trouble


def _fails(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [StateError("the disk is full."), Unreachable("school does not answer.")])
def test_what_can_t_be_stored_now_is_not_acknowledged(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(wire.project.ledger, "offer", _fails(error))
    response = wire.record(**person(1, v=10))
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert wire.letters == []


def test_a_letter_that_can_t_be_kept_is_not_refused_for_good(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.project.archive, "keep_letter", _fails(StateError("the disk is full.")))
    assert wire.send(b"{").status_code == 503


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[1]", 422),
        (b'{"record": {}}', 422),
        (b'{"record": {"id": null}}', 422),
        (b'{"record": {"id": "seven"}}', 422),
        (b'{"record": {"id": 1, "no such column": 2}}', 422),
        (b'{"record": {"id": 1, "name": "\\ud800"}}', 422),
        (b'{"record": {"id": 1, "\\ud800\\u0000\\n": 2}}', 422),
        (b'{"record": 5}', 422),
        (b'{"nothing": 1}', 422),
    ],
)
def test_what_makes_no_sense_is_refused_and_kept_whole(wire: Wire, body: bytes, status: int) -> None:
    response = wire.send(body, "d-9")
    assert response.status_code == status
    [letter] = wire.letters
    assert (letter.body, letter.status, letter.delivery, letter.whole) == (body, status, "d-9", True)
    assert letter.received_us == wire.project.clock.now_us()
    assert "authorization" not in letter.headers


def test_an_action_that_not_every_store_can_hold_is_refused() -> None:
    wire = Wire(School(action_field="status").adopted().project)
    assert wire.send(b'{"record": {"id": 1, "status": "\\u0000"}}').status_code == 422
    assert wire.send(b'{"record": {"id": 1, "status": "registered"}}').status_code == 200


def test_a_sender_that_is_not_known_leaves_nothing_behind(wire: Wire, school: School) -> None:
    before = school.ledger.history("people", key(1))
    response = wire.client.post(URL, content=b'{"record": {"id": 1}}', headers={"X-Signature": "00" * 32})
    assert response.status_code == 401
    assert wire.letters == []
    assert school.ledger.history("people", key(1)) == before
    assert wire.client.post("/events/other", content=b"{}").status_code == 404
    assert wire.client.get(URL).status_code == 405


def test_neither_log_nor_answer_holds_a_secret_or_a_value(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        answers = [wire.send({"record": {"id": 1, "name": "\ud800 private"}}).text, wire.send(b"private{").text]
        answers.append(wire.client.post(URL, content=b"private", headers={"X-Signature": "00"}).text)
    said = "".join(answers) + caplog.text
    assert "school refused a request with 422" in said
    assert "private" not in said
    assert SECRET not in said


def test_dead_letters_are_bounded_and_the_newest_stay(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(LETTERS_KEPT + 5):
        wire.send(b"{")
    assert wire.project.archive.count_letters("school") == LETTERS_KEPT
    assert wire.letters[0].number == LETTERS_KEPT + 5
    assert caplog.text.count("1 old dead letters went") == 5


def test_sources_that_can_t_work_fail_at_start(school: School) -> None:
    source = Wire(school.project).source
    with pytest.raises(ConfigError, match="two sources"):
        app(school.project, [source, source])
    with pytest.raises(ConfigError, match="no pair"):
        app(school.project, [Source("s", TIMED, [SECRET], to_people, pairs=("persons",))])


# Sizes


@contextmanager
def served(application: Any) -> Iterator[int]:
    """The application on a port of loopback."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def answer(port: int, head: bytes, chunks: Iterator[bytes]) -> tuple[int, int]:
    """(status, bytes that were taken before the answer came or the connection closed)."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head)
        sent, reply = 0, b""
        try:
            for chunk in chunks:
                connection.sendall(chunk)
                sent += len(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            reply = connection.recv(4096)
        except ConnectionResetError:
            return 0, sent
    return int(reply.split()[1]), sent


def test_C111_large_bodies_are_taken_up_to_the_limit(school: School) -> None:
    wire = Wire(school.project, size_max=25_000_000, route=lambda event: Event("people", {"id": event["id"]}))
    for size in (99_000, 430_000, 24_900_000):
        body = b'{"id": 1, "files": "' + b"x" * (size - 22) + b'"}'
        assert len(body) == size
        assert wire.send(body).status_code == 200
    assert wire.send(b'{"id": 1, "files": "' + b"x" * 26_000_000 + b'"}').status_code == 413
    assert wire.count(413) == 1
    assert wire.letters == []
    # What was refused is found by the next run.
    school.drain()
    school.authority.put(person(4, name="in the large body", v=9))
    school.pair.run()
    assert school.replica.get(4)["name"] == "in the large body"


def test_C111_a_body_that_is_too_large_is_refused_before_it_is_read(school: School) -> None:
    wire = Wire(school.project)
    megabyte = b"x" * (1 << 20)
    with served(wire.app) as port:
        stated = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: {400 << 20}\r\n\r\n".encode()
        assert answer(port, stated, iter(())) == (413, 0)
        endless = f"POST {URL} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        chunks = (f"{1 << 20:x}\r\n".encode() + megabyte + b"\r\n" for _ in range(100))
        status, sent = answer(port, endless, chunks)
    assert status in (413, 0)
    # What the kernel's buffers hold on loopback is sent before anybody could refuse it.
    assert sent < 50 << 20
    assert wire.count(413) == 2


def test_only_so_much_is_held_in_memory_at_once(school: School) -> None:
    wire = Wire(school.project, size_max=1_000)
    wire.app.state.ingest.bodies_max = 100
    assert wire.record(**person(1, name="x" * 200, v=10)).status_code == 503
    wire.app.state.ingest.bodies_max = 10_000
    assert wire.record(**person(1, name="x" * 200, v=10)).status_code == 200


def test_only_so_many_events_wait(wire: Wire) -> None:
    wire.app.state.ingest._waiting = WAITING_MAX
    assert wire.record(**person(1, v=10)).status_code == 503
    wire.app.state.ingest._waiting = WAITING_MAX - 1
    assert wire.record(**person(1, v=10)).status_code == 200


def test_a_body_that_does_not_end_is_given_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.web.ingest.BODY_S", 0.2)
    with served(wire.app) as port:
        head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode()
        assert answer(port, head, iter([b"only this"])) == (408, 9)
    assert wire.app.state.ingest._held == 0


def test_a_dead_letter_keeps_the_beginning_of_a_large_body(school: School) -> None:
    wire = Wire(school.project, size_max=3 << 20)
    wire.send(b"x" * (2 << 20))
    [letter] = wire.letters
    assert (len(letter.body), letter.size, letter.whole) == (BODY_KEPT, 2 << 20, False)


# Once


def test_C107_five_copies_at_once_are_one_job(tmp_path: Path) -> None:
    with sqlite_project(tmp_path) as project:
        wire = Wire(project)
        with ThreadPoolExecutor(5) as threads:
            responses = [each.result() for each in [threads.submit(wire.record, "wh_1", id=1) for _ in range(5)]]
        assert [each.status_code for each in responses] == [200] * 5
        assert sorted(str(each.json()) for each in responses) == ["{'refetch': 1}"] + ["{'repeated': 1}"] * 4
        assert project.ledger.rows("people", [key(1)])[key(1)].wish == 1
        assert wire.record("wh_2", id=1).json() == {"refetch": 1}


def test_C107_a_copy_after_two_days_has_no_effect(school: School, wire: Wire) -> None:
    wire.record("wh_1", id=1)
    school.drain()
    school.clock.advance(48 * 3600.0)
    assert wire.record("wh_1", id=1).json() == {"repeated": 1}
    assert school.drain() == {}
    assert wire.record("wh_2", id=1).json() == {"refetch": 1}


def test_deliveries_are_forgotten_at_last(school: School, wire: Wire) -> None:
    wire.record("wh_1", id=1)
    school.clock.advance(DELIVERIES_KEPT_US / 1_000_000 + 1)
    assert wire.record("wh_1", id=1).json() == {"refetch": 1}


def test_a_delivery_about_many_records_is_judged_whole(school: School) -> None:
    wire = Wire(school.project, route=lambda event: [Event("people", {"id": each}) for each in event["ids"]])
    body = {"ids": [1, 2, *range(1000, 3000)]}
    assert wire.send(body, "wh_1").json() == {"refetch": 2002}
    assert wire.send(body, "wh_1").json() == {"repeated": 2002}


def test_a_refused_delivery_may_come_again(school: School, wire: Wire) -> None:
    assert wire.send({"record": {}}, "wh_1").status_code == 422
    assert wire.record("wh_1", id=1).status_code == 200


def test_C109_a_replay_within_the_window_has_no_second_effect(school: School, wire: Wire) -> None:
    body = json.dumps({"record": {"id": 1}}).encode()
    headers = wire.signed(body, "pay_1")
    assert wire.client.post(URL, content=body, headers=headers).status_code == 200
    school.drain()
    again = wire.client.post(URL, content=body, headers=headers)
    assert (again.status_code, school.drain()) == (200, {})
    school.clock.advance(600.0)
    late = [headers, {name: value for name, value in headers.items() if name != "X-Timestamp"}]
    late.append(headers | {"X-Timestamp": str(school.clock.now_us() // 1_000_000)})
    assert [wire.client.post(URL, content=body, headers=each).status_code for each in late] == [401] * 3


# Late, lost and deleted


def test_C104_a_late_created_does_not_overwrite_a_newer_updated(school: School, wire: Wire) -> None:
    created, updated = person(9, status="incomplete", v=1800), person(9, status="active", v=1801)
    school.authority.put(updated)
    assert wire.record("e-2", **updated).json() == {"pending": 1}
    school.drain()
    assert wire.record("e-1", **created).json() == {"stale": 1}
    school.drain()
    assert school.replica.get(9)["status"] == "active"
    assert any(
        detail.startswith("stale") for _, what, detail in school.pair.explain(key(9)).events if what == "offered"
    )


def test_C108_an_event_that_was_never_delivered_is_repaired_by_the_next_run(school: School, wire: Wire) -> None:
    for ident in (1, 2, 3):
        school.authority.put(person(ident, name="changed", v=100 + ident))
    wire.record("e1", **person(1, name="changed", v=101))
    wire.record("e3", **person(3, name="changed", v=103))
    school.drain()
    assert school.replica.get(2)["name"] == "n2"
    report = school.pair.run()
    assert school.replica.get(2)["name"] == "changed"
    assert report.counts["jobs_done"] == 1


@pytest.mark.parametrize("late", ["a copy of the update", "the create itself"])
def test_C112_what_was_deleted_stays_deleted(late: str) -> None:
    school = School([person(2, v=0)]).adopted()
    wire = Wire(school.project)
    update = person(2, name="alive", v=1)
    if late == "a copy of the update":
        school.authority.put(update)
        wire.record("e1", **update)
        school.drain()
    school.authority.remove(2)
    wire.send({"record": {"id": 2, "v": 2}, "deleted": True}, "e2")
    school.drain()
    assert school.replica.get(2) is None
    school.clock.advance(48 * 3600.0)
    wire.record("e1", **update)
    wire.record("e1-again", **update)
    school.drain()
    assert school.replica.get(2) is None
    assert school.row(2).state is State.IDLE


# Durable


def test_acknowledged_events_are_in_the_store_when_the_process_is_gone(tmp_path: Path) -> None:
    with sqlite_project(tmp_path) as project:
        wire = Wire(project)
        assert wire.record("d-1", id=1).status_code == 200
        assert wire.send(b"{").status_code == 400
        # A copy of the files now is what a crash would leave.
        for name in ("state.db", "state.db-wal"):
            (tmp_path / f"crashed-{name}").write_bytes((tmp_path / name).read_bytes())
    with Project(f"sqlite:///{tmp_path / 'crashed-state.db'}") as after:
        assert after.ledger.rows("people", [key(1)])[key(1)].state is State.PENDING
        assert [letter.body for letter in after.archive.letters()] == [b"{"]


def test_many_requests_share_few_transactions(tmp_path: Path) -> None:
    with sqlite_project(tmp_path) as project:
        wire = Wire(project)
        wire.record(id=1)
        judged: list[int] = []
        ledger: Any = project.ledger
        before = ledger._transaction

        @contextmanager
        def slow(connection: Any = None) -> Iterator[Any]:
            judged.append(1)
            with before(connection) as transaction:
                yield transaction
                time.sleep(0.02)

        ledger._transaction = slow
        with served(wire.app) as port, ThreadPoolExecutor(20) as threads:

            def post(at: int) -> int:
                body = json.dumps({"record": {"id": at}}).encode()
                lines = {**wire.signed(body, f"d-{at}"), "Host": "x", "Content-Length": str(len(body))}
                head = f"POST {URL} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
                return answer(port, head.encode() + b"\r\n", iter([body]))[0]

            assert list(threads.map(post, range(100, 160))) == [200] * 60
        assert len(judged) < 30


# Anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
STRANGE = st.dictionaries(st.text(st.characters(), max_size=8), JSON, max_size=3).map(
    lambda found: {"record": found | {"id": 1}}
)
RECORDS = st.fixed_dictionaries(
    {"record": st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "name", "fee", "status", "v", "x"), JSON))}
)
HEADERS = st.dictionaries(
    st.sampled_from(["X-Timestamp", "X-Signature", "X-Delivery", "Content-Type", "Content-Encoding", "Expect"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300) | JSON | RECORDS | STRANGE, headers=HEADERS, authentic=st.booleans())
def test_no_request_makes_the_receiver_fail(wire: Wire, body: Any, headers: dict[str, str], authentic: bool) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    before = wire.project.archive.count_letters()
    sent = headers | wire.signed(raw) if authentic else wire.signed(raw) | {"X-Signature": "no"} | headers
    status = wire.client.post(URL, content=raw, headers=sent).status_code
    assert status == 200 or 400 <= status < 500
    if not authentic:
        assert status != 200
    # What an authentic sender sent is in the ledger or among the letters; nothing else leaves a trace.
    assert wire.project.archive.count_letters() - before == (authentic and status != 200)
