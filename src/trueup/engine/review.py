"""Review: what a person decides about a case is stored, checked against both sides as they are, and then done.

Nothing is written to a replica here: that is a job like any other, through the one handler. The authority is written
here, where it can be, under the token that was just read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trueup.engine import journal
from trueup.engine.asking import case_of
from trueup.engine.confirm import Confirmed, confirm
from trueup.engine.evidence import fact_of_decision, said_of
from trueup.engine.gate import Caller, calling
from trueup.engine.hidden import redaction_key
from trueup.engine.plan import AGREE, approve, drop
from trueup.engine.records import Records, State
from trueup.errors import DecisionRefused, MovedOn, TrueupError, Unreachable
from trueup.model.acceptance import Acceptance
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.case import ANY_CASE, Case, CaseFilter
from trueup.model.change import Origin, Outcome
from trueup.model.decision import SINGLE, Choice, Decision, DecisionState, check, choices, no_case
from trueup.model.drift import Verdict
from trueup.model.evidence import Fact
from trueup.model.outcome import HandlerOutcome
from trueup.model.row import Row
from trueup.model.row import State as RowState
from trueup.pair import Handlers
from trueup.ports import Archive, Budgets, Clock, Ledger, WritableSide, Write, provides

LEASE_US: Final = 60_000_000
PATIENCE_US: Final = 30_000_000
PAGE: Final = 500
EXAMPLES: Final = 5
# What ends in a job.
JOBS: Final = frozenset({Choice.TAKE_AUTHORITY, Choice.TAKE_REPLICA, Choice.EDIT, Choice.APPROVE_PLAN})


@dataclass(frozen=True, slots=True)
class Asked:
    """One case as a decision for many at once would find it. shown: see `Case.shown`."""

    number: int
    key: str
    shown: str


@dataclass(slots=True)
class Preview:
    """What a decision for many cases would be about.

    asked: the cases that the choice fits. fitting, others: how many by drift, others being those that it does not fit.
    examples: the first of the fitting ones.
    """

    choice: Choice
    asked: list[Asked] = field(default_factory=list)
    fitting: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    examples: list[Case] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one decision of many: as it is stored, or why it was refused."""

    asked: Asked
    decision: Decision | None = None
    error: TrueupError | None = None


