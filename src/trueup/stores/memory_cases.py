"""Cases in memory: questions, decisions and accepted differences of this process, gone when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trueup.model.acceptance import Acceptance
from trueup.model.case import ANY_CASE, Case, CaseFilter, Comment
from trueup.model.decision import Decision, DecisionState, judge, no_case
from trueup.model.evidence import Fact
from trueup.ports import Clock
from trueup.stores.memory_evidence import MemoryEvidence

# What a case keeps when it is refreshed.
KEPT: Final = ("opened_us", "assignee", "due_us")


class MemoryCases(MemoryEvidence):
    """Cases of this process."""

    def __init__(self, clock: Clock | None) -> None:
        MemoryEvidence.__init__(self, clock)
        self._case_clock = clock
        self._case_lock = threading.RLock()
        self._cases: dict[int, Case] = {}
        self._open: dict[tuple[str, str], int] = {}
        self._comments: dict[int, list[Comment]] = {}
        self._decisions: dict[int, dict[str, Decision]] = {}
        self._acceptances: dict[str, dict[str, Acceptance]] = {}

    def open_cases(self, cases: Sequence[Case]) -> dict[str, int]:
        """Opens cases; an open case about the same question is refreshed instead. Answers numbers of the new ones."""
        with self._case_lock:
            before = len(self._cases)
            for case in cases:
                number = self._open.setdefault((case.pair, case.key), len(self._cases) + 1)
                asked = self._cases.get(number)
                kept = {} if asked is None else {name: getattr(asked, name) for name in KEPT}
                self._cases[number] = replace(case, number=number, closed_us=None, closed=None, **kept)
            return {self._cases[number].key: number for number in range(before + 1, len(self._cases) + 1)}

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> dict[str, int]:
        """Closes the open cases about these records, with the reason; answers their numbers, by key."""
        with self._case_lock:
            found = {key: self._open[pair, key] for key in keys if (pair, key) in self._open}
            for number in found.values():
                self._close(self._cases[number], how)
            return found

    def _close(self, case: Case, how: str) -> None:
        del self._open[case.pair, case.key]
        self._cases[case.number] = replace(case, closed_us=self._case_now_us(), closed=how)

    def case(self, number: int) -> Case | None:
        """The case of this number, or None."""
        with self._case_lock:
            return self._cases.get(number)

    def cases(
        self,
        pair: str | None = None,
        where: CaseFilter = ANY_CASE,
        *,
        open_only: bool = True,
        after: Case | None = None,
        limit: int | None = None,
    ) -> list[Case]:
        """Cases of a pair, or of all, oldest first, behind the case `after`."""
        with self._case_lock:
            found = [
                case
                for case in self._cases.values()
                if pair in (None, case.pair) and not (open_only and case.closed_us is not None) and where.fits(case)
            ]
        behind = (-(2**63), 0) if after is None else _place(after)
        return sorted((case for case in found if _place(case) > behind), key=_place)[:limit]

    def count_cases(self, pair: str | None = None) -> int:
        """How many cases wait for a person."""
        with self._case_lock:
            return sum(pair in (None, of_pair) for of_pair, _ in self._open)

    def assign_case(self, number: int, assignee: str | None, due_us: int | None = None) -> bool:
        """Says who looks into a case, and until when; False where there is no such case, or it is closed."""
        with self._case_lock:
            case = self._cases.get(number)
            if case is None or case.closed_us is not None:
                return False
            self._cases[number] = replace(case, assignee=assignee, due_us=due_us)
            return True

    def comment(self, number: int, comment: Comment) -> bool:
        """Keeps what a person said about a case; False where there is no such case."""
        with self._case_lock:
            if number not in self._cases:
                return False
            said = replace(comment, at_us=self._case_now_us())
            self._comments.setdefault(number, []).append(said)
            return True

    def comments(self, number: int) -> list[Comment]:
        """What was said about a case, oldest first."""
        with self._case_lock:
            return list(self._comments.get(number, ()))

    # ── decisions ────────────────────────────────────────────────────────────────────────────────────

    def decide(self, decision: Decision, *, two_person: bool, lease_us: int) -> Decision:
        """Stores a decision before it acts, and answers it as stored: `proposed`, or `acting` under a lease."""
        with self._case_lock:
            case = self._cases.get(decision.case)
            if case is None:
                raise no_case(decision.case)
            of_case = self._decisions.setdefault(decision.case, {})
            now_us = self._case_now_us()
            judged = judge(case, [*of_case.values()], decision, now_us, lease_us, two_person=two_person)
            for each in judged.replaced:
                of_case[each.id] = replace(each, state=DecisionState.REPLACED)
            of_case[decision.id] = judged.decision
            return judged.decision

    def keep_decision(self, id_: str, lease_us: int) -> bool:
        """Extends the lease of a decision that acts; False where it does not."""
        with self._case_lock:
            for of_case in self._decisions.values():
                if id_ in of_case and of_case[id_].state is DecisionState.ACTING:
                    of_case[id_] = replace(of_case[id_], lease_until_us=self._case_now_us() + lease_us)
                    return True
            return False

    def conclude(
        self,
        decision: Decision,
        state: DecisionState,
        note: str = "",
        close: str | None = None,
        fact: Fact | None = None,
    ) -> bool:
        """Says what came of a decision that acts, and closes the case with it; False where it does not act."""
        with self._case_lock:
            stored = self._decisions.get(decision.case, {}).get(decision.id)
            if stored is None or stored.state is not DecisionState.ACTING:
                return stored is not None and stored.state is state
            self._decisions[decision.case][decision.id] = replace(stored, state=state, note=note, lease_until_us=0)
            case = self._cases[decision.case]
            if close is not None and case.closed_us is None and case.shown == decision.shown:
                self._close(case, close)
            if fact is not None:
                self.put_on_record(fact)
            return True

    def decisions(self, number: int) -> list[Decision]:
        """All decisions about a case, oldest first."""
        with self._case_lock:
            return list(self._decisions.get(number, {}).values())

    # ── accepted differences ─────────────────────────────────────────────────────────────────────────

    def accept(self, acceptance: Acceptance) -> None:
        """Stores an accepted difference, in place of any other of the same record."""
        with self._case_lock:
            of_pair = self._acceptances.setdefault(acceptance.pair, {})
            of_pair[acceptance.key] = replace(acceptance, at_us=self._case_now_us())

    def acceptances(self, pair: str, keys: Sequence[str] | None = None) -> dict[str, Acceptance]:
        """By key, those of these records, or of the whole pair, that have not expired."""
        with self._case_lock:
            of_pair, now_us = self._acceptances.get(pair, {}), self._case_now_us()
            asked = sorted(of_pair if keys is None else {*keys} & of_pair.keys())
            return {key: of_pair[key] for key in asked if of_pair[key].until_us > now_us}

    def expired(self, pair: str) -> list[Acceptance]:
        """Those that have expired, in the order of their keys."""
        with self._case_lock:
            now_us = self._case_now_us()
            return [each for _, each in sorted(self._acceptances.get(pair, {}).items()) if each.until_us <= now_us]

    def _case_now_us(self) -> int:
        return time.time_ns() // 1_000 if self._case_clock is None else self._case_clock.now_us()


def _place(case: Case) -> tuple[int, int]:
    return case.opened_us, case.number
