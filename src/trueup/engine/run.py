"""A run: stuck → changed → compare → confirm → hold → act → close, and its own jobs.

Every phase ends in a checkpoint: who takes the run over, on whatever host, goes on behind it. Repairs are offered,
never written here; workers do them through the same path as events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from trueup.compare.result import Comparison
from trueup.engine import journal, past, sweep, trends
from trueup.engine.clocks import note_clocks
from trueup.engine.comparing import COUNTED, NEWEST, Comparing, Progress, by_rows
from trueup.engine.confirm import Confirmed
from trueup.engine.evidence import READ, fact_of_run, note_inputs, said_of
from trueup.engine.options import RunOptions
from trueup.engine.plan import Planner
from trueup.engine.reach import reach
from trueup.engine.records import Records
from trueup.engine.repaired import record_repairs
from trueup.engine.report import Report
from trueup.engine.seeing import see_done
from trueup.engine.totals import read_by
from trueup.engine.windows import Chosen, Windowing
from trueup.engine.worker import Worker
from trueup.errors import RunStopped, RunUnderWay
from trueup.model.change import Change, Origin
from trueup.model.drift import Drift, Verdict
from trueup.model.evidence import Fact
from trueup.model.run import CHANGED, DONE, FAILED, Run
from trueup.ports import Archive, Clock, Ledger, Runs, Side

RUN_LEASE_US: Final = 60_000_000
SETTLE_SLICE_S: Final = 1.0
ERROR_CHARACTERS_MAX: Final = 500


class Reconciliation:
    """One run of one pair. Every step may be repeated.

    runs: where its checkpoints and its plan are kept; something that is thrown away for a dry run. owner: who holds the
    pair's slot. stop: asked now and then; where it says yes, the run ends with RunStopped and can be gone on with.
    """

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
        *,
        runs: Runs | None = None,
        owner: str = "",
        stop: Callable[[], bool] = lambda: False,
        began: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.records, self.pair, self.ledger, self.archive = records, records.pair, ledger, archive
        self.clock, self.worker, self.options, self.chance = clock, worker, options, chance
        self.runs: Runs = runs or archive
        self._progress = progress or (lambda phase, done, total: None)
        self._owner, self._told_to_stop, self._began = owner or worker.owner, stop, began
        settled = ledger.settled(self.pair.name)
        self.adopted = settled or options.adopt or self.pair.replica is None
        self.report = Report(self.pair.name, self._what(), adopted=settled, redact=frozenset(self.pair.redact))
        self.quiet = options.dry_run or not self.adopted
        self._memo: dict[str, Any] = {}

    def _what(self) -> str:
        if self.options.dry_run:
            return "dry run"
        if self.options.adopt:
            return "adopt"
        if self.options.window is not None:
            return f"window {self.options.window}"
        return (self.options.only or "run") if self.adopted else "report"

    # ── the slot ─────────────────────────────────────────────────────────────────────────────────────

    def perform(self) -> Report:
        """Runs all phases that the options ask for, or those that are left of a run that died.

        Raises RunUnderWay where the pair has a run already, RunStopped where it was told to stop, and what a side
        raises, with nothing half done.
        """
        self.run = self._begin()
        self._began(self.run)
        stop = self.clock.every(RUN_LEASE_US / 3e6, lambda: self.runs.keep_run(self.run, RUN_LEASE_US))
        try:
            self._set_cutoff()
            self._phases()
            self._close()
        except (RunStopped, KeyboardInterrupt):
            self.runs.close_run(self._as_far())  # still open: whoever begins the same next goes on with it
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS_MAX]
            failed = replace(self._as_far(), ended=FAILED, ended_us=self.clock.now_us(), error=said)
            self.runs.close_run(failed, fact=self._fact(replace(failed, error=said_of(error, self.pair))))
            raise
        finally:
            stop()
        self._work()
        self._count_what_is_left()
        if not self.quiet:
            record_repairs(self.pair, self.ledger, self.archive)
        return self.report

    def _begin(self) -> Run:
        asked = Run(self.pair.name, self.report.what, self.clock.now_us())
        run = self.runs.begin_run(asked, self._owner, RUN_LEASE_US)
        if run is None:
            raise RunUnderWay(
                f"pair {self.pair.name}: a run is under way.",
                hint=f"Wait for it, or see what it does: trueup status {self.pair.name}",
            )
        self.report.number = 0 if self.options.dry_run else run.number
        self.report.resumed = run.started_us != asked.started_us
        self.report.counts.update(run.counts)
        self._memo |= run.memo
        journal.run_began(self.report)
        return run

    def _set_cutoff(self) -> None:
        """By the authority's clock, once; a run that is gone on with keeps the one it had."""
        if self.run.cutoff_us is None and (authority_us := self.pair.authority.now_us()) is not None:
            self.run = replace(self.run, cutoff_us=authority_us - self.pair.settle_us)
        self.report.cutoff_us = self.run.cutoff_us

    def _as_far(self) -> Run:
        return replace(self.run, counts=dict(self.report.counts), memo=dict(self._memo))

    def _checkpoint(self, phase: str) -> None:
        self.run = replace(self.run, done=(*self.run.done, phase))
        if not self.runs.save_run(self._as_far()):
            raise self._lost()

    def _save(self) -> None:
        self._stop()
        if not self.runs.save_run(self._as_far()):
            raise self._lost()

    def _stop(self) -> None:
        if self._told_to_stop():
            raise RunStopped(
                f"pair {self.pair.name}: the run was told to stop.", hint=f"Go on with it: trueup run {self.pair.name}"
            )

    def _lost(self) -> RunStopped:
        return RunStopped(
            f"pair {self.pair.name}: the run lost its slot: this process stood still for longer than its lease.",
            hint="Another process goes on with it.",
        )

    # ── phases ───────────────────────────────────────────────────────────────────────────────────────

    def _phases(self) -> None:
        note_inputs(self._memo, self.pair, self.options)
        for phase, act in self._steps():
            if phase not in self.run.done:
                self._stop()
                with journal.timed(self.report, phase, self.clock):
                    act()
                self._checkpoint(phase)

    def _steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        only = self.options.only
        sweeps = only in (None, "sweep") and not self.options.adopt and self.adopted and self.options.window is None
        compares = self.pair.replica is not None and only != "sweep"
        if sweeps:
            yield "stuck", self._stuck
            yield "changed", self._changed
        if sweeps and compares:
            yield "work", self._work  # a record that still waits could not be judged
        if compares and self.options.windowed(self.pair):
            yield "windows", self._choose_windows
            yield "compare", self._compare_windows
        elif compares:
            yield "compare", self._compare_touched if only == CHANGED else self._compare
        if compares:
            yield "settle", self._settle
            yield "confirm", self._confirm
            yield "act", self._act

    def _stuck(self) -> None:
        counts, pair = self.report.counts, self.pair
        waiting = self.ledger.busy(pair.name)
        counts["wanted"] = waiting.get("pending", 0) + waiting.get("parked", 0)
        if not self.quiet:
            counts["revived"] = self.ledger.revive(pair.name, pair.tries_max)
        if pair.unsynced is not None:
            counts["unsynced"] = self._offer(sweep.sweep_unsynced(self.records), "unsynced")

    def _changed(self) -> None:
        """Offers what changed since the cursor; everything, where the newest version ever seen is gone."""
        if self.records.authority.version is None:
            return
        counts, cursor = self.report.counts, sweep.load(self.archive, self.pair.name)
        young = self.pair.replica is None and not self.ledger.settled(self.pair.name)
        # Asked before the look: what commits meanwhile was running, and is not seen.
        reached = reach(self.records, self.archive, self.run.cutoff_us, cursor.at)
        if not young:
            counts["changed"] = self._offer(sweep.sweep_changed(self.records, cursor), "changed")
            if cursor.went_back:
                self.report.notes.append(
                    "the newest version known is gone from the authority (deleted, or restored from a backup): "
                    "everything was read again"
                )
                counts["changed"] += self._offer(sweep.sweep_changed(self.records, cursor, whole=True), "changed")
        elif not self.records.dated:
            for _ in sweep.sweep_changed(self.records, cursor):
                self._stop()
        newest = max((at for at in (cursor.seen, cursor.at) if at is not None), default=None)
        # A pair without replica begins with what is visible: nothing before it is anybody's to carry over.
        begins = young and not self.records.dated
        self._memo["cursor"] = newest if begins or reached.until is None else reached.until
        self._memo["kept"] = dict(reached.kept)
        self._memo["newest"] = cursor.seen

    def _offer(self, batches: Iterator[list[Change]], phase: str) -> int:
        total = 0
        for changes in batches:
            self._stop()
            total += len(changes)
            if self.quiet:
                self.report.counts[f"{phase}_seen"] += len(changes)
            else:
                for outcome in self.ledger.offer(changes):
                    self.report.counts[f"{phase}_{outcome}"] += 1
            self._progress(phase, total, None)
        return total

    # ── compare ──────────────────────────────────────────────────────────────────────────────────────

    def _compare(self) -> None:
        if "reached" not in self._memo:  # by the clocks as they were before anything was read
            self._memo["reached"] = past.reaches(self.records, self.archive, self.run.cutoff_us)
            self._save()
        comparing = self._comparing
        self.report.strategy = comparing.in_place(self.run, self.archive, self._progress) if self.quiet else ""
        if not self.report.strategy:
            comparing.cut(self.run)
        found = comparing.work(self.run, self._progress, self._save, remember=not self.quiet)
        self._took(found)
        if self.records.authority.version is not None:
            self._memo["reached"].setdefault(past.left_cursor(self.pair.name), found[NEWEST])

    @property
    def _windowing(self) -> Windowing:
        return Windowing(self.records, self.ledger, self.archive)

    def _choose_windows(self) -> None:
        chosen = self._windowing.choose(self.options.window)
        self._memo |= chosen.memo(self.pair.name)
        self.report.counts["windows"] = len(chosen.windows)

    def _compare_windows(self) -> None:
        comparing = self._comparing
        comparing.cut_windows(self.run, Chosen.of(self._memo).windows)
        self._took(comparing.work(self.run, self._progress, self._stop, remember=not self.quiet))

    def _compare_touched(self) -> None:
        since = past.load(self.records, self.archive)
        if "reached" not in self._memo:
            moved = past.reaches(self.records, self.archive, self.run.cutoff_us)
            self._memo["reached"] = {past.left_cursor(self.pair.name): since.left} | moved
            self._save()
        self.report.strategy = "touched"
        self._took(self._comparing.touched(self.run, since, self._progress, self._stop, remember=not self.quiet))

    @property
    def _comparing(self) -> Comparing:
        return Comparing(
            self.records, self.ledger, self.runs, self.clock, self.chance,
            owner=self._owner, memory_mb=self.options.memory_mb, cases=self.archive, compare=self._compared,
        )  # fmt: skip

    def _took(self, found: Mapping[str, int]) -> None:
        self.report.counts.update({name: found[name] for name in COUNTED})
        self._memo[READ] = read_by([found])
        self._memo[NEWEST] = max(found[NEWEST], self._memo.get("newest") or 0)

    def _compared(
        self, left: Side, right: Side, comparing: Comparing, progress: Callable[[int, int | None], None]
    ) -> Comparison:
        found = by_rows(left, right, comparing, progress)
        self.report.strategy = found.strategy
        return found

    def _settle(self) -> None:
        """What was on its way when the comparison read it has arrived after the settle time."""
        if self.pair.settle_us and self.runs.count_suspects(self.run.number):
            self._progress("settle", 0, None)
            ends_us = self.clock.elapsed_us() + self.pair.settle_us
            while (left_us := ends_us - self.clock.elapsed_us()) > 0:
                self._stop()
                self.clock.sleep(min(left_us / 1e6, SETTLE_SLICE_S))

    @property
    def _planner(self) -> Planner:
        return Planner(self.records, self.ledger, self.archive, self.runs, self.chance, self.run)

    def _confirm(self) -> None:
        counts = self.report.counts
        self._planner.confirm(self._decide, counts, self._progress, self._save, remember=not self.quiet)
        self._planner.count(counts)

    def _decide(self, drift: Confirmed) -> Verdict:
        """The policy's verdict, but for adoption's own rule and the guard against an empty authority."""
        if self.options.adopt:
            asked = (drift.drift is Drift.MISSING and self.options.backfill) or (
                drift.drift is Drift.UNKNOWN and self.options.trust_authority
            )
            return Verdict.REPAIR if asked else Verdict.REVIEW
        empty = self.report.counts["left"] == 0 and self.options.only != CHANGED
        if empty and drift.drift is Drift.ORPHANED:
            return Verdict.REVIEW
        return drift.verdict

    def _act(self) -> None:
        planner, counts, now_us = self._planner, self.report.counts, self.clock.now_us()
        if self.quiet:
            return
        if not self.options.adopt:
            planner.hold(counts, now_us)
        planner.act(Origin.BACKFILL if self.options.adopt else Origin.COMPARE, counts, now_us)
        planner.close_agreeing()
        if self.options.windowed(self.pair):
            self._windowing.conclude(Chosen.of(self._memo), self.runs, self.run.number, counts, now_us)

    # ── close ────────────────────────────────────────────────────────────────────────────────────────

    def _close(self) -> None:
        if self.adopted and self.options.only is None and not self.options.dry_run:
            self.ledger.settle(self.pair.name)
            self.report.adopted = True
        note_clocks(self._memo, self.pair, self.clock)
        ended = replace(self._as_far(), ended=DONE, ended_us=self.clock.now_us())
        fact = self._fact(ended)
        drift = trends.note(self.pair, self.archive, ended, self.report)
        if not self.runs.close_run(ended, self._cursors(), fact, drift):
            raise self._lost()

    def _fact(self, ended: Run) -> Fact | None:
        """What is put on record, with the whole plan; a dry run leaves nothing anywhere."""
        batches = self._planner.items() if "confirm" in ended.done else ()
        self.report.plan = [item for batch in batches for item in batch]
        known = self.records, ended, self.report, self.options
        return None if self.options.dry_run else fact_of_run(*known, self.archive)

    def _cursors(self) -> Mapping[str, int]:
        """Cursors move only in the transaction that closes a run whose every phase is complete."""
        name, memo = self.pair.name, self._memo
        at = memo.get("cursor")
        if not self.adopted or self.options.dry_run:
            return {}
        moved: dict[str, int] = memo.get("kept", {}) | memo.get("reached", {})
        if self.options.adopt:
            at = moved.get(past.left_cursor(name))
        if at is None:
            return moved
        moved[name] = at
        if newest := memo.get("newest", memo.get(NEWEST)):  # 0: no version was seen
            moved[sweep.newest_cursor(name)] = newest
        if self.archive.cursor(name) is None and self.pair.replica is None:
            moved[sweep.first_cursor(name)] = at if self.records.dated else at + 1
        return moved

    def _work(self) -> None:
        """Sees what this run offered done, unless that is left to others."""
        if self.quiet or self.options.enqueue:
            return
        with journal.timed(self.report, "repair", self.clock):
            ends = see_done(
                self.pair.name, self.ledger, self.archive, self.clock, self.worker, self._stop,
                lambda done: self._progress("repair", done, None),
            )  # fmt: skip
        self.report.counts.update({f"jobs_{result}": number for result, number in ends.items()})

    def _count_what_is_left(self) -> None:
        counts, name = self.report.counts, self.pair.name
        after = self.ledger.busy(name)
        counts["pending"], counts["parked"] = after.get("pending", 0), after.get("parked", 0)
        counts["cases"] = self.archive.count_cases(name)
