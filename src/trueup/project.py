"""A project: the pairs, systems and state that belong together, bound to real adapters."""

from __future__ import annotations

import os
import random
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from trueup.engine.clock import SystemClock
from trueup.engine.gate import SystemGate
from trueup.engine.order import check_order, predecessors
from trueup.engine.records import Records
from trueup.engine.report import Report, Status, Story
from trueup.engine.run import Phase, Progress, Reconciliation, RunOptions
from trueup.engine.story import explain, status
from trueup.engine.worker import Ends, Worker
from trueup.environment import expand
from trueup.errors import ConfigError, StateError
from trueup.events.webhook import Source
from trueup.model.budget import System, parse_limit
from trueup.model.change import Change, Origin, Outcome
from trueup.model.event import Event
from trueup.pair import ANY_ACTION, Handlers, Pair, declare
from trueup.ports import Archive, Budgets, Clock, GatedSide, Ledger

if TYPE_CHECKING:
    pass

STATE_DEFAULT = "sqlite:///trueup.db"
Call = TypeVar("Call", bound=Callable[..., Any])


class BoundPair:
    """A pair of a project: handlers, the live path, and runs."""

    def __init__(self, project: Project, pair: Pair) -> None:
        self._project = project
        self.pair = pair
        self.handlers = Handlers(pair.name)
        self.records = Records(pair)

    @property
    def name(self) -> str:
        """The pair's name."""
        return self.pair.name

    def on(self, *actions: str, batch: int | None = None) -> Callable[[Call], Call]:
        """Declares the handler of these actions: `handler(change)` or `handler(change, replica)`.

        batch: the handler takes a list of up to so many changes, and returns None or outcomes by key.
        """

        def register(handler: Call) -> Call:
            for action in actions:
                self.handlers.add(action, handler, batch)
            return handler

        return register

    def on_change(self, handler: Call) -> Call:
        """Declares the handler of every action that has none of its own."""
        self.handlers.add(ANY_ACTION, handler)
        return handler

    def offer(
        self,
        values: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        deleted: bool = False,
        connection: Any = None,
    ) -> list[Outcome]:
        """Tells the ledger that the authority changed these records; what is old or known is dropped.

        values: one record or several, by the authority's column names. Without the version or some field the
        worker reads the record again. deleted: the authority deleted it (the key is enough). connection: an
        open transaction to join; the state store must live in that database.
        """
        rows = [values] if isinstance(values, Mapping) else list(values)
        changes = [self.records.change_of(row, deleted=deleted, origin=Origin.EVENT) for row in rows]
        return self._project.ledger.offer(changes, connection=connection)

    def event(self, values: Mapping[str, Any], *, deleted: bool = False) -> Event:
        """Word that the authority changed this record, for the route of a webhook to return; see `offer`."""
        return Event(self.name, values, deleted)

    def adopt(
        self,
        *,
        backfill: bool = False,
        trust_authority: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Compares once and stores what agrees as the baseline; later drift then tells who moved."""
        options = RunOptions(
            adopt=True, dry_run=dry_run, backfill=backfill, trust_authority=trust_authority,
            memory_mb=self._project.memory_mb,
        )  # fmt: skip
        if self.pair.replica is None:
            raise ConfigError(
                f"pair {self.name} has no replica to adopt.",
                hint=f"Its first run sets the baseline: trueup run {self.name}",
            )
        return self._reconcile(options, progress)

    def run(
        self,
        only: Phase | None = None,
        *,
        dry_run: bool = False,
        enqueue: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Reconciles the pair: sweeps, compares, confirms, repairs what is safe, asks about the rest."""
        options = RunOptions(only=only, dry_run=dry_run, enqueue=enqueue, memory_mb=self._project.memory_mb)
        return self._reconcile(options, progress)

    def _reconcile(self, options: RunOptions, progress: Progress | None) -> Report:
        project = self._project
        worker = project.worker([self.name])
        return Reconciliation(
            self.records, project.ledger, project.archive, project.clock, worker, options, project.chance(), progress
        ).perform()

    def perform(self, key: str) -> Ends:
        """Works the one record with this key text now, if it is wanted and nobody else works on it."""
        ended = self._project.worker([self.name]).once(self._project.chance(), [key])
        return Ends(finish.result for finish in ended)

    def retry(self, keys: Sequence[str] | None = None) -> int:
        """Gives parked records (all, or these) another life: they are read again and worked; answers how many."""
        ledger = self._project.ledger
        parked = [row for rows in ledger.scan(self.name, "parked") for row in rows]
        chosen = [row for row in parked if keys is None or row.key in keys]
        changes = [Change(self.name, row.key, row.wish_action or "upsert", origin=Origin.REVIEW) for row in chosen]
        return sum(outcome.accepted for outcome in ledger.offer(changes)) if changes else 0

    def status(self) -> Status:
        """How the pair is, from the state store alone."""
        return status(self.records, self._project.ledger, self._project.archive, self._project.budgets)

    def explain(self, key: str) -> Story:
        """The story of the record with this key text, and both sides as they are now."""
        return explain(self.records, self._project.ledger, self._project.archive, key)


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
        memory_mb: int = 512,
    ) -> None:
        self.state = expand(state, "state")
        self.clock: Clock = clock or SystemClock()
        self._store_clock = clock
        self.memory_mb = memory_mb
        self._random = random.Random(secrets.randbits(64) if seed is None else seed)  # noqa: S311  jitter
        self._threads = threads
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
            known = ", ".join(sorted(self._pairs)) or "none"
            raise ConfigError(f"there is no pair {name}.", hint=f"Pairs: {known}.")
        return self._pairs[name]

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

    def system(
        self,
        name: str,
        *,
        limit: str | Sequence[str] = (),
        reserve: float = 0.4,
        concurrency: int | None = None,
    ) -> System:
        """Declares a system that pairs share.

        limit: calls per time, such as `600/minute`, or several. reserve: share that only events may use.
        concurrency: calls at once, over all workers.
        """
        limits = [limit] if isinstance(limit, str) else limit
        return System(name, tuple(parse_limit(each, f"system {name}") for each in limits), reserve, concurrency)

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
            self._bind_gates(bound.pair)
        declared = {name: bound.pair for name, bound in self._pairs.items()}
        check_order(declared)
        return Worker(
            self.ledger,
            self.archive,
            self.budgets,
            self.clock,
            {bound.name: (bound.records, bound.handlers) for bound in chosen},
            owner=f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}",
            seed=self._random.getrandbits(64),
            threads=self._threads if threads is None else threads,
            order={bound.name: predecessors(bound.records, declared) for bound in chosen if bound.pair.after},
        )

    def _bind_gates(self, pair: Pair) -> None:
        """Calls of these sides pass the gate of their system: its budget and its pauses."""
        for side, system in ((pair.authority, System(pair.authority_system)), (pair.replica, pair.system)):
            gated: object = side
            if isinstance(gated, GatedSide) and gated.gate is None:
                gated.gate = SystemGate(gated.system or system, self.budgets, self.clock, secrets.token_hex(4))

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
            bound.pair.authority.close()
            if bound.pair.replica is not None:
                bound.pair.replica.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(url: str, clock: Clock | None = None) -> tuple[Ledger, Archive, Budgets]:
    """The ledger, archive and budgets at this URL, by the store's own clock where none is given."""
    if url == "memory:":
        from trueup.stores.budgets import MemoryBudgets  # noqa: PLC0415  adapters load when used
        from trueup.stores.memory import MemoryArchive, MemoryLedger  # noqa: PLC0415

        return MemoryLedger(clock), MemoryArchive(clock), MemoryBudgets(clock)
    if url.startswith("sqlite:"):
        from trueup.stores.sql import open_sqlite  # noqa: PLC0415

        return open_sqlite(url, clock)
    if url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql import open_postgresql  # noqa: PLC0415

        return open_postgresql(url, clock)
    raise StateError(
        f"state {url.partition(':')[0]}: is not supported.",
        hint="Use sqlite:///path/to/trueup.db or postgresql://host/database.",
    )
