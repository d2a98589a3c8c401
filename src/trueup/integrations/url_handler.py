"""A handler behind a URL: each change is posted as signed JSON, and the answer says how the job ends.

Signed as Standard Webhooks are (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md),
so that a receiver in any language checks it with a library that exists. The `webhook-id` of a change is its
idempotency key: the same for every attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import httpx2

from trueup.engine import context
from trueup.events.signature import sign
from trueup.integrations.url import STYLE, Url
from trueup.integrations.url_answer import Ending, ending_of
from trueup.model.budget import System
from trueup.model.change import Change
from trueup.model.outcome import RateLimited, Reject
from trueup.model.record import Payload
from trueup.pair import Pair
from trueup.ports import Clock, Gate
from trueup.sides.http.auth import credentials_of
from trueup.sides.http.calls import TOO_MANY, Calls
from trueup.sides.http.mapping import dumped, json_value
from trueup.sides.http.throttling import Throttled

ONE: Final = "trueup.change"
MANY: Final = "trueup.changes"
ANSWER_MAX: Final = 1 << 20


class UrlHandler:
    """Posts the changes of one pair to one URL. `one` and `many` are handlers as a pair takes them.

    gate: the door to the pair's system; bound by the project. Safe to share between threads.
    """

    def __init__(self, pair: Pair, url: Url, clock: Clock) -> None:
        self._pair, self._keys, self._clock = pair, url.keys, clock
        self._calls = Calls(
            url.who, httpx2.URL(url.address), url.sent, credentials_of(None), url.timeout_s, 1, Throttled(), ANSWER_MAX
        )
        self.system: System | None = pair.system
        self.gate: Gate | None = None

    def one(self, change: Change) -> None:
        """Posts one change; raises the outcome that the answer asks for.

        Raises Unreachable where the system is in trouble, RateLimited where it asks for a pause, LeaseLost where the
        record became somebody else's while the call waited at the gate.
        """
        ending = self._post(change.id, ONE, self._told(change), [change.id]).of(change.id)
        if ending is not None:
            raise ending

    def many(self, changes: Sequence[Change]) -> dict[str, Exception | None]:
        """Posts changes in one call; answers how each ended, by key text.

        A batch that is refused whole is sent again in halves, so that one record does not hold up the others.
        """
        idents = [each.id for each in changes]
        name = hashlib.md5("".join(idents).encode(), usedforsecurity=False).hexdigest()
        try:
            answer = self._post(name, MANY, [self._told(each) for each in changes], idents)
        except Reject as refused:
            if len(changes) == 1:
                return {changes[0].key: refused}
            middle = len(changes) // 2
            return self.many(changes[:middle]) | self.many(changes[middle:])
        return {each.key: answer.of(each.id) for each in changes}

    def close(self) -> None:
        """Gives back connections."""
        self._calls.close()

    def _told(self, change: Change) -> dict[str, Any]:
        """A change as the receiver sees it: docs/how-to/url-handlers.md."""
        payload = Payload.loads(change.payload)
        return {
            "id": change.id,
            "pair": change.pair,
            "key": dict(zip(self._pair.key, change.key_parts, strict=True)),
            "action": change.action,
            "version": change.version,
            "values": {name: json_value(text, payload.kinds[name]) for name, text in payload.values.items()},
            "attempt": change.attempt,
        }

    def _post(self, name: str, what: str, data: Any, idents: Sequence[str]) -> Ending:
        """One call; name: of the message, equal for each attempt."""
        body = dumped({"type": what, "data": data})
        if self.gate is not None:
            self.gate.enter("write")
        status: int | None = None
        headers: dict[str, str] = {}
        try:
            # The wait at the gate may have been long: the right to the record, and the time signed, are of now.
            context.check()
            now_us = self._clock.now_us()
            signed = sign(STYLE, self._keys, body.encode(), delivery=name, now_us=now_us)
            answer = self._calls.send("POST", self._calls.url, {"Content-Type": "application/json", **signed}, body)
            status, headers = answer.status, dict(answer.headers)
            return ending_of(answer, idents, now_us)
        except RateLimited as asked:
            # However it was said, the gate keeps it as every system's pause is kept.
            status, headers = TOO_MANY, {"retry-after": f"{asked.retry_after_s:.0f}"}
            raise
        finally:
            if self.gate is not None:
                self.gate.leave(status, headers)
