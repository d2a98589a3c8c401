"""The month itself: trueup's declaration, its workers and schedules, the people who decide, and the incidents."""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from trueup.errors import DecisionRefused
from trueup.model.case import HELD, REGRESSED, Case
from trueup.model.change import Origin
from trueup.model.evidence import Head
from trueup.project import Project

from .clock import VirtualTime
from .databases import Places
from .life import DAY_S, HOUR_S, Life, Plan
from .proof import none_kept, page
from .referee import judged
from .sides import Erp, Shop

PAIR: Final = "orders"
FAR: Final = "2999-12-31"
# Days at which things happen, as shares of the month: a compare is due every day at 3:00.
EMPTY_PAGE, BACKED_UP, RESTORED, AUTHORITY_BLIND, REPLICA_BLIND = 0.3, 0.53, 0.57, 0.7, 0.9
OUTAGE_DAY: Final = 2 / 24
SCHEDULER_S, IDLE_S = 600.0, 600.0
DAY_US: Final = round(DAY_S * 1e6)


class Month:
    """One month on one kind of database. evidence: whether any is kept. page: at the end, what its auditor reads."""

    def __init__(self, plan: Plan, places: Places, seed: int, *, evidence: bool = True) -> None:
        self.plan, self.places, self.seed, self.evidence = plan, places, seed, evidence
        self.anchors: list[Head] = []
        self.page = ""
        self._chance = random.Random(seed)
        self.time = VirtualTime()
        self.shop = Shop(places.shop_url, self.time)
        self.erp = Erp(places.erp_url, self.time, places.erp, random.Random(seed + 1))
        self.erp.trouble.timeouts = plan.timeouts
        self.project = Project(places.state, clock=self.time, seed=seed, threads=1)
        self.pair = self.project.pair(
            PAIR, authority=self.shop, replica=self.erp, fields=["customer", "cents", "status"],
            sweep="0 * * * *", compare="0 3 * * *", compare_changed="30 0,6,12,18 * * *", settle="2m",
            recheck="14d", jitter=0.3, on_drift={"orphaned": "repair"}, stop_at={"changes": max(20, plan.orders // 10)},
            totals=["cents"] if evidence else [], redact=["customer"] if evidence else [],
        )  # fmt: skip
        self.life = Life(plan, self.time, places, self.erp, self._offer, seed + 2)
        self.counts: Counter[str] = Counter()
        self.jobs: Counter[str] = Counter()
        self.decided: Counter[str] = Counter()
        self._over = False

    def play(self) -> dict[str, Any]:
        """Lives the month, then looks at everything; answers the figures."""
        began, cpu = time.monotonic(), time.process_time()
        with self.project, nullcontext() if self.evidence else none_kept():
            self._run_to_the_end([self._begin])
            self.time.start(self._work)
            self.time.start(self._schedule)
            self._run_to_the_end([self.life.live, self.life.edit, self._people, *self._incidents()])
            lived = time.monotonic() - began
            self._over = True
            self._run_to_the_end([self._end])
            cpu = time.process_time() - cpu
            judgement = judged(self.pair, self.project, self.life, self.places)
            figures = self._figures(judgement, lived, time.monotonic() - began) | {"cpu_s": round(cpu, 2)}
            self.page = page(self.project, self.anchors)
            return figures

    def _run_to_the_end(self, functions: list[Callable[[], object]]) -> None:
        left = len(functions)

        def ending(function: Callable[[], object]) -> Callable[[], None]:
            def call() -> None:
                nonlocal left
                function()
                left -= 1

            return call

        for function in functions:
            self.time.start(ending(function))
        self.time.run(lambda: left == 0)

    # ── trueup ───────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        self.pair.adopt()
        midnight_us = -(-self.time.now_us() // DAY_US) * DAY_US
        self.time.sleep_until(midnight_us)
        self.life.began_us = midnight_us

    def _offer(self, values: Any, deleted: bool) -> None:
        for outcome in self.pair.offer(values, deleted=deleted):
            self.counts[f"events {outcome}"] += 1
        self.time.notify()

    def _work(self) -> None:
        worker, chance, ledger = self.project.worker(threads=1), self.project.chance(), self.project.ledger
        while True:
            ended = worker.once(chance)
            for finish in ended:
                self.jobs[f"{Origin(finish.claim.row.wish_origin)} {finish.result}"] += 1
            if not ended:
                due_us = ledger.next_due_us([PAIR])
                left_s = IDLE_S if due_us is None else (due_us - self.time.now_us()) / 1e6
                self.time.doze(min(IDLE_S, max(1.0, left_s)))

    def _schedule(self) -> None:
        scheduler = self.project.scheduler(runs_at_once=1)
        scheduler.declare()
        while not self._over:
            performed = scheduler.once()
            if performed is None:
                passed_s = (self.time.now_us() - self.life.began_us) / 1e6
                self.time.sleep(SCHEDULER_S - passed_s % SCHEDULER_S)
                continue
            self.counts[f"{performed.what} {performed.how}"] += 1
            if performed.report is not None:
                self._count(performed.what, performed.report.counts)
            self.time.notify()

    def _count(self, what: str, counts: Counter[str]) -> None:
        for name in ("converged", "deferred", "regressed", "held", "offered"):
            self.counts[f"{what} {name}"] += counts[name]
        for name, number in counts.items():
            if name.startswith("drift_"):
                self.counts[f"drift {name.removeprefix('drift_')}"] += number

    # ── people ───────────────────────────────────────────────────────────────────────────────────────

    def _people(self) -> None:
        """Every morning somebody decides what waits, all but the newest of it."""
        for day in range(self.plan.days):
            self.time.sleep(self.life.at_s(day + 9 / 24))
            for case in self.project.cases(PAIR):
                choice = self._choice(case)
                if choice is not None:
                    self._decide(case, choice)
            self.anchors.append(self.project.archive.head())
            self.time.notify()

    def _choice(self, case: Case) -> str | None:
        if case.key == HELD:
            # Whoever approves hours later does not know whether what the plan shows was an outage.
            return "approve-plan"
        if case.key == REGRESSED:
            return "ignore-once"
        if case.drift in ("edited", "conflict", "foreign"):
            return self._chance.choice(["take-authority", "take-authority", "accept", None])
        return None

    def _decide(self, case: Case, choice: str) -> None:
        until = FAR if choice == "accept" else None
        try:
            decision = self.pair.decide(
                case.number, choice, person="ann", reason="looked at it", until=until, shown=case.shown
            )
        except DecisionRefused as refused:
            self.decided[f"{case.drift} {choice}: {type(refused).__name__}"] += 1
        else:
            became = f": {decision.note}" if case.key == HELD else ""
            self.decided[f"{case.drift} {choice}{became}"] += 1

    # ── incidents ────────────────────────────────────────────────────────────────────────────────────

    def _incidents(self) -> list[Callable[[], None]]:
        return [
            self._at(EMPTY_PAGE, OUTAGE_DAY, lambda: self._outage(self.shop, "empty page", 2 * HOUR_S)),
            self._at(BACKED_UP, 0.0, self.life.back_up),
            self._at(RESTORED, 0.5, self.life.restore),
            self._at(AUTHORITY_BLIND, OUTAGE_DAY, lambda: self._outage(self.shop, "lost rights", 2 * HOUR_S)),
            self._at(REPLICA_BLIND, OUTAGE_DAY, lambda: self._outage(self.erp, "lost rights", 2 * HOUR_S)),
        ]

    def _at(self, share: float, day: float, happen: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            self.time.sleep(self.life.at_s(int(share * self.plan.days) + day))
            happen()

        return call

    def _outage(self, side: Shop | Erp, what: Any, lasts_s: float) -> None:
        side.trouble.outage = what
        self.time.sleep(lasts_s)
        side.trouble.outage = ""

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────

    def _end(self) -> None:
        """Nothing happens any more; what is late arrives, and everything is looked at once more."""
        self.erp.trouble.timeouts = 0.0
        self.time.sleep(2 * HOUR_S)
        for _ in range(2):
            report = self.pair.run(enqueue=True)
            self._count("last", report.counts)
            self.time.notify()
            self.time.sleep(HOUR_S)

    def _evidence(self) -> dict[str, int]:
        entries = self.project.archive.entries()
        return {"entries": len(entries), "bytes": sum(len(each.fact.body) for each in entries)}

    def _figures(self, judgement: dict[str, Any], lived_s: float, took_s: float) -> dict[str, Any]:
        cases = self.project.cases(PAIR, open_only=False)
        return {
            "databases": self.places.kind,
            "seed": self.seed,
            "orders_a_day": self.plan.orders,
            "days": self.plan.days,
            "evidence": self._evidence(),
            "happened": dict(self.life.account.happened),
            "incidents": {"shop": dict(self.shop.trouble.shown), "erp": dict(self.erp.trouble.shown)},
            "calls": {"shop": dict(self.shop.calls), "erp": dict(self.erp.calls)},
            "jobs": dict(sorted(self.jobs.items())),
            "counts": {name: number for name, number in sorted(self.counts.items()) if number},
            "cases": dict(Counter(case.drift for case in cases)),
            "cases_open": dict(Counter(case.drift for case in cases if case.closed_us is None)),
            "decisions": dict(sorted(self.decided.items())),
            "judgement": judgement,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "lived_s": round(lived_s, 1),
            "took_s": round(took_s, 1),
        }
