"""The way to the destination: how long a call takes, whose call it is, and what happens in an outage."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

from .clock import VirtualTime
from .destination import MINUTE_US, VERSION_HEADER, Destination, Reply
from .world import Key

_BASE_S, _SPREAD_S = 0.03, 0.02
_version: ContextVar[int] = ContextVar("version", default=0)
_purpose: ContextVar[str] = ContextVar("purpose", default="")


@contextmanager
def carrying(version: int) -> Iterator[None]:
    """Writes within carry the state of this version; only the referee is told."""
    was = _version.set(version)
    try:
        yield
    finally:
        _version.reset(was)


@contextmanager
def serving_purpose(purpose: str) -> Iterator[None]:
    """Calls within are counted under this purpose."""
    was = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(was)


class Wire:
    """Carries calls in virtual time. purposes: accepted calls by purpose; minutes: the same in each minute."""

    def __init__(self, time: VirtualTime, destination: Destination, seed: int) -> None:
        self.time, self.destination = time, destination
        self.purposes: Counter[str] = Counter()
        self.minutes: Counter[tuple[str, int]] = Counter()
        self._chance = random.Random(seed)

    def there(self) -> None:
        """The call travels; raises where the destination is out of order."""
        self.time.sleep((_BASE_S + self._chance.expovariate(1 / _SPREAD_S)) / 2)
        if self.time.now_us() < self.destination.out_until_us:
            raise httpx2.ConnectError("out of order")

    def back(self, status: int, purpose: str) -> None:
        """The answer travels."""
        if status != 429:
            self.purposes[purpose] += 1
            self.minutes[purpose, self.time.now_us() // MINUTE_US] += 1
        self.time.sleep((_BASE_S + self._chance.expovariate(1 / _SPREAD_S)) / 2)

    def call(self, method: str, key: Key, version: int, body: Mapping[str, Any] | None = None) -> Reply:
        """A write as a plain client makes it."""
        self.there()
        content = b"" if body is None else json.dumps(body).encode()
        path = f"/api/enrollments/{key[0]}/{key[1]}"
        reply = self.destination.answer(method, path, {VERSION_HEADER: str(version)}, content)
        self.back(reply.status, _purpose.get())
        return reply


class Transport(httpx2.BaseTransport):
    """What carries the calls of trueup's HTTP side.

    inner: sends them over a socket; without it the API is called in this process.
    """

    def __init__(self, wire: Wire, urgent: ContextVar[Any], inner: httpx2.BaseTransport | None = None) -> None:
        self._wire, self._urgent, self._inner = wire, urgent, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """One call."""
        purpose = _purpose.get() or ("event" if self._urgent.get().urgent else "reconciliation")
        self._wire.there()
        request.headers[VERSION_HEADER] = str(_version.get())
        response = self._local(request) if self._inner is None else self._inner.handle_request(request)
        self._wire.back(response.status_code, purpose)
        return response

    def close(self) -> None:
        """Gives back connections."""
        if self._inner is not None:
            self._inner.close()

    def _local(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = request.url.raw_path.decode()
        reply = self._wire.destination.answer(request.method, target, headers, request.read())
        status, told, body = _spelled(reply)
        return httpx2.Response(status, headers=told, content=body)


def _spelled(reply: Reply) -> tuple[int, dict[str, str], bytes]:
    body = b"" if reply.body is None else json.dumps(reply.body).encode()
    return reply.status, {"Content-Type": "application/json", **(reply.headers or {})}, body


@contextmanager
def listening(destination: Destination) -> Iterator[str]:
    """The same API on a loopback socket; its limit goes by the virtual clock all the same. Answers its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def handle_call(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, told, content = _spelled(destination.answer(self.command, self.path, headers, body))
            self.send_response_only(status)
            for name, value in told.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        do_GET = do_PUT = do_PATCH = do_DELETE = handle_call  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
