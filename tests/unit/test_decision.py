"""Decisions: which fit which case, and what an acceptance covers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import ConfigError, DecisionRefused
from trueup.model.acceptance import Acceptance
from trueup.model.case import HELD, REGRESSED, UNLIKE, Case
from trueup.model.decision import Choice, Decision, DecisionState, check, choices, judge
from trueup.model.drift import Drift
from trueup.model.moment import moment_us

RECORD = Case("orders", '["1"]', "edited", 1, authority={"a": "1"}, replica={"a": "2"}, number=7)
DIGESTS = st.sampled_from([None, "a", "b", "c"])
PEOPLE = st.sampled_from(["ann", "ANN ", "bob", "cid"])


@pytest.mark.parametrize(
    ("case", "writable", "expected"),
    [
        (RECORD, True, "take-authority take-replica edit accept ignore-once"),
        (RECORD, False, "take-authority accept ignore-once"),
        (replace(RECORD, authority=None, drift="foreign"), True, "take-authority take-replica accept ignore-once"),
        (replace(RECORD, drift="duplicate"), True, "ignore-once"),
        (replace(RECORD, key=UNLIKE, drift="unlike"), True, "ignore-once"),
        (replace(RECORD, key=REGRESSED, drift="regressed"), True, "ignore-once"),
        (replace(RECORD, key=HELD, drift="held"), True, "approve-plan drop-plan"),
    ],
)
def test_which_choices_fit_which_case(case: Case, writable: bool, expected: str) -> None:
    assert " ".join(choices(case, writable=writable)) == expected


@pytest.mark.parametrize("drift", list(Drift))
@pytest.mark.parametrize("choice", list(Choice))
def test_what_does_not_fit_is_refused(drift: Drift, choice: Choice) -> None:
    case = replace(RECORD, drift=drift)
    decision = Decision(
        7, choice, "ann", "why", case.shown, {"a": "3"} if choice is Choice.EDIT else None,
        9 if choice is Choice.ACCEPT else None,
    )  # fmt: skip
    if choice in choices(case, writable=True):
        check(decision, case, writable=True)
        for blank in ({"person": " "}, {"reason": ""}):
            with pytest.raises(DecisionRefused):
                check(replace(decision, **blank), case, writable=True)  # type: ignore[arg-type]
    else:
        with pytest.raises(DecisionRefused, match="does not fit case 7"):
            check(decision, case, writable=True)


@given(DIGESTS, DIGESTS, DIGESTS, DIGESTS)
def test_an_acceptance_covers_exactly_what_was_seen(
    authority: str | None, replica: str | None, authority_now: str | None, replica_now: str | None
) -> None:
    accepted = Acceptance("orders", '["1"]', authority, replica, (), "ann", "why", 9)
    assert accepted.covers(authority_now, replica_now) == ((authority, replica) == (authority_now, replica_now))


@given(DIGESTS, DIGESTS, DIGESTS, DIGESTS)
def test_a_case_shows_something_else_as_soon_as_a_side_moved(
    authority: str | None, replica: str | None, authority_now: str | None, replica_now: str | None
) -> None:
    case = replace(RECORD, authority_digest=authority, replica_digest=replica)
    now = replace(case, authority_digest=authority_now, replica_digest=replica_now, drift="conflict", run=9)
    assert (case.shown == now.shown) == ((authority, replica) == (authority_now, replica_now))


@given(st.lists(st.tuples(PEOPLE, st.sampled_from([Choice.TAKE_AUTHORITY, Choice.TAKE_REPLICA])), max_size=8))
def test_with_two_people_nothing_acts_on_one_persons_word(made: list[tuple[str, Choice]]) -> None:
    """Given any sequence of decisions, I expect one to act only if a different person had just proposed the same."""
    stored: dict[str, Decision] = {}
    for at, (person, choice) in enumerate(made):
        decision = Decision(7, choice, person, "why", RECORD.shown, id=str(at))
        standing = [each for each in stored.values() if each.state is DecisionState.PROPOSED]
        try:
            judged = judge(RECORD, [*stored.values()], decision, at, 100, two_person=True)
        except DecisionRefused:
            assert [each.person.strip().lower() for each in standing] == [person.strip().lower()]
            continue
        seconded = any(
            each.choice is choice and each.person.strip().lower() != person.strip().lower() for each in standing
        )
        assert (judged.decision.state is DecisionState.ACTING) == seconded
        if seconded:
            return
        for each in judged.replaced:
            stored[each.id] = replace(each, state=DecisionState.REPLACED)
        stored[decision.id] = judged.decision
        assert sum(each.state is DecisionState.PROPOSED for each in stored.values()) == 1


def test_a_date_includes_the_day_it_names() -> None:
    assert moment_us("1970-01-01", "until") == 86_400_000_000
    assert moment_us("1970-01-01T01:00+01:00", "until") == 0
    for odd in ("1970-01-01T01:00", "tomorrow", ""):
        with pytest.raises(ConfigError, match="until"):
            moment_us(odd, "until")
