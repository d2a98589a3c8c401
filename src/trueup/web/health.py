"""`/healthz/live`, `/healthz/ready` and `/healthz`: whether this process lives, can work, and whether all is well.

Live: it answers. Ready: it reaches the state store. Healthy: nothing critical is wrong with any pair; the answer lists
what is wrong, each with its cause and the next command. Whoever asks often is answered from a look that is a few
seconds old, so that asking costs the store next to nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trueup.errors import TrueupError
from trueup.model.alert_text import condition_json
from trueup.model.condition import Severity
from trueup.project import Project

KEPT_US: Final = 5_000_000
UNAVAILABLE: Final = 503
_Answer = tuple[int, dict[str, Any]]


class Health:
    """Answers about one project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, _Answer]] = {}

    @property
    def routes(self) -> list[Route]:
        """The three of them."""
        return [
            Route("/healthz/live", self.live, methods=["GET"]),
            Route("/healthz/ready", self.ready, methods=["GET"]),
            Route("/healthz", self.healthy, methods=["GET"]),
        ]

    async def live(self, _: Request) -> Response:
        """200, as long as it can answer at all."""
        return JSONResponse({"status": "live"})

    async def ready(self, _: Request) -> Response:
        """200 where the state store answers, else 503."""
        return await self._answered("ready", self._ready)

    async def healthy(self, _: Request) -> Response:
        """200 where nothing critical is wrong, else 503; what is wrong, in both cases."""
        return await self._answered("healthy", self._healthy)

    async def _answered(self, name: str, ask: Callable[[], _Answer]) -> Response:
        status, document = await asyncio.to_thread(self._lately, name, ask)
        return JSONResponse(document, status)

    def _lately(self, name: str, ask: Callable[[], _Answer]) -> _Answer:
        """The answer of a few seconds ago, or a new one; one thread asks, the others wait for it."""
        with self._lock:
            now_us = self._project.clock.elapsed_us()
            kept_us, answer = self._kept.get(name, (-KEPT_US, (0, {})))
            if now_us - kept_us >= KEPT_US:
                answer = ask()
                self._kept[name] = self._project.clock.elapsed_us(), answer
            return answer

    def _ready(self) -> _Answer:
        try:
            self._project.archive.presences()
        except Exception as error:  # a bug in here is no answer of the store either
            return self._without_store(error)
        return 200, {"status": "ready"}

    def _healthy(self) -> _Answer:
        try:
            found = self._project.conditions()
        except Exception as error:  # as above
            return self._without_store(error)
        critical = any(each.severity is Severity.CRITICAL for each in found)
        runbook = self._project.alert_plan.runbook
        document = {
            "status": "critical" if critical else "warning" if found else "healthy",
            "conditions": [condition_json(each, runbook) for each in found],
        }
        return UNAVAILABLE if critical else 200, document

    def _without_store(self, error: Exception) -> _Answer:
        """Not ready: what is wrong with the store, and nothing else is known."""
        condition = condition_json(self._project.condition_of_state(error), self._project.alert_plan.runbook)
        hint = error.hint if isinstance(error, TrueupError) else None
        document = {"status": "not ready", "ready": False, "cause": condition["cause"], "hint": hint}
        return UNAVAILABLE, {**document, "command": condition["command"], "conditions": [condition]}
