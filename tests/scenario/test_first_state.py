"""A state store that the first release wrote is brought up to date, and nothing that it knew is lost.

`tests/data/first-release.db` was written by that program, at step 1 of the schema: it adopted twelve orders, made one
run, and stopped with records in every state. What was at the two sides then is put there again by `sides`.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.errors import StateError
from trueup.model.drift import Drift
from trueup.stores.sql.migrations import SQLITE

KEPT = Path(__file__).parent.parent / "data" / "first-release.db"
TABLE = "CREATE TABLE orders (id INTEGER PRIMARY KEY, total NUMERIC, note TEXT, rev INTEGER)"


def execute(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        answer = [db.execute(statement).fetchall() for statement in statements][-1]
        db.commit()
        return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The kept state, and both sides as they were when it was written."""
    shutil.copy(KEPT, tmp_path / "trueup.db")
    for name, ids in (("shop", [*range(1, 11), 12]), ("erp", [*range(1, 11), 12])):
        rows = ", ".join(f"({each}, {each}0, 'note {each}', 1)" for each in ids)
        execute(tmp_path / f"{name}.db", TABLE, f"INSERT INTO orders VALUES {rows}")
    shop = {8: 13, 9: 99, 7: 77, 10: 101}
    changes = (f"UPDATE orders SET total = {new}, rev = 2 WHERE id = {order}" for order, new in shop.items())
    execute(tmp_path / "shop.db", *changes)
    execute(tmp_path / "erp.db", "UPDATE orders SET total = 61 WHERE id = 6")
    return tmp_path


@pytest.fixture
def orders(folder: Path) -> Iterator[Any]:
    with trueup.Project(f"sqlite:///{folder}/trueup.db", seed=1) as project:
        yield project.pair(
            "orders",
            authority=trueup.Sql(f"sqlite:///{folder}/shop.db", table="orders", key="id", version="rev"),
            replica=trueup.Sql(f"sqlite:///{folder}/erp.db", table="orders", key="id"),
            settle=0,
        )


def totals(folder: Path) -> dict[int, Any]:
    return dict(execute(folder / "erp.db", "SELECT id, total FROM orders"))


def test_the_kept_file_is_of_the_first_step() -> None:
    assert execute(KEPT, "SELECT max(step) FROM trueup_schema") == [(1,)]
    assert len(SQLITE) > 1


def test_everything_the_first_release_knew_is_still_known(folder: Path, orders: Any) -> None:
    status = orders.status()
    assert status.adopted
    assert execute(folder / "trueup.db", "SELECT max(step) FROM trueup_schema") == [(len(SQLITE),)]
    counts = orders._project.ledger.counts("orders")
    assert (counts["idle"], counts["pending"], counts["parked"]) == (8, 2, 2)
    [case] = orders._project.cases("orders")
    assert (case.key, case.drift, case.fields) == ('["6"]', "edited", ("total",))
    assert [(run.number, run.what, run.ended) for run in orders._project.archive.runs("orders")] == [
        (2, "run", "done"), (1, "adopt", "done"),
    ]  # fmt: skip
    story = orders._project.ledger.history("orders", '["9"]')
    assert [what for _, what, _ in story] == ["offered", *["claimed", "finished"] * 5]


def test_the_next_run_goes_on_where_the_first_release_stopped(folder: Path, orders: Any) -> None:
    orders.run()
    found = totals(folder)
    # An event that waited, and one whose worker had died.
    assert (found[7], found[10]) == (77, 101)
    # Out of tries: one more try a run, and the trouble of that time is over. Rejected: it stays with a person.
    assert (found[9], found[8]) == (99, 80)
    assert found[6] == 61, "a hand edit that waits for a person must not be written over"
    assert orders.retry() == 1
    orders.run()
    assert totals(folder)[8] == 13


def test_who_moved_is_told_by_the_ancestors_that_the_first_release_kept(folder: Path, orders: Any) -> None:
    execute(folder / "erp.db", "UPDATE orders SET total = 31 WHERE id = 3")
    execute(folder / "erp.db", "DELETE FROM orders WHERE id = 5")
    execute(folder / "shop.db", "DELETE FROM orders WHERE id = 4")
    report = orders.run()
    drifts = {item.key: item.drift for item in report.plan}
    assert drifts == {
        '["3"]': Drift.EDITED, '["4"]': Drift.ORPHANED, '["5"]': Drift.REMOVED, '["6"]': Drift.EDITED
    }  # fmt: skip


def test_a_stale_event_is_dropped_by_what_the_first_release_had_seen(folder: Path, orders: Any) -> None:
    old = {"id": 7, "total": 70, "note": "note 7", "rev": 1}
    assert [str(each) for each in orders.offer(old)] == ["stale"]


def test_fences_go_on_above_those_that_the_first_release_issued(folder: Path, orders: Any) -> None:
    [(issued,)] = execute(folder / "trueup.db", "SELECT fence FROM trueup_row WHERE id = 7")
    [claim] = orders._project.ledger.claim(["orders"], 1, "new", 60_000_000, 5, ['["7"]'])
    assert claim.fence > issued > 0


def test_a_store_of_a_program_to_come_is_refused(folder: Path) -> None:
    step = len(SQLITE) + 1
    with trueup.Project(f"sqlite:///{folder}/trueup.db") as project:
        project.ledger.settled("orders")
    execute(folder / "trueup.db", f"INSERT INTO trueup_schema (step, at, needs) VALUES ({step}, 0, {step})")
    with trueup.Project(f"sqlite:///{folder}/trueup.db") as project, pytest.raises(StateError):
        project.ledger.settled("orders")
