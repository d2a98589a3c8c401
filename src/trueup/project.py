"""A project: the pairs, systems and state that belong together, bound to real adapters."""

from __future__ import annotations

import os
import random
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from trueup.bound import BoundPair
from trueup.engine.alerts import Addressee, Alerting, AlertPlan, Look, alert_plan
from trueup.engine.anchoring import Anchoring, Placed
from trueup.engine.clock import SystemClock
from trueup.engine.comparing import Lending
from trueup.engine.gate import bind_gates
from trueup.engine.health import by_severity, condition_of_state, conditions_of_store
from trueup.engine.keeping import Keeping
from trueup.engine.measure import OFF, Values, measured, naming_of
from trueup.engine.order import order_of
from trueup.engine.presence import Heart
from trueup.engine.scheduler import Scheduler
from trueup.engine.tally import Tally
from trueup.engine.worker import Worker
from trueup.environment import expand, process_name
from trueup.errors import ConfigError, StateError, TrueupError
from trueup.events.webhook import Source
from trueup.integrations.ping import NoPings, PairPings, Pinger
from trueup.model.budget import System, declare_system
from trueup.model.case import ANY_CASE, Case, CaseFilter
from trueup.model.condition import STATE, WORKERS, Condition, Severity
from trueup.model.duration import duration_us
from trueup.model.names import hint_for, selected
from trueup.model.presence import Presence
from trueup.model.retention import retention as declare_retention
from trueup.model.thresholds import thresholds
from trueup.pair import Pair, declare
from trueup.ports import AnchorPlace, Archive, Budgets, Clock, Ledger, Pings, Target
from trueup.ports.watching import NOBODY, UNTRACED, Observer, Tracing
from trueup.stores import back_up, name_of, open_store, restore, vacuum

# How exactly it is known when the last event of a pair came.
HEARD_US = 5_000_000
STATE_DEFAULT = "sqlite:///trueup.db"
Call = TypeVar("Call", bound=Callable[..., Any])


