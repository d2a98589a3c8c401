"""Ten thousand worlds: 2,500 of each class of replica, in chunks that pytest-xdist spreads over the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from trueup.testing.simulation import KINDS, Scene, simulate

CHUNK = 100
CHUNKS = 25


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_holds(kind: Any, chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        played = simulate(Scene.drawn(kind, seed), told=False)
        assert played.broken is None, "\n" + played.report()


def told_by(hash_seed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueup.testing.simulation", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_tells_the_same_story(kind: Any) -> None:
    first, second = (told_by(at, "--class", kind, "--seed", "11") for at in ("1", "2"))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert first.stdout == simulate(Scene.drawn(kind, 11)).story + "\n"
    assert first.stdout != told_by("1", "--class", kind, "--seed", "12").stdout


def test_many_seeds_say_what_they_met() -> None:
    done = told_by("1", "--class", "opaque", "--seeds", "3")
    assert done.returncode == 0
    assert done.stdout.startswith("3 seeds, ")
    assert "all promises held" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_world_is_bad_enough_to_prove_something(kind: Any) -> None:
    """A simulation in which nothing goes wrong would hold every promise."""
    stories = "\n".join(simulate(Scene.drawn(kind, seed)).story for seed in range(60))
    met = ["crashes", "freezes", "lost on its way", "its answer is lost", "sent again", "refused", "has lost its lease",
           "lagging", "is deleted", "with the version it had", "the ledger is lost", "restored from a backup",
           "at the replica", "unversioned", ": stale", ": coalesced", ": fresh", "to be read again"]  # fmt: skip
    assert [what for what in met if what not in stories] == []
