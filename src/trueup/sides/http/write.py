"""Writing to an API: one record at a time, each with its precondition, and what to do when no answer comes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from trueup.errors import Unreachable
from trueup.model.record import Found, Projection
from trueup.ports import Write, Written
from trueup.sides.http import calls as calling
from trueup.sides.http.calls import Answer, Unanswered
from trueup.sides.http.mapping import Shape, dumped, overlaid
from trueup.sides.http.read import Reader, Seen
from trueup.sides.scanning import missing_column

_TRIES: Final = 3
REFUSED: Final = (409, 412)


@dataclass(frozen=True, slots=True)
class Methods:
    """How records are written. answers_with_record: the answer to a put holds the record as it is stored now."""

    create: str
    update: str
    delete: str
    answers_with_record: bool


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    url: httpx2.URL
    headers: dict[str, str]
    body: str | None


class Writer:
    """Applies writes one by one: those of one key in order, those of several keys at once."""

    def __init__(self, reader: Reader, methods: Methods) -> None:
        self.reader, self.calls, self.shape = reader, reader.calls, reader.shape
        self.methods = methods

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Answers in the order of the writes."""
        chains: dict[str, list[int]] = {}
        for at, write in enumerate(writes):
            check_names(projection, write, self.shape.label)
            chains.setdefault(write.key, []).append(at)
        answers: dict[int, Written] = {}

        def work(chain: Sequence[int]) -> None:
            for at in chain:
                answers[at] = self.one(projection, writes[at])

        calling.at_once(work, chains.values(), self.calls.at_once)
        return [answers[at] for at in range(len(writes))]

    def one(self, projection: Projection, write: Write) -> Written:
        """One write to its end: landed, or refused with the record that is there."""
        lost: Unanswered | None = None
        turn = 0
        for _ in range(_TRIES):
            looked = self._must_look(write)
            before = self.reader.look(projection, write.key) if looked else None
            if lost is not None and looked and is_wanted(projection, write, _found(before)):
                return Written(write.key, landed=True, replica=self._as_read(projection, before))
            if looked and not expected(write, before, projection):
                return Written(write.key, landed=False, replica=self._as_read(projection, before))
            if looked and before is None and write.values is None:
                return Written(write.key, landed=True, replica=None)
            call = self._call(projection, write, before, turn)
            try:
                answer = self.calls.send(call.method, call.url, call.headers, call.body)
            except Unanswered as error:
                # Whether it landed is seen by reading, not by writing again.
                after = self.reader.look(projection, write.key)
                if is_wanted(projection, write, _found(after)):
                    return Written(write.key, landed=True, replica=self._read_back(projection, write))
                if not (expected(write, after, projection) if write.expect is not None else _same(before, after)):
                    return Written(write.key, landed=False, replica=self._read_back(projection, write))
                if call.method == "POST" and not write.id:
                    raise
                lost = error
                continue
            written = self._judged(projection, write, answer, again=lost is not None, call=call)
            if written is None:
                continue
            if turn or not (answer.ok and write.id and self._replayed(projection, write, before, written)):
                return written
            turn = 1
        raise lost or Unreachable(
            f"{self.calls.who}: the record {write.key} changed at each of {_TRIES} tries to write it.",
            hint="It is written again later.",
        )

    def _must_look(self, write: Write) -> bool:
        """Whether the precondition, the method or the body can only be known by reading first."""
        if write.values is None:
            return write.expect is not None and not _is_etag(write.expect)
        if write.expect == "":
            # If-None-Match is trusted only where ETags were met.
            return not (self.reader.saw_etag and self.methods.create == "PUT")
        return not _is_etag(write.expect) or self.methods.update == "PUT"

    def _replayed(self, projection: Projection, write: Write, before: Seen | None, written: Written) -> bool:
        """Whether the system said yes and did nothing, as to an idempotency key of an earlier, equal write.

        Such a write was undone since, by hand perhaps, and is to be done again.
        """
        if write.values is None or is_wanted(projection, write, written.replica):
            return False
        if before is None and _is_etag(write.expect):
            return written.replica is not None and written.replica.token == write.expect
        return (None if before is None else before.found.values) == (written.replica and written.replica.values)

    def _call(self, projection: Projection, write: Write, before: Seen | None, turn: int) -> _Call:
        etag = (before.etag if before is not None else "") or (write.expect if _is_etag(write.expect) else "") or ""
        headers = {"If-Match": etag} if etag else {}
        if write.values is None:
            return _Call(self.methods.delete, self.reader.url_of(projection, write.key), headers, None)
        headers |= {"Idempotency-Key": idempotency_key(write, turn)} if write.id else {}
        headers["Content-Type"] = "application/json"
        if before is not None or _is_etag(write.expect):
            placed = self.shape.written(projection, without_key(projection, write))
            whole = before.raw if before is not None and self.methods.update == "PUT" else {}
            url = self.reader.url_of(projection, write.key)
            return _Call(self.methods.update, url, headers, dumped(overlaid(whole, placed)))
        headers |= {"If-None-Match": "*"} if self.reader.by_key.etag else {}
        in_list = self.methods.create == "POST"
        url = httpx2.URL(self.reader.base) if in_list else self.reader.url_of(projection, write.key)
        return _Call(self.methods.create, url, headers, dumped(whole_record(self.shape, projection, write)))

    def _judged(
        self, projection: Projection, write: Write, answer: Answer, *, again: bool, call: _Call
    ) -> Written | None:
        """What an answer means; None where the write has to be judged anew."""
        if answer.ok:
            return Written(write.key, landed=True, replica=self._stored(projection, write, answer))
        gone = answer.status in self.reader.by_key.gone and "If-None-Match" not in call.headers
        if gone and write.values is None and (again or write.expect is None):
            return Written(write.key, landed=True, replica=None)
        if answer.status not in REFUSED and not (gone and call.method != "POST"):
            raise answer.failure(f"{call.method} of the record {write.key}", self.calls.credentials.advice)
        if write.expect is None and not again:
            return None
        replica = self.reader.look(projection, write.key)
        landed = again and is_wanted(projection, write, _found(replica))
        return Written(write.key, landed=landed, replica=self._read_back(projection, write))

    def _stored(self, projection: Projection, write: Write, answer: Answer) -> Found | None:
        if write.values is None and answer.status != 202:
            return None
        if self.methods.answers_with_record and write.values is not None and answer.body.strip():
            seen = self.reader.seen(projection, write.key, answer)
            if seen is not None and (seen.etag or not self.reader.saw_etag):
                return self.reader.as_read(projection, seen)
        return self._read_back(projection, write)

    def _as_read(self, projection: Projection, seen: Seen | None) -> Found | None:
        return None if seen is None else self.reader.as_read(projection, seen)

    def _read_back(self, projection: Projection, write: Write) -> Found | None:
        return self.reader.read(projection, [write.key]).get(write.key)


