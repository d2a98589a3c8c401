"""The project of the worker processes that chaos tests freeze and kill: `trueup --project chaos_worker worker`.

What it is made of comes from the environment variable CHAOS, the JSON of a `Plan`.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from trueup.model.change import Change
from trueup.model.record import Projection
from trueup.ports import Write, Written
from trueup.project import Project
from trueup.sides.sql import Sql

LEASE_S = 1.0


@dataclass(frozen=True)
class Plan:
    """One pair `people` from a.db to r.db, both in `folder`.

    writes: the built-in writer, whose token is a `version` column or a `digest` of the record, or a handler with
    a `client` of its own, which has no precondition; `logged` notes each call beside its write.
    freeze: the process stops itself, once, just before its first write. die: it kills itself just after it.
    slow_s: how long the client takes for each record.
    """

    folder: str
    state: str
    writes: Literal["version", "digest", "client", "logged"]
    freeze: bool = False
    die: bool = False
    slow_s: float = 0
    lease_s: float = LEASE_S

    @property
    def replica(self) -> Path:
        return Path(self.folder) / "r.db"

    def environment(self) -> dict[str, str]:
        """Of a process that works this plan."""
        return os.environ | {"CHAOS": json.dumps(asdict(self)), "PYTHONUNBUFFERED": "1", "TRUEUP_TRACEBACK": "1"}


def stand_still() -> None:
    """Stops the process before this thread takes another step.

    A signal to the process may be taken by another of its threads, and this one would have gone on meanwhile.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class Freezing(Sql):
    """A table whose writer may stop its process before a write: after the last check of the lease."""

    freeze = False

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        if self.freeze:
            self.freeze = False
            stand_still()
        return super().apply(projection, writes)


def declare(plan: Plan) -> Project:
    """The project of a plan; the test's own process uses it too, without accidents."""
    project = Project(state=plan.state, seed=3, threads=1)
    source = Sql(f"sqlite:///{plan.folder}/a.db", table="people", key="id", version="v")
    token = "row_version" if plan.writes == "version" else None
    target = Freezing(f"sqlite:///{plan.replica}", table="people", key="id", version=token)
    target.freeze = plan.freeze
    pair = project.pair("people", authority=source, replica=target, fields=["name"], settle=0, lease=plan.lease_s)
    if plan.writes == "client":
        pair.on_change(Client(plan))
    elif plan.writes == "logged":
        pair.on("upsert", batch=50)(Client(plan).log)
    return project


class Client:
    """A partner's client that writes whatever it is told, whatever is there."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._freeze = plan, plan.freeze

    def __call__(self, change: Change) -> None:
        if self._freeze:
            self._freeze = False
            stand_still()
        self.log([change])
        if self._plan.die:
            os.kill(os.getpid(), signal.SIGKILL)

    def log(self, changes: Sequence[Change]) -> None:
        """Writes all of them, in one transaction, and notes that it was called."""
        time.sleep(self._plan.slow_s * len(changes))
        with closing(sqlite3.connect(self._plan.replica, timeout=20)) as db, db:
            for change in changes:
                values = (change.values["id"], change.values["name"])
                db.execute(
                    "INSERT INTO people (id, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = excluded.name", values
                )
                db.execute("INSERT INTO performed VALUES (?, ?, ?)", (values[0], change.version, os.getpid()))


if "CHAOS" in os.environ:
    project = declare(Plan(**json.loads(os.environ["CHAOS"])))
