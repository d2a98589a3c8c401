"""Decisions: one at a time about a case, stored before they act; and differences that were accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trueup.errors import DecisionRefused, MovedOn
from trueup.model.acceptance import Acceptance
from trueup.model.case import Case
from trueup.model.decision import Choice, Decision, DecisionState
from trueup.ports import Archive
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.cases import KEY, a_case, opened
from trueup.testing.ledgers.races import WORKERS, together

LEASE_US = 60_000_000
LEASE_S = LEASE_US / 1e6


def decided(case: Case, choice: Choice = Choice.TAKE_AUTHORITY, person: str = "ann", **more: object) -> Decision:
    """A decision about the case as it is."""
    made = Decision(case.number, choice, person, "it is right", case.shown, id=f"{person} {choice}")
    return replace(made, **more)  # type: ignore[arg-type]


def store(archive: Archive, decision: Decision, *, two_person: bool = False) -> Decision:
    """The decision, stored."""
    return archive.decide(decision, two_person=two_person, lease_us=LEASE_US)


def an_acceptance(key: str = KEY, **more: object) -> Acceptance:
    """An accepted difference of pair `orders`."""
    accepted = Acceptance("orders", key, "a" * 32, None, ("fee", "ü"), "Zoë", "known", 10**18, case=7)
    return replace(accepted, **more)  # type: ignore[arg-type]


class DecisionContract:
    """What becomes of decisions. A subclass brings `archive` and its `clock`."""

    def test_a_decision_is_stored_before_it_acts(self, archive: Archive, clock: ManualClock) -> None:
        case = opened(archive)
        made = decided(case, Choice.EDIT, person="Zoë", reason="“ß” 'x'", values={"fee": "1.50", "note": None})
        stored = store(archive, made)
        assert stored == replace(
            made, state=DecisionState.ACTING, at_us=clock.now_us(), lease_until_us=clock.now_us() + LEASE_US
        )
        assert archive.decisions(case.number) == [stored]
        assert archive.decisions(case.number + 1) == []

    def test_the_same_decision_is_stored_once(self, archive: Archive) -> None:
        """Given an answer that was lost, I expect the repetition to be answered alike."""
        case = opened(archive)
        assert store(archive, decided(case)) == store(archive, decided(case))
        assert len(archive.decisions(case.number)) == 1

    def test_a_decision_that_is_done_closes_its_case(self, archive: Archive, clock: ManualClock) -> None:
        case = opened(archive)
        stored = store(archive, decided(case))
        assert archive.conclude(stored, DecisionState.DONE, "offered", close="by ann")
        assert archive.conclude(stored, DecisionState.DONE, "offered", close="by ann")
        assert not archive.conclude(stored, DecisionState.REFUSED)
        assert archive.decisions(case.number) == [
            replace(stored, state=DecisionState.DONE, note="offered", lease_until_us=0)
        ]
        assert archive.case(case.number) == replace(case, closed_us=clock.now_us(), closed="by ann")
        with pytest.raises(DecisionRefused, match="is closed: by ann"):
            store(archive, decided(case, person="bob"))

    def test_a_refused_decision_leaves_its_case_open(self, archive: Archive) -> None:
        case = opened(archive)
        assert archive.conclude(store(archive, decided(case)), DecisionState.REFUSED, "moved on")
        assert archive.case(case.number) == case
        assert store(archive, decided(case, person="bob")).state is DecisionState.ACTING

    def test_a_case_that_shows_something_else_by_now_stays_open(self, archive: Archive) -> None:
        case = opened(archive)
        stored = store(archive, decided(case))
        archive.open_cases([a_case(replica_digest="new")])
        assert archive.conclude(stored, DecisionState.DONE, close="by ann")
        assert archive.count_cases("orders") == 1

    def test_a_decision_about_what_was_shown_before_is_refused(self, archive: Archive) -> None:
        case = opened(archive)
        archive.open_cases([a_case(replica_digest="new")])
        with pytest.raises(MovedOn, match="moved on"):
            store(archive, decided(case))
        assert archive.decisions(case.number) == []

    def test_there_must_be_such_a_case(self, archive: Archive) -> None:
        case = opened(archive)
        with pytest.raises(DecisionRefused, match=f"no case {case.number + 1}"):
            store(archive, decided(replace(case, number=case.number + 1)))

    def test_only_one_acts_at_a_time(self, archive: Archive, clock: ManualClock) -> None:
        case = opened(archive)
        store(archive, decided(case))
        clock.advance(LEASE_S - 1)
        assert archive.keep_decision("ann take-authority", LEASE_US)
        clock.advance(LEASE_S - 1)
        with pytest.raises(DecisionRefused, match="being decided by ann"):
            store(archive, decided(case, Choice.ACCEPT, person="bob", until_us=10**18))

    def test_a_decision_whose_process_died_can_be_made_again(self, archive: Archive, clock: ManualClock) -> None:
        case = opened(archive)
        died = store(archive, decided(case))
        clock.advance(LEASE_S)
        again = store(archive, decided(case, id="again"))
        assert again.state is DecisionState.ACTING
        assert [each.state for each in archive.decisions(case.number)] == [DecisionState.REPLACED, DecisionState.ACTING]
        assert not archive.keep_decision(died.id, LEASE_US)
        assert not archive.conclude(died, DecisionState.DONE, close="by ann")
        assert archive.count_cases("orders") == 1

    def test_of_many_at_once_one_acts(self, archive: Archive) -> None:
        """Given 8 people who decide at the same moment, I expect one to act and all others to be told."""
        case = opened(archive)
        acted: list[str] = []
        refused: list[str] = []

        def decide(number: int) -> None:
            try:
                acted.append(store(archive, decided(case, person=f"person {number}")).person)
            except DecisionRefused as error:
                refused.append(str(error))

        together(WORKERS, decide)
        assert (len(acted), len(refused)) == (1, WORKERS - 1)
        assert all(f"being decided by {acted[0]}" in said for said in refused)
        assert [each.person for each in archive.decisions(case.number)] == acted

    def test_a_date_must_lie_ahead(self, archive: Archive, clock: ManualClock) -> None:
        case = opened(archive)
        with pytest.raises(DecisionRefused, match="past"):
            store(archive, decided(case, Choice.ACCEPT, until_us=clock.now_us()))
        assert store(archive, decided(case, Choice.ACCEPT, until_us=clock.now_us() + 1)).until_us

    # ── two people ───────────────────────────────────────────────────────────────────────────────────

    def test_with_two_people_the_first_only_proposes(self, archive: Archive) -> None:
        case = opened(archive)
        assert store(archive, decided(case), two_person=True).state is DecisionState.PROPOSED
        with pytest.raises(DecisionRefused, match="ann proposed this already"):
            store(archive, decided(case, person=" Ann "), two_person=True)
        assert store(archive, decided(case, person="bob"), two_person=True).state is DecisionState.ACTING

    def test_a_different_choice_replaces_the_proposal(self, archive: Archive) -> None:
        case = opened(archive)
        store(archive, decided(case), two_person=True)
        other = store(archive, decided(case, Choice.IGNORE_ONCE, person="bob"), two_person=True)
        assert other.state is DecisionState.PROPOSED
        assert [each.state for each in archive.decisions(case.number)] == [
            DecisionState.REPLACED, DecisionState.PROPOSED,
        ]  # fmt: skip
        back = store(archive, decided(case, person="cid"), two_person=True)
        assert back.state is DecisionState.PROPOSED

    @pytest.mark.parametrize("more", [{"until_us": 2 * 10**18}, {"choice": Choice.EDIT, "values": {"fee": "2"}}])
    def test_whoever_agrees_must_mean_the_same(self, archive: Archive, more: dict[str, object]) -> None:
        case = opened(archive)
        first: dict[str, object] = {"choice": more.get("choice", Choice.ACCEPT)}
        first |= {"values": {"fee": "1"}} if "values" in more else {"until_us": 10**18}
        store(archive, decided(case, **first), two_person=True)  # type: ignore[arg-type]
        other = decided(case, person="bob", **{"choice": first["choice"], **more})  # type: ignore[arg-type]
        assert store(archive, other, two_person=True).state is DecisionState.PROPOSED

    def test_a_proposal_about_what_was_shown_before_is_void(self, archive: Archive) -> None:
        case = opened(archive)
        store(archive, decided(case), two_person=True)
        case = opened(archive, a_case(replica_digest="new"))
        assert store(archive, decided(case, person="bob"), two_person=True).state is DecisionState.PROPOSED

    # ── accepted differences ─────────────────────────────────────────────────────────────────────────

    def test_an_acceptance_is_kept_until_its_time(self, archive: Archive, clock: ManualClock) -> None:
        until_us = clock.now_us() + 10_000_000
        archive.accept(an_acceptance(until_us=until_us))
        stored = an_acceptance(until_us=until_us, at_us=clock.now_us())
        assert archive.acceptances("orders", [KEY, '["7"]', KEY]) == {KEY: stored}
        assert archive.acceptances("refunds", [KEY]) == archive.acceptances("orders", []) == {}
        assert archive.expired("orders") == []
        clock.advance(10)
        assert archive.acceptances("orders", [KEY]) == archive.acceptances("orders") == {}
        assert archive.expired("orders") == [stored]
        assert archive.expired("refunds") == []

    def test_the_newer_acceptance_of_a_record_counts(self, archive: Archive, clock: ManualClock) -> None:
        archive.accept(an_acceptance())
        archive.accept(an_acceptance(authority_digest=None, replica_digest="b", person="bob", fields=()))
        assert archive.acceptances("orders") == {
            KEY: an_acceptance(authority_digest=None, replica_digest="b", person="bob", fields=(), at_us=clock.now_us())
        }

    def test_acceptances_of_many_records(self, archive: Archive) -> None:
        keys = [f'["{number:05}"]' for number in range(1_200)]
        for key in keys:
            archive.accept(an_acceptance(key))
        assert [*archive.acceptances("orders", keys[::-1])] == keys
        assert [*archive.acceptances("orders")] == keys
