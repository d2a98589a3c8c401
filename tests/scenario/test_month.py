"""The month of `bench/month`, shortened: all its incidents, on real databases, in virtual time.

The whole month is played by `python -m bench.month`; here it is eight days, at the same number of orders a day.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services import postgres_database

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from bench.month.databases import on_postgres, on_sqlite  # noqa: E402
from bench.month.life import Plan  # noqa: E402
from bench.month.play import Month  # noqa: E402
from bench.month.referee import MUST_BE_NOTHING  # noqa: E402

PLAN = Plan(orders=2_000, days=8, tick_s=3_600.0)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
# In a group, so that a month is played once, and not by each of the processes that share these tests.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("the month")]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def month(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What came of it, on each kind of database."""
    if request.param == "sqlite":
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            places = on_sqlite(Path(folder))
            yield Month(PLAN, places, seed=7).play()
            places.close()
        return
    with postgres_database() as url:
        places = on_postgres(url)
        yield Month(PLAN, places, seed=7).play()
        places.close()


def test_nothing_is_wrong_in_silence(month: dict[str, Any]) -> None:
    """Every record agrees, or is an open case, accepted or parked; no repair took effect twice, nor an older one late;
    nothing was deleted that the shop did not delete or lose."""
    judgement = month["judgement"]
    assert {name: judgement[name] for name in MUST_BE_NOTHING if judgement[name]} == {}
    assert judgement["records"] > 0.9 * PLAN.orders * PLAN.days
    assert sum(judgement["told"].values()) == judgement["differing"] > 5


def test_everything_that_was_to_happen_happened(month: dict[str, Any]) -> None:
    """A month in which nothing goes wrong would show nothing."""
    happened, shop, erp = month["happened"], month["incidents"]["shop"], month["incidents"]["erp"]
    assert happened["events lost"] > 10
    assert happened["undone by the backup"] > 1_000
    assert shop["empty page: nothing enumerated"] == 1
    assert shop["lost rights: nothing enumerated"] > 2
    assert shop["lost rights: nothing read"] > 5_000
    assert erp["lost rights: nothing enumerated"] >= 1
    assert erp["lost rights: nothing read"] > 5_000
    assert erp["rows of these writes"] > 500  # that landed before a timeout


def test_the_stuck_record_says_why_and_holds_up_nobody(month: dict[str, Any]) -> None:
    assert month["judgement"]["stuck"].startswith("parked: a constraint refuses the row")
    assert month["jobs"]["event done"] > 0.9 * month["happened"]["events"]


def test_lost_events_are_repaired_by_sweeps_and_what_moved_no_version_by_compares(month: dict[str, Any]) -> None:
    assert month["jobs"]["sweep done"] >= 0.9 * month["happened"]["events lost"]
    assert month["jobs"]["compare done"] > 0
    assert month["counts"]["drift behind"] >= PLAN.days


def test_breakers_ask_one_question_and_an_approval_does_only_what_is_still_true(month: dict[str, Any]) -> None:
    """Given a plan after the restored backup and one of each blind side, all approved hours later, I expect the first
    to be done, and hardly anything of the others: the records are no longer as they were shown."""
    approved = [name.partition(": ")[2] for name in month["decisions"] if name.startswith("held approve-plan")]
    offered = sorted(int(note.split()[0].replace(",", "")) for note in approved)
    assert offered[-1] > 300
    assert offered[-2] < 10  # what really was removed by hand meanwhile
    assert month["cases"]["held"] == 3
    assert "held" not in month["cases_open"]
    assert month["cases"]["regressed"] == 1
    assert "orphaned" not in month["cases"]


def test_people_are_asked_about_what_they_did(month: dict[str, Any]) -> None:
    assert month["cases"]["edited"] >= PLAN.days
    assert month["cases"]["foreign"] >= PLAN.days
    assert month["decisions"]["edited take-authority"] > 0
