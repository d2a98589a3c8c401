"""`/metrics` of a project that runs: over HTTP, over several processes, with many tenants, and without any value."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient
from test_serve import folder, on_platform, running, stopped, wait_for_name  # noqa: F401  folder is a fixture

import trueup
from trueup.errors import StateError
from trueup.model import metric as m
from trueup.model.metric import METRICS
from trueup.project import Project
from trueup.testing.clock import ManualClock
from trueup.web import metrics
from trueup.web.metrics import app

Labels = frozenset[tuple[str, str]]
Samples = Mapping[tuple[str, Labels], float]


def parsed(text: str) -> dict[tuple[str, Labels], float]:
    families = text_string_to_metric_families(text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def scraped(url: str) -> dict[tuple[str, Labels], float]:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=")
        return parsed(answer.read().decode())


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def address(process: subprocess.Popen[str]) -> str:
    """Where a process answers, as it says itself."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        if found := re.search(r"http://[^/\s]+", line):
            return found[0]
    raise AssertionError(process.communicate())


def eventually(look: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.2)


def post(url: str, person: Mapping[str, object], headers: Mapping[str, str] | None = None) -> int:
    body = json.dumps({"person": person}).encode()
    signature = hmac.new(b"between-us", body, hashlib.sha256).hexdigest()
    signed = {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Delivery": signature, **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(url, body, signed), timeout=20) as answer:
        return int(answer.status)


def test_what_a_served_project_does_is_told(folder: Path) -> None:  # noqa: F811
    """Given a webhook that was written and a delivery that was refused, I expect both in the numbers."""
    with running(folder, "serve", "--port", "0") as process:
        base = address(process)
        before = scraped(f"{base}/metrics")
        assert value(before, "trueup_pairs") == 1
        with closing(sqlite3.connect(folder / "school.db")) as db:
            db.execute("UPDATE people SET name = 'new', v = 2")
            db.commit()
        assert post(f"{base}/events/school", {"id": 1, "name": "new", "v": 2}) == 200
        wait_for_name(folder, "new")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{base}/events/canary-source", b"{}", timeout=20)

        def told() -> bool:
            found = scraped(f"{base}/metrics")
            return value(found, "trueup_jobs_total", pair="people", outcome="done") == 1

        eventually(told)
        found = scraped(f"{base}/metrics")
        assert value(found, "trueup_offers_total", pair="people", outcome="refetch") == 1
        assert value(found, "trueup_webhook_requests_total", source="school", status="200") == 1
        assert value(found, "trueup_webhook_requests_total", source="", status="404") == 1
        assert value(found, "trueup_event_latency_seconds_count", pair="people") == 1
        assert 0 < value(found, "trueup_event_latency_seconds_sum", pair="people") < 60
        assert value(found, "trueup_records", pair="people", state="idle") == 1
        assert value(found, "trueup_workers", state="alive") == 1
        assert value(found, "trueup_budget_limit", system="platform", limit="600/minute") == 600
        assert time.time() - value(found, "trueup_last_event_timestamp_seconds", pair="people") < 120
        with urllib.request.urlopen(f"{base}/metrics", timeout=20) as answer:
            assert "canary" not in answer.read().decode()
        assert stopped(process)[0] == 0


def test_two_workers_and_a_run_are_counted_as_one_project(
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given jobs shared by two worker processes, and a run that is over, I expect the same right sums of both."""
    assert subprocess_run(folder, "adopt", "people") == 0
    with closing(sqlite3.connect(folder / "school.db")) as db:
        db.executemany("INSERT INTO people VALUES (?, 'x', 1)", [(number,) for number in range(2, 1_202)])
        db.commit()
    assert subprocess_run(folder, "run", "people", "--enqueue") == 1
    worker = ("worker", "--threads", "1", "--metrics-port", "0")
    with running(folder, *worker) as one, running(folder, *worker) as other:
        urls = [f"{address(each)}/metrics" for each in (one, other)]

        def done(url: str) -> float:
            return value(scraped(url), "trueup_jobs_total", pair="people", outcome="done")

        eventually(lambda: all(done(url) == 1_200 for url in urls))
        for url in urls:
            found = scraped(url)
            assert value(found, "trueup_runs_total", pair="people", run="run", outcome="done") == 1
            assert value(found, "trueup_runs_total", pair="people", run="adopt", outcome="done") == 1
            assert value(found, "trueup_run_phase_seconds_count", pair="people", phase="compare") == 2
            assert value(found, "trueup_workers", state="alive") == 2
        with urllib.request.urlopen(urls[0].replace("/metrics", "/healthz/live"), timeout=20) as answer:
            assert answer.status == 200
        assert stopped(one)[0] == stopped(other)[0] == 0
    # Who comes later knows as much.
    monkeypatch.setenv("SCHOOL_SECRET", "between-us")
    with trueup.load(str(folder / "trueup.toml")) as project:
        assert project.measures()[m.JOBS.count("people", "done")] == 1_200


def subprocess_run(folder: Path, *arguments: str) -> int:  # noqa: F811
    with running(folder, *arguments) as process:
        process.communicate(timeout=60)
        return process.returncode


@pytest.fixture
def project() -> Iterator[Project]:
    with Project("memory:", clock=ManualClock()) as made:
        yield made


def declare(project: Project, name: str) -> None:
    sides = [trueup.Memory([{"id": 1, "name": "a", "v": 1}], key="id", version="v") for _ in range(2)]
    project.pair(name, authority=sides[0], replica=sides[1], settle=0, sweep="10m", compare="1h")


def advance(project: Project, seconds: float) -> None:
    assert isinstance(project.clock, ManualClock)
    project.clock.advance(seconds)


def test_whoever_asks_often_costs_the_store_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(project, "orders")
    looks = []
    found = project.measures
    monkeypatch.setattr(project, "measures", lambda: looks.append(1) or found())
    with TestClient(app(project)) as client:
        for _ in range(20):
            assert client.get("/metrics").status_code == 200
        assert len(looks) == 1
        advance(project, metrics.KEPT_US / 1e6)
        client.get("/metrics")
        assert len(looks) == 2


def test_a_look_that_takes_long_is_kept_for_ten_times_as_long(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(project, "orders")
    looks = []
    found = project.measures

    def slow() -> object:
        looks.append(1)
        advance(project, 8)
        return found()

    monkeypatch.setattr(project, "measures", slow)
    with TestClient(app(project)) as client:
        client.get("/metrics")
        advance(project, 79)
        client.get("/metrics")
        assert len(looks) == 1
        advance(project, 2)
        client.get("/metrics")
        assert len(looks) == 2


def test_without_its_store_it_says_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise StateError("the state store does not answer.", hint="Start it.")

    monkeypatch.setattr(project, "measures", away)
    with TestClient(app(project)) as client:
        answer = client.get("/metrics")
    assert (answer.status_code, answer.text) == (503, "the state store does not answer. Start it.\n")


def test_where_metrics_are_off_nothing_is_counted() -> None:
    with Project("memory:", metrics="off") as project:
        declare(project, "orders")
        project.find("orders").offer({"id": 1, "name": "b", "v": 2})
        assert project.archive.tallies() == {}
        with TestClient(app(project)) as client:
            assert client.get("/metrics").status_code == 404
            assert client.get("/healthz/live").status_code == 200


@pytest.mark.parametrize(("way", "names"), [("pairs", 1_000), ("definitions", 1)])
def test_a_thousand_tenants_have_as_many_series_as_is_said(way: str, names: int) -> None:
    """Given 1,000 clients that were never run, I expect a bounded number of series, or those of one definition."""
    with Project("memory:", metrics=way) as project:
        for number in range(1_000):
            declare(project, f"orders@tenant-{number}")
        found = parsed(metrics.text_of(project.measures()).decode())
    assert value(found, "trueup_pairs") == 1_000
    by_pair = [labels for _, labels in found if any(name == "pair" for name, _ in labels)]
    assert len({dict(labels)["pair"] for labels in by_pair}) == names
    most = sum(m.series_max(each) or 0 for each in METRICS)
    assert len(by_pair) <= names * most
    assert sum(each for (name, _), each in found.items() if name == "trueup_pair_adopted") == 0


def test_keys_values_and_messages_are_nowhere(project: Project) -> None:
    """Given canaries as key, value and error, I expect none of them in the text, and no declared metric unseen."""
    authority = trueup.Memory([{"id": "canary-key", "name": "canary-value", "v": 1}], key="id", version="v")
    replica = trueup.Memory([{"id": "other", "name": "canary-other", "v": 1}], key="id", version="v")
    budget = project.system("shop", limit="600/minute", quota="1000/day")
    orders = project.pair("orders", authority=authority, replica=replica, system=budget, settle=0, tries=1, sweep="1h")

    @orders.on_change
    def fail(change: trueup.Change) -> None:
        raise ValueError(f"canary-message {change.values}")

    orders.adopt()
    orders.run()
    orders.offer({"id": "canary-key", "name": "canary-new", "v": 9})
    orders.run()
    advance(project, 100_000)
    text = metrics.text_of(project.measures()).decode()
    assert "canary" not in text
    found = parsed(text)
    assert value(found, "trueup_records", pair="orders", state="parked") == 1
    assert value(found, "trueup_jobs_total", pair="orders", outcome="parked") >= 1
    assert any(name == "trueup_conditions" for name, _ in found)


def test_a_backup_that_is_restored_goes_on_counting(tmp_path: Path) -> None:
    """Given counts in a backup, I expect them after a restore: a counter that falls is a reset, which is understood."""
    state = f"sqlite:///{tmp_path}/state.db"
    with Project(state) as project:
        declare(project, "orders")
        project.find("orders").adopt()
        project.measures()
        project.back_up(tmp_path / "copy.db")
    for left in tmp_path.glob("state.db*"):
        left.unlink()
    with Project(state) as project:
        declare(project, "orders")
        project.restore(tmp_path / "copy.db")
        assert project.measures()[m.RUNS.count("orders", "adopt", "done")] == 1
