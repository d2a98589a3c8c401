"""The plan of a run: suspects are confirmed into items, breakers hold what is too much, the rest is acted upon.

Every step works through what is stored and marks it when it is done, so that a run that dies goes on where it was.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from trueup.engine import journal
from trueup.engine.asking import case_of
from trueup.engine.comparing import Progress, Stop
from trueup.engine.confirm import Confirmed, confirm
from trueup.engine.ending import recheck_us
from trueup.engine.records import Records
from trueup.model.breaker import SHARE_FLOOR, Stopped, Volume
from trueup.model.case import HELD, REGRESSED, UNLIKE, Case, CaseFilter
from trueup.model.change import Change, Origin, Outcome
from trueup.model.drift import Drift, Verdict
from trueup.model.plan import ItemState, PlanItem
from trueup.model.row import State
from trueup.model.run import CHANGED, Run
from trueup.ports import Archive, Ledger, Runs

BATCH: Final = 1_000
AGREE: Final = "the sides agree"
ADDS: Final = frozenset({Drift.MISSING, Drift.REMOVED})
Decide = Callable[[Confirmed], Verdict]
Counts = Counter[str]


class Planner:
    """Turns what differed in one run into a plan, and acts on it. runs: where the plan is kept."""

    def __init__(
        self, records: Records, ledger: Ledger, archive: Archive, runs: Runs, chance: random.Random, run: Run
    ) -> None:
        self.records, self.pair, self.run = records, records.pair, run
        self._ledger, self._archive, self._runs, self._chance = ledger, archive, runs, chance

    def confirm(self, decide: Decide, counts: Counts, progress: Progress, stop: Stop, *, remember: bool) -> None:
        """Reads every suspect again on both sides; what still differs becomes an item of the plan."""
        number = self.run.number
        left = self._runs.count_suspects(number)
        done = 0
        while keys := self._runs.suspects(number, BATCH):
            stop()
            result = confirm(self.records, self._ledger, keys, self.run.cutoff_us)
            if remember:
                agreed = [replace(each, verified_for_us=recheck_us(self.pair, self._chance)) for each in result.agreed]
                self._ledger.baseline(self.pair.name, agreed)
            keys_drifted = [drift.key for drift in result.drifts]
            known = self._archive.acceptances(self.pair.name, keys_drifted) if keys_drifted else {}
            items = [
                drift.item(self.records, Verdict.ACCEPT if drift.accepted(known.get(drift.key)) else decide(drift))
                for drift in result.drifts
            ]
            self._runs.plan(number, items, keys)
            counts["converged"] += result.converged
            counts["deferred"] += result.deferred
            counts["regressed"] += sum(drift.regressed for drift in result.drifts)
            done += len(keys)
            progress("confirm", done, left)

    def count(self, counts: Counts) -> None:
        """Counts the plan's items by drift and by verdict, whoever put them there."""
        for (drift, verdict, _, _), number in self._runs.count_items(self.run.number).items():
            counts[f"drift_{drift}"] += number
            counts[verdict] += number

    def items(self, state: ItemState | None = None) -> Iterator[list[PlanItem]]:
        """The plan's items in key order, in batches."""
        last = ""
        while batch := self._runs.items(self.run.number, state=state, after=last, limit=BATCH):
            yield batch
            last = batch[-1].key

    # ── breakers ─────────────────────────────────────────────────────────────────────────────────────

    def hold(self, counts: Counts, now_us: int) -> None:
        """Holds what a breaker stops and asks one question about all of it; or withdraws that question."""
        stopped = self._shows_nothing(counts) or self.pair.stop_at.judge(self._volume(counts))
        asked = self.run.what != CHANGED or not self._asked_by_a_full_one()
        if asked:
            self._drop_former()
        if stopped is None:
            if asked:
                journal.close_cases(self.pair, self._archive, [HELD], "a later plan is small enough")
            return
        for batch in self.items(ItemState.PLANNED):
            keys = [item.key for item in batch if _held(item, stopped)]
            # What is not asked about here, the next full comparison finds again.
            becomes = ItemState.HELD if asked else ItemState.DROPPED
            counts["held"] += self._runs.move_items(self.run.number, keys, becomes) if keys else 0
        if asked:
            journal.open_cases(
                self.pair,
                self._archive,
                [Case(self.pair.name, HELD, "held", now_us, run=self.run.number, cause=self._said(stopped, counts))],
            )

    def _shows_nothing(self, counts: Counts) -> Stopped | None:
        """An authority that shows nothing may have lost its eyes: one question, and not one for every record."""
        found = self._runs.count_items(self.run.number).items()
        orphans = sum(number for (drift, _, _, _), number in found if drift == Drift.ORPHANED)
        if self.run.what == CHANGED or counts["left"] or orphans <= SHARE_FLOOR:
            return None
        why = f"the authority shows no records at all, and {orphans:,} of the replica's were written from it"
        return Stopped(why, additions=False, orphans=True)

    def _asked_by_a_full_one(self) -> bool:
        """Whether the plan of a full comparison is held: one that saw less can't tell that it is out of date."""
        runs = [self._archive.run(case.run) for case in self._archive.cases(self.pair.name, CaseFilter(key=HELD))]
        return any(run is not None and run.what != CHANGED for run in runs)

    def _volume(self, counts: Counts) -> Volume:
        adds = overwrites = removes = 0
        for (drift, verdict, removing, _), number in self._runs.count_items(self.run.number).items():
            if verdict == Verdict.REPAIR:
                adds += number if drift in ADDS else 0
                removes += number if removing else 0
                overwrites += number if drift not in ADDS and not removing else 0
        known = self._ledger.counts(self.pair.name)
        records = max(counts["left"], counts["right"], sum(known.get(state, 0) for state in State))
        return Volume(adds, overwrites, removes, records)

    def _said(self, stopped: Stopped, counts: Counts) -> str:
        return f"{stopped.why}. The authority answered {counts['left']:,} records. {counts['held']:,} repairs are held"

    def _drop_former(self) -> None:
        """A plan that was held before is out of date: this run has looked again."""
        for case in self._archive.cases(self.pair.name, CaseFilter(key=HELD)):
            if case.run != self.run.number:
                drop(self._archive, case.run)

    # ── acts ─────────────────────────────────────────────────────────────────────────────────────────

    def act(self, origin: Origin, counts: Counts, now_us: int) -> None:
        """Offers every repair that is not held, and opens a case for everything that a person must decide."""
        name, number = self.pair.name, self.run.number
        while batch := self._runs.items(number, state=ItemState.PLANNED, limit=BATCH):
            asked = [item for item in batch if item.verdict is Verdict.REVIEW]
            journal.open_cases(
                self.pair, self._archive, self.cases([item for item in asked if item.drift is not Drift.UNLIKE], now_us)
            )
            accepted = [item.key for item in batch if item.verdict is Verdict.ACCEPT]
            repairs = [item for item in batch if item.verdict is Verdict.REPAIR]
            outcomes = self._ledger.offer([repair(name, item, origin) for item in repairs]) if repairs else []
            counts.update(_counted(outcome) for outcome in outcomes)
            overtaken = {i.key for i, outcome in zip(repairs, outcomes, strict=True) if outcome is Outcome.OVERTAKEN}
            given = [item for item in repairs if item.key not in overtaken]
            journal.repairs_offered(self.pair, number, given)
            becomes = {
                ItemState.ASKED: [item.key for item in asked],
                ItemState.OFFERED: [item.key for item in given],
                ItemState.OVERTAKEN: list(overtaken),
                ItemState.ACCEPTED: accepted,
            }
            if accepted:
                journal.close_cases(self.pair, self._archive, accepted, "the difference is accepted")
            for state, keys in becomes.items():
                if keys:
                    self._runs.move_items(number, keys, state)
        self._ask_about_unlike(now_us)
        self._ask_about_regressed(counts, now_us)

    def cases(self, items: list[PlanItem], now_us: int) -> list[Case]:
        """The questions to a person about these items."""
        rows = self._ledger.rows(self.pair.name, [item.key for item in items]) if items else {}
        return [case_of(self.records, item, now_us, row=rows.get(item.key), run=self.run.number) for item in items]

    def _ask_about_unlike(self, now_us: int) -> None:
        """One case for the pair, not one for each record: the handler or the mapping does not make them equal."""
        found = self._runs.count_items(self.run.number)
        asked = [(Drift.UNLIKE, Verdict.REVIEW)]
        count = sum(number for (drift, verdict, _, _), number in found.items() if (drift, verdict) in asked)
        if not count:
            if self.run.what != CHANGED:
                journal.close_cases(self.pair, self._archive, [UNLIKE], AGREE)
            return
        example = next(item for batch in self.items() for item in batch if (item.drift, item.verdict) in asked)
        cause = f"{count:,} records differ although both sides are as we left them, such as {example.key}"
        (case,) = self.cases([example], now_us)
        journal.open_cases(self.pair, self._archive, [replace(case, key=UNLIKE, cause=cause)])

    def _ask_about_regressed(self, counts: Counts, now_us: int) -> None:
        """One case beside the repairs: it stays until a person has seen it."""
        if counts["regressed"]:
            cause = (
                f"{counts['regressed']:,} records have an older version at the authority than was once done: "
                "was it restored from a backup?"
            )
            journal.open_cases(
                self.pair,
                self._archive,
                [Case(self.pair.name, REGRESSED, "regressed", now_us, run=self.run.number, cause=cause)],
            )

    def close_agreeing(self) -> None:
        """Closes the cases about records that agree again; what this run asked about is still open."""
        open_keys = [case.key for case in self._archive.cases(self.pair.name) if case.key.startswith("[")]
        for at in range(0, len(open_keys), BATCH):
            keys = open_keys[at : at + BATCH]
            states, replicas = self.records.read_authority(keys), self.records.read_replica(keys)
            agreeing = [key for key in keys if self.records.agree(states[key], replicas.get(key))]
            journal.close_cases(self.pair, self._archive, agreeing, AGREE)


