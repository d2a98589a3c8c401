"""Celery on Redis; see jobs_roles.

Tuned: late acknowledgement, so that a killed worker's jobs run again, as everywhere else here; no results, no events,
no gossip; the pool that runs tasks in the worker's own process, which is the fastest for tasks that do nothing (threads
were tried, and more tasks fetched ahead); one connection kept for sending; two priorities, the high one first.
"""

# ruff: noqa: D102  the methods are explained in jobs_roles

from __future__ import annotations

from typing import Any

import redis  # type: ignore[import-not-found, unused-ignore]
from celery import Celery  # type: ignore[import-not-found, unused-ignore]
from jobs_roles import Engine, Entered, main


class CeleryOnRedis(Engine):
    """One queue, one task."""

    def __init__(self, url: str, variant: str) -> None:
        super().__init__(url, variant)
        self.app = Celery("jobs", broker=url)
        self.app.conf.update(
            task_ignore_result=True,
            task_acks_late=True,
            worker_send_task_events=False,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
            task_store_errors_even_if_ignored=False,
            # Priority 0 is Celery's highest on Redis.
            broker_transport_options={"queue_order_strategy": "priority", "priority_steps": [0, 9], "sep": ":"},
        )
        self.entered: Entered = lambda _version, _jobs: None

        def run(record: dict[str, Any]) -> None:
            self.entered(record["v"], 1)

        self.task = self.app.task(run, name="jobs.run")

    def prepare(self) -> None:
        with redis.Redis.from_url(self.url) as connection:
            connection.flushall()

    def produce(self) -> None:
        self.producer = self.app.producer_pool.acquire(block=True)

    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        self.task.apply_async((record,), producer=self.producer, priority=0 if urgent else 9)

    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        # It has no call for many.
        for record in records:
            self.one(record, urgent=False)

    def work(self, entered: Entered) -> None:
        self.entered = entered
        arguments = ["--pool", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "error"]
        self.app.worker_main(["--quiet", "worker", *arguments])


main(CeleryOnRedis)
