"""Webhooks over HTTP: `POST /events/{source}`, answered with 200 once the ledger has made its changes durable.

Reading a request and waiting for the ledger are `async` because an ASGI server (https://asgi.readthedocs.io) calls
them; whatever reads a body or touches a store runs on a thread.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trueup.deliveries import changes_of
from trueup.errors import ConfigError, EventRefused, TrueupError
from trueup.events.webhook import Source
from trueup.model.change import Change, count_outcomes
from trueup.model.letter import BODY_KEPT, DeadLetter
from trueup.project import Project
from trueup.web.health import Health
from trueup.web.metrics import Metrics

BODIES_MAX: Final = 64 << 20
BODY_S: Final = 30.0
RETRY_S: Final = 2
# Deliveries that are made durable together, and those that may wait for a turn.
THREADS: Final = 64
WAITING_MAX: Final = 2_000
_CREDENTIALS: Final = {"authorization", "proxy-authorization", "cookie"}
# Other headers that may let somebody in: of these a dead letter keeps the name.
_TELLING: Final = re.compile(r"passw|secret|token|api-?key|(?:^|-)auth(?:-|$)")
_log = logging.getLogger(__name__)


def app(project: Project, sources: Iterable[Source], *, bodies_max: int = BODIES_MAX) -> Starlette:
    """The ASGI application that takes the webhooks of these sources; `/healthz` and `/metrics` say how the
    project is.

    bodies_max: bytes of bodies that may be in memory at once, beyond which senders are asked to come again; never
    less than the largest body. `app.state.ingest.counts` counts requests by (source, status). ConfigError where
    sources share a name, or name an unknown pair.
    """
    ingest = _Ingest(project, _named(project, sources), bodies_max)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        ingest.close()

    routes = [
        Route("/events/{source}", ingest.post, methods=["POST"]),
        *Health(project).routes,
        *Metrics(project).routes,
    ]
    served = Starlette(routes=routes, lifespan=lifespan)
    served.state.ingest = ingest
    return served


def _named(project: Project, sources: Iterable[Source]) -> dict[str, Source]:
    named: dict[str, Source] = {}
    for source in sources:
        if source.name in named:
            raise ConfigError(f"there are two sources {source.name}.", hint="Give each source its own name.")
        if source.pairs:
            project.select(*source.pairs)
        named[source.name] = source
    return named


@dataclass
class _Ingest:
    """What all requests share."""

    project: Project
    sources: Mapping[str, Source]
    bodies_max: int
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.bodies_max = max([self.bodies_max, *(source.size_max for source in self.sources.values())])
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="trueup-ingest")
        self._held = 0
        self._waiting = 0

    def close(self) -> None:
        """Ends the threads, once what they do is done."""
        self._threads.shutdown()

    async def post(self, request: Request) -> Response:
        """One delivery."""
        source = self.sources.get(request.path_params["source"])
        if source is None:
            # Not counted by name: whoever calls chooses it.
            self._count("", 404)
            return _answer(404, "There is no such source.")
        held = _Held(self)
        try:
            response = await self._take(source, request, held)
        except ClientDisconnect:
            response = _answer(400, "The request ended before its body.")
        except EventRefused as error:
            response = _answer(error.status, error.message)
        except TrueupError as error:
            about = {"event": "webhooks_wait", "source": source.name, "error": str(error)}
            _log.error("webhooks of %s wait: %s", source.name, error, extra=about)
            response = _busy("The events can't be stored now.")
        finally:
            held.release()
        self._count(source.name, response.status_code)
        return response

    def _count(self, source: str, status: int) -> None:
        self.counts[source, status] += 1
        self.project.observer.received(source, status)

    async def _take(self, source: Source, request: Request, held: _Held) -> Response:
        body = await _body(request, source.size_max, held)
        if body is None:
            return _busy("Too much is being received at once.")
        if self._waiting >= WAITING_MAX:
            return _busy("Too many events wait to be stored.")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            said = await loop.run_in_executor(self._threads, self._offer, source, body, _headers(request))
        finally:
            self._waiting -= 1
        return JSONResponse(said)

    def _offer(self, source: Source, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """What became of a body's changes, durable. The threads of this pool share the ledger's transactions."""
        tracing = self.project.tracing
        with tracing.received(source.name, headers.get("traceparent")):
            changes = self._read(source, body, headers)
            if not changes:
                return {"ignored": "the event is about no record of this project"}
            with tracing.span("offer", changes[0].pair) as trace:
                traced = changes if trace is None else [replace(change, trace=trace) for change in changes]
                outcomes = count_outcomes(self.project.ledger.offer(traced))
        self.project.hear(change.pair for change in changes)
        return {str(outcome): number for outcome, number in outcomes.items()}

    def _read(self, source: Source, body: bytes, headers: Mapping[str, str]) -> list[Change]:
        """The changes of a body; an authentic body that gives none becomes a dead letter before it is refused."""
        now_us = self.project.clock.now_us()
        try:
            return changes_of(self.project, source.read(body, headers, now_us))
        except EventRefused as error:
            _log.warning(
                "source %s refused a request with %d: %s", source.name, error.status, error.message,
                extra={
                    "event": "webhook_refused", "source": source.name, "status": error.status, "error": error.message
                },
            )  # fmt: skip
            if error.authentic:
                self._keep(source, body, headers, now_us, error)
            raise

    def _keep(self, source: Source, body: bytes, headers: Mapping[str, str], now_us: int, error: EventRefused) -> None:
        kept = {
            name: "(hidden)" if _TELLING.search(name) else value
            for name, value in headers.items()
            if name not in _CREDENTIALS
        }
        letter = DeadLetter(
            source.name, now_us, error.status, str(error), body[:BODY_KEPT], len(body), kept,
            source.delivery_id(headers),
        )  # fmt: skip
        gone = self.project.archive.keep_letter(letter)
        if gone:
            about = {"event": "letters_dropped", "source": source.name, "letters": gone}
            _log.error("source %s: %d old dead letters went for a new one", source.name, gone, extra=about)


class _Held:
    """How much of the memory for bodies one request holds."""

    def __init__(self, ingest: _Ingest) -> None:
        self._ingest = ingest
        self._bytes = 0

    def take(self, size: int) -> bool:
        """Whether so much more may be held. Only the event loop's thread asks, so no lock is needed."""
        if self._ingest._held + size > self._ingest.bodies_max:
            return False
        self._ingest._held += size
        self._bytes += size
        return True

    def release(self) -> None:
        self._ingest._held -= self._bytes
        self._bytes = 0


