"""What a platform's probes see: live, ready and healthy are three answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from trueup.errors import StateError
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock
from trueup.web import health
from trueup.web.ingest import app

CLOCK_S = health.KEPT_US / 1e6


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(f"sqlite:///{tmp_path}/state.db", clock=ManualClock())
    rows = [{"id": 1, "name": "a"}]
    authority, replica = (Memory(rows, key="id", clock=made.clock) for _ in range(2))
    made.pair("orders", authority=authority, replica=replica, settle=0, sweep="10m")
    made.find("orders").adopt()
    with made:
        yield made


@pytest.fixture
def client(project: Project) -> Iterator[TestClient]:
    with TestClient(app(project, [])) as served:
        yield served


def advance(project: Project, seconds: float) -> None:
    assert isinstance(project.clock, ManualClock)
    project.clock.advance(seconds)


def test_where_all_is_well_every_probe_says_so(client: TestClient) -> None:
    assert client.get("/healthz/live").json() == {"status": "live"}
    assert client.get("/healthz/ready").json() == {"status": "ready"}
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "healthy", "conditions": []})


def test_what_is_critical_makes_it_unhealthy_and_leaves_it_ready(project: Project, client: TestClient) -> None:
    """Given that nobody starts what is due, I expect 503 with cause and command, and no reason to restart anything."""
    project.scheduler().declare()
    advance(project, 3_600)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "critical")
    [overdue] = answer.json()["conditions"]
    assert (overdue["name"], overdue["subject"]) == ("overdue", "orders")
    assert overdue["command"] == "trueup serve --only scheduler"
    assert overdue["runbook"].endswith("/docs/runbook/overdue.md")
    assert client.get("/healthz/ready").status_code == 200
    assert client.get("/healthz/live").status_code == 200


def test_a_warning_is_listed_and_no_alarm(project: Project, client: TestClient) -> None:
    project.budgets.pause("orders", "upgrade", "ann")
    advance(project, 3_700)
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "warning")
    assert [each["name"] for each in answer.json()["conditions"]] == ["paused"]


def test_without_its_store_it_lives_and_is_not_ready(
    project: Project, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StateError("the state store does not answer.", hint="Start it.")

    monkeypatch.setattr(project.archive, "presences", away)
    assert client.get("/healthz/live").status_code == 200
    for path in ("/healthz/ready", "/healthz"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
        assert answer.json()["ready"] is False
        assert answer.json()["cause"].endswith("state.db: the state store does not answer")
        assert (answer.json()["hint"], answer.json()["command"]) == ("Start it.", "trueup doctor")
        [condition] = answer.json()["conditions"]
        assert (condition["name"], condition["severity"]) == ("state", "critical")
        assert condition["runbook"].endswith("/docs/runbook/state.md")


def test_whoever_asks_often_costs_the_store_nothing(
    project: Project, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    found = project.conditions
    monkeypatch.setattr(project, "conditions", lambda: looks.append(1) or found())
    for _ in range(20):
        client.get("/healthz")
    assert len(looks) == 1
    advance(project, CLOCK_S)
    client.get("/healthz")
    assert len(looks) == 2


def test_the_last_event_is_known(project: Project) -> None:
    assert project.find("orders").status().last_event_us is None
    project.find("orders").offer({"id": 1, "name": "b"})
    assert project.find("orders").status().last_event_us == project.ledger.now_us()
