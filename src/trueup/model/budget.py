"""How much may be asked of a system, as declared: limits, the quota of a day, shares and costs.

What was spent of them, and whether a call may be made now: `trueup.model.health`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal
from zoneinfo import ZoneInfo

from trueup.errors import ConfigError, did_you_mean
from trueup.model.duration import duration_us
from trueup.model.retry_after import LONGEST_US

CallKind = Literal["list", "read", "write"]
DAY_US: Final = 86_400_000_000
_PERIODS_US: Final = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": DAY_US}
_LIMIT = re.compile(r"(\d+)\s*/\s*(second|minute|hour|day)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `calls` (in units of cost) within any `period_us`."""

    calls: int
    period_us: int

    def __str__(self) -> str:
        return f"{self.calls}/{self.unit}"

    @property
    def unit(self) -> str:
        """What the calls are counted in: `minute`."""
        named = {us: name for name, us in _PERIODS_US.items()}
        return named.get(self.period_us, f"{self.period_us} us")


@dataclass(frozen=True)
class Quota:
    """At most `calls` (in units of cost) from one reset to the next.

    at: wall-clock time of the reset, each day, in the zone. Where a change of the clocks leaves that time out, the
    reset is when the clocks have moved on; where it comes twice, it is the first.
    """

    calls: int
    at: dt.time = dt.time()
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.calls}/day from {self.at:%H:%M} {self.zone}"

    def reset_us(self, now_us: int) -> int:
        """The next reset after this time."""
        today = dt.datetime.fromtimestamp(now_us // 1_000_000, self._zone).date()
        # A zone may leave out a whole day, so that tomorrow's reset may be no later than today's.
        resets = (self._on(today + dt.timedelta(days=days)) for days in range(-1, 4))
        return next(reset_us for reset_us in resets if reset_us > now_us)

    def _on(self, date: dt.date) -> int:
        return round(dt.datetime.combine(date, self.at, tzinfo=self._zone).timestamp()) * 1_000_000

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a call is expected to cost, by kind: a page of a list, the read of a record, a write."""

    list: float = 1.0
    read: float = 1.0
    write: float = 1.0

    def of(self, kind: CallKind) -> float:
        """The cost of one call of this kind."""
        return float(getattr(self, kind))


@dataclass(frozen=True, slots=True)
class System:
    """Something that holds records, as far as trueup may burden it.

    limits, quota: every one of them is kept. reserve: share that only events may use. concurrency: calls at once.
    cost_header: header of an answer with what the call did cost. remaining_header, reset_header: headers with what
    the system says is left, and until when. pause_max_us: the longest pause that the system may ask for.
    """

    name: str
    limits: tuple[Limit, ...] = ()
    reserve: float = 0.4
    concurrency: int | None = None
    quota: Quota | None = None
    costs: Costs = Costs()
    cost_header: str | None = None
    remaining_header: str | None = None
    reset_header: str | None = None
    pause_max_us: int = LONGEST_US

    @property
    def counted(self) -> bool:
        """Whether calls have to be counted at all."""
        return bool(self.limits or self.quota or self.remaining_header) or self.concurrency is not None

    @property
    def most(self) -> float:
        """What one call can cost at most: more than the smallest limit could never be spent."""
        declared = [limit.calls for limit in self.limits] + ([self.quota.calls] if self.quota else [])
        return min(declared, default=math.inf)


def parse_limit(text: str, what: str) -> Limit:
    """`600/minute` as a Limit; ConfigError names `what` where it is none."""
    found = _LIMIT.match(text.strip()) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise ConfigError(f"{what}: {text!r} is not a limit.", hint="Write calls per time, such as 600/minute.")
    return Limit(int(found[1]), _PERIODS_US[found[2]])


def parse_quota(text: str, reset: str, what: str) -> Quota:
    """`10000/day` and `00:00 America/Los_Angeles` as a Quota; ConfigError names `what` where they are none."""
    limit = parse_limit(text, what)
    if limit.period_us != DAY_US:
        raise ConfigError(
            f"{what}: {text!r} is not a quota of a day.", hint="Write 10000/day; other periods are limits."
        )
    at, _, zone = reset.strip().partition(" ")
    try:
        ZoneInfo(zone or "UTC")
        return Quota(limit.calls, dt.datetime.strptime(at, "%H:%M").time(), zone or "UTC")  # noqa: DTZ007  a clock's
    except (KeyError, OSError, ValueError):
        raise ConfigError(
            f"{what}: {reset!r} is not the time of a reset.", hint="Write a time and a zone: 00:00 America/Los_Angeles."
        ) from None


def declare_system(
    name: str,
    *,
    limit: str | Sequence[str] = (),
    quota: str | None = None,
    quota_reset: str = "00:00 UTC",
    reserve: float = 0.4,
    concurrency: int | None = None,
    cost: Mapping[str, float] | None = None,
    cost_header: str | None = None,
    remaining_header: str | None = None,
    reset_header: str | None = None,
    pause_max: str | float = "1d",
) -> System:
    """A system whose options are checked; ConfigError names the one that is wrong.

    limit: calls per time, such as `600/minute`, or several. quota: calls a day, such as `10000/day`, counted from
    quota_reset, a time and a zone. reserve: share of each that only events may use. concurrency: calls at once, over
    all workers. cost: of one call, by kind: `list`, `read`, `write`. cost_header: header of an answer that says what
    the call did cost. remaining_header, reset_header: headers that say how much is left, and until when.
    pause_max: the longest pause that the system may ask for.
    """
    what = f"system {name}"
    if not 0 <= reserve < 1:
        hint = "Write a share of at least 0 and below 1: with 1 nothing but events would ever be done."
        raise ConfigError(f"{what}: reserve is {reserve}.", hint=hint)
    if concurrency is not None and concurrency < 1:
        raise ConfigError(f"{what}: concurrency is {concurrency}.", hint="Write how many calls may be made at once.")
    if reset_header is not None and remaining_header is None:
        raise ConfigError(f"{what}: reset_header says nothing alone.", hint="Name remaining_header too.")
    system = System(
        name,
        tuple(parse_limit(each, what) for each in ([limit] if isinstance(limit, str) else limit)),
        reserve,
        concurrency,
        None if quota is None else parse_quota(quota, quota_reset, what),
        _costs(cost or {}, what),
        cost_header,
        remaining_header,
        reset_header,
        min(duration_us(pause_max, f"{what}: pause_max"), LONGEST_US),
    )
    for kind, each in (cost or {}).items():
        if each > system.most:
            raise ConfigError(
                f"{what}: a {kind} costs {each:g}, and a limit allows {system.most:g}.", hint="It could never be made."
            )
    return system


def _costs(cost: Mapping[str, float], what: str) -> Costs:
    for kind, each in cost.items():
        if kind not in Costs.__slots__:
            hint = did_you_mean(kind, Costs.__slots__, "Kinds")
            raise ConfigError(f"{what}: there are no calls of the kind {kind}.", hint=hint)
        if not (isinstance(each, int | float) and 0 <= each < math.inf):
            raise ConfigError(f"{what}: the cost of a {kind} is {each}.", hint="Write a number of at least 0.")
    return Costs(**cost)
