"""The sides of a pair in trueup.toml: tables, files and HTTP APIs."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from trueup.config.values import KindText, Names, Options, Zone


class TableOptions(Options):
    """A side that is a table or view of a database."""

    url: str = Field(description="Address of the database, such as `postgresql://user:${PASSWORD}@host/shop`.")
    table: str = Field(description="The table or view, with its schema where it needs one: `sales.orders`.")
    key: Names = Field((), description="The key column, or a list of them. A replica's is by default the authority's.")
    version: str | None = Field(None, description="The column that grows whenever a record changes.")
    where: str | None = Field(None, description="A SQL condition; records that it does not select do not exist.")
    zone: Zone | None = Field(None, description="The time zone of wall-clock times, such as `Europe/Berlin`.")
    columns: dict[str, KindText] = Field({}, description="Kinds of columns, where they differ from their types.")
    zero_date: Literal["null", "strict"] | None = Field(
        None, description="What a MySQL date of zeros is: `null`, or (`strict`) a value that equals only itself."
    )
    connections: int | None = Field(
        None, ge=1, le=12, description="Statements of one comparison at a time, on PostgreSQL; 2 by default."
    )
    timeout_s: float | None = Field(
        None, gt=0, description="Seconds after which the server ends a statement; by default its own limit."
    )
    throttle: float | None = Field(
        None, gt=0, le=1,
        description="The share of the time in which a connection may read, such as `0.25`; then it rests.",
    )  # fmt: skip


class FileOptions(Options):
    """A side that is a file, or several files named by a pattern."""

    path: str = Field(description="A file or a pattern such as `orders-*.parquet`; `.gz` and `.zst` are unpacked.")
    key: Names = Field(description="The key column, or a list of them.")
    version: str | None = Field(None, description="The column that grows whenever a record changes.")
    format: Literal["csv", "jsonl", "parquet"] | None = Field(None, description="By default what the suffix says.")
    columns: dict[str, KindText] = Field({}, description="Kinds of columns; text of a CSV file stays text without.")
    encoding: str | None = Field(None, description="The encoding of a text file; `utf-8` by default.")
    delimiter: str | None = Field(None, description="What separates the values of a CSV file; `,` by default.")
    quote: str | None = Field(
        None, description='What quotes the values of a CSV file; `"` by default, `""` for nothing.'
    )
    decimal: str | None = Field(None, description="The decimal mark of numbers in a CSV file; `.` by default.")
    thousands: str | None = Field(None, description="The mark between thousands in a CSV file; none by default.")
    null: Names | None = Field(None, description="Unquoted texts that mean null in a CSV file, such as `NA`.")
    where: str | None = Field(None, description="A SQL condition; records that it does not select do not exist.")
    rename: dict[str, str] | None = Field(None, description="Columns that should have another name than in the file.")
    skip_top: int | None = Field(None, ge=0, description="Lines before the header of a CSV file.")
    footer: dict[str, str] | None = Field(
        None, description='Texts by which the last row is known as a total, such as `{ Text = "Total" }`.'
    )
    zone: Zone | None = Field(None, description="The time zone of wall-clock times, such as `Europe/Berlin`.")


class AuthOptions(Options):
    """Who calls an API: user and password, a token, or OAuth 2 client credentials."""

    user: str | None = Field(None, description="User name of basic authentication.")
    password: str | None = Field(None, description="Its password, as `${VARIABLE}`.")
    token: str | None = Field(None, description="A bearer token that does not change, as `${VARIABLE}`.")
    token_url: str | None = Field(None, description="Where an OAuth 2 token is fetched.")
    client_id: str | None = Field(None, description="The client's id.")
    client_secret: str | None = Field(None, description="The client's secret, as `${VARIABLE}`.")
    scope: str = Field("", description="The scope that is asked for.")
    in_body: bool = Field(False, description="Whether id and secret go into the body, not into a basic header.")

    @model_validator(mode="after")
    def _one_way(self) -> AuthOptions:
        ways = [{"user", "password"}, {"token"}, {"token_url", "client_id", "client_secret"}]
        given = {name for name, value in self if value is not None and name not in ("scope", "in_body")}
        if given not in ways:
            raise ValueError("say user and password, or token, or token_url, client_id and client_secret")
        return self


class Throttling(Options):
    """An answer that means that an API was called too often: all that is said here has to be true of it."""

    status: int | None = Field(None, description="Its status.")
    header: str | None = Field(None, description="A header it has: `Retry-After`; or `X-Remaining: 0`, with its value.")
    body: str | None = Field(None, description="A JMESPath that is true of its body.")
    used_up: bool = Field(False, description="Whether it means that the quota of the day is used up.")


class ApiOptions(Options):
    """A side that is an HTTP API."""

    api: str = Field(description="Address of the list, such as `https://courses.example/api/enrollments`.")
    key: Names = Field((), description="The key column, or a list of them. By default the authority's.")
    version: str | None = Field(None, description="The column that grows whenever a record changes.")
    columns: dict[str, KindText] = Field({}, description="Kinds of columns; others are inferred from the first page.")
    fields: dict[str, str] | None = Field(None, description="JMESPath by column, where that is not the name itself.")
    items: str | None = Field(None, description="JMESPath to the list in a page.")
    item: str | None = Field(None, description="JMESPath to the record in a single answer.")
    lists: bool = Field(True, description="Whether the API has a list at all.")
    paging: Literal["page", "offset", "cursor", "link", "none"] = Field("page", description="How the list is paged.")
    page_param: str | None = Field(None, description="Name of the parameter for the page, offset or cursor.")
    size_param: str | Literal[False] = Field(
        "limit", description="Name of the parameter for the size of a page; `false` where there is none."
    )
    page_size: int = Field(100, ge=1, description="Records a page.")
    first_page: int = Field(1, description="Number of the first page.")
    next: str | None = Field(None, description="JMESPath, or `header:NAME`, of the next cursor or address.")
    total: str | None = Field(None, description="JMESPath, or `header:NAME`, of the number of records.")
    enumerations: int = Field(3, ge=1, description="How often a list that moves while it is read is begun again.")
    changed_param: str | None = Field(None, description="Name of the parameter that asks for what changed since.")
    item_url: str | Literal[False] = Field(
        "{url}/{key}", description="Address of a single record; `false` where the API has none."
    )
    keys_param: str | None = Field(None, description="Name of the parameter of the list that takes keys.")
    keys_at_once: int = Field(50, ge=1, description="Keys that `keys_param` takes in one call.")
    gone: tuple[int, ...] = Field((404, 410), description="Statuses that mean that a record is absent.")
    headers: dict[str, str] = Field({}, description="Headers of every call.")
    auth: AuthOptions | None = Field(None, description="Who calls: see below.")
    etag: bool | Literal["weak"] = Field(True, description="Whether ETags are preconditions of writes.")
    create: Literal["POST", "PUT", "PATCH"] = Field("PUT", description="The method that creates a record.")
    update: Literal["POST", "PUT", "PATCH"] = Field("PATCH", description="The method that changes a record.")
    delete: Literal["POST", "PUT", "PATCH", "DELETE"] = Field("DELETE", description="The method that deletes one.")
    answers_with_record: bool = Field(False, description="Whether the answer to a write is the record as stored.")
    bulk_url: str | None = Field(None, description="Address that takes many records in one call.")
    bulk_method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="Its method.")
    bulk_under: str | None = Field(None, description="The name under which it takes the list; by default the body.")
    bulk_results: str | None = Field(None, description="JMESPath to the results in its answer, one a record.")
    bulk_status: str = Field("status", description="JMESPath to the status in a result.")
    bulk_size: int = Field(100, ge=1, description="Records in one such call.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds for a call; it has to fit into the pair's lease.")
    at_once: int = Field(4, ge=1, description="Calls of this process at a time.")
    throttled_when: str | int | Throttling | tuple[str | int | Throttling, ...] | None = Field(
        None, description="What means *too often* besides 429: a status, a JMESPath into the body, a table, or several."
    )
    label: str | None = Field(None, description="Its name for people; by default the end of the address.")
    system: str | None = Field(
        None, description="The system from `[system.NAME]` whose budget and pauses hold for every call."
    )


_TELLING: Final = {"url": "table", "path": "file", "api": "api"}
_TAGS: Final = {TableOptions: "table", FileOptions: "file", ApiOptions: "api"}


def _which(value: object) -> str | None:
    if isinstance(value, Options):
        return _TAGS.get(type(value))
    found = [tag for name, tag in _TELLING.items() if isinstance(value, dict) and name in value]
    return found[0] if len(found) == 1 else None


SideOptions = Annotated[
    Annotated[TableOptions, Tag("table")] | Annotated[FileOptions, Tag("file")] | Annotated[ApiOptions, Tag("api")],
    Discriminator(_which, custom_error_type="side", custom_error_message="a side needs one of url, path and api"),
]
