"""A run: stuck → changed → compare → confirm → verdict → offers and cases → close, then its own jobs.

Repairs are offered, never written here; `Worker` does them through the same path as events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from trueup.compare.choose import compare
from trueup.compare.result import Agreement, Comparison
from trueup.engine.confirm import Confirmation, Confirmed, confirm
from trueup.engine.records import Records
from trueup.engine.report import PlanItem, Report
from trueup.engine.sweep import sweep_changed, sweep_unsynced
from trueup.engine.worker import Worker
from trueup.model.case import Case
from trueup.model.change import UPSERT, Change, Origin, Outcome
from trueup.model.drift import Drift, Verdict
from trueup.model.row import Baseline
from trueup.model.run import Run
from trueup.ports import Archive, Clock, Ledger, Side

CONFIRM_BATCH = 1_000
BASELINE_BATCH = 5_000
PATIENCE_US = 30_000_000

Phase = Literal["sweep", "compare"]
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run is done.

    only: `sweep` (stuck and changed) or `compare`. dry_run: the exact plan, and nothing is written anywhere.
    enqueue: leave the jobs to other workers. backfill, trust_authority: for adopt, create what is missing,
    overwrite what differs. memory_mb: for the comparison.
    """

    only: Phase | None = None
    dry_run: bool = False
    enqueue: bool = False
    adopt: bool = False
    backfill: bool = False
    trust_authority: bool = False
    memory_mb: int = 512


