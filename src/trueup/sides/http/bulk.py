"""Writing many records in one call, where the API answers for each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from trueup.errors import BadInput, SideError, Unreachable
from trueup.model.record import Found, Projection
from trueup.ports import Write, Written
from trueup.sides.http.calls import Answer, Unanswered
from trueup.sides.http.mapping import Pick, dumped
from trueup.sides.http.read import Seen
from trueup.sides.http.write import REFUSED, Writer, check_names, expected, idempotency_key, is_wanted, whole_record


@dataclass(frozen=True, slots=True)
class Bulk:
    """How many records are put in one call.

    under: name of the list in the body; None where the body is the list. results: where the answer's list is, in
    the order of the call; status: where a result says how it went, as an HTTP status. many: records in a call.
    """

    url: httpx2.URL
    method: str
    under: str | None
    results: Pick | None
    status: Pick
    many: int


class BulkWriter:
    """Puts in calls of many, deletes one by one, all in the order of the writes for each key.

    The precondition is a read just before: there is no ETag for each of many.
    """

    def __init__(self, writer: Writer, bulk: Bulk) -> None:
        self._writer, self._bulk = writer, bulk
        self._reader, self._calls = writer.reader, writer.calls

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Answers in the order of the writes."""
        answers: list[Written] = []
        some: list[Write] = []
        for write in writes:
            check_names(projection, write, self._writer.shape.label)
            if some and (write.values is None or len(some) == self._bulk.many or write.key in {w.key for w in some}):
                answers += self._some(projection, some)
                some = []
            if write.values is None:
                answers.append(self._writer.one(projection, write))
            else:
                some.append(write)
        return answers + self._some(projection, some)

    def _some(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Puts of distinct keys."""
        if len(writes) < 2:
            return [self._writer.one(projection, write) for write in writes]
        before = self._reader.read(projection, [write.key for write in writes])
        permitted = [write for write in writes if expected(write, _seen(before.get(write.key)), projection)]
        landed = {write.key for write in self._put(projection, permitted)} if permitted else set()
        after = self._reader.read(projection, [write.key for write in writes])
        return [Written(write.key, write.key in landed, after.get(write.key)) for write in writes]

    def _put(self, projection: Projection, writes: Sequence[Write]) -> list[Write]:
        """The writes that landed."""
        records: Any = [whole_record(self._writer.shape, projection, write) for write in writes]
        body = records if self._bulk.under is None else {self._bulk.under: records}
        headers = {"Content-Type": "application/json"}
        if all(write.id for write in writes):
            joined = "\n".join(idempotency_key(write) for write in writes)
            headers["Idempotency-Key"] = hashlib.md5(joined.encode(), usedforsecurity=False).hexdigest()
        try:
            answer = self._calls.send(self._bulk.method, self._bulk.url, headers, dumped(body))
        except Unanswered:
            return self._one_by_one(projection, writes)
        if not answer.ok:
            raise answer.failure(f"a call with {len(writes)} records", self._calls.credentials.advice)
        return self._landed(writes, answer)

    def _one_by_one(self, projection: Projection, writes: Sequence[Write]) -> list[Write]:
        """What landed of a call whose answer was lost; what did not is written singly, under its own id."""
        after = self._reader.read(projection, [write.key for write in writes])
        landed = []
        for write in writes:
            there = is_wanted(projection, write, after.get(write.key))
            if there or self._writer.one(projection, write).landed:
                landed.append(write)
        return landed

    def _landed(self, writes: Sequence[Write], answer: Answer) -> list[Write]:
        who = self._calls.who
        body = answer.json()
        results = body if self._bulk.results is None else self._bulk.results(answer, body)
        if not isinstance(results, list) or len(results) != len(writes):
            hint = "Say where the results are, with bulk_results; there must be one for each record, in order."
            raise BadInput(f"{who} did not answer for each of {len(writes)} records.", hint=hint)
        landed = []
        for write, result in zip(writes, results, strict=True):
            said = self._bulk.status(answer, result)
            try:
                status = int(said)
            except (TypeError, ValueError):
                hint = "Say where a result has its status, with bulk_status."
                raise BadInput(f"{who} gave no status for the record {write.key}.", hint=hint) from None
            if 200 <= status < 300:
                landed.append(write)
            elif status not in REFUSED:
                kind = Unreachable if status >= 500 or status == 429 else SideError
                raise kind(f"{who} answered {status} to the record {write.key}.", hint="The others may have landed.")
        return landed


def _seen(found: Found | None) -> Seen | None:
    """A record read among many; its ETag is its token where it was read singly."""
    if found is None:
        return None
    return Seen(found, None, found.token if found.token.startswith(('"', "W/")) else "")