class Project:
    """Pairs and the state they share. Nothing is read or written before the first use.

    state: `sqlite:///trueup.db` by default. seed: of jitter; random where None. memory_mb: for comparisons. health:
    from when something is a condition, where a pair does not say otherwise. retention: how long what nothing depends
    on is kept: `history`, `plans` and `letters`, each 90 days by default. metrics: `pairs`, `definitions` (their
    clients summed up), or `off`.
    """

    def __init__(
        self,
        state: str = STATE_DEFAULT,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        threads: int = 2,
        runs_at_once: int = 2,
        memory_mb: int = 512,
        health: Mapping[str, Any] | None = None,
        retention: Mapping[str, str | float] | None = None,
        metrics: str = "pairs",
    ) -> None:
        self.state = expand(state, "state")
        self.clock: Clock = clock or SystemClock()
        self._store_clock = clock
        self.memory_mb = memory_mb
        self._random = random.Random(secrets.randbits(64) if seed is None else seed)  # noqa: S311  jitter
        self._threads, self._runs_at_once = threads, runs_at_once
        self._pairs: dict[str, BoundPair] = {}
        self.sources: dict[str, Source] = {}
        self._store: tuple[Ledger, Archive, Budgets] | None = None
        self._health = dict(health or {})
        self._usual = thresholds(self._health, "the project")
        self._retention = declare_retention(retention or {})
        self.alert_plan = AlertPlan()
        self._naming = naming_of(metrics)
        self._tally = None if metrics == OFF else Tally(lambda: self.archive, self.clock)
        self.observer: Observer = self._tally or NOBODY
        self.tracing: Tracing = UNTRACED
        self._pinger: Pinger | None = None
        self._places: dict[str, Placed] = {}
        self._anchoring: Anchoring | None = None
        self._heard_us: dict[str, int] = {}

    @property
    def pairs(self) -> Mapping[str, BoundPair]:
        """The pairs by name."""
        return self._pairs

    def pair(self, name: str, **declaration: Any) -> BoundPair:
        """Declares a pair; options: `trueup.pair.declare`. ConfigError where the name is taken."""
        if name in self._pairs:
            raise ConfigError(f"there are two pairs {name}.", hint="Give each pair its own name.")
        declaration["health"] = self._health | dict(declaration.get("health") or {})
        bound = BoundPair(self, declare(name, **declaration))
        self._pairs[name] = bound
        return bound

    def find(self, name: str) -> BoundPair:
        """The pair of this name; ConfigError lists the names there are."""
        if name not in self._pairs:
            raise ConfigError(f"there is no pair {name}.", hint=hint_for(name, self._pairs))
        return self._pairs[name]

    def select(self, *patterns: str, client: str | None = None) -> list[BoundPair]:
        """The pairs that names or patterns such as `orders@*` select, each once; all of them without any.

        client: only those of this client, whose name may then be left out: `select("orders", client="acme")`.
        ConfigError where something selects no pair.
        """
        return [self._pairs[name] for name in selected(self._pairs, patterns, client)]

    def cases(
        self, pair: str | None = None, where: CaseFilter | None = None, *, open_only: bool = True,
        limit: int | None = None,
    ) -> list[Case]:  # fmt: skip
        """Cases of a pair, or of all, oldest first. where: which of them, see `trueup.model.case.CaseFilter`."""
        return self.archive.cases(pair, where or ANY_CASE, open_only=open_only, limit=limit)

    @property
    def ledger(self) -> Ledger:
        """The state store's ledger, opened at the first use."""
        return self._open()[0]

    @property
    def archive(self) -> Archive:
        """The state store's runs, cursors and cases."""
        return self._open()[1]

    @property
    def budgets(self) -> Budgets:
        """The state store's knowledge of systems: pauses and what was spent."""
        return self._open()[2]

    def system(self, name: str, **options: Any) -> System:
        """Declares a system that pairs share; options: `trueup.model.budget.declare_system`."""
        return declare_system(name, **options)

    def source(self, name: str, **options: Any) -> Callable[[Call], Call]:
        """Declares a sender of webhooks, whose route is decorated. Options: `trueup.events.webhook.Source`."""
        if name in self.sources:
            raise ConfigError(f"there are two sources {name}.", hint="Give each source its own name.")

        def register(route: Call) -> Call:
            self.sources[name] = Source(name, route=route, **options)
            return route

        return register

    def systems(self) -> list[str]:
        """Names of the systems that pairs call: declared ones, else one for each pair."""
        return sorted({name for each in self._pairs.values() for name in each.pair.systems})

    def _open(self) -> tuple[Ledger, Archive, Budgets]:
        if self._store is None:
            self._store = open_store(self.state, self._store_clock, self.observer)
        return self._store

    def worker(self, pairs: Sequence[str] | None = None, *, threads: int | None = None) -> Worker:
        """A worker for these pairs, or for all; a pair that nothing would act for fails here."""
        chosen = [self.find(name) for name in (pairs or list(self._pairs))]
        for bound in chosen:
            bound.handlers.check(bound.pair)
            bind_gates(bound.pair, bound.url_handlers, self.budgets, self.clock)
        declared = {name: bound.pair for name, bound in self._pairs.items()}
        order = order_of([bound.records for bound in chosen], declared)
        host, threads = socket.gethostname(), self._threads if threads is None else threads
        owner = process_name()
        presence = Presence(owner, host, os.getpid(), threads, tuple(bound.name for bound in chosen), stays=False)
        return Worker(
            self.ledger,
            self.archive,
            self.budgets,
            self.clock,
            {bound.name: (bound.records, bound.handlers) for bound in chosen},
            owner=owner,
            seed=self._random.getrandbits(64),
            threads=threads,
            order=order,
            heart=Heart(self.archive, self.clock, presence),
            tracing=self.tracing,
            lend=Lending(
                {bound.name: bound.records for bound in chosen if bound.pair.replica is not None},
                self.ledger,
                self.archive,
                self.clock,
                self.chance(),
                owner=owner,
                memory_mb=self.memory_mb,
            ),
        )

    def workers(self) -> list[Presence]:
        """Who works in the state store: those that beat, and for a day those that fell silent."""
        return self.archive.presences()

    def scheduler(self, pairs: Sequence[str] | None = None, *, runs_at_once: int | None = None) -> Scheduler:
        """Starts the runs of these pairs, or of all, when they are due."""
        chosen = {name: self.find(name) for name in (pairs or list(self._pairs))}
        return Scheduler(
            self.ledger, self.archive, self.budgets, self.clock, chosen, owner=process_name(), chance=self.chance(),
            runs_at_once=self._runs_at_once if runs_at_once is None else runs_at_once,
        )  # fmt: skip

    # ── watchfulness ─────────────────────────────────────────────────────────────────────────────────

    @property
    def counts(self) -> bool:
        """Whether what happens is counted, for `/metrics`."""
        return self._tally is not None

    def measures(self) -> Values:
        """Every metric's numbers, from the state store alone; see docs/reference/metrics.md. Raises StateError."""
        if self._tally is not None:
            self._tally.flush()
        statuses = [bound.status() for bound in self._pairs.values()]
        found = [each for status in statuses for each in status.conditions]
        conditions = by_severity([*found, *self.conditions_of_store()])
        letters = {name: self.archive.count_letters(name) for name in self.sources}
        now_us = self.ledger.now_us()
        return measured(statuses, conditions, self.workers(), letters, self.archive.tallies(), now_us, self._naming)

    def trace(self, provider: Any = None) -> None:
        """Has OpenTelemetry trace what requests lead to, until their records are written; see docs/how-to/traces.md.

        provider: a TracerProvider, by default the global one. ConfigError where OpenTelemetry is not installed.
        """
        from trueup.integrations.otel import OpenTelemetry  # noqa: PLC0415  an extra

        self.tracing = OpenTelemetry(provider)

    def conditions(self) -> list[Condition]:
        """What is wrong now, the worst first; from the state store alone: no side is asked."""
        found = [each for bound in self._pairs.values() for each in bound.status().conditions]
        return by_severity([*found, *self.conditions_of_store()])

    def conditions_of_store(self) -> list[Condition]:
        """Those of them that are about no pair and no system."""
        now_us, host_us = self.ledger.now_us(), self.clock.now_us()
        anchored = self.archive.places.known(list(self._places)).values() if self._places else ()
        return conditions_of_store(self._usual, self.workers(), now_us, host_us, [*anchored])

    def condition_of_state(self, error: Exception) -> Condition:
        """What is to be said where the state store answers with this error."""
        return condition_of_state(name_of(self.state), error)

    def alerts(self, **options: Any) -> None:
        """Says how people are told of conditions; options: `trueup.engine.alerts.alert_plan`."""
        self.alert_plan = alert_plan(self.alert_plan, **options)

    def alert(self, name: str, target: Target, *, least: str = "warning") -> None:
        """Declares somebody who is told of conditions. least: `critical` where warnings are not told."""
        if name in self.alert_plan.targets:
            raise ConfigError(f"there are two alert targets {name}.", hint="Give each target its own name.")
        if least not in list(Severity):
            raise ConfigError(f"alert target {name}: least is {least!r}.", hint="Write warning or critical.")
        targets = {**self.alert_plan.targets, name: Addressee(target, Severity(least))}
        self.alert_plan = replace(self.alert_plan, targets=targets)

    def alerting(self) -> Alerting:
        """Tells the declared targets what changed: `serve(stop)` goes on, `send()` does it once."""
        return Alerting(
            self.ledger,
            self.archive,
            self.clock,
            self._look,
            self.alert_plan,
            owner=process_name(),
            chance=self.chance(),
            store=name_of(self.state),
            away_us=self._usual.state_us,
        )

    def anchor(self, name: str, place: AnchorPlace, *, every: str | float = 0) -> None:
        """Declares a place that is given an anchor whenever something was put on record. every: least time between."""
        if name in self._places:
            raise ConfigError(f"there are two places of anchors {name}.", hint="Give each place its own name.")
        self._places[name] = Placed(place, duration_us(every, f"anchors for {name}: every"))

    @property
    def anchors(self) -> Mapping[str, AnchorPlace]:
        """The declared places of anchors, by name."""
        return {name: each.place for name, each in self._places.items()}

    def anchoring(self) -> Anchoring:
        """Gives the declared places what they lack: `wake()` soon, `serve(stop)` always, `send()` now."""
        if self._anchoring is None:
            self._anchoring = Anchoring(
                self.ledger, self.archive, self.clock, self._places, owner=process_name(), chance=self.chance()
            )
        return self._anchoring

    def recorded(self) -> None:
        """Something was put on record: declared places of anchors hear of it, without delay for anybody."""
        if self._places:
            self.anchoring().wake()

    def _look(self) -> Look:
        return Look(self.conditions(), {*self._pairs, *self.systems(), WORKERS, STATE})

    def hear(self, pairs: Iterable[str]) -> None:
        """Notes that events came for these pairs, every few seconds at most; raises nothing."""
        now_us = self.clock.elapsed_us()
        new = [each for each in set(pairs) if now_us - self._heard_us.get(each, -HEARD_US) >= HEARD_US]
        if new:
            self._heard_us.update(dict.fromkeys(new, now_us))
            with suppress(TrueupError):  # the event itself is what matters
                self.archive.hear(new)

    def pings_of(self, pair: Pair) -> Pings:
        """Who is told how runs of this pair go."""
        if pair.ping is None:
            return NoPings()
        if self._pinger is None:
            self._pinger = Pinger(self.archive.note_ping)
        return PairPings(pair.name, pair.ping, self._pinger)

    # ── the state store itself ───────────────────────────────────────────────────────────────────────

    def keeping(self) -> Keeping:
        """Forgets what is older than the retention: `once()` now, `serve(stop)` every hour."""
        return Keeping(self.ledger, self.archive, self._retention)

    def back_up(self, target: str | os.PathLike[str]) -> None:
        """Writes the state store, as it is at one moment, to a new file; work goes on. Raises StateError."""
        back_up(self.state, Path(target))

    def vacuum(self) -> int:
        """Gives space that an SQLite store no longer needs back to the disk; answers how many bytes.

        Whoever writes meanwhile waits, and after ten seconds has a StateError. Raises StateError.
        """
        return vacuum(self.state)

    def restore(self, source: str | os.PathLike[str]) -> int:
        """Makes the state store anew from a backup; answers how many records it knows. Raises StateError.

        No program may use the store meanwhile. What happened after the backup is found out again; see
        docs/how-to/backup.md.
        """
        if self._store is not None:
            raise StateError(
                "this project has its state store open.", hint="Restore with a project that did nothing yet."
            )
        return restore(self.state, Path(source))

    def chance(self) -> random.Random:
        """A generator seeded from the project's."""
        return random.Random(self._random.getrandbits(64))  # noqa: S311  jitter, not secrecy

    def close(self) -> None:
        """Gives back every connection."""
        if self._pinger is not None:
            self._pinger.close()
            self._pinger = None
        if self._anchoring is not None:
            self._anchoring.close()
            self._anchoring = None
        if self._store is not None:
            if self._tally is not None:
                self._tally.close()
            self._store[0].close()
            self._store[1].close()
            self._store = None
        for bound in self._pairs.values():
            bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
