"""The model of trueup.toml: what may stand in it, as typed values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from trueup.config.proving import EvidenceOptions
from trueup.config.sides import ApiOptions, FileOptions, SideOptions, TableOptions
from trueup.config.values import DURATION, Duration, Function, KindText, Names, Options, Zone
from trueup.config.watching import AlertsOptions, HealthOptions
from trueup.errors import ConfigError
from trueup.model.budget import declare_system
from trueup.model.drift import Drift
from trueup.model.record import Rule
from trueup.pair import FieldSpec


class FieldOptions(Options):
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


class UrlOptions(Options):
    """A handler that is a URL."""

    url: str = Field(description="Address that signed changes are posted to.")
    secrets: Names = Field(description="What signs them: base64, as `${VARIABLE}`; several while one is being changed.")
    batch: int | None = Field(None, ge=1, description="Changes to post in one call. By default each has its own.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds for a call; it has to fit into the pair's lease.")
    headers: dict[str, str] = Field({}, description="Headers of every call, for a gateway in between.")


class FunctionOptions(Options):
    """A handler that is a function and takes many changes at once."""

    function: Function = Field(description="`module:function`, called with a list of changes.")
    batch: int = Field(ge=1, description="The most changes in one call.")


def _kind_of_handler(value: object) -> str:
    if isinstance(value, FunctionOptions) or (isinstance(value, dict) and "function" in value):
        return "batch function"
    return "signed url" if isinstance(value, dict | UrlOptions) else "function"


HandlerOptions = Annotated[
    Annotated[Function, Tag("function")]
    | Annotated[FunctionOptions, Tag("batch function")]
    | Annotated[UrlOptions, Tag("signed url")],
    Discriminator(_kind_of_handler),
]


class WindowOptions(Options):
    """How a pair's time is cut into windows: `[pair.NAME.window]`."""

    column: str = Field(description="The date or time at the authority that says to which window a record belongs.")
    replica_column: str | None = Field(None, description="The same at the replica, where its name differs.")
    zone: Zone = Field(description="The time zone whose days, weeks and months are meant.")
    length: str = Field("1d", description="`1h`, `1d`, `1w` (from Monday) or `1mo`, or several, such as `6h`.")
    lag: Duration = Field("2h", description="How long after its end a window stays open.")
    replica_lag: Duration | None = Field(None, description="The same at the replica. By default as `lag`.")
    since: dt.date | None = Field(
        None, description="No window begins before. By default the newest that is closed when the pair first runs."
    )
    recheck: Duration = Field(
        "7d", description="How often a sealed window is read again that can't be summed in place."
    )


class ForEach(Options):
    """What may be instantiated for each client; by then that is done."""

    for_each: Literal["clients"] | None = Field(
        None, description='`"clients"`: once for each client, as `NAME@CLIENT`, with `{client.…}` for its values.'
    )