class Reconciliation:
    """One run of one pair. Every step may be repeated: a run that dies is simply run again."""

    def __init__(
        self,
        records: Records,
        ledger: Ledger,
        archive: Archive,
        clock: Clock,
        worker: Worker,
        options: RunOptions,
        chance: random.Random,
        progress: Progress | None = None,
    ) -> None:
        self.records, self.pair, self.ledger, self.archive = records, records.pair, ledger, archive
        self.clock, self.worker, self.options, self.chance = clock, worker, options, chance
        self._progress = progress or (lambda phase, done, total: None)
        settled = ledger.settled(self.pair.name)
        self.adopted = settled or options.adopt or self.pair.replica is None
        self.report = Report(self.pair.name, self._what(), adopted=settled)
        self.quiet = options.dry_run or not self.adopted
        self._newest: int | None = None
        self._unlike: list[Confirmed] = []

    def _what(self) -> str:
        if self.options.dry_run:
            return "dry run"
        if self.options.adopt:
            return "adopt"
        return "run" if self.adopted else "report"

    def perform(self) -> Report:
        """Runs all phases that the options ask for; raises what a side raises, with nothing half done."""
        started_us = self.clock.now_us()
        authority_us = self.pair.authority.now_us()
        run = Run(self.pair.name, self.report.what, started_us)
        if authority_us is not None:
            run = replace(run, cutoff_us=authority_us - self.pair.settle_us)
        self.report.cutoff_us = run.cutoff_us
        if not self.options.dry_run:
            run = self.archive.open_run(run)
            self.report.number = run.number
        try:
            cursor = self._phases(run)
        except BaseException as error:
            if not self.options.dry_run:
                failed = replace(run, ended="failed", error=f"{type(error).__name__}: {error}"[:500])
                self.archive.close_run(replace(failed, ended_us=self.clock.now_us()))
            raise
        self._close(run, cursor)
        return self.report

    def _phases(self, run: Run) -> int | None:
        cursor = None
        sweeps = self.options.only != "compare" and not self.options.adopt
        if sweeps and self.adopted:
            with self._timed("sweep"):
                cursor = self._sweep(run)
            self._work()
        if self.pair.replica is not None and self.options.only != "sweep":
            self._compare(run)
        if self.options.adopt and self.records.authority.version is not None:
            cursor = run.cutoff_us if self._timestamps() else self._newest
        return cursor

    # ── sweep ────────────────────────────────────────────────────────────────────────────────────────

    def _sweep(self, run: Run) -> int | None:
        counts, pair = self.report.counts, self.pair
        waiting = self.ledger.counts(pair.name)
        counts["wanted"] = waiting.get("pending", 0) + waiting.get("parked", 0)
        if not self.quiet:
            counts["revived"] = self.ledger.revive(pair.name, pair.tries_max)
        if pair.unsynced is not None:
            counts["unsynced"] = self._offer(sweep_unsynced(self.records), "unsynced")
        if self.records.authority.version is None:
            return None
        at, first = self.archive.cursor(pair.name), self.archive.cursor(first_cursor(pair.name))
        young = pair.replica is None and not self.ledger.settled(pair.name)
        newest: list[int] = []
        changes = sweep_changed(self.records, at, first, newest)
        if not young:
            counts["changed"] = self._offer(changes, "changed")
        elif not self._timestamps():
            for _ in changes:
                pass
        if self._timestamps() and run.cutoff_us is not None:
            return run.cutoff_us
        return max([*newest, *([] if at is None else [at])], default=None)

    def _timestamps(self) -> bool:
        asked = self.records.authority.version
        return asked is not None and asked.kind.name == "timestamp"

    def _offer(self, batches: Iterator[list[Change]], phase: str) -> int:
        total = 0
        for changes in batches:
            total += len(changes)
            if self.quiet:
                self.report.counts[f"{phase}_seen"] += len(changes)
            else:
                for outcome in self.ledger.offer(changes):
                    self.report.counts[f"{phase}_{outcome}"] += 1
            self._progress(phase, total, None)
        return total

    # ── compare ──────────────────────────────────────────────────────────────────────────────────────

    def _compare(self, run: Run) -> None:
        side = self.pair.replica
        assert side is not None
        since_us = self.ledger.now_us()
        counts = self.report.counts
        with self._timed("compare"):
            found = self._compared(side)
        with found:
            self._count(found)
            if not self.quiet:
                with self._timed("baseline"):
                    counts["baseline"] = self._baseline(found, since_us)
            with self._timed("confirm"):
                if self.pair.settle_us and found.counts.different:
                    self._progress("settle", 0, None)
                    self.clock.sleep(self.pair.settle_us / 1e6)
                self._confirm(found, run)

    def _compared(self, replica: Side) -> Comparison:
        return compare(
            self.pair.authority, replica, self.records.plan, strategy="rows", memory_mb=self.options.memory_mb,
            progress=lambda done, total: self._progress("compare", done, total),
        )  # fmt: skip

    def _count(self, found: Comparison) -> None:
        self.report.strategy = found.strategy
        for name in ("left", "right", "same", "missing", "extra", "differ", "duplicate"):
            self.report.counts[name] = getattr(found.counts, name)

    def _baseline(self, found: Comparison, since_us: int) -> int:
        stored = done = 0
        for batch in found.agreements():
            items = [self._ancestor(agreement, since_us) for agreement in batch]
            versions = [item.version for item in items if item.version is not None]
            self._newest = max([*versions, *([] if self._newest is None else [self._newest])], default=None)
            for at in range(0, len(items), BASELINE_BATCH):
                stored += self.ledger.baseline(self.pair.name, items[at : at + BASELINE_BATCH])
            done += len(items)
            self._progress("baseline", done, found.counts.same)
        return stored

    def _ancestor(self, agreed: Agreement, since_us: int) -> Baseline:
        return Baseline(
            key=agreed.key,
            revision=None,
            digest=agreed.left,
            replica=agreed.right,
            action=agreed.action or UPSERT,
            version=agreed.version,
            verified_for_us=self._recheck_us(),
            since_us=since_us,
        )

    def _recheck_us(self) -> int:
        return int(self.pair.recheck_us * self.chance.uniform(1 - self.pair.jitter, 1 + self.pair.jitter))

    def _confirm(self, found: Comparison, run: Run) -> None:
        differences = (difference.key for difference in found.differences())
        done = 0
        while keys := list(islice(differences, CONFIRM_BATCH)):
            result = confirm(self.records, self.ledger, keys, run.cutoff_us)
            self._take(result, found, run)
            done += len(keys)
            self._progress("confirm", done, found.counts.different)
        if not self.quiet:
            self._ask_about_unlike(run)
            self._close_agreeing()

    def _take(self, result: Confirmation, found: Comparison, run: Run) -> None:
        counts = self.report.counts
        counts["converged"] += result.converged
        counts["deferred"] += result.deferred
        decided = [self._decide(drift, found) for drift in result.drifts]
        for drift in decided:
            counts[f"drift_{drift.drift}"] += 1
            counts[str(drift.verdict)] += 1
            self.report.plan.append(
                PlanItem(drift.key, drift.drift, drift.verdict, drift.state.action, drift.fields(self.records))
            )
        if self.quiet:
            return
        agreed = [replace(each, verified_for_us=self._recheck_us()) for each in result.agreed]
        self.ledger.baseline(self.pair.name, agreed)
        repairs = [
            drift.change(self.records, self._origin(drift)) for drift in decided if drift.verdict is Verdict.REPAIR
        ]
        for outcome in self.ledger.offer(repairs):
            counts["offered" if outcome.accepted else "deferred" if outcome is Outcome.OVERTAKEN else str(outcome)] += 1
        asked = [drift for drift in decided if drift.verdict is Verdict.REVIEW]
        self._unlike += [drift for drift in asked if drift.drift is Drift.UNLIKE]
        self.archive.open_cases([self._case(drift, run) for drift in asked if drift.drift is not Drift.UNLIKE])

    def _decide(self, drift: Confirmed, found: Comparison) -> Confirmed:
        """The policy's verdict, but for adoption's own rule and the guard against an empty authority."""
        if self.options.adopt:
            asked = (drift.drift is Drift.MISSING and self.options.backfill) or (
                drift.drift is Drift.UNKNOWN and self.options.trust_authority
            )
            return replace(drift, verdict=Verdict.REPAIR if asked else Verdict.REVIEW)
        if found.counts.left == 0 and drift.drift is Drift.ORPHANED:
            return replace(drift, verdict=Verdict.REVIEW)
        return drift

    def _origin(self, drift: Confirmed) -> Origin:
        return Origin.BACKFILL if self.options.adopt else Origin.COMPARE

    def _case(self, drift: Confirmed, run: Run) -> Case:
        return Case(
            pair=self.pair.name,
            key=drift.key,
            drift=drift.drift,
            opened_us=self.clock.now_us(),
            authority=drift.state.values,
            replica=None if drift.replica is None else drift.replica.values,
            fields=self.records.differing(drift.state, drift.replica),
            run=run.number,
        )

    def _ask_about_unlike(self, run: Run) -> None:
        """One case for the pair, not one for each record: the handler or the mapping does not make them equal."""
        name = self.pair.name
        if not self._unlike:
            self.archive.close_cases(name, [""], "the sides agree")
            return
        example = self._case(self._unlike[0], run)
        detail = f"{len(self._unlike):,} records differ although both sides are as we left them, such as {example.key}"
        self.archive.open_cases([replace(example, key="", detail=detail)])

    def _close_agreeing(self) -> None:
        """Cases about records that this compare did not find different are closed: the sides agree again."""
        open_keys = [case.key for case in self.archive.cases(self.pair.name) if case.key]
        for at in range(0, len(open_keys), CONFIRM_BATCH):
            keys = open_keys[at : at + CONFIRM_BATCH]
            states, replicas = self.records.read_authority(keys), self.records.read_replica(keys)
            agreeing = [key for key in keys if self.records.agree(states[key], replicas.get(key))]
            self.archive.close_cases(self.pair.name, agreeing, "the sides agree")

    # ── close ────────────────────────────────────────────────────────────────────────────────────────

    def _close(self, run: Run, cursor: int | None) -> None:
        counts, name = self.report.counts, self.pair.name
        if not self.options.dry_run:
            complete = self.adopted and self.options.only is None
            if complete:
                self.ledger.settle(name)
                self.report.adopted = True
            moved: dict[str, int] = {}
            if cursor is not None and self.adopted:
                moved[name] = cursor
                if self.archive.cursor(name) is None and self.pair.replica is None:
                    moved[first_cursor(name)] = cursor if self._timestamps() else cursor + 1
            ended = replace(run, ended="done", ended_us=self.clock.now_us(), counts=dict(counts))
            self.archive.close_run(ended, moved)
        self._work()
        after = self.ledger.counts(name)
        counts["pending"], counts["parked"] = after.get("pending", 0), after.get("parked", 0)
        counts["cases"] = self.archive.count_cases(name)

    def _work(self) -> None:
        """Works what this run offered, to the end, unless that is left to other workers."""
        if self.quiet or self.options.enqueue:
            return
        with self._timed("repair"):
            ends = self.worker.drain(PATIENCE_US, lambda done: self._progress("repair", done.total(), None))
        self.report.counts.update({f"jobs_{result}": number for result, number in ends.items()})

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started_us = self.clock.now_us()
        try:
            yield
        finally:
            took_s = (self.clock.now_us() - started_us) / 1e6
            self.report.seconds[phase] = self.report.seconds.get(phase, 0.0) + took_s


def first_cursor(pair: str) -> str:
    """The name of the cursor that never moves: where a pair without replica began. All before it counts as done."""
    return f"{pair} (first)"
