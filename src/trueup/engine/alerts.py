"""Telling people: what is wrong is looked at now and then, and each target hears of what changed.

Whoever lives may do it: a scheduler, a worker, what takes webhooks, or a command from cron. They share what each target
was told through the state store, so that one of them tells, once. Nothing here raises into a run or a worker, and
nothing waits for a delivery: a target that does not answer is tried again later, each time a longer while.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from trueup.engine.direct import Direct
from trueup.engine.handing import hand_over, tried
from trueup.errors import ConfigError
from trueup.model import alert as rules
from trueup.model.alert import Message, Telling
from trueup.model.alert_text import RUNBOOK, notice_of
from trueup.model.blackout import Blackout, blackout
from trueup.model.condition import STATE, Condition, Severity
from trueup.model.duration import duration_us
from trueup.ports import Archive, Clock, Ledger, Target

# A delivery that is not over by then may be made again by somebody else.
LEASE_US: Final = 60_000_000
EVERY_MIN_US: Final = 500_000
# Of one thread's time, at most this part goes into looking.
LOOKING_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Addressee:
    """A target, and from which severity on it is told."""

    target: Target
    least: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True)
class AlertPlan:
    """Who is told what, when.

    targets: by name. every_s: seconds between two looks. group_s: for so long what began is held back, so that what
    begins with it is told with it. quiet: when warnings wait. project: how messages name it. runbook: where its pages
    are.
    """

    targets: Mapping[str, Addressee] = field(default_factory=dict)
    every_s: float = 30.0
    group_s: float = 10.0
    quiet: Blackout = field(default_factory=Blackout)
    project: str = "trueup"
    runbook: str = RUNBOOK


def alert_plan(
    base: AlertPlan,
    *,
    every: str | float = "30s",
    group: str | float = "10s",
    quiet: Sequence[str] | str = (),
    zone: str = "UTC",
    name: str = "trueup",
    runbook: str = RUNBOOK,
) -> AlertPlan:
    """The base, with these checked options; ConfigError names the one that is wrong.

    every: between two looks. group: for so long what began is held back, so that what begins with it is told with it.
    quiet: when warnings wait, such as `22:00-07:00`, by the clock of `zone`. name: of the project in messages.
    runbook: where its pages are.
    """
    every_us, group_us = duration_us(every, "alerts: every"), duration_us(group, "alerts: group")
    if every_us < EVERY_MIN_US:
        raise ConfigError(f"alerts: every is {every}.", hint="Let at least half a second pass between two looks.")
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        hint = "Write one such as Europe/Berlin or UTC."
        raise ConfigError(f"alerts: zone {zone!r} is not a time zone.", hint=hint) from None
    windows = blackout([quiet] if isinstance(quiet, str) else quiet, zone, "alerts: quiet")
    return replace(base, every_s=every_us / 1e6, group_s=group_us / 1e6, quiet=windows, project=name, runbook=runbook)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of telling one target. error: why it did not arrive; None where it did."""

    target: str
    message: Message
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What is wrong now, and all that whoever looked can judge."""

    conditions: Sequence[Condition]
    judged: Collection[str]


class Alerting:
    """Tells targets what changed. look: see `Look`; may raise TrueupError. owner: its name in leases.

    store: how messages name the state store. away_us: for so long it may be away before people are told directly.
    """

    def __init__(
        self,
        ledger: Ledger,
        archive: Archive,
        clock: Clock,
        look: Callable[[], Look],
        plan: AlertPlan,
        *,
        owner: str,
        chance: random.Random,
        store: str,
        away_us: int,
    ) -> None:
        self._ledger, self._archive, self._clock = ledger, archive, clock
        self._look, self._plan = look, plan
        self._owner, self._chance = owner, chance
        self._first_us: dict[str, int] = {}
        # It is written to, since a store that can only be read is of no use either.
        self._direct = Direct(
            clock, lambda: archive.hear([STATE]), self._send, list(plan.targets), store=store, project=plan.project,
            every_s=plan.every_s, limit_us=away_us, chance=chance,
        )  # fmt: skip

    def serve(self, stop: threading.Event) -> None:
        """Looks and tells until `stop` is set. Trouble is logged; that of the state store is told directly."""
        sending: dict[str, Future[bool]] = {}
        direct = threading.Thread(target=self._direct.serve, args=(stop,), name="trueup-direct")
        direct.start()
        with ThreadPoolExecutor(len(self._plan.targets) or 1, thread_name_prefix="trueup-alert") as pool:
            while not stop.is_set():
                began_us = self._clock.elapsed_us()
                worked = self._direct.attempt("alerts", lambda: self._start(pool, sending))
                # What failed took its time to wait, not to work.
                took_s = (self._clock.elapsed_us() - began_us) / 1e6 if worked else 0.0
                stop.wait(max(self._pause_s(), took_s / LOOKING_SHARE))
        direct.join()

    def _pause_s(self) -> float:
        """Until the next look; no longer than what was held back has to be."""
        every_s = self._plan.every_s
        return min(every_s, max(self._plan.group_s, 0.1)) if self._first_us else every_s

    def _start(self, pool: ThreadPoolExecutor, sending: dict[str, Future[bool]]) -> None:
        look = self._look()
        for name in self._plan.targets:
            if name not in sending or sending[name].done():
                tell = partial(self._tell, name, look, at_once=False)
                sending[name] = pool.submit(self._direct.attempt, f"alerts to {name}", tell)

    def send(self) -> list[Told]:
        """Looks once, tells every target what there is to tell, and says what came of it."""
        look = self._look()
        found = [self._tell(name, look, at_once=True) for name in self._plan.targets]
        return [told for told in found if told is not None]

    def test(self, names: Sequence[str]) -> list[Told]:
        """Sends these targets a message that is a test."""
        now_us = self._ledger.now_us()
        message = Message(f"test-{now_us}", now_us, test=True)
        return [Told(name, message, tried(partial(self._send, name, message))) for name in names]

    def _tell(self, name: str, look: Look, *, at_once: bool) -> Told | None:
        """One message to one target, where there is anything to tell it and nobody else does."""
        targets = self._archive.targets
        seen, now_us = targets.known([name])[name], self._ledger.now_us()
        if seen.ready_us > now_us:
            return None
        some = rules.news(
            seen.known, look.conditions, look.judged, least=self._plan.targets[name].least,
            quiet=self._plan.quiet.end_us(now_us) > now_us,
        )  # fmt: skip
        if seen.outgoing is None and not (any(some) and (at_once or self._has_waited(name))):
            if not any(some):
                self._first_us.pop(name, None)
            return None

        def claimed(stored: Telling, at_us: int) -> Telling:
            return rules.claim(stored, some, self._owner, at_us, LEASE_US)

        telling = targets.claim(seen, claimed)
        if telling is None or telling.outgoing is None:
            return None
        if seen.outgoing is None:
            self._first_us.pop(name, None)
        message = telling.outgoing
        error = hand_over(
            telling, lambda: self._send(name, message), lambda at_us: rules.delivered(telling, at_us), targets.end,
            now_us=self._ledger.now_us, share=self._chance.random(), what=f"alerts to {name}",
        )  # fmt: skip
        return Told(name, message, error)

    def _has_waited(self, name: str) -> bool:
        """Whether what changed was held back for long enough for others to join it."""
        now_us = self._clock.elapsed_us()
        return now_us - self._first_us.setdefault(name, now_us) >= self._plan.group_s * 1e6

    def _send(self, name: str, message: Message) -> None:
        self._plan.targets[name].target.send(notice_of(message, self._plan.project, self._plan.runbook))