class PairOptions(ForEach):
    """One pair: `[pair.NAME]`."""

    authority: SideOptions = Field(description="The side that is right.")
    replica: SideOptions | None = Field(None, description="The other side. Without it changes only go to a handler.")
    fields: tuple[NamedField, ...] | None = Field(
        None, description="What is compared: names, or tables of options. By default all columns that both have."
    )
    ignore: Names = Field((), description="Columns that are not compared.")
    replica_owns: Names = Field((), description="Fields in which the replica is right: neither compared nor written.")
    fill: Names = Field((), description="Fields that are only written where the replica has no value.")
    map: dict[str, str] = Field({}, description="Names of the authority's columns at the replica, where they differ.")
    action_field: str | None = Field(None, description="The field whose value is the action.")
    absent_when: dict[str, Names] = Field({}, description="States of the authority that mean no record at the replica.")
    unsynced: str | None = Field(None, description="The authority's SQL condition for records still to be handled.")
    mark: str | None = Field(None, description="The assignments that say that a record was handled.")
    on_drift: dict[Drift, Literal["repair", "review"]] = Field(
        {}, description="What is done about a drift, where it differs from the default."
    )
    stop_at: dict[Literal["changes", "deletes", "share"], int | float] | None = Field(
        None,
        description="The most that one plan may change, delete, or change as a share of all records, without being "
        "asked about. By default a share of 0.3.",
    )
    settle: Duration = Field("2m", description=f"How long a record must be quiet before it is judged. {DURATION}")
    recheck: Duration = Field("4h", description="How long what was done counts as verified.")
    jitter: float = Field(0.5, ge=0, le=1, description="The share by which `recheck` varies, so that checks spread.")
    overlap: Duration = Field("1h", description="How far a sweep looks behind its cursor.")
    overlap_versions: int = Field(
        0, ge=0, description="The same for versions that are integers: how many versions it looks behind its cursor."
    )
    tries: int = Field(5, ge=1, description="Attempts before a record is parked.")
    lease: Duration = Field("1m", description="How long one worker may hold a record without renewing its right.")
    sweep: str | float | None = Field(
        None, description="When changed records are looked for: an interval such as `10m`, or a cron line."
    )
    compare: str | float | None = Field(
        None, description="When both sides are compared: an interval such as `1h`, or a cron line such as `0 3 * * *`."
    )
    compare_changed: str | float | None = Field(
        None, description="When only what changed is compared; cheap, and so more often than `compare`."
    )
    zone: Zone = Field("UTC", description="The time zone of cron lines and of `blackout`.")
    start_jitter: Duration | None = Field(
        None,
        description="The most by which starts are shifted, always by the same. By default an interval is shifted by up "
        "to itself, so that pairs spread, and a cron line is not.",
    )
    blackout: Names = Field(
        (), description="When no run starts: `22:00-06:00`, `Sat`, `Mon-Fri 08:00-18:00`. What is due starts after it."
    )
    after: Names | dict[str, Names] = Field(
        (), description="Pairs whose records must be done first; as a table, with the columns that hold their keys."
    )
    system: str | None = Field(None, description="The system that is called, from `[system.NAME]`.")
    concurrency: int | None = Field(
        None, ge=1, description="Batches of the pair that are worked at once, over all workers. By default any number."
    )
    two_person: bool = Field(False, description="Decisions about cases act only once a second person agrees.")
    window: WindowOptions | None = Field(
        None, description="Closed windows of time, which are then compared instead of everything."
    )
    totals: Names | dict[str, str] = Field(
        (),
        description="Amounts that evidence adds up at both sides; as a table, each with the field of its currency.",
    )
    redact: Names = Field((), description="Fields whose values never stand in evidence, only a hash of them.")
    health: HealthOptions | None = Field(
        None, description="From when something is a condition: `[pair.NAME.health]`. By default as `[health]`."
    )
    defect_after: int = Field(
        3,
        ge=0,
        description="After so many runs running in which the same field drifts for the same cause, a person "
        "is asked about a defect upstream; 0 for never.",
    )
    defect_share: float = Field(
        0.001,
        ge=0,
        le=1,
        description="The share of the records compared that must drift for a run to count; and 10 records.",
    )
    ping: str | None = Field(
        None, description="Address of an outside watcher, such as healthchecks.io, that is told how runs go."
    )
    handler: HandlerOptions | None = Field(
        None,
        description="Called for every change: `module:function`, or a URL. By default the built-in writer acts.",
    )
    handlers: dict[str, HandlerOptions] = Field({}, description="The same by action.")

    @field_validator("authority")
    @classmethod
    def _has_key(cls, value: TableOptions | FileOptions | ApiOptions) -> TableOptions | FileOptions | ApiOptions:
        if not value.key:
            raise ValueError('the authority needs a key, such as key = "id"')
        return value

    @field_validator("replica")
    @classmethod
    def _key_of_the_authority(cls, value: SideOptions | None, declared: ValidationInfo) -> SideOptions | None:
        authority = declared.data.get("authority")
        if value is None or value.key or authority is None:
            return value
        return value.model_copy(update={"key": authority.key})

    def declaration(self) -> dict[str, Any]:
        """The keyword options of `trueup.pair.declare`, without the name, the sides and the handlers."""
        apart = {"authority", "replica", "fields", "handler", "handlers", "system", "for_each"}
        options = self.model_dump(exclude=apart)
        if self.fields is not None:
            options["fields"] = [each.spec() for each in self.fields]
        return options

    @property
    def by_action(self) -> dict[str, str | FunctionOptions | UrlOptions]:
        """The handlers by action; `*` for any action."""
        return self.handlers if self.handler is None else {"*": self.handler, **self.handlers}


