"""Each rule of the engine is needed: without it, the simulation finds a broken promise."""

from __future__ import annotations

from typing import Any

import pytest
from seams import MUTATIONS, without
from test_traces import compare_that_races_a_worker, late_write, removed_by_hand

from trueup.testing.simulation import KINDS, Played, Scene, simulate

SEEDS = 200
# Too rare for a few hundred seeds: a trace plays what it takes.
BY_TRACE = {
    "guard_of_confirm": compare_that_races_a_worker,
    "refused_finish": late_write,
    "confirmed_rows": removed_by_hand,
}


def first_broken(kinds: Any = KINDS) -> Played | None:
    played = (simulate(Scene.drawn(kind, seed), told=False) for seed in range(SEEDS) for kind in kinds)
    return next((each for each in played if each.broken), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_without_this_rule_a_promise_breaks(name: str) -> None:
    with without(name):
        if name in BY_TRACE:
            assert BY_TRACE[name]().end() is not None
            return
        broken = first_broken()
    assert broken is not None, f"{SEEDS} seeds of each class do not miss {name}"
    assert broken.command in broken.report()
    assert f"--seed {broken.scene.seed}" in broken.command


@pytest.mark.parametrize("name", sorted(BY_TRACE))
def test_with_all_rules_these_traces_end_well(name: str) -> None:
    trace = BY_TRACE[name]()
    assert trace.end() is None, trace.story


def test_a_broken_promise_is_told_as_a_story_with_the_command_that_plays_it_again() -> None:
    with without("attempted"):
        broken = first_broken(["opaque"])
        assert broken is not None
        again = simulate(Scene.drawn(broken.scene.kind, broken.scene.seed, broken.scene.steps))
    assert again.report() == broken.report()
    *story, _, scene, promise, command = broken.report().splitlines()
    assert any(line.split()[1:3] == ["PROMISE", "broken"] for line in story)
    assert scene.startswith("Scene(kind='opaque'")
    assert promise == f"Broken: {broken.broken}"
    assert (
        command == f"Again:  python -m trueup.testing.simulation --class opaque --seed {broken.scene.seed} --steps 30"
    )
