"""DBOS on PostgreSQL or SQLite; see jobs_roles.

Tuned: the queue is asked every 10 ms instead of every second, 100 workflows at once on a pool of 20 threads; many are
enqueued in one transaction of its client; no log of each workflow.
"""

# ruff: noqa: D102  the methods are explained in jobs_roles

from __future__ import annotations

import threading
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient  # type: ignore[import-not-found, unused-ignore]
from jobs_roles import Engine, Entered, main

CONCURRENCY = 100
THREADS = 20


class Dbos(Engine):
    """One queue, one workflow without steps."""

    def __init__(self, url: str, variant: str) -> None:
        super().__init__(url, variant)
        self.sqlalchemy_url = url.replace("postgresql://", "postgresql+psycopg://")
        self.entered: Entered = lambda _version, _jobs: None

    def prepare(self) -> None:
        self._launch()

    def _launch(self) -> None:
        DBOS(
            config={
                "name": "jobs",
                "system_database_url": self.url,
                "application_version": "1",
                "executor_id": "bench",
                "log_level": "ERROR",
                "run_admin_server": False,
                "sys_db_pool_size": THREADS,
                "max_executor_threads": THREADS,
            }
        )

        def run(record: dict[str, Any]) -> None:
            self.entered(record["v"], 1)

        DBOS.workflow(name="run")(run)
        DBOS.launch()
        DBOS.register_queue("jobs", worker_concurrency=CONCURRENCY, polling_interval_sec=0.01)

    def produce(self) -> None:
        self.engine = sa.create_engine(self.sqlalchemy_url)
        self.client = DBOSClient(system_database_url=self.url, application_name="jobs")

    def _options(self, *, urgent: bool) -> dict[str, Any]:
        return {"workflow_name": "run", "queue_name": "jobs", "app_version": "1", "priority": 1 if urgent else 10}

    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        self.client.enqueue(self._options(urgent=urgent), record)

    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        options = self._options(urgent=False)
        with self.engine.begin() as connection:
            for record in records:
                self.client.enqueue_in_transaction(connection, options, record)

    def work(self, entered: Entered) -> None:
        self.entered = entered
        self._launch()
        threading.Event().wait()


main(Dbos)
