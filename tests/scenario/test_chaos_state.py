"""Accidents of the state store under load: a full disk, a server that restarts, an outage longer than patience."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from chaos import agreed, all_done, change, performed, prepare, stopped, until, worker
from chaos_worker import Plan, declare
from starlette.testclient import TestClient

from school import person
from services import restartable_postgres
from trueup.bound import BoundPair
from trueup.errors import StateError, TrueupError
from trueup.events.signature import Style
from trueup.events.webhook import Source
from trueup.model.event import Event
from trueup.model.row import State
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.stores.sql.postgresql import PostgresqlStore
from trueup.stores.sql.sqlite import SqliteFile
from trueup.web.ingest import app

SECRET = "between us"


class Disk:
    """How far the state store may grow: SQLite refuses what needs more pages, as on a full disk."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        take = SqliteFile._take
        self.pages = 1 << 30

        def limited(file: SqliteFile) -> sqlite3.Connection:
            connection = take(file)
            connection.execute(f"PRAGMA max_page_count = {self.pages}")
            return connection

        patch.setattr(SqliteFile, "_take", limited)

    def fill(self) -> None:
        self.pages = 1  # which means: as many as there are

    def free(self) -> None:
        self.pages = 1 << 30


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Shop:
    """Two sides in memory, a state file, and a worker that serves beside the test."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        columns = {"id": "integer", "name": "text", "v": "integer"}
        self.authority = Memory([], key="id", version="v", columns=columns)
        self.replica = Memory([], key="id", columns={"id": "integer", "name": "text"})
        self.project = Project(f"sqlite:///{self.path}", seed=5, threads=2)
        self.pair: BoundPair = self.project.pair(
            "people", authority=self.authority, replica=self.replica, fields=["name"], settle=0, lease=1
        )
        self.pair.adopt()

    @contextmanager
    def served(self) -> Iterator[None]:
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            serving = pool.submit(self.project.worker().serve, stop)
            try:
                yield
            finally:
                stop.set()
                serving.result(30)

    def rows(self) -> dict[str, Any]:
        return {row.key: row for rows in self.project.ledger.scan("people") for row in rows}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    with shop.project:
        yield shop


class Sender(threading.Thread):
    """Offers ever new records, each batch until it is acknowledged."""

    def __init__(self, shop: Shop, first: int) -> None:
        super().__init__()
        self.shop, self.first = shop, first
        self.stop = threading.Event()
        self.acknowledged: list[str] = []
        self.refusals: list[Exception] = []

    def run(self) -> None:
        at = self.first
        while not self.stop.is_set():
            records = [person(ident, name="n" * 200, v=1) for ident in range(at, at + 20)]
            records = [{name: record[name] for name in ("id", "name", "v")} for record in records]
            for record in records:
                self.shop.authority.put(record)
            if self.offered(records):
                self.acknowledged += [f'["{record["id"]}"]' for record in records]
                at += 20

    def offered(self, records: list[dict[str, Any]]) -> bool:
        while not self.stop.is_set():
            try:
                self.shop.pair.offer(records)
            except Exception as error:
                self.refusals.append(error)
                time.sleep(0.02)
            else:
                return True
        return False


@pytest.mark.slow
def test_on_a_full_disk_nothing_acknowledged_is_lost_and_nothing_is_half_written(shop: Shop, disk: Disk) -> None:
    """Given a disk that fills while offers and jobs run, I expect clear errors, and that all goes on when it may."""
    senders = [Sender(shop, first) for first in (1, 1_000_001)]
    with shop.served():
        for sender in senders:
            sender.start()
        until(lambda: all(len(sender.acknowledged) > 100 for sender in senders), "offers are taken")
        disk.fill()
        until(lambda: all(len(sender.refusals) > 5 for sender in senders), "offers are refused")
        whole(shop, senders)
        before = [len(sender.acknowledged) for sender in senders]
        disk.free()
        until(lambda: all(len(s.acknowledged) > n + 100 for s, n in zip(senders, before, strict=True)), "it goes on")
        for sender in senders:
            sender.stop.set()
            sender.join()
        until(lambda: not shop.project.ledger.counts("people")["pending"], "all is done")
    for error in [error for sender in senders for error in sender.refusals]:
        assert isinstance(error, TrueupError)
        assert "the disk is full" in error.message
        assert error.hint is not None
    rows = shop.rows()
    assert set(rows) == {key for sender in senders for key in sender.acknowledged}
    assert {(row.state, row.done_version) for row in rows.values()} == {(State.IDLE, 1)}
    assert all(shop.replica.get(int(key[2:-2])) is not None for key in rows)


def whole(shop: Shop, senders: list[Sender]) -> None:
    """The file is sound, can still be read, and holds whole batches only: each one that was acknowledged."""
    with closing(sqlite3.connect(shop.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        numbers = [int(json.loads(key)[0]) for (key,) in db.execute("SELECT key FROM trueup_row").fetchall()]
    assert len(numbers) % 20 == 0
    acknowledged = {int(key[2:-2]) for sender in senders for key in list(sender.acknowledged)}
    assert acknowledged <= set(numbers)


def test_on_a_full_disk_a_webhook_is_answered_503_and_its_event_comes_again(
    shop: Shop, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(
        "school", Style("X-Signature", signed="{body}", delivery="X-Delivery"), [SECRET],
        route=lambda event: Event("people", event),
    )  # fmt: skip
    with TestClient(app(shop.project, [source])) as client:

        def post(ident: int) -> Any:
            record = {"id": ident, "name": "by webhook" * 400, "v": 7}
            shop.authority.put(record)
            body = json.dumps(record).encode()
            signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {"X-Signature": signature, "X-Delivery": f"d-{ident}"}
            return client.post("/events/school", content=body, headers=headers)

        assert post(1).status_code == 200
        disk.fill()
        refused = []
        for ident in range(2, 200):  # until the pages that are there are used up
            answer = post(ident)
            if answer.status_code != 200:
                refused.append(ident)
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            if len(refused) == 3:
                break
        assert len(refused) == 3
        assert not {f'["{ident}"]' for ident in refused} & set(shop.rows())
        assert "the disk is full" in caplog.text
        disk.free()
        for ident in refused:
            answer = post(ident)  # the very same delivery, as senders repeat it
            assert (answer.status_code, answer.json()) == (200, {"pending": 1})
    shop.project.worker().drain(1_000_000)
    assert all(shop.replica.get(ident)["name"].startswith("by webhook") for ident in refused)
    assert {row.state for row in shop.rows().values()} == {State.IDLE}


RECORDS = 500


@pytest.mark.slow
@pytest.mark.postgres
def test_workers_survive_a_restart_of_the_server_under_load(tmp_path: Path) -> None:
    """Given two restarts, one orderly and one as after a crash, I expect the same processes to drain all."""
    everybody = range(1, RECORDS + 1)
    with restartable_postgres() as server:
        plan = Plan(str(tmp_path), server.url, "logged", slow_s=0.002)
        prepare(tmp_path, RECORDS)
        with declare(plan) as project, worker(plan, threads=2) as one, worker(plan, threads=2) as other:
            pair = project.find("people")
            pair.adopt()
            # A program that only begins when the server goes is refused, so that a wrong URL is told at once.
            until(lambda: len(project.workers()) == 2, "both have begun")
            for version, how in ((10, signal.SIGINT), (20, signal.SIGQUIT)):
                change(pair, tmp_path, f"version {version}", version, everybody)
                begun = len(performed(tmp_path))
                until(lambda begun=begun: len(performed(tmp_path)) > begun, "work is under way")  # type: ignore[misc]
                server.end(how)
                change_while_it_starts(server, pair, tmp_path, version)
            until(lambda: all_done(project), "all is drained")
            assert [one.poll(), other.poll()] == [None, None], "nobody had to start them again"
            newest = {ident: 20 if ident > 10 else 21 for ident in everybody}
            agreed(project, newest)
            assert set(newest.items()) <= set(performed(tmp_path)), "at least once each"
            assert [stopped(each)[0] for each in (one, other)] == [0, 0]


def change_while_it_starts(server: Any, pair: BoundPair, folder: Path, version: int) -> None:
    """An offer that is made while the server is away waits for it, and is kept."""
    with ThreadPoolExecutor(1) as pool:
        offering = pool.submit(change, pair, folder, f"version {version + 1}", version + 1, range(1, 11))
        server.start()
        offering.result(30)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_outlasts_an_outage_that_is_longer_than_its_patience(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with restartable_postgres() as server:
        store = PostgresqlStore(server.url, patience_s=0.2)
        shop.project._store = (store.ledger, store.archive, store.budgets)
        store.ledger.settle("people")
        with shop.served():
            shop.authority.put({"id": 1, "name": "before", "v": 1})
            shop.pair.offer({"id": 1, "name": "before", "v": 1})
            until(lambda: shop.replica.get(1) is not None, "it works")
            server.end(signal.SIGINT)
            with pytest.raises(StateError, match="does not answer"):
                shop.pair.offer({"id": 2, "name": "meanwhile", "v": 2})
            until(lambda: "work waits for" in caplog.text, "the worker says what is wrong")
            server.start()
            shop.authority.put({"id": 3, "name": "after", "v": 3})
            shop.pair.offer({"id": 3, "name": "after", "v": 3})
            until(lambda: shop.replica.get(3) is not None, "it works again")
