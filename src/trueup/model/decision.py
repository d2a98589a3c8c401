"""Decisions about cases: which fit, who may make them, and which of two wins.

Every store loads a case and its decisions, lets `judge` decide, and saves in one transaction. A decision is stored
before it acts. While it acts it has a lease, so that of two people only one acts, and so that one whose process died
can be repeated.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from trueup.errors import DecisionRefused, MovedOn, did_you_mean
from trueup.model.case import HELD, Case
from trueup.model.drift import Drift


class Choice(enum.StrEnum):
    """What a person may decide."""

    TAKE_AUTHORITY = "take-authority"
    TAKE_REPLICA = "take-replica"
    EDIT = "edit"
    ACCEPT = "accept"
    IGNORE_ONCE = "ignore-once"
    APPROVE_PLAN = "approve-plan"
    DROP_PLAN = "drop-plan"


def choice_named(name: str) -> Choice:
    """The choice of this name; DecisionRefused lists those there are."""
    try:
        return Choice(name)
    except ValueError:
        raise DecisionRefused(
            f"there is no choice {name!r}.", hint=did_you_mean(name, list(Choice), "Choices")
        ) from None


# What is about one case only, and can't be decided for many at once.
SINGLE: Final = frozenset({Choice.EDIT, Choice.APPROVE_PLAN, Choice.DROP_PLAN})


class DecisionState(enum.StrEnum):
    """proposed: a second person must agree. acting: on its way. refused: nothing came of it. replaced: by another."""

    PROPOSED = "proposed"
    ACTING = "acting"
    DONE = "done"
    REFUSED = "refused"
    REPLACED = "replaced"


# What came of a decision that acted.
MADE: Final = frozenset({DecisionState.DONE, DecisionState.REFUSED})


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a case, and why.

    case: its number. values: for `edit`, the new canonical texts by field name. until_us: for `accept`. shown: what the
    case showed, see `Case.shown`. id: given by whoever asks, so that the same decision is not stored twice. note: what
    came of it. at_us, lease_until_us: by the store's clock.
    """

    case: int
    choice: Choice
    person: str
    reason: str
    shown: str = ""
    values: Mapping[str, str | None] | None = None
    until_us: int | None = None
    id: str = ""
    state: DecisionState = DecisionState.PROPOSED
    note: str = ""
    at_us: int = 0
    lease_until_us: int = 0

    def said(self) -> str:
        """What was decided, by whom and why, in one line."""
        return f"{self.choice} by {self.person}: {self.reason}"


def choices(case: Case, *, writable: bool) -> tuple[Choice, ...]:
    """What may be decided about this case. writable: whether the authority can be written."""
    if case.key == HELD:
        return Choice.APPROVE_PLAN, Choice.DROP_PLAN
    # Which of the copies was seen is chance, so that nothing could be promised of the others.
    if not case.is_record or case.drift == Drift.DUPLICATE:
        return (Choice.IGNORE_ONCE,)
    written: tuple[Choice, ...] = ()
    if writable:
        written = (Choice.TAKE_REPLICA,) if case.authority is None else (Choice.TAKE_REPLICA, Choice.EDIT)
    return (Choice.TAKE_AUTHORITY, *written, Choice.ACCEPT, Choice.IGNORE_ONCE)


def check(decision: Decision, case: Case, *, writable: bool) -> None:
    """Raises DecisionRefused where the decision lacks something or does not fit the case."""
    if not decision.person.strip():
        raise DecisionRefused("a decision needs a person.", hint="Say who decides: --by NAME.")
    if not decision.reason.strip():
        raise DecisionRefused("a decision needs a reason.", hint='Say why: --reason "…".')
    fitting = choices(case, writable=writable)
    if decision.choice not in fitting:
        readable = decision.choice in choices(case, writable=True)
        why = "its authority can't be written" if readable else f"it is {case.drift}"
        raise DecisionRefused(
            f"{decision.choice} does not fit case {case.number}: {why}.", hint=f"Choices: {', '.join(fitting)}."
        )
    if (decision.choice is Choice.EDIT) != bool(decision.values):
        raise DecisionRefused("edit is decided with new values, the others without.", hint="Give --set FIELD=VALUE.")
    if (decision.choice is Choice.ACCEPT) != (decision.until_us is not None):
        raise DecisionRefused(
            "accept is decided until a date, the others without one.", hint="Give --until 2026-12-31."
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """decision: as it is to be stored. replaced: proposals that it puts aside."""

    decision: Decision
    replaced: tuple[Decision, ...] = ()


def judge(
    case: Case, former: Sequence[Decision], decision: Decision, now_us: int, lease_us: int, *, two_person: bool
) -> Judged:
    """What becomes of a decision that is to be stored. former: those about the same case.

    With `two_person` the first one is only proposed; a different person who decides the same makes it act. Raises
    MovedOn where the case shows something else now, DecisionRefused where it is closed or somebody else is at it.
    """
    known = next((each for each in former if each.id == decision.id), None)
    if known is not None:
        return Judged(known)
    if case.closed_us is not None:
        raise DecisionRefused(f"case {case.number} is closed: {case.closed}.", hint="See: trueup review list")
    if case.shown != decision.shown:
        raise MovedOn(
            f"case {case.number}: it moved on since it was looked at.",
            hint=f"Look again: trueup review show {case.number}",
        )
    acting = [each for each in former if each.state is DecisionState.ACTING and now_us < each.lease_until_us]
    if acting:
        raise DecisionRefused(
            f"case {case.number} is being decided by {acting[0].person}.", hint="Look again in a minute."
        )
    if decision.until_us is not None and decision.until_us <= now_us:
        raise DecisionRefused(f"case {case.number}: the date lies in the past.", hint="Accept until a later one.")
    decision = replace(decision, at_us=now_us)
    died = [each for each in former if each.state is DecisionState.ACTING]
    proposals = [each for each in former if each.state is DecisionState.PROPOSED]
    same = [each for each in proposals if _alike(each, decision)]
    if two_person and not any(_other(each.person, decision.person) for each in same):
        if same:
            raise DecisionRefused(
                f"case {case.number}: {same[0].person} proposed this already.", hint="A second person must agree."
            )
        return Judged(decision, (*proposals, *died))
    acts = replace(decision, state=DecisionState.ACTING, lease_until_us=now_us + lease_us)
    return Judged(acts, (*(each for each in proposals if each not in same), *died))


def no_case(number: int) -> DecisionRefused:
    """What to raise where there is no case of this number."""
    return DecisionRefused(f"there is no case {number}.", hint="Their numbers: trueup review list")


def _alike(proposal: Decision, decision: Decision) -> bool:
    return (proposal.choice, proposal.shown, proposal.values, proposal.until_us) == (
        decision.choice, decision.shown, decision.values, decision.until_us,
    )  # fmt: skip


def _other(one: str, other: str) -> bool:
    return one.strip().casefold() != other.strip().casefold()
