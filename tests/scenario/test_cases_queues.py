"""Cases of queues that need workers: due times, renewals, retries that would come together, lost answers."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from api import Api, Reply, serving
from school import School, key, person
from trueup import Retry
from trueup.project import Project
from trueup.sides.memory import Memory


def test_C091_a_job_that_is_due_later_runs_once_at_its_time() -> None:
    """Given a job due in 5 s, a lease of 2 s and two workers that look all the time, I expect one run at 5 s."""
    school = School(lease=2).adopted()
    runs: list[float] = []
    began_us = school.clock.now_us()

    @school.pair.on_change
    def act(change, replica):  # type: ignore[no-untyped-def]
        runs.append((school.clock.now_us() - began_us) / 1e6)
        if len(runs) == 1:
            raise Retry("later", after_s=5)
        replica.put(change)

    changed = person(1, name="changed", v=100)
    school.authority.put(changed)
    school.pair.offer(changed)
    workers = [school.project.worker(), school.project.worker()]
    for _ in range(100):
        for each in workers:
            each.once(school.project.chance())
        school.clock.advance(0.1)
    assert runs[0] == 0
    assert len(runs) == 2
    assert 5 <= runs[1] <= 6.2
    assert school.row(1).state == "idle"


def test_C102_a_job_longer_than_its_lease_is_renewed_and_not_taken_again(tmp_path: Path) -> None:
    """Given work of three leases and two workers, I expect one run."""
    runs = []
    authority = Memory([person(1)], key="id", version="v")
    with Project(f"sqlite:///{tmp_path}/state.db", seed=1, threads=1) as project:
        pair = project.pair("people", authority=authority, settle=0, lease=0.5)

        @pair.on_change
        def act(change):  # type: ignore[no-untyped-def]
            runs.append(change.id)
            time.sleep(1.6)

        pair.offer(person(1))
        stop = threading.Event()
        with ThreadPoolExecutor(2) as pool:
            serving = [pool.submit(project.worker().serve, stop) for _ in range(2)]
            time.sleep(2.2)
            stop.set()
            for each in serving:
                each.result(20)
        assert len(runs) == 1
        row = project.ledger.rows("people", [key(1)])[key(1)]
        assert (row.state, row.tries) == ("idle", 0)
        assert [what for _, what, _ in project.ledger.history("people", key(1))] == ["offered", "claimed", "finished"]


def test_C103_jobs_that_failed_together_are_not_retried_together() -> None:
    """Given 1,000 jobs that are asked to come again in 60 s, I expect them from 60 to 72 s, in no second many."""
    school = School([person(at) for at in range(1, 1_001)], tries=20).adopted()

    @school.pair.on("upsert", batch=500)
    def act(changes):  # type: ignore[no-untyped-def]
        return {change.key: Retry("busy", after_s=60) for change in changes}

    school.pair.offer([person(at, name="changed", v=5_000) for at in range(1, 1_001)])
    failed_us = school.clock.now_us()
    while school.project.worker().once(school.project.chance()):
        pass
    rows = [row for rows in school.ledger.scan("people") for row in rows]
    due_s = [(row.due_at - failed_us) / 1e6 for row in rows]
    assert len(due_s) == 1_000
    assert 60 <= min(due_s) < 61
    assert 71 < max(due_s) <= 72
    assert max(Counter(int(each) for each in due_s).values()) <= 150


def test_C135_a_lost_answer_does_not_charge_twice() -> None:
    """Given two answers that are lost after the charge, I expect three tries under one key, and one charge."""
    school = School().adopted()
    with serving(Api()) as partner:
        partner.after = lambda _, reply: Reply(drop=True) if len(partner.methods("POST")) < 3 else reply

        @school.pair.on_change
        def charge(change):  # type: ignore[no-untyped-def]
            body = json.dumps({"id": change.values["id"], "amount": "50.00"}).encode()
            request = urllib.request.Request(f"{partner.url}/items", body, {"Idempotency-Key": change.id})
            urllib.request.urlopen(request, timeout=20).close()

        changed = person(1, name="changed", v=100)
        school.authority.put(changed)
        school.pair.offer(changed)
        assert school.drain() == {"retry": 2, "done": 1}
        keys = [call.headers["idempotency-key"] for call in partner.methods("POST")]
        assert (len(keys), len(set(keys))) == (3, 1)
        assert len(partner.rows) == 1