class Review:
    """Decisions about the cases of one pair. Every step may be repeated."""

    def __init__(
        self,
        records: Records,
        handlers: Handlers,
        ledger: Ledger,
        archive: Archive,
        budgets: Budgets,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self.records, self.pair, self._handlers = records, records.pair, handlers
        self._ledger, self._archive, self._budgets = ledger, archive, budgets
        self._clock, self._chance = clock, chance

    @property
    def writable(self) -> bool:
        """Whether the authority can be written."""
        return provides(self.pair.authority, WritableSide)

    def case(self, number: int) -> Case:
        """The case of this number; DecisionRefused where this pair has none."""
        case = self._archive.case(number)
        if case is None or case.pair != self.pair.name:
            raise no_case(number)
        return case

    def choices(self, case: Case) -> tuple[Choice, ...]:
        """What may be decided about this case."""
        return () if case.closed_us is not None else choices(case, writable=self.writable)

    def parked(self) -> Iterator[Row]:
        """Records whose job needs a person, but for those that have an open case."""
        asked = {case.key for case in self._archive.cases(self.pair.name)}
        for rows in self._ledger.scan(self.pair.name, "parked"):
            yield from (row for row in rows if row.key not in asked)

    # ── one decision ─────────────────────────────────────────────────────────────────────────────────

    def decide(
        self,
        number: int,
        choice: Choice,
        *,
        person: str,
        reason: str,
        shown: str | None = None,
        values: Mapping[str, Any] | None = None,
        until_us: int | None = None,
    ) -> Decision:
        """Stores a decision and acts on it, unless a second person must agree first; answers it as it is then.

        shown: what the case showed to the person; by default what it shows now. values: for `edit`, Python values or
        texts by field name.

        Raises MovedOn where a side is no longer as the case shows it: nothing is written, and the case shows what is
        there now. Raises DecisionRefused where the decision does not fit, HandlerError where nothing would act on the
        job that it takes, and what the authority raises.
        """
        case = self.case(number)
        decision = Decision(
            number, choice, person.strip(), reason.strip(), case.shown if shown is None else shown,
            self._edited(values), until_us, id=f"{self._chance.getrandbits(64):016x}",
        )  # fmt: skip
        check(decision, case, writable=self.writable)
        self._check_job(choice)
        stored = self._archive.decide(decision, two_person=self.pair.two_person, lease_us=LEASE_US)
        if stored.state is not DecisionState.ACTING:
            return stored
        return self._carry_out(case, stored)

    def _check_job(self, choice: Choice) -> None:
        if choice in JOBS:
            self._handlers.check(self.pair)

    def _carry_out(self, case: Case, decision: Decision) -> Decision:
        stop = self._clock.every(LEASE_US / 3e6, lambda: self._archive.keep_decision(decision.id, LEASE_US))
        try:
            with calling(Caller(patience_us=PATIENCE_US)):
                note = self._act(case, decision)
        except (TrueupError, HandlerOutcome) as error:
            said = error.message if isinstance(error, TrueupError) else str(error)
            fact = self._fact(case, decision, DecisionState.REFUSED, said_of(error, self.pair))
            self._archive.conclude(decision, DecisionState.REFUSED, said, fact=fact)
            journal.case_decided(self.pair, case, decision, DecisionState.REFUSED)
            raise
        finally:
            stop()
        fact = self._fact(case, decision, DecisionState.DONE, note)
        self._archive.conclude(decision, DecisionState.DONE, note, close=decision.said(), fact=fact)
        journal.case_decided(self.pair, case, decision, DecisionState.DONE)
        return replace(decision, state=DecisionState.DONE, note=note, lease_until_us=0)

    def _fact(self, case: Case, decision: Decision, state: DecisionState, note: str) -> Fact:
        former, key = self._archive.decisions(case.number), redaction_key(self.pair, self._archive)
        return fact_of_decision(self.pair, case, decision, state, note, former, key)

    def _act(self, case: Case, decision: Decision) -> str:
        """Does what was decided; answers what came of it."""
        match decision.choice:
            case Choice.APPROVE_PLAN:
                return self._approve(case)
            case Choice.DROP_PLAN:
                return f"{drop(self._archive, case.run):,} dropped"
            case Choice.IGNORE_ONCE:
                return "a later run may ask again"
        found, row = self._as_shown(case)
        match decision.choice:
            case Choice.TAKE_AUTHORITY:
                if not self._offer(found.state, found):
                    raise MovedOn(
                        f"case {case.number}: a newer change of {case.key} came in between.",
                        hint="It will be done; the next run looks at the record again.",
                    )
                return "offered"
            case Choice.ACCEPT:
                return self._accept(case, decision, found, row)
        state = self._write(case, decision, found)
        return "written, offered" if self._offer(state, found) else "written; a newer change is on its way"

    def _as_shown(self, case: Case) -> tuple[Confirmed, Row | None]:
        """Both sides as they are; MovedOn where that is not what the case shows."""
        name, hint = self.pair.name, f"Look again: trueup review show {case.number}"
        now = confirm(self.records, self._ledger, [case.key], None, parked_too=True)
        row = self._ledger.rows(name, [case.key]).get(case.key)
        if now.deferred:
            raise MovedOn(
                f"case {case.number}: somebody is working on {case.key}, or a newer change waits.",
                hint=f"Decide when that is done: trueup run {name}",
            )
        if now.converged:
            self._ledger.baseline(name, now.agreed)
            journal.close_cases(self.pair, self._archive, [case.key], AGREE)
            raise MovedOn(f"case {case.number}: the sides agree by now.", hint="There is nothing left to decide.")
        (found,) = now.drifts
        item = found.item(self.records, Verdict.REVIEW)
        fresh = case_of(self.records, item, case.opened_us, row=row, run=case.run, found="when it was to be decided")
        if fresh.shown != case.shown:
            journal.open_cases(self.pair, self._archive, [fresh])
            raise MovedOn(f"case {case.number}: {case.key} moved on since it was asked about.", hint=hint)
        return found, row

    def _offer(self, state: State, found: Confirmed) -> bool:
        """Offers what the authority holds; False where the record moved since it was looked at."""
        change = self.records.change(
            state, Origin.REVIEW, judged_revision=found.revision, judged_replica=found.replica_digest
        )
        (outcome,) = self._ledger.offer([change])
        return outcome is not Outcome.OVERTAKEN

    def _accept(self, case: Case, decision: Decision, found: Confirmed, row: Row | None) -> str:
        assert decision.until_us is not None
        self._archive.accept(
            Acceptance(
                self.pair.name,
                case.key,
                found.state.digest,
                found.replica_digest,
                case.fields,
                decision.person,
                decision.reason,
                decision.until_us,
                case=case.number,
            )
        )
        # A job that waits for this very answer is told it: it meets the difference again, and finds it accepted.
        if row is not None and row.state is RowState.PARKED and not row.rejected and row.done_at is not None:
            self._ledger.offer([self.records.change(found.state, Origin.REVIEW, judged_revision=found.revision)])
        return "accepted"

    def _approve(self, case: Case) -> str:
        run = self._archive.run(case.run)
        if run is None:
            raise DecisionRefused(f"case {case.number}: there is no run {case.run}.", hint="Run the pair again.")
        counts = approve(self.records, self._ledger, self._archive, self._chance, run, lambda: None)
        return f"{counts['offered']:,} offered, {counts['overtaken']:,} no longer as they were shown"

    # ── writing to the authority ─────────────────────────────────────────────────────────────────────

    def _write(self, case: Case, decision: Decision, found: Confirmed) -> State:
        """Writes to the authority what was decided; answers what it holds then."""
        side, asked = self.pair.authority, self.records.authority
        assert isinstance(side, WritableSide)
        system = self.pair.authority_system
        if (health := self._budgets.health(system)).paused(self._ledger.now_us()):
            raise Unreachable(f"{side.label} is paused: {health.reason}.", hint=f"trueup resume {system}")
        now = side.read(asked, [case.key]).get(case.key)
        moved = MovedOn(
            f"case {case.number}: {case.key} moved at {side.label} just now.",
            hint=f"Look again: trueup review show {case.number}",
        )
        if self.records.state(case.key, now).digest != found.state.digest:
            raise moved
        values = self._values(decision, found)
        (written,) = side.apply(asked, [Write(case.key, values, "" if now is None else now.token, decision.id)])
        if not written.landed:
            raise moved
        return self.records.state(case.key, written.replica)

    def _values(self, decision: Decision, found: Confirmed) -> dict[str, str | None] | None:
        """What to write: only what differs, so that what is tolerated stays as it is; None to delete."""
        if decision.choice is Choice.EDIT:
            return dict(decision.values or {})
        replica = found.replica
        if replica is None:
            return self._absence()
        asked = self.records.plan.left
        names = self.records.differing(found.state, replica) or [each.name for each in asked.fields]
        return {name: replica.values.get(name) for name in names}

    def _absence(self) -> dict[str, str | None] | None:
        """What makes the authority say that there is no record: a state that means it, else a delete."""
        states = [(name, state) for name, states in self.pair.absent_when.items() for state in states]
        if len(states) > 1:
            raise DecisionRefused(
                f"pair {self.pair.name}: several states mean that there is no record.",
                hint=f"Choose one: edit --set {states[0][0]}={states[0][1]}",
            )
        return dict(states) or None

    def _edited(self, values: Mapping[str, Any] | None) -> dict[str, str | None] | None:
        """The canonical texts of new values; DecisionRefused where one is not of its field's kind."""
        if not values:
            return None
        fields = {each.name: each for each in self.records.plan.left.fields}
        if unknown := [name for name in values if name not in fields]:
            raise DecisionRefused(
                f"pair {self.pair.name} does not compare {unknown[0]}.", hint=f"Its fields: {', '.join(fields)}."
            )
        texts = {name: canonical_text(value, fields[name].kind) for name, value in values.items()}
        if odd := [name for name, text in texts.items() if is_odd(text, fields[name].kind)]:
            raise DecisionRefused(
                f"field {odd[0]}: the new value is no {fields[odd[0]].kind.name}.", hint="Nothing was written."
            )
        return texts

    # ── many at once ─────────────────────────────────────────────────────────────────────────────────

    def preview(self, choice: Choice, where: CaseFilter = ANY_CASE) -> Preview:
        """What `choice` for all of these open cases would be about; nothing is written.

        DecisionRefused where the choice is for one case at a time, HandlerError where nothing would act on its jobs.
        """
        if choice in SINGLE:
            raise DecisionRefused(f"{choice} is decided for one case at a time.", hint="Name the case by its number.")
        self._check_job(choice)
        preview = Preview(choice)
        last: Case | None = None
        while page := self._archive.cases(self.pair.name, where, after=last, limit=PAGE):
            for case in page:
                if choice not in self.choices(case):
                    preview.others[case.drift] += 1
                    continue
                preview.fitting[case.drift] += 1
                preview.asked.append(Asked(case.number, case.key, case.shown))
                preview.examples += [case] if len(preview.examples) < EXAMPLES else []
            last = page[-1]
        return preview

    def decide_all(
        self, preview: Preview, *, person: str, reason: str, until_us: int | None = None
    ) -> Iterator[Answer]:
        """Decides the cases of a preview one after the other, each guarded as if it were alone.

        Ends early, with the error as the last answer, where a system does not answer.
        """
        for asked in preview.asked:
            try:
                decision = self.decide(
                    asked.number, preview.choice, person=person, reason=reason, shown=asked.shown, until_us=until_us
                )
            except Unreachable as error:
                yield Answer(asked, error=error)
                return
            except TrueupError as error:
                yield Answer(asked, error=error)
            else:
                yield Answer(asked, decision)
