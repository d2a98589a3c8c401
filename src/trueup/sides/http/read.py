"""Reading an API: every record, or some by key."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import pyarrow as pa

from trueup.errors import SideError
from trueup.model.record import Field, Found, Projection, key_text
from trueup.model.times import timestamp_text
from trueup.sides import scanning
from trueup.sides.http import calls as calling
from trueup.sides.http.calls import Answer, Calls
from trueup.sides.http.mapping import Shape, Wrapping, address, addressed, can_be, mismatch
from trueup.sides.http.paging import Listing

_SPOOL_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as it was read by key: canonical, raw, and the ETag that writes may name ("" for none)."""

    found: Found
    raw: Any
    etag: str = ""


@dataclass(frozen=True, slots=True)
class ByKey:
    """How single records are read.

    item_url: template of a record's address, or None. keys_param: parameter of the list that takes many keys,
    `many` at a time. etag: whether ETags are tokens; `weak` for weak ones too. gone: statuses that mean absence.
    """

    item_url: str | None
    keys_param: str | None
    many: int
    etag: bool | str
    gone: frozenset[int]


class Reader:
    """All that reads one list of records."""

    def __init__(
        self, calls: Calls, listing: Listing | None, wrapping: Wrapping, shape: Shape, by_key: ByKey, base: str
    ) -> None:
        self.calls, self.listing, self.wrapping, self.shape = calls, listing, wrapping, shape
        self.by_key, self.base = by_key, base
        # Whether the latest single answer brought an ETag; None before the first.
        self.saw_etag: bool | None = None

    # Everything.

    def scan(self, projection: Projection, params: dict[str, str] | None = None) -> Iterator[pa.RecordBatch]:
        """Every record, once the enumeration has come to its end; it waits on disk until then."""
        listing = self._listed()
        schema = scanning.schema_of(projection)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, prefix="trueup-") as spool:
            spooled = _Spool(spool, schema)
            listing.read(
                self.key_of(projection),
                spooled.begin,
                lambda page: spooled.take(self.shape.batch(page, projection)),
                params,
            )
            yield from spooled.batches()

    def since(self, projection: Projection, version: int, param: str | None) -> Iterator[pa.RecordBatch]:
        """Records with a version >= this, ordered by (version, key). param: asks the API for no others."""
        params = None
        if param is not None and projection.version is not None:
            params = {param: _before(version, projection.version)}
        return scanning.since(self.scan(projection, params), projection, version)

    def key_of(self, projection: Projection) -> Callable[[Any], str]:
        """The key text of a raw record."""
        return lambda raw: key_text(self.shape.text_of(raw, field) for field in projection.key)

    def _listed(self) -> Listing:
        if self.listing is None:
            raise SideError(
                f"{self.shape.label} has no list of records to read.", hint="It can only be read and written by key."
            )
        return self.listing

    # By key.

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts."""
        wanted = [key for key in dict.fromkeys(keys) if can_be(projection, key)]
        answer: dict[str, Found] = {}
        if self.by_key.keys_param is not None and len(projection.key) == 1:
            plain = [key for key in wanted if self._listable(projection, key)]
            parts = [plain[at : at + self.by_key.many] for at in range(0, len(plain), self.by_key.many)]
            for some in calling.at_once(lambda part: self._read_some(projection, part), parts, self.calls.at_once):
                answer |= some
            wanted = [key for key in wanted if key not in set(plain)]
        single = [key for key in wanted if self._address(projection, key) is not None]
        for seen in calling.at_once(lambda key: self._look(projection, key), single, self.calls.at_once):
            if seen is not None:
                answer[seen.found.key] = seen.found
        # What no address can name is found by reading everything: dear, but right.
        if rest := [key for key in wanted if key not in set(single)]:
            answer |= scanning.read_by_scan(self.scan(projection), projection, rest)
        return answer

    def look(self, projection: Projection, key: str) -> Seen | None:
        """One record as freshly and closely as the API can show it."""
        if self._address(projection, key) is not None:
            return self._look(projection, key)
        raws: list[Any] = []
        key_of = self.key_of(projection)
        self._listed().read(key_of, raws.clear, lambda page: raws.extend(raw for raw in page if key_of(raw) == key))
        return Seen(replace(self.shape.found(raws[0], projection), copies=len(raws)), raws[0]) if raws else None

    def seen(self, projection: Projection, key: str, answer: Answer) -> Seen | None:
        """The record in a single answer; None where the answer is about its neighbour by spelling."""
        raw = self.wrapping.item(answer.json(), self.shape.key[0])
        if isinstance(raw, dict):
            # An answer to one key need not repeat the key.
            raw = {**self.shape.missing_key(projection, key, raw), **raw}
        etag = self._etag(answer)
        found = self.shape.found(raw, projection, etag)
        if found.key == key:
            return Seen(found, raw, etag)
        if found.key.casefold() == key.casefold():
            return None
        raise mismatch(self.calls.who, key)

    def as_read(self, projection: Projection, seen: Seen) -> Found:
        """The record as `read` would answer it: of many at a time, no ETags are known."""
        by_many = self.by_key.keys_param is not None and len(projection.key) == 1
        return self.shape.found(seen.raw, projection) if by_many else seen.found

    def url_of(self, projection: Projection, key: str) -> httpx2.URL:
        """The address of a record; SideError where none can name it."""
        url = self._address(projection, key)
        if url is None:
            hint = "Declare item_url." if self.by_key.item_url is None else "A part of its key is null or empty."
            raise SideError(f"{self.shape.label}: no address names the record {key}.", hint=hint)
        return url

    def _address(self, projection: Projection, key: str) -> httpx2.URL | None:
        parts = addressed(projection, key)
        if self.by_key.item_url is None or parts is None:
            return None
        return httpx2.URL(address(self.by_key.item_url, self.base, parts))

    def _look(self, projection: Projection, key: str) -> Seen | None:
        # Some servers change the ETag with the encoding, and then know it no more.
        answer = self.calls.send("GET", self.url_of(projection, key), {"Accept-Encoding": "identity"})
        if answer.status in self.by_key.gone:
            return None
        if not answer.ok:
            raise answer.failure(f"the record {key}", self.calls.credentials.advice)
        self.saw_etag = bool(self._etag(answer))
        return self.seen(projection, key, answer)

    def _etag(self, answer: Answer) -> str:
        etag = str(answer.headers.get("etag", "")) if self.by_key.etag else ""
        return "" if etag.startswith("W/") and self.by_key.etag != "weak" else etag

    def _listable(self, projection: Projection, key: str) -> bool:
        parts = addressed(projection, key)
        return parts is not None and not any("," in part for part in parts.values())

    def _read_some(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        names = [next(iter((addressed(projection, key) or {}).values())) for key in keys]
        wanted, key_of = set(keys), self.key_of(projection)
        answer: dict[str, Found] = {}

        def take(page: list[Any]) -> None:
            for raw in page:
                if (key := key_of(raw)) in wanted:
                    found = self.shape.found(raw, projection)
                    copies = 1 + (answer[key].copies if key in answer else 0)
                    answer[key] = replace(answer.get(key, found), copies=copies)

        assert self.by_key.keys_param is not None
        self._listed().read(key_of, answer.clear, take, {self.by_key.keys_param: ",".join(names)})
        return answer


class _Spool:
    """Batches on disk, until it is known that they are all."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._writer: pa.RecordBatchStreamWriter | None = None

    def begin(self) -> None:
        """Forgets what came before."""
        self._file.seek(0)
        self._file.truncate()
        self._writer = pa.ipc.new_stream(self._file, self._schema)

    def take(self, batch: pa.RecordBatch) -> None:
        """One more."""
        assert self._writer is not None
        if batch.num_rows:
            self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them."""
        assert self._writer is not None
        self._writer.close()
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            yield from (batch.slice(at, scanning.BATCH_ROWS) for at in range(0, batch.num_rows, scanning.BATCH_ROWS))


def _before(version: int, field: Field) -> str:
    """A little earlier than the version: many APIs answer what is later than asked, and forget fractions."""
    if field.kind.name == "timestamp":
        return timestamp_text((version // 1_000_000 - 1) * 1_000_000, field.kind.aware)
    return str(version - 1)
