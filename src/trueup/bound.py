"""A pair of a project, bound to its state: handlers, the live path, runs, and decisions."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from trueup.engine.comparing import Progress
from trueup.engine.gate import bind_gates
from trueup.engine.options import Phase, RunOptions
from trueup.engine.pinging import pinged
from trueup.engine.presence import alive
from trueup.engine.records import Records
from trueup.engine.report import Report, Status, Story
from trueup.engine.review import Review
from trueup.engine.run import Reconciliation
from trueup.engine.seeing import PATIENCE_US
from trueup.engine.story import explain, status
from trueup.engine.tally import observed
from trueup.engine.trends import Trend, trend_of
from trueup.engine.worker import Ends
from trueup.errors import ConfigError
from trueup.integrations.ping import NoPings
from trueup.integrations.url import Url
from trueup.model.change import Change, Origin, Outcome
from trueup.model.decision import Decision, DecisionState, choice_named
from trueup.model.event import Event
from trueup.model.failing import FailingFilter
from trueup.model.moment import moment_us
from trueup.model.row import Row
from trueup.model.run import Run
from trueup.pair import ANY_ACTION, Handlers, Pair
from trueup.stores import nowhere

if TYPE_CHECKING:
    import datetime as dt

    from trueup.integrations.url_handler import UrlHandler
    from trueup.project import Project

Call = TypeVar("Call", bound=Callable[..., Any])
Acting = TypeVar("Acting", bound=Callable[..., Any] | Url)


class BoundPair:
    """A pair of a project: handlers, the live path, and runs."""

    def __init__(self, project: Project, pair: Pair) -> None:
        self._project = project
        self.pair = pair
        self.handlers = Handlers(pair.name)
        self.records = Records(pair)
        self.url_handlers: list[UrlHandler] = []

    @property
    def name(self) -> str:
        """The pair's name."""
        return self.pair.name

    def on(self, *actions: str, batch: int | None = None) -> Callable[[Acting], Acting]:
        """Declares the handler of these actions: `handler(change)` or `handler(change, replica)`, or a `trueup.Url`.

        batch: the handler takes a list of up to so many changes, and returns None or outcomes by key.
        """

        def register(handler: Acting) -> Acting:
            call = self._called(handler, batch)
            for action in actions:
                self.handlers.add(action, call, batch)
            return handler

        return register

    def on_change(self, handler: Acting) -> Acting:
        """Declares the handler of every action that has none of its own."""
        return self.on(ANY_ACTION)(handler)

    def _called(self, handler: Callable[..., Any] | Url, batch: int | None) -> Callable[..., Any]:
        """A function as it is; for a URL, the function that posts to it."""
        if not isinstance(handler, Url):
            return handler
        posting = handler.handler(self.pair, self._project.clock)
        self.url_handlers.append(posting)
        return posting.one if batch is None else posting.many

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
        with self._project.tracing.span("offer", self.name) as trace:
            traced = changes if trace is None else [replace(change, trace=trace) for change in changes]
            outcomes = self._project.ledger.offer(traced, connection=connection)
        if connection is None:  # else the caller may still hold what a note would wait for
            self._project.hear([self.name])
        return outcomes

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
        window: str | None = None,
        whole: bool = False,
        progress: Progress | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Reconciles the pair: sweeps, compares, confirms, repairs what is safe, asks about the rest.

        window: compare only these closed windows. whole: compare everything, though the pair declares windows.
        stop: asked now and then; where it answers yes the run ends with RunStopped, and the next one goes on with it.
        """
        options = RunOptions(
            only=only, dry_run=dry_run, enqueue=enqueue, window=window, whole=whole, memory_mb=self._project.memory_mb
        )
        return self._reconcile(options, progress, stop)

    def _reconcile(
        self, options: RunOptions, progress: Progress | None, stop: Callable[[], bool] = lambda: False
    ) -> Report:
        project = self._project
        worker = project.worker([self.name])

        def perform(began: Callable[[Run], None]) -> Report:
            run = Reconciliation(
                self.records, project.ledger, project.archive, project.clock, worker, options, project.chance(),
                progress, runs=nowhere() if options.dry_run else None, stop=stop, began=began,
            )  # fmt: skip
            return observed(project.observer, run)

        told = NoPings() if options.dry_run or options.adopt else project.pings_of(self.pair)
        try:
            return pinged(told, perform)
        finally:
            project.recorded()

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

    def failing(self, where: FailingFilter) -> Iterator[Row]:
        """The records whose job fails in this way; they may change meanwhile."""
        for place in where.places:
            for rows in self._project.ledger.scan(self.name, place):
                yield from filter(where.fits, rows)

    def retry_failing(self, where: FailingFilter) -> int:
        """Gives records whose job fails in this way another life at once, as `retry` does; answers how many."""
        changes = [
            Change(self.name, row.key, row.wish_action or "upsert", origin=Origin.REVIEW) for row in self.failing(where)
        ]
        return sum(outcome.accepted for outcome in self._project.ledger.offer(changes)) if changes else 0

    @property
    def review(self) -> Review:
        """The pair's cases, and decisions about them."""
        project = self._project
        bind_gates(self.pair, self.url_handlers, project.budgets, project.clock)
        chance = random.Random(secrets.randbits(64))  # noqa: S311  not the project's: two processes may share its seed
        return Review(
            self.records, self.handlers, project.ledger, project.archive, project.budgets, project.clock, chance
        )

    def decide(
        self,
        case: int,
        choice: str,
        *,
        person: str,
        reason: str,
        until: str | dt.date | None = None,
        values: Mapping[str, Any] | None = None,
        shown: str | None = None,
    ) -> Decision:
        """Decides a case of the pair, and works the record at once where no worker lives that does.

        choice: see `trueup.model.decision.Choice`. until: for `accept`. values: for `edit`. shown: what the case showed
        (`Case.shown`). Raises MovedOn where a side moved since, DecisionRefused where the decision does not fit.
        """
        until_us = None if until is None else moment_us(until, "until")
        decision = self.review.decide(
            case, choice_named(choice), person=person, reason=reason, shown=shown, values=values, until_us=until_us
        )
        found = self._project.archive.case(case)
        self._project.recorded()
        if decision.state is DecisionState.DONE and found is not None:
            self.work([found.key] if found.is_record else None)
        return decision

    def work(self, keys: Sequence[str] | None = None) -> Ends | None:
        """Works what waits, all of it or these records; None where a worker lives that does."""
        project = self._project
        if alive(project.archive, project.ledger.now_us(), self.name):
            return None
        if not project.ledger.busy(self.name).get("pending"):
            return Ends()
        worker = project.worker([self.name])
        if keys is None:
            return worker.drain(PATIENCE_US)
        return Ends(finish.result for finish in worker.once(project.chance(), keys))

    def close(self) -> None:
        """Gives back the connections of its sides and URLs; the next use opens new ones."""
        for each in (*self.url_handlers, self.pair.authority, self.pair.replica):
            if each is not None:
                each.close()

    def status(self) -> Status:
        """How the pair is, from the state store alone."""
        return status(self.records, self._project.ledger, self._project.archive, self._project.budgets)

    def trend(self) -> Trend:
        """How much drifted over time, by cause and field, from the state store alone."""
        return trend_of(self._project.archive, self.name, self._project.ledger.now_us())

    def explain(self, key: str) -> Story:
        """The story of the record with this key text, and both sides as they are now."""
        return explain(self.records, self._project.ledger, self._project.archive, key)
