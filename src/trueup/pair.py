"""Declarations: what a pair is, as a value. Nothing here reads or writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from trueup.errors import ConfigError, HandlerError
from trueup.model.breaker import DEFAULT, Breaker, breaker
from trueup.model.budget import System
from trueup.model.change import DELETE, UPSERT
from trueup.model.drift import DEFAULT_VERDICTS, REPAIRABLE, Drift, Verdict
from trueup.model.duration import duration_us
from trueup.model.names import NAME
from trueup.model.record import EXACT, Rule
from trueup.model.schedule import CHANGED, COMPARE, SWEEP, Schedule, schedules
from trueup.model.thresholds import DEFAULT as USUAL
from trueup.model.thresholds import Thresholds, thresholds
from trueup.model.trend import DEFAULT as RECURS
from trueup.model.trend import DefectRule, defect_rule
from trueup.model.window import Windows, windows_of
from trueup.ports import MarkableSide, Side, WindowedSide, WritableSide, provides


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that acts on changes. batch: how many it takes at once; None for one at a time.

    takes_replica: whether it declares a second parameter.
    """

    call: Callable[..., Any]
    batch: int | None = None
    takes_replica: bool = False


ANY_ACTION: Final = "*"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field that a pair compares: its name at the authority, how it is judged, and its kind where declared."""

    name: str
    rule: Rule = EXACT
    kind: str | None = None


def decimal(
    name: str,
    *,
    places: int | None = None,
    absolute: Decimal | str | float | None = None,
    relative: Decimal | str | float | None = None,
) -> FieldSpec:
    """A decimal field, rounded to `places` and judged equal within `absolute` or `relative` tolerance."""
    return FieldSpec(name, Rule(places=places, absolute=_number(absolute), relative=_number(relative)), "decimal")


def number(
    name: str, *, absolute: Decimal | str | float | None = None, relative: Decimal | str | float | None = None
) -> FieldSpec:
    """A numeric field judged equal within `absolute` or `relative` tolerance, of whatever kind its columns are."""
    return FieldSpec(name, Rule(absolute=_number(absolute), relative=_number(relative)))


def text(name: str, *, trim: bool = False, casefold: bool = False, nfc: bool = False) -> FieldSpec:
    """A text field, judged without surrounding white space, without case, or in Unicode form C."""
    return FieldSpec(name, Rule(trim=trim, casefold=casefold, nfc=nfc), "text")


def timestamp(name: str, *, seconds: Decimal | str | float) -> FieldSpec:
    """A timestamp field whose values may lie `seconds` apart."""
    return FieldSpec(name, Rule(seconds=_number(seconds)))


def _number(value: Decimal | str | float | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))


@dataclass(frozen=True)
class Pair:
    """An authority, optionally a replica, how to compare them, and what to do about drift.

    key: the authority's key columns; the keys of the replica are matched by position.
    fields: what is compared, None for every column that both sides have. replica_owns: fields in which the replica is
    right; they are neither compared nor written. fill: fields that are only written where the replica has no value.
    rename: authority's column name to replica's.
    action_field: the field whose value is the action. absent_when: authority states that mean
    *no record at the replica*. unsynced, mark: the authority's condition for records that still must be
    handled, and the assignments that say they were. on_drift: verdicts that differ from the defaults.
    stop_at: how much one plan may do unasked. overlap_us, overlap_versions: how far before the cursor a sweep begins.
    settle_us: how long a record must be quiet before it is judged. recheck_us, jitter: how long what is done
    counts as verified. tries_max: attempts before a record is parked. lease_us: right to work on one record.
    schedules: when a `sweep`, a `compare`, or a comparison of what `changed` is due, of those that are declared.
    system: what the handler or the replica's writer calls. after: pairs whose records must be done first, with the
    columns that hold their keys (none: the key's own names). concurrency: batches worked at once, over all workers of
    the store; None for any number. two_person: decisions about its cases act only once a second person agrees.
    windows: how its time is cut; then windows are compared, not everything.
    totals: amounts that evidence adds up at both sides, each with the field of its currency, or None. redact: fields
    whose values never stand in evidence. health: from when something is a condition. defects: when drift that recurs
    is a defect upstream. ping: address of an outside watcher that is told how runs go; it may hold a token.
    """

    name: str
    authority: Side
    replica: Side | None = None
    key: tuple[str, ...] = ()
    fields: tuple[FieldSpec, ...] | None = None
    ignore: tuple[str, ...] = ()
    replica_owns: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    action_field: str | None = None
    absent_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unsynced: str | None = None
    mark: str | None = None
    on_drift: Mapping[Drift, Verdict] = field(default_factory=dict)
    stop_at: Breaker = DEFAULT
    settle_us: int = 0
    recheck_us: int = 4 * 3_600_000_000
    jitter: float = 0.5
    overlap_us: int = 3_600_000_000
    overlap_versions: int = 0
    tries_max: int = 5
    lease_us: int = 60_000_000
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    system: System = field(default_factory=lambda: System(""))
    concurrency: int | None = None
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    two_person: bool = False
    windows: Windows | None = None
    totals: Mapping[str, str | None] = field(default_factory=dict)
    redact: tuple[str, ...] = ()
    health: Thresholds = USUAL
    defects: DefectRule = RECURS
    ping: str | None = field(default=None, repr=False)

    @property
    def authority_system(self) -> str:
        """The name under which trouble of the authority is kept."""
        declared: System | None = getattr(self.authority, "system", None)
        return f"{self.name}:authority" if declared is None else declared.name

    @property
    def systems(self) -> tuple[str, str]:
        """The systems that working a record calls."""
        return self.system.name, self.authority_system

    def verdict(self, drift: Drift) -> Verdict:
        """What is done about a drift of this kind."""
        return self.on_drift.get(drift, DEFAULT_VERDICTS[drift])

    def means_absent(self, values: Mapping[str, str | None]) -> bool:
        """Whether this state of the authority's record means that the replica must not have it."""
        return any(values.get(name) in states for name, states in self.absent_when.items())

    def action(self, values: Mapping[str, str | None]) -> str:
        """The action that a present record asks for."""
        return UPSERT if self.action_field is None else (values.get(self.action_field) or UPSERT)


def declare(
    name: str,
    *,
    authority: Side,
    replica: Side | None = None,
    fields: Sequence[str | FieldSpec] | None = None,
    ignore: Sequence[str] = (),
    replica_owns: Sequence[str] = (),
    fill: Sequence[str] = (),
    map: Mapping[str, str] | None = None,  # noqa: A002  the word people use for it
    action_field: str | None = None,
    absent_when: Mapping[str, Sequence[str]] | None = None,
    unsynced: str | None = None,
    mark: str | None = None,
    on_drift: Mapping[str, str] | None = None,
    stop_at: Mapping[str, Any] | None = None,
    settle: str | float = "2m",
    recheck: str | float = "4h",
    jitter: float = 0.5,
    overlap: str | float = "1h",
    overlap_versions: int = 0,
    tries: int = 5,
    lease: str | float = "1m",
    sweep: str | float | None = None,
    compare: str | float | None = None,
    compare_changed: str | float | None = None,
    zone: str = "UTC",
    start_jitter: str | float | None = None,
    blackout: Sequence[str] | str = (),
    system: System | None = None,
    concurrency: int | None = None,
    after: Sequence[Any] | Mapping[Any, Sequence[str]] = (),
    two_person: bool = False,
    window: Mapping[str, Any] | None = None,
    totals: Sequence[str] | Mapping[str, str] = (),
    redact: Sequence[str] = (),
    health: Mapping[str, Any] | None = None,
    defect_after: int = 3,
    defect_share: float = 0.001,
    ping: str | None = None,
) -> Pair:
    """A checked Pair; ConfigError says which declaration is wrong and what would be right."""
    _check_sides(name, authority, replica, unsynced, mark)
    _check_owners(name, fields or (), replica_owns, fill)
    _check_numbers(name, jitter, tries, concurrency)
    return Pair(
        name=name,
        authority=authority,
        replica=replica,
        key=tuple(authority.key),
        fields=None if fields is None else tuple(FieldSpec(f) if isinstance(f, str) else f for f in fields),
        ignore=tuple(ignore),
        replica_owns=tuple(replica_owns),
        fill=tuple(fill),
        rename=dict(map or {}),
        action_field=action_field,
        absent_when={column: tuple(states) for column, states in (absent_when or {}).items()},
        unsynced=unsynced,
        mark=mark,
        on_drift=_verdicts(name, on_drift or {}),
        stop_at=breaker(name, stop_at),
        settle_us=duration_us(settle, f"pair {name}: settle"),
        recheck_us=duration_us(recheck, f"pair {name}: recheck"),
        jitter=jitter,
        overlap_us=duration_us(overlap, f"pair {name}: overlap"),
        overlap_versions=overlap_versions,
        tries_max=tries,
        lease_us=duration_us(lease, f"pair {name}: lease"),
        schedules=_schedules(name, replica, (sweep, compare, compare_changed), zone, start_jitter, blackout),
        system=system or getattr(replica, "system", None) or System(name),
        concurrency=concurrency,
        after=_after(after),
        two_person=two_person,
        windows=None if window is None else _windows(name, window, authority, replica),
        totals=dict(totals) if isinstance(totals, Mapping) else dict.fromkeys(totals),
        redact=tuple(redact),
        health=thresholds(health, f"pair {name}"),
        defects=defect_rule(name, defect_after, defect_share),
        ping=ping,
    )


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        hint = "Use letters, digits, dots, dashes and _; and one @ before the name of a client."
        raise ConfigError(f"{name!r} is not a name for a pair.", hint=hint)


def _check_sides(name: str, authority: Side, replica: Side | None, unsynced: str | None, mark: str | None) -> None:
    _check_name(name)
    if not authority.key:
        raise ConfigError(f"pair {name}: the authority declares no key.", hint='Give its key, such as key="id".')
    if (unsynced is None) != (mark is None):
        raise ConfigError(f"pair {name}: unsynced and mark belong together.", hint="Declare both or neither.")
    if mark is not None and not provides(authority, MarkableSide):
        raise ConfigError(f"pair {name}: the authority can't be marked.", hint="Use a SQL authority for unsynced/mark.")
    if replica is not None and replica.key and len(replica.key) != len(authority.key):
        raise ConfigError(
            f"pair {name}: the keys have {len(authority.key)} and {len(replica.key)} columns.",
            hint="Declare both keys with the same columns in the same order.",
        )


def _schedules(
    name: str,
    replica: Side | None,
    due: tuple[str | float | None, str | float | None, str | float | None],
    zone: str,
    start_jitter: str | float | None,
    blackout: Sequence[str] | str,
) -> Mapping[str, Schedule]:
    return schedules(
        name, replica, dict(zip((SWEEP, COMPARE, CHANGED), due, strict=True)), zone, start_jitter, blackout
    )


def _windows(name: str, declared: Mapping[str, Any], authority: Side, replica: Side | None) -> Windows:
    for role, side in (("authority", authority), ("replica", replica)):
        if not provides(side, WindowedSide):
            raise ConfigError(
                f"pair {name}: window needs a side that can be asked for an interval of time; the {role} can't.",
                hint="SQL tables, files and Rows can. Leave window out to compare everything.",
            )
    return windows_of(declared, name)


def _check_owners(
    name: str, fields: Sequence[str | FieldSpec], replica_owns: Sequence[str], fill: Sequence[str]
) -> None:
    named = {each if isinstance(each, str) else each.name for each in fields}
    if both := sorted(set(replica_owns) & {*named, *fill}):
        raise ConfigError(
            f"pair {name}: {both[0]} is compared, and belongs to the replica.", hint="Keep one of the two declarations."
        )


def _check_numbers(name: str, jitter: float, tries: int, concurrency: int | None) -> None:
    if not 0 <= jitter <= 1:
        raise ConfigError(f"pair {name}: jitter is {jitter}.", hint="Give a share between 0 and 1.")
    if tries < 1:
        raise ConfigError(f"pair {name}: tries is {tries}.", hint="Give at least 1.")
    if concurrency is not None and concurrency < 1:
        raise ConfigError(f"pair {name}: concurrency is {concurrency}.", hint="Give at least 1, or leave it out.")


def _after(declared: Sequence[Any] | Mapping[Any, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Names of pairs (or pairs themselves), each with the columns that hold its key where they are declared."""
    items = declared.items() if isinstance(declared, Mapping) else ((pair, ()) for pair in declared)
    return {str(getattr(pair, "name", pair)): tuple(columns) for pair, columns in items}


def _verdicts(name: str, declared: Mapping[str, str]) -> dict[Drift, Verdict]:
    found: dict[Drift, Verdict] = {}
    for drift_name, verdict_name in declared.items():
        try:
            drift, verdict = Drift(drift_name), Verdict(verdict_name)
        except ValueError:
            raise ConfigError(
                f"pair {name}: on_drift has {drift_name} = {verdict_name}.",
                hint=f"Drifts: {', '.join(Drift)}. Verdicts: repair, review.",
            ) from None
        if verdict is Verdict.REPAIR and drift not in REPAIRABLE:
            raise ConfigError(f"pair {name}: {drift} is never repaired by a rule.", hint="Leave it to review.")
        found[drift] = verdict
    return found


class Handlers:
    """The handlers of one pair, by action."""

    def __init__(self, pair: str) -> None:
        self._pair = pair
        self._by_action: dict[str, Handler] = {}

    def add(self, action: str, call: Callable[..., Any], batch: int | None = None) -> None:
        """Registers; HandlerError where the action has one already."""
        if batch is not None and batch < 1:
            raise HandlerError(f"pair {self._pair}: batch is {batch}.", hint="Give at least 1.")
        if action in self._by_action:
            raise HandlerError(f"pair {self._pair}: action {action} has two handlers.", hint="Keep one of them.")
        self._by_action[action] = Handler(call, batch, len(inspect.signature(call).parameters) > 1)

    def find(self, action: str) -> Handler | None:
        """The handler of this action, else the one for any action, else None."""
        return self._by_action.get(action) or self._by_action.get(ANY_ACTION)

    @property
    def batch(self) -> int:
        """The most records that one handler takes at once."""
        return max((handler.batch or 1 for handler in self._by_action.values()), default=1)

    @property
    def declared(self) -> bool:
        """Whether the pair has handlers of its own (else the built-in writer does the work)."""
        return bool(self._by_action)

    def check(self, pair: Pair) -> None:
        """Fails at start, not at the first record: a pair that nothing would act for, an action that is not one."""
        if not self.declared and not provides(pair.replica, WritableSide):
            raise HandlerError(
                f"pair {pair.name}: nothing would act on a change.",
                hint="Declare a handler with @pair.on_change, or give the pair a replica that can be written.",
            )
        if self.declared and ANY_ACTION not in self._by_action:
            self._check_actions(pair)

    def _check_actions(self, pair: Pair) -> None:
        if pair.action_field is None:
            lacking = [action for action in (UPSERT,) if action not in self._by_action]
        else:
            states = pair.absent_when.get(pair.action_field, ())
            lacking = [action for action in states if action not in self._by_action]
        if lacking:
            raise HandlerError(
                f"pair {pair.name}: action {lacking[0]} has no handler.",
                hint=f'Declare one with @pair.on("{lacking[0]}"), or @pair.on_change for any action.',
            )


__all__ = [
    "DELETE",
    "UPSERT",
    "FieldSpec",
    "Handler",
    "Handlers",
    "Pair",
    "decimal",
    "declare",
    "number",
    "text",
    "timestamp",
]
