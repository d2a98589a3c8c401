"""One batch of jobs of one pair: refetch → read the replica → judge → check the lease → write → finish.

The order is the guarantee: an intent is recorded, together with the check of the lease, after the reads and
before the write, and the write itself is conditional on what was read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from trueup.engine import journal
from trueup.engine.afford import afforded, beyond, in_turns
from trueup.engine.asking import case_of
from trueup.engine.confirm import Confirmed
from trueup.engine.ending import Endings
from trueup.engine.gate import Caller, calling
from trueup.engine.handling import Moved, call_batch, call_handler
from trueup.engine.holding import Holding
from trueup.engine.judge import Equal, Permitted, Refused, judge
from trueup.engine.order import Predecessor, awaited
from trueup.engine.records import Records, State
from trueup.engine.sight import check_sight
from trueup.errors import LeaseLost, SideError, Unreachable
from trueup.model.change import DELETE, Origin
from trueup.model.drift import Drift, Verdict
from trueup.model.outcome import HandlerOutcome, Postponed, RateLimited
from trueup.model.record import Found
from trueup.model.row import Claim, Finish
from trueup.pair import Handlers
from trueup.ports import Archive, Budgets, Clock, Ledger, MarkableSide, WritableSide, Write, Written
from trueup.ports.watching import UNTRACED, Step, Tracing

REFUSALS_MAX = 5
# What was asked to come again in a minute comes within this share of it later: not all at once.
SIDE_TROUBLE = (SideError, OSError)


@dataclass(slots=True)
class Job:
    """One claimed record on its way: what the authority says, what the replica holds, how it ended.

    expect: the token a permitted write must still find. written: what the replica answered to a handler's write.
    ending: set once it is decided.
    """

    claim: Claim
    state: State
    replica: Found | None = None
    expect: str = ""
    written: Written | None = None
    ending: Finish | None = None

    @property
    def key(self) -> str:
        """The record's key text."""
        return self.claim.change.key


