"""pgqueuer on PostgreSQL; see jobs_roles.

Tuned: asyncpg and uvloop, 100 jobs a fetch (and as many a flush of ends), a handler that is a coroutine.
"""

# ruff: noqa: D102  the methods are explained in jobs_roles

from __future__ import annotations

import json
import logging
from collections.abc import Coroutine
from typing import Any

import asyncpg  # type: ignore[import-not-found, import-untyped, unused-ignore]
import uvloop  # type: ignore[import-not-found, import-untyped, unused-ignore]
from jobs_roles import Engine, Entered, main
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found, unused-ignore]
from pgqueuer.qm import QueueManager  # type: ignore[import-not-found, unused-ignore]
from pgqueuer.queries import Queries  # type: ignore[import-not-found, unused-ignore]

FETCHED = 100


class Pgqueuer(Engine):
    """One entry point."""

    def __init__(self, url: str, variant: str) -> None:
        super().__init__(url, variant)
        logging.getLogger("pgqueuer").setLevel(logging.ERROR)
        self.loop = uvloop.new_event_loop()

    def _until(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def prepare(self) -> None:
        self.produce()
        self._until(self.queries.install())

    def produce(self) -> None:
        self.driver = AsyncpgDriver(self._until(asyncpg.connect(self.url)))
        self.queries = Queries(self.driver)

    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        self._until(self.queries.enqueue("run", json.dumps(record).encode(), priority=int(urgent)))

    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        payloads = [json.dumps(record).encode() for record in records]
        self._until(self.queries.enqueue(["run"] * len(records), payloads, [0] * len(records)))

    def work(self, entered: Entered) -> None:
        self.produce()
        manager = QueueManager(self.queries)

        async def run(job: Any) -> None:
            entered(json.loads(job.payload)["v"], 1)

        manager.entrypoint("run")(run)
        self._until(manager.run(batch_size=FETCHED))


main(Pgqueuer)
