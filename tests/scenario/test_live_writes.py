"""Comparisons while both sides are written all the time, as in `bench/live.py`, in small."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from services import postgres_database
from trueup.engine import plan as planning
from trueup.engine.confirm import Confirmation, Confirmed
from trueup.engine.records import State
from trueup.model.change import UPSERT
from trueup.model.drift import Drift, Verdict

sys.path.append(str(Path(__file__).parents[2]))

from bench.live import Plan, Urls, play

SMALL = Plan(rows=5_000, rate=300, compares=4)
pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where everything is, on each kind of database."""
    if request.param == "sqlite":
        yield Urls(*(f"sqlite:///{tmp_path}/{name}.db" for name in ("authority", "replica", "state")))
        return
    with postgres_database() as url:
        yield Urls(url, url, url)


def test_nothing_but_the_real_differences_is_found(urls: Urls) -> None:
    """Given writes all the time, I expect every difference that was made, and no other, though more seemed to be."""
    told = play(urls, SMALL)
    assert (told["false"], told["not_found"]) == ([], [])
    assert told["found"] == SMALL.differences
    assert told["writes_a_second"] > SMALL.rate / 3
    assert told["differences_at_first_sight"] > told["found"] + 10


def test_without_confirming_what_moves_is_taken_for_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without the second look: what it removes is there."""
    monkeypatch.setattr(planning, "confirm", believed)
    files = Urls(*(f"sqlite:///{tmp_path}/{name}.db" for name in ("authority", "replica", "state")))
    told = play(files, Plan(rows=5_000, rate=300, compares=2, settle_s=0.1))
    assert len(told["false"]) > 10


def believed(records: Any, ledger: Any, keys: list[str], cutoff_us: int | None) -> Confirmation:
    """Every difference is a drift as it was first seen."""
    return Confirmation(
        [Confirmed(key, Drift.UNKNOWN, Verdict.REVIEW, State(key, UPSERT, absent=False), None, 0, None) for key in keys]
    )
