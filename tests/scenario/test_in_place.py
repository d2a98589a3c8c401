"""A run that remembers nothing has hashes compared where the records are; any other reads the records."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import trueup
from sql_tables import Tables
from trueup.engine.expecting import expected
from trueup.testing.clock import ManualClock

ROWS = 300


class World:
    """Two tables with a version each, and a pair of them."""

    def __init__(self, tables: Tables, **declared: object) -> None:
        self.tables = tables
        columns = "id bigint PRIMARY KEY, name varchar(40), amount decimal(12, 2), rev bigint"
        self.names = tables.table(columns), tables.table(columns)
        for name in self.names:
            for at in range(ROWS):
                tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES ({at}, 'n{at}', {at}.50, {at})")
        authority, replica = (tables.side(name, key="id", version="rev") for name in self.names)
        self.project = trueup.Project("memory:", clock=ManualClock(), seed=random.randrange(9), threads=1)
        self.pair = self.project.pair("people", authority=authority, replica=replica, settle=0, **declared)

    def edit(self, *numbers: int) -> None:
        for number in numbers:
            self.tables.execute(f"UPDATE {self.tables.quoted(self.names[1])} SET name = 'edited' WHERE id = {number}")


@pytest.fixture(params=["on_sqlite", "on_postgres", "on_mariadb"])
def tables(request: pytest.FixtureRequest) -> Tables:
    found: Tables = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def world(tables: Tables) -> Iterator[World]:
    made = World(tables)
    with made.project:
        yield made


def test_a_dry_run_of_sides_that_agree_reads_no_record(world: World) -> None:
    world.pair.adopt()
    report = world.pair.run(dry_run=True)
    assert (report.strategy, report.exit_code) == ("gate", 0)
    assert (report.counts["left"], report.counts["right"], report.counts["same"]) == (ROWS, ROWS, ROWS)


def test_a_dry_run_plans_what_a_run_then_does(world: World) -> None:
    world.pair.adopt()
    world.edit(3, 7)
    dry, run = world.pair.run("compare", dry_run=True), world.pair.run("compare")
    assert run.strategy == "rows"
    planned = [[(item.key, item.drift, item.verdict) for item in report.plan] for report in (dry, run)]
    assert planned[0] == planned[1]
    assert [key for key, _, _ in planned[0]] == ['["3"]', '["7"]']
    assert [dry.counts[name] for name in ("same", "differ")] == [run.counts[name] for name in ("same", "differ")]


def test_a_report_before_adoption_is_made_from_hashes_and_remembers_nothing(world: World) -> None:
    report = world.pair.run()
    assert (report.what, report.strategy, report.counts["same"]) == ("report", "gate", ROWS)
    assert report.counts["baseline"] == 0
    assert world.pair.adopt().counts["baseline"] == ROWS


@pytest.mark.parametrize(
    "declared", [{"totals": ["amount"]}, {"fields": [trueup.text("name", casefold=True)]}], ids=str
)
def test_records_are_read_where_amounts_are_added_up_or_rules_judge(
    tables: Tables, declared: dict[str, object]
) -> None:
    world = World(tables, **declared)
    with world.project:
        world.pair.adopt()
        assert world.pair.run(dry_run=True).strategy == "rows"


def test_what_the_last_runs_found_is_what_the_next_expects(world: World) -> None:
    """Given an adoption and two runs of which one found drift, I expect two agreements of three comparisons."""
    archive = world.project.archive
    assert expected(archive, "people").compared == 0
    world.pair.adopt()
    world.edit(5)
    world.pair.run("compare")
    world.pair.run("sweep")  # compares nothing
    world.pair.run("compare", dry_run=True)  # leaves nothing
    found = expected(archive, "people")
    assert (found.agreed, found.compared) == (1, 2)


def test_a_pair_that_always_differs_is_not_asked_for_a_sum_first(tables: Tables) -> None:
    """Given few records and reports that always found some to differ, I expect the next to read them at once."""
    world = World(tables)
    world.edit(5)
    with world.project:
        reports = [world.pair.run() for _ in range(2)]
    assert [report.strategy for report in reports] == ["rows", "rows"]
    assert [report.counts["differ"] for report in reports] == [1, 1]
