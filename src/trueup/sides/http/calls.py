"""One call to the system: through its gate, with credentials, in bounded time, and its answer in our words."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx2

from trueup.errors import SideError, Unreachable
from trueup.model.budget import CallKind
from trueup.model.canonical import parse_json
from trueup.model.outcome import RateLimited
from trueup.model.retry_after import http_date_us, retry_after_us
from trueup.ports import OUTGOING, Gate
from trueup.sides.http.auth import Credentials

if TYPE_CHECKING:
    from trueup.sides.http.throttling import Throttled

_A = TypeVar("_A")
_B = TypeVar("_B")
DEFAULT_PAUSE_US: Final = 60_000_000
TOO_MANY: Final = 429
_ASKED_AGAIN: Final = 5
_REDIRECTS: Final = 5
_UNSENT = (
    httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError, httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
)  # fmt: skip


class Unanswered(Unreachable):
    """The call may have reached the system, but no answer came: what it did there is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the system answered. who: the system, for messages."""

    who: str
    status: int
    headers: httpx2.Headers
    body: bytes
    url: httpx2.URL

    @property
    def ok(self) -> bool:
        """Whether the call did what it asked."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body with exact numbers; Unreachable where it is no JSON: a login page, a proxy, nothing at all."""
        if not self.body.strip():
            hint = "Is this the address of the records themselves?"
            raise Unreachable(f"{self.who} answered nothing ({self.status}) where JSON was expected.", hint=hint)
        if "html" in self.headers.get("content-type", "").lower() or self.body.lstrip()[:1] == b"<":
            hint = "Is the address right? A login page and a maintenance page look like this too."
            raise Unreachable(f"{self.who} answered a web page ({self.status}) where JSON was expected.", hint=hint)
        try:
            return parse_json(self.body)
        except (ValueError, RecursionError):
            raise Unreachable(
                f"{self.who} answered what is not JSON ({self.status}).", hint="Look at its answer with curl."
            ) from None

    def failure(self, call: str, advice: str) -> SideError:
        """What is wrong with an answer that is not ok. call: such as `PUT ["42"]`; advice: what to renew."""
        said = f"{self.who} answered {self.status} to {call}."
        if self.status in (401, 403):
            return Unreachable(f"{self.who} refuses {call} ({self.status}).", hint=advice)
        if 300 <= self.status < 400:
            target = self.url.join(self.headers.get("location", ""))
            hint = (
                f"It points to {target.scheme}://{target.netloc.decode()}. If that is the right system, put it in url."
            )
            return Unreachable(f"{self.who} redirects {call} elsewhere ({self.status}).", hint=hint)
        if self.status >= 500 or self.status in (408, 425, TOO_MANY):
            return Unreachable(said, hint="The system is in trouble; it is asked again later.")
        if self.status in (405, 501):
            return SideError(said, hint="Name the method it takes: create, update or delete.")
        return SideError(said, hint="It does not accept this; its documentation says why.")


