"""The HTTP side: one list of records of an API that speaks JSON."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import httpx2

from trueup.environment import expand
from trueup.errors import ConfigError
from trueup.model.budget import CallKind, System
from trueup.model.inputs import Inputs
from trueup.model.kinds import Kind, kind_named
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Capabilities, Description, Gate, Scope, Write, Written
from trueup.sides import scanning
from trueup.sides.http.auth import Auth, Basic, credentials_of
from trueup.sides.http.bulk import Bulk, BulkWriter
from trueup.sides.http.calls import Calls
from trueup.sides.http.mapping import Pick, Shape, Wrapping, address, check_template, compiled
from trueup.sides.http.paging import Listing, Paging, Style
from trueup.sides.http.read import ByKey, Reader
from trueup.sides.http.throttling import Throttled, When
from trueup.sides.http.write import Methods, Writer

if TYPE_CHECKING:
    import pyarrow as pa

Method = Literal["POST", "PUT", "PATCH", "DELETE"]


class Http:
    """Records behind an HTTP API: readable and writable, safe to share between threads.

    url: of the list; a query in it is sent with every list call. `${NAME}` in url, headers and secrets is a
    variable of the environment. key, version: columns. columns: kinds by name; others are inferred from the first
    page, numbers as exact integers and decimals. fields: JMESPath by column; else a record's own names.
    items: JMESPath to the list in a page, item: to the record in a single answer; else the body, or what it holds
    under data, items or results. lists: False where there is no list, so that columns has to name all.

    paging: `page` numbers (first_page), `offset`, `cursor` (next: JMESPath or `header:NAME`), `link` (Link header,
    or an address at next), or `none`. page_param, size_param: names of the parameters. total: JMESPath or
    `header:NAME` of the number of records. enumerations: how often a list that moves is read anew before
    IncompleteScan. changed_param: asks for what changed since.

    item_url: template with {url} (without its query), {key} and key columns, all URL-encoded; None where there are
    no single records. keys_param: parameter of the list that takes keys, separated by commas, keys_at_once of them.
    gone: statuses that mean a record is absent.

    create, update, delete: methods. PUT replaces a record (it is read first, so that other fields stay), POST
    creates in the list. etag: whether ETags are preconditions (`"weak"`: weak ones too); say False where the API
    sends them and ignores If-Match. answers_with_record: whether the answer to a put is the record as stored.
    bulk_url: takes many puts in one call, as a list or under bulk_under; bulk_results and bulk_status: where the
    answer has one result a record, and its status.

    timeout_s: for a call, at most; it has to fit into the pair's lease. at_once: calls at a time. throttled_when:
    what means *too often* beside 429: a status, a JMESPath into the body, a table of status, header, body and
    used_up (then it is the day's quota), or several of these. gate: the door to the system; may be set later.
    system: what `project.system` answered: the system whose budget and pauses hold for every call.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | Sequence[str],
        version: str | None = None,
        columns: Mapping[str, Kind | str] | None = None,
        fields: Mapping[str, str] | None = None,
        items: str | None = None,
        item: str | None = None,
        lists: bool = True,
        paging: Style = "page",
        page_param: str | None = None,
        size_param: str | None = "limit",
        page_size: int = 100,
        first_page: int = 1,
        next: str | None = None,  # noqa: A002  the word for it
        total: str | None = None,
        enumerations: int = 3,
        changed_param: str | None = None,
        item_url: str | None = "{url}/{key}",
        keys_param: str | None = None,
        keys_at_once: int = 50,
        gone: Iterable[int] = (404, 410),
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        etag: bool | Literal["weak"] = True,
        create: Method = "PUT",
        update: Method = "PATCH",
        delete: Method = "DELETE",
        answers_with_record: bool = False,
        bulk_url: str | None = None,
        bulk_method: Method = "POST",
        bulk_under: str | None = None,
        bulk_results: str | None = None,
        bulk_status: str = "status",
        bulk_size: int = 100,
        timeout_s: float = 10.0,
        at_once: int = 4,
        throttled_when: When | Iterable[When] | None = None,
        gate: Gate | None = None,
        system: System | None = None,
        label: str | None = None,
    ) -> None:
        self.system = system
        list_url, auth = _parsed(expand(url, "url"), auth)
        base = str(list_url.copy_with(query=None))
        self._place = f"{list_url.scheme}://{list_url.host}{list_url.path}"
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self.label = label or list_url.path.rstrip("/").rpartition("/")[2] or list_url.host
        self._changed_param, self._etag, self._answers = changed_param, etag, answers_with_record
        who = f"{self.label} at {list_url.host}"
        self._calls = Calls(
            who, list_url, _sent(headers), credentials_of(auth), timeout_s, at_once, Throttled.of(throttled_when)
        )
        self._calls.gate = gate
        self._wrapping = Wrapping(who, items, item)
        declared = {name: kind_named(kind) for name, kind in (columns or {}).items()}
        self._shape = Shape(self.label, self.key, fields, declared)
        self._listing: Listing | None = None
        if lists:
            paged = Paging.of(paging, page_param, size_param, page_size, first_page, next, total)
            self._listing = Listing(self._calls, paged, self._wrapping, self.label, enumerations)
        elif not declared:
            raise ConfigError(f"{self.label} has no list to learn its columns from.", hint="Declare columns.")
        item_url = None if item_url is None else expand(check_template(item_url, self.key, "item_url"), "item_url")
        by_key = ByKey(item_url, keys_param, keys_at_once, etag, frozenset(gone))
        self._reader = Reader(self._calls, self._listing, self._wrapping, self._shape, by_key, base)
        self._writer = Writer(self._reader, Methods(create, update, delete, answers_with_record))
        self._bulk: BulkWriter | None = None
        if bulk_url is not None:
            picks = Pick.of(bulk_results, "bulk_results"), Pick(bulk_status, compiled(bulk_status, "bulk_status"))
            bulk = Bulk(_bulk_url(bulk_url, base), bulk_method, bulk_under, *picks, bulk_size)
            self._bulk = BulkWriter(self._writer, bulk)
        self._lock = threading.Lock()
        self._learned = False

    @property
    def gate(self) -> Gate | None:
        """The door that every call goes through."""
        return self._calls.gate

    @gate.setter
    def gate(self, gate: Gate | None) -> None:
        self._calls.gate = gate

    @property
    def place(self) -> str:
        """The host, for messages; never a password."""
        return self._calls.url.host

    @property
    def capabilities(self) -> Capabilities:
        """What was declared; and whether the API was seen to give ETags, once it was asked for a record."""
        by_key = self._reader.by_key
        guarded = bool(self._etag) and self._reader.saw_etag is not False and self._bulk is None
        return Capabilities(
            reads_by_key=by_key.item_url is not None or by_key.keys_param is not None,
            version_index=self._changed_param is not None,
            precondition="system" if guarded else "read",
        )

    @property
    def calls_of_put(self) -> tuple[CallKind, ...]:
        """The calls that one put takes at most, for a forecast: a read before, the write, and a read after."""
        return ("read", "write") if self._answers else ("read", "write", "read")

    def describe(self) -> Description:
        """Declared columns, then those of the first page, which is asked for once."""
        self._learn()
        guessed = self._wrapping.guessed
        system = f"HTTP API, records under {guessed}" if guessed else "HTTP API"
        return Description(self.label, system, self._shape.columns, self.key)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every record in scope, after the whole list was read without drift."""
        self._check(projection)
        if scope.where is not None:
            raise ConfigError(f"{self.label} takes no condition.", hint="Put it into the query of url.")
        if scope.since is None:
            return self._reader.scan(projection)
        return self._reader.since(projection, scope.since, self._changed_param)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts. Absent is only what the API says it does not have."""
        self._check(projection)
        return self._reader.read(projection, keys)

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Applies the writes, those of one key in order, each under its precondition.

        Raises SideError where the API does not accept a record; others of the call may have landed.
        """
        self._check(projection)
        return (self._bulk or self._writer).apply(projection, writes)

    def declared(self) -> dict[str, str]:
        """The address, without who logs in and what is asked for."""
        return {"url": self._place}

    def inputs(self) -> Inputs:
        """Nothing that could be told again."""
        return Inputs(clock_us=self.now_us())

    def now_us(self) -> int | None:
        """The clock of the API's latest answer, carried on; None before the first."""
        return self._calls.now_us()

    def close(self) -> None:
        """Gives back connections."""
        self._calls.close()

    def _learn(self) -> None:
        with self._lock:
            if not self._learned:
                self._shape.learn([] if self._listing is None else self._listing.first(), self.version)
                self._learned = True

    def _check(self, projection: Projection) -> None:
        self._learn()
        scanning.check_columns(projection, self._shape.columns, self.label)


def _parsed(url: str, auth: Auth | None) -> tuple[httpx2.URL, Auth | None]:
    """The address without user and password, which become basic authentication."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError):
        parsed = httpx2.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigError("the url is no HTTP address.", hint="For example https://api.example/orders.")
    if parsed.userinfo:
        auth = auth or Basic(parsed.username, parsed.password)
        parsed = parsed.copy_with(username=None, password=None)
    return parsed.copy_with(fragment=None), auth


def _sent(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name: expand(value, f"the header {name}") for name, value in (headers or {}).items()}


def _bulk_url(template: str, base: str) -> httpx2.URL:
    return httpx2.URL(address(expand(check_template(template, (), "bulk_url"), "bulk_url"), base))
