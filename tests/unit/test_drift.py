"""Who moved: one test for each row of the table, and laws of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.drift import DEFAULT_VERDICTS, NO_ANCESTORS, REPAIRABLE, Ancestors, Drift, Verdict, who_moved

AGREED = Ancestors(authority="a1", replica="r1")
TRIED = Ancestors(authority="a1", replica="r1", attempted=frozenset({"r2"}))


def test_authority_has_replica_lacks_without_ancestor_is_missing_an_event_was_lost() -> None:
    assert who_moved("a1", None, NO_ANCESTORS) is Drift.MISSING


def test_authority_has_replica_lacks_after_a_done_absence_is_missing() -> None:
    assert who_moved("a1", None, Ancestors(attempted=frozenset({"r1"}))) is Drift.MISSING


def test_authority_has_replica_lacks_with_known_ancestor_is_removed_at_the_replica() -> None:
    assert who_moved("a1", None, AGREED) is Drift.REMOVED
    assert who_moved("a2", None, AGREED) is Drift.REMOVED


@pytest.mark.parametrize(("replica", "ancestors"), [("r1", AGREED), ("r2", TRIED)])
def test_authority_lacks_replica_has_ours_is_orphaned(replica: str, ancestors: Ancestors) -> None:
    assert who_moved(None, replica, ancestors) is Drift.ORPHANED


@pytest.mark.parametrize(("replica", "ancestors"), [("r9", AGREED), ("r9", NO_ANCESTORS)])
def test_authority_lacks_replica_has_not_ours_is_foreign(replica: str, ancestors: Ancestors) -> None:
    assert who_moved(None, replica, ancestors) is Drift.FOREIGN


def test_authority_moved_replica_ours_is_behind_an_event_was_lost() -> None:
    assert who_moved("a2", "r1", AGREED) is Drift.BEHIND


def test_replica_holds_a_late_write_of_ours_is_behind() -> None:
    assert who_moved("a1", "r2", TRIED) is Drift.BEHIND
    assert who_moved("a2", "r2", TRIED) is Drift.BEHIND


def test_a_first_write_of_ours_that_never_finished_is_behind_not_unknown() -> None:
    assert who_moved("a1", "r2", Ancestors(attempted=frozenset({"r2"}))) is Drift.BEHIND


def test_authority_stayed_replica_moved_is_edited_at_the_replica() -> None:
    assert who_moved("a1", "r9", AGREED) is Drift.EDITED


def test_neither_moved_yet_they_differ_is_unlike() -> None:
    assert who_moved("a1", "r1", AGREED) is Drift.UNLIKE


def test_both_moved_is_conflict() -> None:
    assert who_moved("a2", "r9", AGREED) is Drift.CONFLICT


def test_both_have_it_and_nothing_is_known_is_unknown() -> None:
    assert who_moved("a1", "r1", NO_ANCESTORS) is Drift.UNKNOWN


def test_a_key_twice_on_a_side_is_duplicate_whatever_else() -> None:
    assert who_moved("a1", "r1", AGREED, duplicate=True) is Drift.DUPLICATE
    assert who_moved("a1", None, NO_ANCESTORS, duplicate=True) is Drift.DUPLICATE


@pytest.mark.parametrize(
    ("drift", "verdict"),
    [
        ("missing", "repair"),
        ("removed", "repair"),
        ("orphaned", "review"),
        ("foreign", "review"),
        ("behind", "repair"),
        ("edited", "review"),
        ("unlike", "review"),
        ("conflict", "review"),
        ("unknown", "review"),
        ("duplicate", "review"),
    ],
)
def test_default_verdicts(drift: str, verdict: str) -> None:
    assert DEFAULT_VERDICTS[Drift(drift)] is Verdict(verdict)


def test_every_drift_has_a_default_verdict() -> None:
    assert set(DEFAULT_VERDICTS) == set(Drift)


def test_what_is_foreign_unlike_or_duplicate_is_never_repaired_by_a_rule() -> None:
    assert set(Drift) - REPAIRABLE == {Drift.FOREIGN, Drift.UNLIKE, Drift.DUPLICATE, Drift.FLAPPING}


digests = st.sampled_from(["d1", "d2", "d3"])
maybe = st.one_of(st.none(), digests)
ancestors_of = st.builds(Ancestors, maybe, maybe, st.frozensets(digests, max_size=2))


@given(maybe, maybe, ancestors_of)
def test_nothing_that_we_did_not_write_is_repaired_unasked(
    authority: str | None, replica: str | None, ancestors: Ancestors
) -> None:
    drift = who_moved(authority, replica, ancestors)
    if DEFAULT_VERDICTS[drift] is Verdict.REPAIR:
        assert replica is None or ancestors.ours(replica)


@given(maybe, digests, ancestors_of)
def test_one_more_attempt_of_ours_never_blames_a_person(
    authority: str | None, replica: str, ancestors: Ancestors
) -> None:
    attempted = Ancestors(ancestors.authority, ancestors.replica, ancestors.attempted | {replica})
    assert who_moved(authority, replica, attempted) in (Drift.ORPHANED, Drift.BEHIND, Drift.UNLIKE)
