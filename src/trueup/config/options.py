"""The model of trueup.toml: what may stand in it, as typed values."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from trueup.errors import ConfigError
from trueup.model.drift import Drift
from trueup.model.duration import duration_us
from trueup.model.kinds import kind_named
from trueup.model.record import Rule
from trueup.pair import FieldSpec


def _names(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{value!r} is not a time zone; write one such as Europe/Berlin or UTC") from None
    return value


def _duration(value: str | float) -> str | float:
    try:
        duration_us(value)
    except ConfigError as error:
        raise ValueError(error.hint) from None
    return value


def _kind(value: str) -> str:
    try:
        return str(kind_named(value))
    except ConfigError as error:
        raise ValueError(str(error)) from None


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Zone = Annotated[str, AfterValidator(_zone)]
Duration = Annotated[str | float, AfterValidator(_duration)]
KindText = Annotated[str, AfterValidator(_kind)]
Function = Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")]
_DURATION = "Seconds as a number, or a text such as 500ms, 10m, 1h, 2d."


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableOptions(_Options):
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


class FileOptions(_Options):
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


class AuthOptions(_Options):
    """Who calls an API: user and password, a token, or OAuth 2 client credentials."""

    user: str | None = Field(None, description="User name of basic authentication.")
    password: str | None = Field(None, description="Its password, as `${VARIABLE}`.")
    token: str | None = Field(None, description="A bearer token that does not change, as `${VARIABLE}`.")
    token_url: str | None = Field(None, description="Where an OAuth 2 token is fetched.")
    client_id: str | None = Field(None, description="The client's id.")
    client_secret: str | None = Field(None, description="The client's secret, as `${VARIABLE}`.")
    scope: str = Field("", description="The scope that is asked for.")

    @model_validator(mode="after")
    def _one_way(self) -> AuthOptions:
        ways = [{"user", "password"}, {"token"}, {"token_url", "client_id", "client_secret"}]
        given = {name for name, value in self if value is not None and name != "scope"}
        if given not in ways:
            raise ValueError("say user and password, or token, or token_url, client_id and client_secret")
        return self


class ApiOptions(_Options):
    """A side that is an HTTP API."""

    api: str = Field(description="Address of the list, such as `https://courses.example/api/enrollments`.")
    key: Names = Field((), description="The key column, or a list of them. By default the authority's.")
    version: str | None = Field(None, description="The column that grows whenever a record changes.")
    columns: dict[str, KindText] = Field({}, description="Kinds of columns; others are inferred from the first page.")
    fields: dict[str, str] = Field({}, description="JMESPath by column, where it is not the record's own name.")
    items: str | None = Field(None, description="JMESPath to the list in a page.")
    item: str | None = Field(None, description="JMESPath to the record in a single answer.")
    lists: bool = Field(True, description="Whether the API has a list at all.")
    paging: Literal["page", "offset", "cursor", "link", "none"] = Field("page", description="How the list is paged.")
    page_param: str | None = Field(None, description="Name of the parameter for the page, offset or cursor.")
    size_param: str | None = Field("limit", description="Name of the parameter for the size of a page.")
    page_size: int = Field(100, ge=1, description="Records a page.")
    next: str | None = Field(None, description="JMESPath, or `header:NAME`, of the next cursor or address.")
    total: str | None = Field(None, description="JMESPath, or `header:NAME`, of the number of records.")
    changed_param: str | None = Field(None, description="Name of the parameter that asks for what changed since.")
    item_url: str = Field("{url}/{key}", description="Address of a single record.")
    keys_param: str | None = Field(None, description="Name of the parameter of the list that takes keys.")
    headers: dict[str, str] = Field({}, description="Headers of every call.")
    auth: AuthOptions | None = Field(None, description="Who calls: see below.")
    etag: bool | Literal["weak"] = Field(True, description="Whether ETags are preconditions of writes.")
    create: Literal["POST", "PUT", "PATCH"] = Field("PUT", description="The method that creates a record.")
    update: Literal["POST", "PUT", "PATCH"] = Field("PATCH", description="The method that changes a record.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds for a call; it has to fit into the pair's lease.")


_TELLING: Final = {"url": "table", "path": "file", "api": "api"}
_TAGS: Final = {TableOptions: "table", FileOptions: "file", ApiOptions: "api"}


def _which(value: object) -> str | None:
    if isinstance(value, _Options):
        return _TAGS.get(type(value))
    found = [tag for name, tag in _TELLING.items() if isinstance(value, dict) and name in value]
    return found[0] if len(found) == 1 else None


SideOptions = Annotated[
    Annotated[TableOptions, Tag("table")] | Annotated[FileOptions, Tag("file")] | Annotated[ApiOptions, Tag("api")],
    Discriminator(_which, custom_error_type="side", custom_error_message="a side needs one of url, path and api"),
]


class FieldOptions(_Options):
    """A field and how its values are judged equal."""

    name: str = Field(description="The column at the authority.")
    kind: KindText | None = Field(None, description="The kind that the values are compared as.")
    places: int | None = Field(None, description="Decimals are rounded to this many places before they are compared.")
    absolute: Decimal | None = Field(None, ge=0, description="Numbers may differ by this much.")
    relative: Decimal | None = Field(None, ge=0, description="Numbers may differ by this share of the authority's.")
    seconds: Decimal | None = Field(None, ge=0, description="Times may differ by this many seconds.")
    trim: bool = Field(False, description="Text is compared without white space around it.")
    casefold: bool = Field(False, description="Text is compared without case.")
    nfc: bool = Field(False, description="Text is compared in Unicode form C.")

    def spec(self) -> FieldSpec:
        """The declaration that this stands for."""
        rule = Rule(**self.model_dump(exclude={"name", "kind"}))
        implied = "decimal" if self.places is not None else "text" if self.trim or self.casefold or self.nfc else None
        return FieldSpec(self.name, rule, self.kind or implied)


NamedField = Annotated[
    FieldOptions, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)
]


class PairOptions(_Options):
    """One pair: `[pair.NAME]`."""

    authority: SideOptions = Field(description="The side that is right.")
    replica: SideOptions | None = Field(None, description="The other side. Without it changes only go to a handler.")
    fields: tuple[NamedField, ...] | None = Field(
        None, description="What is compared: names, or tables of options. By default all columns that both have."
    )
    ignore: Names = Field((), description="Columns that are not compared.")
    map: dict[str, str] = Field({}, description="Names of the authority's columns at the replica, where they differ.")
    action_field: str | None = Field(None, description="The field whose value is the action.")
    absent_when: dict[str, Names] = Field({}, description="States of the authority that mean no record at the replica.")
    unsynced: str | None = Field(None, description="The authority's SQL condition for records still to be handled.")
    mark: str | None = Field(None, description="The assignments that say that a record was handled.")
    on_drift: dict[Drift, Literal["repair", "review"]] = Field(
        {}, description="What is done about a drift, where it differs from the default."
    )
    settle: Duration = Field("2m", description=f"How long a record must be quiet before it is judged. {_DURATION}")
    recheck: Duration = Field("4h", description="How long what was done counts as verified.")
    jitter: float = Field(0.5, ge=0, le=1, description="The share by which `recheck` varies, so that checks spread.")
    overlap: Duration = Field("1h", description="How far a sweep looks behind its cursor.")
    tries: int = Field(5, ge=1, description="Attempts before a record is parked.")
    lease: Duration = Field("1m", description="How long one worker may hold a record without renewing its right.")
    sweep: str | None = Field(None, description="How often changed records are looked for, such as `10m`.")
    compare: str | None = Field(None, description="How often both sides are compared, such as `1h`.")
    after: Names | dict[str, Names] = Field(
        (), description="Pairs whose records must be done first; as a table, with the columns that hold their keys."
    )
    system: str | None = Field(None, description="The system that is called, from `[system.NAME]`.")
    handler: Function | None = Field(
        None, description="`module:function` called for every change. By default the built-in writer acts."
    )
    handlers: dict[str, Function] = Field({}, description="`module:function` by action.")

    @field_validator("authority")
    @classmethod
    def _has_key(cls, value: TableOptions | FileOptions | ApiOptions) -> TableOptions | FileOptions | ApiOptions:
        if not value.key:
            raise ValueError('the authority needs a key, such as key = "id"')
        return value

    def declaration(self) -> dict[str, Any]:
        """The keyword options of `trueup.pair.declare`, without the name, the sides and the handlers."""
        options = self.model_dump(exclude={"authority", "replica", "fields", "handler", "handlers", "system"})
        if self.fields is not None:
            options["fields"] = [each.spec() for each in self.fields]
        return options

    @property
    def functions(self) -> dict[str, str]:
        """`module:function` by action; `*` for any action."""
        return self.handlers if self.handler is None else {"*": self.handler, **self.handlers}


class SystemOptions(_Options):
    """A system that pairs share: `[system.NAME]`."""

    limit: Names = Field((), description="Calls per time, such as `600/minute`, or several of them.")
    reserve: float = Field(0.4, ge=0, le=1, description="The share of each limit that only events may use.")
    concurrency: int | None = Field(None, ge=1, description="Calls at once, over all workers.")


class SourceOptions(_Options):
    """A sender of webhooks: `[source.NAME]`."""

    style: str | dict[str, Any] = Field(
        description="How it signs: `standard`, `github`, `stripe`, `shopify`, or a table."
    )
    secrets: Names = Field(description="Its secrets, as `${VARIABLE}`; several while one is being changed.")
    size_max: int = Field(1 << 20, ge=1, description="The largest body, in bytes.")
    window: Duration = Field(300, description="How old a signed time may be.")
    pairs: Names = Field((), description="The pairs it may be about; by default those of its events.")
    route: Function | None = Field(None, description="`module:function` from a parsed body to events.")
    events: tuple[dict[str, Any], ...] = Field((), description="Mappings from a body to records, in place of a route.")

    def declaration(self) -> dict[str, Any]:
        """The options of `trueup.events.webhook.Source`, without the route."""
        return self.model_dump(exclude={"route"}, exclude_defaults=True)


class ProjectConfig(_Options):
    """A whole trueup.toml."""

    state: str = Field("sqlite:///trueup.db", description="Where trueup keeps its own state.")
    pair: dict[str, PairOptions] = Field(description="The pairs by name, each in a table `[pair.NAME]`.")
    system: dict[str, SystemOptions] = Field({}, description="Systems by name, each in a table `[system.NAME]`.")
    source: dict[str, SourceOptions] = Field({}, description="Webhook senders by name, each in `[source.NAME]`.")
    _folder: Path = Path()

    @model_validator(mode="after")
    def _known_systems(self) -> ProjectConfig:
        for name, pair in self.pair.items():
            if pair.system is not None and pair.system not in self.system:
                raise ValueError(f"pair {name} names system {pair.system}; declare it as [system.{pair.system}]")
        return self

    @model_validator(mode="after")
    def _some_pair(self) -> ProjectConfig:
        if not self.pair:
            raise ValueError("there is no pair; declare one as [pair.NAME]")
        return self

    @property
    def folder(self) -> Path:
        """Where the file lies; handlers are imported from there too."""
        return self._folder

    def at(self, folder: Path) -> ProjectConfig:
        """The same, lying in `folder`."""
        self._folder = folder
        return self