class Calls:
    """Calls to one system; safe to share between threads. gate: may be set until the first call.

    answer_max: bytes of an answer beyond which it is given up with SideError; None for any size.
    """

    def __init__(
        self,
        who: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        credentials: Credentials,
        timeout_s: float,
        at_once: int,
        throttled: Throttled,
        answer_max: int | None = None,
    ) -> None:
        self.who, self.url = who, url
        self._answer_max = answer_max
        self.gate: Gate | None = None
        self._headers, self.credentials, self._throttled = dict(headers), credentials, throttled
        self._timeout_s, self.at_once = timeout_s, at_once
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._clock: tuple[int, float] | None = None
        # Its lines hold whole addresses, and an address may hold an API key.
        logging.getLogger("httpx2").setLevel(logging.WARNING)

    def send(
        self,
        method: str,
        url: httpx2.URL,
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
        kind: CallKind | None = None,
    ) -> Answer:
        """The answer, whatever its status. kind: what the budget takes the call for; by default by its method.

        Raises Unreachable where the call did not reach the system, Unanswered where it may have, RateLimited where
        the system asks for a pause. Reads are sent again: after a pause that the gate waits for, and once where the
        connection was lost.
        """
        kind = kind or ("read" if method == "GET" else "write")
        answer = self._send(method, url, headers or {}, body, kind)
        for _ in range(_REDIRECTS):
            target = answer.url.join(answer.headers.get("location", ""))
            if method != "GET" or not 300 <= answer.status < 400 or not same_origin(target, self.url):
                break
            answer = self._send(method, target, headers or {}, body, kind)
        return answer

    def get(self, url: httpx2.URL, call: str) -> Answer:
        """A page of a list, which has to be there."""
        answer = self.send("GET", url, kind="list")
        if not answer.ok:
            raise answer.failure(call, self.credentials.advice)
        return answer

    def now_us(self) -> int | None:
        """The system's clock as of its latest answer, carried on; None before there was one that said it."""
        if self._clock is None:
            return None
        said_us, heard_at = self._clock
        return said_us + int((time.monotonic() - heard_at) * 1e6)

    def close(self) -> None:
        """Gives back connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> httpx2.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(timeout=self._timeout_s)
            return self._client

    def _send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: str | None, kind: CallKind
    ) -> Answer:
        for renewed in (False, True):
            proof = self.credentials.headers(self._connected())
            request = self._connected().build_request(
                method,
                url,
                headers={"Accept": "application/json", **OUTGOING.get(), **self._headers, **proof, **headers},
                content=None if body is None else body.encode(),
            )
            answer = self._patiently(request, kind)
            if answer.status != 401 or renewed or not self.credentials.refused(proof):
                break
        return answer

    def _patiently(self, request: httpx2.Request, kind: CallKind) -> Answer:
        reading = request.method == "GET"
        lost = False
        for left in reversed(range(_ASKED_AGAIN)):
            if self.gate is not None:
                self.gate.enter(kind)
            try:
                return self._once(request)
            except RateLimited:
                # The gate knows of the pause now, and whether this caller may wait for its end.
                if not (reading and left and self.gate is not None):
                    raise
            except Unanswered:
                if lost or not (reading and left):
                    raise
                lost = True
        raise AssertionError("the last try returns or raises")

    def _once(self, request: httpx2.Request) -> Answer:
        try:
            answer = self._exchanged(request)
        except httpx2.RequestError as error:
            self._leave(None, {})
            raise self._in_our_words(error) from None
        except BaseException:
            self._leave(None, {})
            raise
        said = http_date_us(answer.headers.get("date"))
        if said is not None and "age" not in answer.headers:
            self._clock = said, time.monotonic()
        throttled = self._throttled(answer.status, answer.headers, answer.body)
        status = TOO_MANY if throttled else answer.status
        self._leave(status, answer.headers, used_up=throttled == "used up")
        if status == TOO_MANY:
            now_us = time.time_ns() // 1_000 if said is None else said
            pause_us = retry_after_us(answer.headers.get("retry-after"), now_us)
            raise RateLimited((DEFAULT_PAUSE_US if pause_us is None else pause_us) / 1e6)
        return answer

    def _exchanged(self, request: httpx2.Request) -> Answer:
        ends = time.monotonic() + self._timeout_s
        response = self._connected().send(request, stream=True)
        try:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if self._answer_max is not None and size > self._answer_max:
                    raise SideError(
                        f"{self.who} answered more than {self._answer_max:,} bytes.", hint="Let it answer less."
                    )
                # The client's own limit is for each wait: a body that drips would never meet it.
                if time.monotonic() > ends:
                    raise httpx2.ReadTimeout("the answer took too long", request=request)
                parts.append(part)
        finally:
            response.close()
        return Answer(self.who, response.status_code, response.headers, b"".join(parts), request.url)

    def _leave(self, status: int | None, headers: Mapping[str, str], *, used_up: bool = False) -> None:
        if self.gate is not None:
            self.gate.leave(status, headers, used_up=used_up)

    def _in_our_words(self, error: httpx2.RequestError) -> Unreachable:
        if isinstance(error, _UNSENT):
            hint = "Is the address right, and is the system up?"
            return Unreachable(f"{self.who} can't be reached ({type(error).__name__}).", hint=hint)
        if isinstance(error, httpx2.TimeoutException):
            hint = "It is asked again later. If it is always this slow, raise timeout_s."
            return Unanswered(f"{self.who} did not answer within {self._timeout_s:g} s.", hint=hint)
        return Unanswered(f"{self.who} broke off ({type(error).__name__}).", hint="It is asked again later.")


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether credentials for one may be shown to the other."""
    return (one.scheme, one.host, _port(one)) == (other.scheme, other.host, _port(other))


def _port(url: httpx2.URL) -> int | None:
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def at_once(call: Callable[[_A], _B], each: Iterable[_A], many: int) -> Sequence[_B]:
    """The answers in order, from at most `many` calls at a time; the first failure ends what has not begun."""
    asked = list(each)
    if len(asked) < 2 or many < 2:
        return [call(one) for one in asked]
    pool = ThreadPoolExecutor(min(many, len(asked)), thread_name_prefix="trueup-http")
    try:
        # On whose behalf a call is made is known from the context, which threads do not inherit.
        futures = [pool.submit(contextvars.copy_context().run, call, one) for one in asked]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
