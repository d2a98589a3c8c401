"""Small scopes, searched: every schedule up to a number of deviations from the straight one."""

from __future__ import annotations

from typing import Any

import pytest
from seams import without
from test_seeds import told_by

from trueup.testing.simulation import KINDS
from trueup.testing.simulation.exhaustive import SCOPES, Scope, search

SCHEDULES = 400


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
@pytest.mark.parametrize("kind", KINDS)
def test_no_schedule_breaks_a_promise(kind: Any, scope: Scope) -> None:
    every_single = search(kind, scope, deviations=1, schedules_max=10_000)
    assert every_single.broken is None, every_single.broken
    assert every_single.complete
    assert every_single.schedules > 20
    some_pairs = search(kind, scope, deviations=2, schedules_max=SCHEDULES)
    assert some_pairs.broken is None, some_pairs.broken
    assert some_pairs.complete or some_pairs.schedules == SCHEDULES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scope"), [("attempted", SCOPES[1]), ("wish_number", SCOPES[0]), ("lease_check", SCOPES[0])]
)
def test_the_search_finds_what_a_missing_rule_breaks(name: str, scope: Scope) -> None:
    with without(name):
        assert search("none", scope, deviations=2, schedules_max=2_000).broken is not None


def test_the_command_says_how_many_schedules_it_ran() -> None:
    done = told_by("1", "--class", "none", "--search", "1", "--schedules", "5")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == f"none: {SCOPES[0].name}: 5 schedules, 0 known already; the limit"
    assert len(done.stdout.splitlines()) == len(SCOPES)


def test_a_search_plays_the_same_schedules_again() -> None:
    first, second = (search("opaque", SCOPES[0], deviations=1, schedules_max=20) for _ in range(2))
    assert (first.schedules, first.complete) == (second.schedules, second.complete) == (20, False)
