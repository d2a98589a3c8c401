"""A project: the pairs, systems and state that belong together, bound to real adapters."""

from __future__ import annotations

import os
import random
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from trueup.bound import BoundPair
from trueup.engine.clock import SystemClock
from trueup.engine.comparing import Lending
from trueup.engine.gate import bind_gates
from trueup.engine.order import order_of
from trueup.engine.presence import Heart
from trueup.engine.scheduler import Scheduler
from trueup.engine.worker import Worker
from trueup.environment import expand, process_name
from trueup.errors import ConfigError
from trueup.events.webhook import Source
from trueup.model.budget import System, declare_system
from trueup.model.case import ANY_CASE, Case, CaseFilter
from trueup.model.names import hint_for, selected
from trueup.model.presence import Presence
from trueup.pair import declare
from trueup.ports import Archive, Budgets, Clock, Ledger
from trueup.stores import open_store

STATE_DEFAULT = "sqlite:///trueup.db"
Call = TypeVar("Call", bound=Callable[..., Any])


class Project:
    """Pairs and the state they share. Nothing is read or written before the first use.

    state: `sqlite:///trueup.db` by default. seed: of jitter; random where None. memory_mb: for comparisons.
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

    @property
    def pairs(self) -> Mapping[str, BoundPair]:
        """The pairs by name."""
        return self._pairs

    def pair(self, name: str, **declaration: Any) -> BoundPair:
        """Declares a pair; options: `trueup.pair.declare`. ConfigError where the name is taken."""
        if name in self._pairs:
            raise ConfigError(f"there are two pairs {name}.", hint="Give each pair its own name.")
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
            self._store = open_store(self.state, self._store_clock)
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

    def chance(self) -> random.Random:
        """A generator seeded from the project's."""
        return random.Random(self._random.getrandbits(64))  # noqa: S311  jitter, not secrecy

    def close(self) -> None:
        """Gives back every connection."""
        if self._store is not None:
            self._store[0].close()
            self._store[1].close()
            self._store = None
        for bound in self._pairs.values():
            bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