class SystemOptions(ForEach):
    """A system that pairs share: `[system.NAME]`."""

    limit: Names = Field((), description="Calls per time, such as `600/minute`, or several of them.")
    quota: str | None = Field(None, description="Calls a day, such as `10000/day`, counted from `quota_reset`.")
    quota_reset: str = Field("00:00 UTC", description="When the day of the quota begins: a time and a zone.")
    reserve: float = Field(0.4, ge=0, lt=1, description="The share of each limit that only events may use.")
    concurrency: int | None = Field(None, ge=1, description="Calls at once, over all workers.")
    cost: dict[Literal["list", "read", "write"], float] = Field(
        {}, description="What a call costs, by kind: `list` (a page), `read` (a record), `write`. By default 1."
    )
    cost_header: str | None = Field(None, description="Header of an answer that says what the call did cost.")
    remaining_header: str | None = Field(
        None, description="Header of an answer that says how much is left, such as `X-RateLimit-Remaining`."
    )
    reset_header: str | None = Field(
        None, description="Header that says until when: seconds from now, seconds of the epoch, or a date."
    )
    pause_max: Duration = Field("1d", description="The longest pause that the system may ask for.")

    @model_validator(mode="after")
    def _declared(self) -> SystemOptions:
        try:
            declare_system("", **self.declaration())
        except ConfigError as error:
            raise ValueError(f"{error.message.removeprefix('system : ')} {error.hint or ''}".strip()) from None
        return self

    def declaration(self) -> dict[str, Any]:
        """The keyword options of `trueup.model.budget.declare_system`, without the name."""
        return self.model_dump(exclude={"for_each"})


class SourceOptions(ForEach):
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


class RetentionOptions(Options):
    """How long what nothing depends on is kept: `[retention]`."""

    history: Duration = Field("90d", description="What happened to a record; its newest 200 entries at most.")
    plans: Duration = Field("90d", description="The records of a run's plan, once nobody is asked about them.")
    letters: Duration = Field("90d", description="Dead letters, with the bodies that could not be understood.")
    evidence: Duration | None = Field(
        None,
        description="Entries of evidence, such as `10y`; whole months are cut, and an entry stands for them. By "
        "default they are kept for ever.",
    )


class ProjectConfig(Options):
    """A whole trueup.toml."""

    state: str = Field("sqlite:///trueup.db", description="Where trueup keeps its own state.")
    threads: int = Field(2, ge=1, description="Threads of a worker, where `--threads` does not say otherwise.")
    runs_at_once: int = Field(
        2, ge=1, description="Runs of different pairs that one scheduler has under way at a time."
    )
    memory_mb: int = Field(512, ge=64, description="Memory that a comparison may use, in MB; beyond it, it spills.")
    metrics: Literal["pairs", "definitions", "off"] = Field(
        "pairs",
        description="What `/metrics` tells apart: every pair, or only definitions, with their clients summed up; `off` "
        "counts nothing.",
    )
    pair: dict[str, PairOptions] = Field(description="The pairs by name, each in a table `[pair.NAME]`.")
    system: dict[str, SystemOptions] = Field({}, description="Systems by name, each in a table `[system.NAME]`.")
    source: dict[str, SourceOptions] = Field({}, description="Webhook senders by name, each in `[source.NAME]`.")
    health: HealthOptions | None = Field(
        None, description="From when something is a condition, where a pair does not say otherwise."
    )
    alerts: AlertsOptions | None = Field(None, description="Who is told of conditions: `[alerts]`.")
    evidence: EvidenceOptions | None = Field(None, description="Where anchors of evidence are kept: `[evidence]`.")
    retention: RetentionOptions | None = Field(
        None, description="How long what nothing depends on is kept: `[retention]`."
    )
    clients: Names | dict[str, dict[str, Any]] = Field(
        {}, description="Clients by name, each in a table `[clients.NAME]`; or patterns of TOML and CSV files."
    )
    _folder: Path = Path()

    @model_validator(mode="after")
    def _known_systems(self) -> ProjectConfig:
        for name, pair in self.pair.items():
            for system in (pair.system, *(getattr(side, "system", None) for side in (pair.authority, pair.replica))):
                if system is not None and system not in self.system:
                    raise ValueError(f"pair {name} names system {system}; declare it as [system.{system}]")
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
