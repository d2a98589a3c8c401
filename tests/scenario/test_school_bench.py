"""The school of `bench/school` in small: what trueup promises there, and what the others are known to do."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from bench.school import stories  # noqa: E402
from bench.school.play import HOUR_S, play  # noqa: E402
from bench.school.world import Plan  # noqa: E402

SMALL = Plan(records=1_000, changes=500, rush_at_s=5_400.0, rush_s=180.0, rush_a_minute=60, hand_edits=20)
DAY_S = 24 * HOUR_S


pytestmark = pytest.mark.xdist_group("the school")


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """Two hours of each, the same world for all."""
    return {name: play(name, SMALL, DAY_S, seed=7) for name in "abcd"}


def test_with_a_list_nothing_is_overwritten_and_nothing_stays_wrong(results: dict[str, dict[str, Any]]) -> None:
    ours = results["c"]
    assert ours["stale_overwrites"] == ours["hand_edits_overwritten"] == ours["wrong_at_end"] == 0
    assert ours["in_review_at_end"] > 0


def test_without_a_list_only_hand_edits_stay_unseen_until_their_recency_is_over(
    results: dict[str, dict[str, Any]],
) -> None:
    ours = results["d"]
    assert ours["stale_overwrites"] == ours["hand_edits_overwritten"] == 0
    assert ours["wrong_at_end"] == ours["of_them_edited_by_hand"] > 0


def test_the_budget_keeps_what_is_reserved_for_events(results: dict[str, dict[str, Any]]) -> None:
    for name in "cd":
        assert results[name]["refused_calls"] == 0
        assert results[name]["budget_fullest_minute_without_events"] <= 0.6


def test_events_do_not_wait_for_a_reconciliation(results: dict[str, dict[str, Any]]) -> None:
    assert results["c"]["events_outside_rush"]["p99_s"] < 1


def test_naive_overwrites_newer_with_older_and_mostly_does_nothing(results: dict[str, dict[str, Any]]) -> None:
    assert results["a"]["stale_overwrites"] > 0
    assert results["a"]["jobs_that_did_nothing"] > 0.5
    assert results["a"]["reconciliation_calls"] > 10 * results["c"]["reconciliation_calls"]


def test_the_recipe_does_not_see_what_was_lost_within_its_recency(results: dict[str, dict[str, Any]]) -> None:
    assert results["b"]["wrong_at_end"] > 0


def test_the_same_world_for_everybody(results: dict[str, dict[str, Any]]) -> None:
    events = {name: results[name]["source_events"] for name in "abcd"}
    assert len(set(events.values())) == 1


def test_an_outage_parks_nothing_and_drains_by_itself() -> None:
    told = stories.outage(replace(SMALL, records=300), seed=7, out_s=1_200.0, after_s=900.0)
    assert told["most_waiting"] > 50
    assert told["most_parked"] == told["stale_overwrites"] == told["wrong_at_end"] == 0
    assert 0 < told["drained_after_s"] < 600


def test_calls_over_a_socket_are_the_same_calls() -> None:
    assert stories.over_a_socket(seed=7)["equal"]
