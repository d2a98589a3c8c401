"""The destination: an HTTP API for enrolments with a limit, ETags, idempotency keys, and people who edit by hand."""

from __future__ import annotations

import json
import random
from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .clock import VirtualTime
from .measure import Referee
from .world import PAGE, REGISTERED, Key, State

CALLS_A_MINUTE = 600
MINUTE_US = 60_000_000
PATH = "/api/enrollments"
# On the wire for the referee alone: the version of the state that a write carries.
VERSION_HEADER = "x-version-for-the-referee"


@dataclass(slots=True)
class Stored:
    """One enrolment as the API holds it."""

    number: int
    status: str
    fee: str
    revision: int

    @property
    def etag(self) -> str:
        """Changes with every write."""
        return f'"{self.revision}"'


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    body: Any = None
    headers: Mapping[str, str] | None = None


class Destination:
    """Answers calls by the virtual clock. lists: whether it has the list endpoint.

    calls: by method, refused ones apart as `429`. minutes: calls accepted in each minute.
    """

    def __init__(self, time: VirtualTime, referee: Referee, *, lists: bool = True) -> None:
        self.time, self.referee, self.lists = time, referee, lists
        self.records: dict[Key, Stored] = {}
        self.calls: Counter[str] = Counter()
        self.minutes: Counter[int] = Counter()
        self.out_until_us = 0
        self._numbers: list[tuple[int, Key]] = []
        self._recent: deque[int] = deque()
        self._replies: dict[str, Reply] = {}
        self._made = self._revision = 0

    def fill(self, states: Mapping[Key, State]) -> None:
        """As it is in steady state: everything agrees."""
        for key, state in states.items():
            if state.status == REGISTERED:
                self._put(key, {"status": state.status, "fee": str(state.fee)})
            self.referee.begin(key, state.version)

    def held(self) -> dict[Key, tuple[str, str]]:
        """Status and fee by key."""
        return {key: (stored.status, stored.fee) for key, stored in self.records.items()}

    def wait_us(self) -> int:
        """How long until one more call is within the limit: no 60 seconds may hold more."""
        now_us = self.time.now_us()
        while self._recent and self._recent[0] <= now_us - MINUTE_US:
            self._recent.popleft()
        return 0 if len(self._recent) < CALLS_A_MINUTE else self._recent[0] + MINUTE_US - now_us

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One call. headers: names in lower case."""
        wait_us = self.wait_us()
        if wait_us:
            self.calls["429"] += 1
            return Reply(429, {"error": "too many"}, {"Retry-After": str(-(-wait_us // 1_000_000))})
        now_us = self.time.now_us()
        self._recent.append(now_us)
        self.calls[method] += 1
        self.minutes[now_us // MINUTE_US] += 1
        split = urlsplit(target)
        if split.path == PATH:
            return self._page(parse_qs(split.query)) if self.lists and method == "GET" else Reply(405)
        user, course = split.path.removeprefix(f"{PATH}/").split("/")
        key = int(user), int(course)
        if method == "GET":
            return self._shown(key)
        again = headers.get("idempotency-key")
        if again is not None and again in self._replies:
            return self._replies[again]
        reply = self._written(method, key, headers, body)
        if again is not None:
            self._replies[again] = reply
        return reply

    # Reading.

    def _page(self, query: Mapping[str, list[str]]) -> Reply:
        after = int(query.get("cursor", ["0"])[0])
        size = min(PAGE, int(query.get("limit", [str(PAGE)])[0]))
        start = bisect_right(self._numbers, (after, (2**62, 0)))
        some = self._numbers[start : start + size]
        more = start + size < len(self._numbers)
        items = [self._json(key) for _, key in some]
        return Reply(200, {"items": items, "next": str(some[-1][0]) if more else None})

    def _shown(self, key: Key) -> Reply:
        stored = self.records.get(key)
        return Reply(404, {"error": "not found"}) if stored is None else self._reply(200, key, stored)

    def _reply(self, status: int, key: Key, stored: Stored) -> Reply:
        return Reply(status, self._json(key), {"ETag": stored.etag})

    def _json(self, key: Key) -> dict[str, Any]:
        stored = self.records[key]
        return {"userId": key[0], "courseId": key[1], "status": stored.status, "fee": stored.fee}

    # Writing.

    def _written(self, method: str, key: Key, headers: Mapping[str, str], body: bytes) -> Reply:
        before = self.records.get(key)
        match = headers.get("if-match")
        if headers.get("if-none-match") == "*" and before is not None:
            return Reply(412, {"error": "exists"})
        if match is not None and (before is None or match != before.etag):
            return Reply(412, {"error": "changed"})
        held = None if before is None else (before.status, before.fee)
        version = int(headers[VERSION_HEADER])
        if method == "DELETE":
            self._drop(key)
            self.referee.written(key, version, changed=before is not None)
            return Reply(204 if before is not None else 404)
        if method == "PATCH" and before is None:
            return Reply(404, {"error": "not found"})
        given = json.loads(body)
        stored = self._put(key, given)
        self.referee.written(key, version, changed=held != (stored.status, stored.fee))
        return self._reply(200 if before is not None else 201, key, stored)

    def _put(self, key: Key, given: Mapping[str, Any]) -> Stored:
        self._revision += 1
        stored = self.records.get(key)
        if stored is None:
            self._made += 1
            stored = self.records[key] = Stored(self._made, "", "", 0)
            insort(self._numbers, (stored.number, key))
        stored.status = given.get("status", stored.status)
        stored.fee = str(Decimal(str(given.get("fee", stored.fee))))
        stored.revision = self._revision
        return stored

    def _drop(self, key: Key) -> None:
        stored = self.records.pop(key, None)
        if stored is not None:
            self._numbers.remove((stored.number, key))

    # People.

    def edit_by_hand(self, chance: random.Random) -> None:
        """Somebody changes a fee, or now and then removes an enrolment, past every interface."""
        key = chance.choice(self._numbers)[1]
        if chance.random() < 0.2:
            self._drop(key)
            self.referee.edited(key, removed=True)
        else:
            self._put(key, {"fee": f"1.{chance.randint(10, 99)}"})
            self.referee.edited(key, removed=False)