def repair(pair: str, item: PlanItem, origin: Origin) -> Change:
    """The repair as an offer that is refused where the record has moved since it was judged."""
    return Change(
        pair, item.key, item.action, item.version, item.authority_digest, None, origin,
        judged_revision=item.revision, judged_replica=item.replica_digest,
    )  # fmt: skip


def approve(records: Records, ledger: Ledger, archive: Archive, chance: random.Random, run: Run, stop: Stop) -> Counts:
    """Offers what a breaker held, once a person approved exactly that plan; answers how many became what.

    Each item is judged again first: only what is still as it was shown is offered, and nothing that was not shown.
    """
    planner = Planner(records, ledger, archive, archive, chance, run)
    counts: Counts = Counter()
    while batch := archive.items(run.number, state=ItemState.HELD, limit=BATCH):
        stop()
        now = confirm(records, ledger, [item.key for item in batch], None)
        again = {drift.key: drift.item(records, Verdict.REPAIR) for drift in now.drifts}
        same = [again[item.key] for item in batch if item.key in again and _as_shown(item, again[item.key])]
        outcomes = ledger.offer([repair(planner.pair.name, item, Origin.REVIEW) for item in same])
        given = [item for item, outcome in zip(same, outcomes, strict=True) if outcome.accepted]
        offered = {item.key for item in given}
        journal.repairs_offered(planner.pair, run.number, given)
        archive.move_items(run.number, [item.key for item in given], ItemState.OFFERED)
        moved = [item.key for item in batch if item.key not in offered]
        archive.move_items(run.number, moved, ItemState.OVERTAKEN)
        counts["offered"] += len(offered)
        counts["overtaken"] += len(moved)
    return counts


def drop(archive: Archive, run: int) -> int:
    """Forgets what a breaker held: nothing of it will be done; answers how many items."""
    dropped = 0
    while batch := archive.items(run, state=ItemState.HELD, limit=BATCH):
        dropped += archive.move_items(run, [item.key for item in batch], ItemState.DROPPED)
    return dropped


def _as_shown(shown: PlanItem, now: PlanItem) -> bool:
    return (shown.drift, shown.authority_digest, shown.replica_digest, shown.removes) == (
        now.drift, now.authority_digest, now.replica_digest, now.removes,
    )  # fmt: skip


def _held(item: PlanItem, stopped: Stopped) -> bool:
    if stopped.orphans and item.drift is Drift.ORPHANED:
        return True
    return item.verdict is Verdict.REPAIR and (stopped.additions or item.drift not in ADDS)


def _counted(outcome: Outcome) -> str:
    if outcome.accepted:
        return "offered"
    return "deferred" if outcome is Outcome.OVERTAKEN else str(outcome)
