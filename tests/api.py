"""A real HTTP API on loopback for tests: typed JSON in memory, with the habits and the faults of real ones."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from trueup.model.canonical import canonical_text, parse_json
from trueup.model.kinds import JSON

Row = dict[str, Any]


def dumped(value: Any) -> str:
    """JSON with exact numbers."""
    text = canonical_text(value, JSON)
    assert text is not None
    return text


@dataclass(frozen=True)
class Call:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return parse_json(self.body)


@dataclass
class Reply:
    """An answer. drop: the connection is cut instead of answered. delay_s: before answering."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drop: bool = False
    delay_s: float = 0


@dataclass
class Api:
    """One list of records under /items.

    etags: sent and checked. paging: what the list understands; cap: its largest page. wrap: name of the list in a
    page. total: whether a page says how many records there are. before: may answer in the API's place; after: may
    change the answer once the call had its effect. merges: whether PUT keeps what it was not given.
    """

    key: Sequence[str] = ("id",)
    rows: list[Row] = field(default_factory=list)
    etags: str = "strong"
    paging: str = "page"
    cap: int = 1_000
    wrap: str | None = None
    total: bool = False
    before: Callable[[Call], Reply | None] = lambda _: None
    after: Callable[[Call, Reply], Reply] = lambda _, reply: reply
    calls: list[Call] = field(default_factory=list)
    url: str = ""
    secret: str = "s3cret"
    tokens: set[str] = field(default_factory=set)
    guarded: bool = False
    token_lifetime_s: int = 3600
    idempotent: dict[str, Reply] = field(default_factory=dict)
    index: dict[tuple[str | None, ...], list[Row]] = field(default_factory=dict)
    indexed: tuple[int, int] = (0, -1)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def methods(self, method: str) -> list[Call]:
        """The calls of one method."""
        return [call for call in self.calls if call.method == method]

    def answer(self, call: Call) -> Reply:
        """Routes one call."""
        with self.lock:
            self.calls.append(call)
        reply = self.before(call)
        if reply is not None:
            return reply
        with self.lock:
            reply = self._routed(call)
        return self.after(call, reply)

    def _routed(self, call: Call) -> Reply:
        if call.path == "/token":
            return self._token(call)
        if self.guarded and call.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return Reply(401, {"error": "unauthorized"})
        if call.method != "GET" and (key := call.headers.get("idempotency-key")):
            if key not in self.idempotent:
                self.idempotent[key] = self._written(call)
            return self.idempotent[key]
        return self._listed(call) if call.method == "GET" and call.path == "/items" else self._written(call)

    def _token(self, call: Call) -> Reply:
        form = {name: values[0] for name, values in parse_qs(call.body.decode()).items()}
        basic = base64.b64decode(call.headers.get("authorization", "").removeprefix("Basic ")).decode()
        secret = form.get("client_secret") or unquote(basic.partition(":")[2])
        if secret != self.secret or form["grant_type"] != "client_credentials":
            return Reply(401, {"error": "invalid_client"})
        token = f"t{len(self.methods('POST'))}"
        self.tokens.add(token)
        return Reply(200, {"access_token": token, "expires_in": self.token_lifetime_s, "token_type": "Bearer"})

    # The list.

    def _listed(self, call: Call) -> Reply:
        rows = self.rows
        if "ids" in call.query:
            wanted = call.query["ids"].split(",")
            rows = [row for row in rows if plain(row[self.key[0]]) in wanted]
        if "since" in call.query:
            rows = [row for row in rows if row["at"] is not None and row["at"] > int(call.query["since"])]
        limit = min(int(call.query.get("limit", self.cap)), self.cap)
        start = {
            "page": lambda: (int(call.query.get("page", 1)) - 1) * limit,
            "offset": lambda: int(call.query.get("offset", 0)),
            "cursor": lambda: int(call.query.get("cursor", 0)),
            "link": lambda: int(call.query.get("at", 0)),
            "none": lambda: 0,
        }[self.paging]()
        some = rows if self.paging == "none" else rows[start : start + limit]
        more = self.paging != "none" and start + limit < len(rows)
        reply = Reply(200, some)
        if self.wrap is not None:
            reply.body = {self.wrap: some}
            if self.total:
                reply.body["total"] = len(rows)
            if self.paging == "cursor":
                reply.body["next"] = str(start + limit) if more else None
        if self.paging == "link" and more:
            reply.headers["Link"] = f'</items?at={start + limit}&limit={limit}>; rel="next"'
        reply.headers["X-Total-Count"] = str(len(rows))
        return reply

    # Records.

    def _written(self, call: Call) -> Reply:
        if call.path == "/items/bulk":
            return Reply(200, [self._merged(row) for row in call.json])
        if call.path == "/items" and call.method == "POST":
            row = call.json
            if self._copies([plain(row[name]) for name in self.key]):
                return Reply(409, {"error": "exists"})
            self._append(row)
            return Reply(201, row)
        parts = [unquote(part) for part in call.path.removeprefix("/items/").split("/")]
        copies = self._copies(parts)
        if call.method == "GET":
            return self._shown(copies[0]) if copies else Reply(404, {"error": "not found"})
        if self.etags and not self._permitted(call, copies):
            return Reply(412, {"error": "precondition"})
        return self._changed(call, copies)

    def _changed(self, call: Call, copies: list[Row]) -> Reply:
        if call.method == "DELETE":
            self.rows = [row for row in self.rows if not any(row is each for each in copies)]
            self.indexed = (0, -1)
            return Reply(204) if copies else Reply(404, {"error": "not found"})
        if call.method == "PATCH":
            if not copies:
                return Reply(404, {"error": "not found"})
            for row in copies:
                row.update(call.json)
            return self._shown(copies[0])
        if copies:
            copies[0].clear()
            copies[0].update(call.json)
            return self._shown(copies[0])
        self._append(call.json)
        return Reply(201, self.rows[-1], {"ETag": self.etag(self.rows[-1])} if self.etags else {})

    def _merged(self, row: Row) -> dict[str, Any]:
        if row.get("name") == "refused":
            return {"status": 422}
        copies = self._copies([plain(row[name]) for name in self.key])
        if copies:
            copies[0].update(row)
        else:
            self._append(row)
        return {"status": 200 if copies else 201}

    def _permitted(self, call: Call, copies: list[Row]) -> bool:
        match, none_match = call.headers.get("if-match"), call.headers.get("if-none-match")
        if none_match == "*" and copies:
            return False
        return match is None or (bool(copies) and match == self.etag(copies[0]))

    def _shown(self, row: Row) -> Reply:
        return Reply(200, row, {"ETag": self.etag(row)} if self.etags else {})

    def etag(self, row: Row) -> str:
        """Of the record as it is."""
        tag = f'"{hashlib.md5(dumped(row).encode(), usedforsecurity=False).hexdigest()[:12]}"'
        return f"W/{tag}" if self.etags == "weak" else tag

    def _copies(self, parts: list[str | None]) -> list[Row]:
        now = id(self.rows), len(self.rows)
        if now != self.indexed:
            self.index, self.indexed = {}, now
            for row in self.rows:
                self.index.setdefault(tuple(plain(row.get(name)) for name in self.key), []).append(row)
        return self.index.get(tuple(parts), [])

    def _append(self, row: Row) -> None:
        self.rows.append(row)
        self.index.setdefault(tuple(plain(row.get(name)) for name in self.key), []).append(row)
        self.indexed = id(self.rows), len(self.rows)


def plain(value: Any) -> str | None:
    """A JSON value as a path names it; null has no name."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else dumped(value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no news."""


@contextmanager
def serving(api: Api) -> Iterator[Api]:
    """The API on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def handle_call(self) -> None:
            split = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            reply = api.answer(Call(self.command, split.path, query, headers, body))
            if reply.delay_s:
                stopping.wait(reply.delay_s)
            if reply.drop:
                self.close_connection = True
                return
            raw = reply.raw
            if raw is None:
                raw = b"" if reply.status == 204 or reply.body is None else dumped(reply.body).encode()
            self.send_response_only(reply.status)
            usual = {"Content-Type": "application/json", "Date": self.date_time_string()}
            for name, value in {**usual, **reply.headers}.items():
                self.send_header(name, value)
            if reply.status != 204:
                self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
            self.wfile.flush()

        do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = handle_call  # noqa: N815

    stopping = threading.Event()
    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