async def _body(request: Request, size_max: int, held: _Held) -> bytes | None:
    """The raw body; None where there is no room for it now; EventRefused where it is too large or too slow."""
    stated = request.headers.get("content-length", "0")
    if not stated.isascii() or not stated.isdecimal() or len(stated) > 18:
        raise EventRefused("The Content-Length is no number.", status=400)
    if int(stated) > size_max:
        raise EventRefused(f"The body is larger than {size_max} bytes.", status=413)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > size_max:
                    raise EventRefused(f"The body is larger than {size_max} bytes.", status=413)
                if not held.take(len(chunk)):
                    return None
                chunks.append(chunk)
    except TimeoutError:
        raise EventRefused(f"The body did not arrive within {BODY_S:.0f} s.", status=408) from None
    return b"".join(chunks)


def _headers(request: Request) -> dict[str, str]:
    """By lower-case name; what was sent twice is joined as HTTP joins it (RFC 9110, 5.3)."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _answer(status: int, message: str) -> Response:
    # What is left of a body that was not read must not be taken for the next request.
    headers = {"Connection": "close"} if status in (404, 408, 413) else None
    return JSONResponse({"error": message}, status, headers)


def _busy(message: str) -> Response:
    return JSONResponse({"error": message}, 503, {"Retry-After": str(RETRY_S)})