class JobBatch:
    """Works claimed records of one pair to their ends. A batch belongs to one thread.

    stopping: whether the worker was told to stop; jobs whose handler has not begun are given back then.
    """

    def __init__(
        self,
        records: Records,
        handlers: Handlers,
        ledger: Ledger,
        archive: Archive,
        budgets: Budgets,
        clock: Clock,
        chance: random.Random,
        predecessors: Sequence[Predecessor] = (),
        stopping: Callable[[], bool] = lambda: False,
        tracing: Tracing = UNTRACED,
    ) -> None:
        self.records, self.handlers, self.predecessors = records, handlers, predecessors
        self.pair = records.pair
        self.ledger, self.archive, self.budgets, self.clock, self.chance = ledger, archive, budgets, clock, chance
        self.endings, self._stopping, self._tracing = Endings(self.pair, chance), stopping, tracing
        self._troubled: set[str] = set()

    def work(self, claims: Sequence[Claim], asked_us: int) -> list[Finish]:
        """Works these claims, asked for at `asked_us` of the clock's `elapsed_us`; answers how each ended.

        A lost lease ends without a finish.
        """
        self.holding = Holding(self.ledger, self.clock, claims, self.pair.lease_us, asked_us)
        stop = self.holding.keep()
        with self._span("job", claims):
            try:
                turns = in_turns(self.pair, claims)
                finishes = [finish for urgent, turn in turns for finish in self._within_budget(urgent, turn)]
            finally:
                stop()
            if len(finishes) < len(claims):
                ended = {finish.claim.change.key for finish in finishes}
                journal.jobs_lost(self.pair, [claim for claim in claims if claim.change.key not in ended])
            return self._finish(finishes)

    def _within_budget(self, urgent: bool, claims: Sequence[Claim]) -> list[Finish]:
        """Works as many as the budget has room for; at a gate nobody waits until the lease is gone."""
        jobs = afforded(self.pair, self.budgets, self.ledger, urgent=urgent).jobs
        with calling(Caller(urgent, self.pair.lease_us // 3)):
            finishes = self._work(claims[:jobs]) if jobs != 0 else []
        left = [] if jobs is None else claims[jobs:]
        return finishes + beyond(self.pair, self.budgets, self.ledger, left, urgent=urgent)

    def _work(self, claims: Sequence[Claim]) -> list[Finish]:
        try:
            jobs = self._look(claims)
        except (*SIDE_TROUBLE, RateLimited) as error:
            trouble = self._trouble_of(self.pair.authority_system, error)
            return [trouble(claim) for claim in claims]
        self.budgets.succeeded(self.pair.authority_system)
        self._wait_for_others([job for job in jobs if job.ending is None])
        pending = reached = [job for job in jobs if job.ending is None]
        try:
            if self.records.readable:
                self._read_and_judge(pending)
            pending = [job for job in pending if job.ending is None]
            if self.handlers.declared or not self.records.readable:
                self._handle(pending)
            else:
                self._write(pending)
        except (*SIDE_TROUBLE, RateLimited) as error:
            trouble = self._trouble_of(self.pair.system.name, error)
            for job in pending:
                job.ending = job.ending or trouble(job.claim)
        if reached and self.pair.system.name not in self._troubled:
            self.budgets.succeeded(self.pair.system.name)
        return [job.ending for job in jobs if job.ending is not None]

    def _trouble_of(self, system: str, error: Exception) -> Callable[[Claim], Finish]:
        """Trouble of a system pauses the system; a record is charged only where others passed meanwhile."""
        if isinstance(error, SideError) and not isinstance(error, Unreachable):
            return lambda claim: self.endings.broke(claim, error, str(error))
        self._troubled.add(system)
        if isinstance(error, Postponed):
            wait_us = int(error.retry_after_s * 1e6)
            return lambda claim: Finish(claim, "retry", delay_us=wait_us, reason=str(error), charge=False)
        asked_us = int(error.retry_after_s * 1e6) if isinstance(error, RateLimited) else None
        said = self.endings.told(error)
        health = self.budgets.failed(system, said, asked_us)
        delay_us = max(0, health.paused_until_us - self.clock.now_us())
        charge = asked_us is None
        return lambda claim: Finish(
            claim, "retry", delay_us=delay_us, charge=charge and health.ok_at_us > claim.claimed_at, reason=said
        )

    # ── what should be, and what is ──────────────────────────────────────────────────────────────────

    def _look(self, claims: Sequence[Claim]) -> list[Job]:
        """Reads the authority where the wish is only a hint."""
        unsure = [c for c in claims if c.row.refetch or c.row.verify or c.change.digest is None]
        with self._span("read authority", unsure):
            seen = self.records.read_authority([c.change.key for c in unsure])
        wanted = self._still_unsynced([c.change.key for c in claims if c.row.refetch and c.change.unsynced])
        jobs, vanished = [], False
        for claim in claims:
            key = claim.change.key
            state = seen.get(key) or self.records.wished(claim.change)
            job = Job(claim, state)
            jobs.append(job)
            lag = contradiction(claim, state) if key in seen else None
            vanished |= lag is not None and state.values is None
            if lag is not None and lag != claim.row.lagging:
                job.ending = self.endings.lags(claim, lag)
            elif claim.row.refetch and claim.change.unsynced and key not in wanted:
                self._done(job, None, mark=False)
            elif claim.row.verify and not self.records.readable and self.pair.unsynced is not None:
                job.ending = Finish(claim, "verified", verified_for_us=self.endings.recheck_us())
        if vanished and all(state.values is None for state in seen.values()):
            check_sight(self.records, self.ledger)
        return jobs

    def _span(self, name: str, claims: Iterable[Claim]) -> Step:
        return self._tracing.span(name, self.pair.name, (claim.change.trace for claim in claims))

    def _wait_for_others(self, jobs: Sequence[Job]) -> None:
        waits = awaited(self.predecessors, self.ledger, [job.state for job in jobs]) if self.predecessors else {}
        for job in jobs:
            if job.key in waits:
                job.ending = self.endings.waits(job.claim, f"waits for {waits[job.key]}", waits[job.key])

    def _read_and_judge(self, jobs: Sequence[Job]) -> None:
        with self._span("read replica", (job.claim for job in jobs)):
            replicas = self.records.read_replica([job.key for job in jobs])
        for job in jobs:
            job.replica = replicas.get(job.key)
            self._judge(job)

    def _still_unsynced(self, keys: Sequence[str]) -> set[str]:
        side, condition = self.pair.authority, self.pair.unsynced
        if not keys or condition is None or not isinstance(side, MarkableSide):
            return set()
        return side.selects(self.records.authority, keys, condition)

    def _judge(self, job: Job) -> None:
        match judge(self.records, job.state, job.replica, job.claim):
            case Equal() if job.claim.row.verify:
                job.ending = Finish(job.claim, "verified", verified_for_us=self.endings.recheck_us())
            case Equal():
                self._done(job, job.replica)
            case Permitted(expect):
                job.expect = expect
            case Refused(drift):
                self._ask(job, drift)

    def _ask(self, job: Job, drift: Drift) -> None:
        """Opens a case, unless this very difference is accepted.

        Not where the lease was lost, since what was found may be the next holder's write.
        """
        self.holding.ask()
        if not self.holding.holds(job.claim):
            return
        row, digest = job.claim.row, self.records.replica_digest(job.replica)
        confirmed = Confirmed(job.key, drift, Verdict.REVIEW, job.state, job.replica, row.revision, digest)
        accepted = self.archive.acceptances(self.pair.name, [job.key]).get(job.key)
        if confirmed.accepted(accepted):
            job.ending = Finish(job.claim, "verified", verified_for_us=self.endings.recheck_us())
            return
        found = f"before a write ({Origin(row.wish_origin)})"
        item = confirmed.item(self.records, Verdict.REVIEW)
        case = case_of(self.records, item, self.clock.now_us(), row=row, found=found)
        journal.open_cases(self.pair, self.archive, [case])
        job.ending = Finish(job.claim, "parked", charge=False, reason=f"{drift}: a person must decide")

    # ── the built-in writer ──────────────────────────────────────────────────────────────────────────

    def _write(self, jobs: Sequence[Job]) -> None:
        """Writes in bulk; a refused write is judged again on what the replica holds now."""
        for _ in range(REFUSALS_MAX):
            jobs = self._still_held([job for job in jobs if job.ending is None])
            if not jobs:
                return
            for job, written in self._applied(jobs):
                job.replica = written.replica
                if written.landed:
                    self._done(job, written.replica)
                else:
                    self._judge(job)
            if any(job.ending is None for job in jobs):
                self.holding.ask()  # who moved it may be the next holder
        for job in jobs:
            if job.ending is None:
                job.ending = self.endings.moved(job.claim)

    def _applied(self, jobs: Sequence[Job]) -> list[tuple[Job, Written]]:
        """The jobs that the replica answered; one that it can't take must not keep the others from landing."""
        side = self.pair.replica
        assert isinstance(side, WritableSide)
        writes = [Write(job.key, self._mapped(job), job.expect, job.claim.change.id) for job in jobs]
        try:
            with self._span("write replica", (job.claim for job in jobs)):
                return list(zip(jobs, side.apply(self.records.replica, writes), strict=True))
        except Unreachable:
            raise
        except SideError as error:
            if len(jobs) == 1:
                jobs[0].ending = self._trouble_of(self.pair.system.name, error)(jobs[0].claim)
                return []
            middle = len(jobs) // 2
            return self._applied(jobs[:middle]) + self._applied(jobs[middle:])

    def _mapped(self, job: Job) -> dict[str, str | None] | None:
        return None if job.state.absent else self.records.mapped(job.state, job.replica)

    def _still_held(self, jobs: Sequence[Job]) -> list[Job]:
        """Records each intent that the claim could not, then drops the jobs whose lease is lost."""
        unsaid = [job for job in jobs if not job.state.absent and not _intended(job)]
        self.holding.intend([(job.claim, job.state.digest or "") for job in unsaid])
        return self._held(jobs)

    def _held(self, jobs: Sequence[Job]) -> list[Job]:
        held = [job for job in jobs if self.holding.holds(job.claim)]
        # To ask about the last of them may have taken long, and the answer is about all.
        return [job for job in held if not self.holding.lost(job.claim)]

    # ── handlers ─────────────────────────────────────────────────────────────────────────────────────

    def _handle(self, jobs: Sequence[Job]) -> None:
        """Runs the handlers, then reads back what the replica made of it where it has not said so itself."""
        waiting = self._still_held(jobs)
        performed: list[Job] = []
        while waiting:
            if self._stopping():
                for job in waiting:
                    job.ending = self.endings.given_back(job.claim)
                break
            group = self._next_group(waiting)
            waiting = waiting[len(group) :]
            held = self._held(group)
            try:
                with self._span("write replica", (job.claim for job in held)):
                    performed += self._call(held)
            except LeaseLost:
                continue
            except (Unreachable, RateLimited, ConnectionError, TimeoutError) as error:
                trouble = self._trouble_of(self.pair.system.name, error)
                for job in (*held, *waiting):
                    job.ending = trouble(job.claim)
                break
            except Exception as error:
                for job in held:
                    job.ending = self._failed(job.claim, error)
        # What a person writes after our write must not be taken for what the replica made of it.
        replicas = self.records.read_replica([job.key for job in performed if job.written is None])
        for job in performed:
            self._done(job, replicas.get(job.key) if job.written is None else job.written.replica)

    def _next_group(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """The first job, and those right behind it that its batch handler takes with it."""
        handler = self.handlers.find(jobs[0].state.action)
        if handler is None or handler.batch is None:
            return jobs[:1]
        group = takewhile(lambda job: self.handlers.find(job.state.action) is handler, jobs)
        return list(islice(group, handler.batch))

    def _call(self, jobs: Sequence[Job]) -> list[Job]:
        """Calls the handler of these jobs; answers those that it performed."""
        if not jobs:
            return []
        handler = self.handlers.find(jobs[0].state.action)
        if handler is None or handler.batch is None:
            [job] = jobs
            job.written = call_handler(
                self.records, self.handlers, self.holding, job.claim, job.state, job.replica, job.expect
            )
            return [job]
        outcomes = call_batch(handler, self.records, self.holding, [(job.claim, job.state) for job in jobs])
        for job, outcome in zip(jobs, outcomes, strict=True):
            if isinstance(outcome, Exception):
                job.ending = self._failed(job.claim, outcome)
        return [job for job in jobs if job.ending is None]

    def _failed(self, claim: Claim, error: Exception) -> Finish:
        """How a job ends whose handler said or raised this."""
        if isinstance(error, Moved):
            return self.endings.moved(claim)
        if isinstance(error, RateLimited):
            return self._trouble_of(self.pair.system.name, error)(claim)
        if isinstance(error, HandlerOutcome):
            return self.endings.outcome(claim, error)
        return self.endings.broke(claim, error)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────

    def _done(self, job: Job, replica: Found | None, *, mark: bool = True) -> None:
        """What was performed becomes done: what was read, not what was offered."""
        state, version = job.state, job.state.version
        side = self.pair.authority
        if mark and self.pair.mark is not None and state.values is not None and isinstance(side, MarkableSide):
            marked, now = side.mark(self.records.authority, job.key, state.version, self.pair.mark)
            version = now if marked else version
        job.ending = Finish(
            job.claim,
            "done",
            action=state.action,
            version=version,
            digest=None if state.values is None else state.digest,
            replica=self.records.replica_digest(replica) if self.records.readable else None,
            absent=state.action == DELETE,
            verified_for_us=self.endings.recheck_us(),
            repaired=job.claim.row.wish_origin == Origin.COMPARE,
        )

    def _finish(self, finishes: Sequence[Finish]) -> list[Finish]:
        """Tells the ledger; a failed try that was the last one parks the record."""
        parked = [f for f in finishes if f.result == "retry" and f.charge and f.claim.row.tries >= self.pair.tries_max]
        spent = {id(f) for f in parked}
        ended = [replace(f, result="parked") if id(f) in spent else f for f in finishes]
        journal.jobs_ended(self.pair, ended, self.ledger.finish(ended))
        done = [f.claim.change.key for f in ended if f.result == "done"]
        if done and self.archive.count_cases(self.pair.name):
            journal.close_cases(self.pair, self.archive, done, "the sides agree")
        return ended


def _intended(job: Job) -> bool:
    """Whether the claim recorded the very digest that is about to be written."""
    row = job.claim.row
    return not row.refetch and not row.verify and row.wish_digest == job.state.digest


def contradiction(claim: Claim, state: State) -> str | None:
    """What makes a read of the authority doubtful, or None: older than known, or presence contrary to the wish."""
    row = claim.row
    if state.version is not None and row.high is not None and state.version < row.high:
        return f"version {state.version}"
    present = state.values is not None
    if (claim.change.action == DELETE) == present:
        return "present" if present else "absent"
    return None