def check_names(projection: Projection, write: Write, label: str) -> None:
    """SchemaError where a write names what the projection does not."""
    names = [field.name for field in projection.columns]
    for name in write.values or ():
        if name not in names:
            raise missing_column(name, names, f"the projection of {label}")


def idempotency_key(write: Write, turn: int = 0) -> str:
    """Equal for the same write on the same state of the record: a refusal must not be answered to another."""
    state = hashlib.md5((write.expect or "").encode(), usedforsecurity=False).hexdigest()[:8]
    return write.id + (f"-{state}" if write.expect else "") + (f"-{turn}" if turn else "")


def without_key(projection: Projection, write: Write) -> dict[str, str | None]:
    """The texts of a put that are not part of the key."""
    key = {field.name for field in projection.key}
    return {name: text for name, text in (write.values or {}).items() if name not in key}


def whole_record(shape: Shape, projection: Projection, write: Write) -> dict[str, Any]:
    """The JSON object of a put, key included."""
    texts = {**shape.keyed(projection, write.key), **without_key(projection, write)}
    return overlaid({}, shape.written(projection, texts))


def expected(write: Write, seen: Seen | None, projection: Projection) -> bool:
    """Whether the record is still as the write expects it."""
    if write.expect is None:
        return True
    if seen is None or write.expect == "":
        return seen is None and write.expect == ""
    return write.expect == (seen.etag if _is_etag(write.expect) else plain_token(seen.found, projection))


def plain_token(found: Found, projection: Projection) -> str:
    """The token of a record that shows no ETag: its version, else its digest."""
    return str(found.version) if found.version is not None else projection.digest(found.values)


def is_wanted(projection: Projection, write: Write, found: Found | None) -> bool:
    """Whether the record is as the write would make it."""
    if write.values is None or found is None:
        return write.values is None and found is None
    by_name = {field.name: field for field in projection.columns}
    return all(
        by_name[name].rule.same(text, found.values[name], by_name[name].kind) for name, text in write.values.items()
    )


def _is_etag(token: str | None) -> bool:
    return token is not None and token.startswith(('"', "W/"))


def _same(before: Seen | None, after: Seen | None) -> bool:
    if before is None or after is None:
        return before is after
    return (before.etag, before.found.values) == (after.etag, after.found.values)


def _found(seen: Seen | None) -> Found | None:
    return None if seen is None else seen.found
