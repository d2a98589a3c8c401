"""Procrastinate on PostgreSQL; see jobs_roles.

Tuned: a task that is a coroutine, 20 at once with a connection each at hand, no log of each job. Jobs that
ended stay in the table, as they do by default; it is the only history there is.
"""

# ruff: noqa: D102  the methods are explained in jobs_roles

from __future__ import annotations

import asyncio
import logging
from typing import Any

from jobs_roles import Engine, Entered, main
from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found, unused-ignore]

CONCURRENCY = 20


class Procrastinate(Engine):
    """One queue, one task."""

    def __init__(self, url: str, variant: str) -> None:
        super().__init__(url, variant)
        logging.getLogger("procrastinate").setLevel(logging.ERROR)
        self.app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=CONCURRENCY))
        self.entered: Entered = lambda _version, _jobs: None
        self.task = self.app.task(self._run, name="jobs.run")

    async def _run(self, record: dict[str, Any]) -> None:
        self.entered(record["v"], 1)

    def prepare(self) -> None:
        with self.app.open():
            self.app.schema_manager.apply_schema()

    def produce(self) -> None:
        self.app.open()

    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        self.task.configure(priority=int(urgent)).defer(record=record)

    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        self.task.batch_defer(*({"record": record} for record in records))

    def work(self, entered: Entered) -> None:
        self.entered = entered

        async def run() -> None:
            async with self.app.open_async():
                await self.app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)

        asyncio.run(run())


main(Procrastinate)
