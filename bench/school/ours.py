"""(c), (d) trueup: the declaration of the school, workers, and an hourly run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2

from trueup.compare import rows
from trueup.engine import gate
from trueup.engine.records import State as Wanted
from trueup.errors import IncompleteScan, Unreachable
from trueup.model.change import Change, Origin
from trueup.model.record import key_parts
from trueup.model.row import Baseline
from trueup.pair import decimal
from trueup.project import Project
from trueup.sides.http import Http

from .clock import InTurn
from .contestants import WORKERS, Reconciled, Setting
from .destination import CALLS_A_MINUTE, MINUTE_US, PATH
from .recipe import residual_s
from .wire import Transport, carrying, listening, serving_purpose
from .world import DROPPED, PAGE, REGISTERED, Key, State, row

RESERVE = 0.4
PAIR = "enrollments"
LOOKED_AT = 100
# How long a worker sleeps that nobody wakes: while something waits, and while nothing does.
DOZE_S, IDLE_S = 1.0, 60.0
RETRIES_S = (60.0, 120.0, 240.0, 480.0, 900.0, 900.0)
COLUMNS = {"userId": "integer", "courseId": "integer", "status": "text", "fee": "decimal(12,2)"}


class Trueup:
    """See the module. recency_s: `recheck`, ± 20%. lists: whether the API has a list. socket: call it over loopback."""

    def __init__(self, setting: Setting, recency_s: float, *, socket: bool = False) -> None:
        self.setting, self.time, self._recency_s = setting, setting.time, recency_s
        self.jobs = self.failed_runs = 0
        self.reconciled: list[Reconciled] = []
        self._folder = tempfile.TemporaryDirectory(dir=_memory_disk())
        self._server = listening(setting.destination) if socket else nullcontext("http://courses.example")
        state = f"sqlite:///{self._folder.name}/trueup.db"
        self.project = Project(state, clock=setting.time, seed=setting.chance.randrange(2**32))
        self.pair = self._declared(self._server.__enter__(), socket=socket)

    def _declared(self, address: str, *, socket: bool) -> Any:
        system = self.project.system("courses", limit=f"{CALLS_A_MINUTE}/minute", reserve=RESERVE)
        replica = Http(
            f"{address}{PATH}", system=system, key=("userId", "courseId"), columns=COLUMNS, label="courses",
            item_url="{url}/{userId}/{courseId}", lists=self.setting.destination.lists,
            paging="cursor", next="next", page_size=PAGE, answers_with_record=True, at_once=1,
        )  # fmt: skip
        inner = httpx2.HTTPTransport() if socket else None
        replica._calls._client = httpx2.Client(transport=Transport(self.setting.wire, gate._caller, inner))
        pair = self.project.pair(
            PAIR, authority=self.setting.school.side, replica=replica, fields=["status", decimal("fee", places=2)],
            action_field="status", absent_when={"status": [DROPPED]}, settle="2m",
            recheck=self._recency_s, jitter=0.2, on_drift={"orphaned": "repair"},
        )  # fmt: skip

        @pair.on(REGISTERED)
        def enroll(change: Change, replica: Any) -> None:
            with self._acting(change):
                replica.put(change)

        @pair.on(DROPPED)
        def unenroll(change: Change, replica: Any) -> None:
            with self._acting(change):
                replica.delete(change)

        @pair.on("delete")
        def remove(change: Change, replica: Any) -> None:
            with self._acting(change):
                replica.delete(change)

        return pair

    @contextmanager
    def _acting(self, change: Change) -> Iterator[None]:
        """Tells the referee what is written, and counts it for what asked for it."""
        purpose: AbstractContextManager[None] = nullcontext()
        if change.origin is not Origin.EVENT:
            purpose = serving_purpose("reconciliation")
        with carrying(change.version or 0), purpose:
            yield

    def event(self, key: Key, state: State) -> None:
        """Offered as it comes."""
        self.pair.offer(row(key, state))
        self.time.notify()

    def begin(self) -> None:
        """Adopts what is there, and starts the workers when the calls of that no longer count."""
        if self.setting.destination.lists:
            with patch.object(rows, "ThreadPoolExecutor", InTurn):
                self.pair.adopt()
            self.time.sleep(2 * MINUTE_US / 1e6)
        else:
            self._know()
        for _ in range(WORKERS):
            self.time.start(self._serve)

    def _know(self) -> None:
        """Without a list nothing can be compared: what is done is known because it was done, at some time before."""
        ledger, chance = self.project.ledger, self.setting.chance
        for states in self.pair.records.scan_authority():
            lefts_us = [round(residual_s(chance, self._recency_s) * 1e6) for _ in states]
            ledger.baseline(PAIR, [self._ancestor(*each) for each in zip(states, lefts_us, strict=True)])
        ledger.settle(PAIR)

    def _ancestor(self, state: Wanted, verified_for_us: int) -> Baseline:
        records = self.pair.records
        digest = None if state.absent else records.replica.digest(records.mapped(state, None))
        return Baseline(
            state.key, 0, state.digest, digest, state.action, state.version, verified_for_us=verified_for_us
        )

    def _serve(self) -> None:
        worker, chance = self.project.worker(threads=1), self.project.chance()
        while True:
            ended = worker.once(chance)
            self.jobs += sum(finish.result in ("done", "verified", "parked") for finish in ended)
            if not ended:
                due_us = self.project.ledger.next_due_us([PAIR])
                self.time.doze(IDLE_S if due_us is None else DOZE_S)

    def reconcile(self) -> None:
        """A run that leaves its jobs to the workers; without a list, a sweep of everything."""
        this = Reconciled(self.time.now_us())
        self.reconciled.append(this)
        before = self.setting.wire.purposes["reconciliation"]
        # As `trueup serve` does: a run that failed is tried again, later and later.
        for wait_s in RETRIES_S:
            if self._ran():
                break
            self.time.sleep(wait_s)
        asked = self._asked_for()
        while asked:
            still = self._still_waiting(asked[-LOOKED_AT:])
            del asked[-LOOKED_AT:]
            asked += still
            if still:
                self.time.sleep(DOZE_S)
        this.ended_us = self.time.now_us()
        this.calls = self.setting.wire.purposes["reconciliation"] - before

    def _ran(self) -> bool:
        try:
            self._run()
        except (Unreachable, IncompleteScan):
            self.failed_runs += 1
            return False
        return True

    def _run(self) -> None:
        if self.setting.destination.lists:
            with patch.object(rows, "ThreadPoolExecutor", InTurn):
                self.pair.run(enqueue=True, progress=lambda *_: self.time.notify())
            return
        for states in self.pair.records.scan_authority():
            self.project.ledger.offer([self.pair.records.change(state, Origin.SWEEP) for state in states])
            self.time.notify()

    def _asked_for(self) -> list[str]:
        """Keys of what waits and is not for an event."""
        pending = self.project.ledger.scan(PAIR, "pending")
        return [each.key for some in pending for each in some if each.wish_origin != Origin.EVENT]

    def _still_waiting(self, keys: list[str]) -> list[str]:
        found = self.project.ledger.rows(PAIR, keys)
        return [key for key, row in found.items() if row.state == "pending" and row.wish_origin != Origin.EVENT]

    def waiting(self) -> int:
        """Records that are pending."""
        return self.project.ledger.counts(PAIR)["pending"]

    def in_review(self) -> list[Key]:
        """Keys of the open cases."""
        parts = [key_parts(case.key) for case in self.project.archive.cases(PAIR) if case.key]
        return [(int(user or 0), int(course or 0)) for user, course in parts]

    def parked(self) -> int:
        """Records that need a person."""
        return self.project.ledger.counts(PAIR)["parked"]

    def close(self) -> None:
        """Removes the state."""
        self.project.close()
        self._server.__exit__(None, None, None)
        self._folder.cleanup()


def _memory_disk() -> str | None:
    """Where files cost no time, if there is such a place: the disk is not what is measured."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
