"""The same 336,776 flights in six systems: every two agree, and every two find exactly what was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path

import pytest

import flights
from flights import Injected
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison, Counts
from trueup.demo.flights import KEY
from trueup.ports import Side
from trueup.sides.files import File
from trueup.sides.sql import Sql

# One group: a worker that has loaded the systems runs all of these tests.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("six systems")]

ROWS = 336_776
SEED = 2013
SYSTEMS = ("postgresql", "mariadb", "sqlite", "csv", "jsonl", "parquet")
MARKS = {"postgresql": pytest.mark.postgres, "mariadb": pytest.mark.mariadb}
PAIRS = [
    pytest.param(*pair, marks=[MARKS[name] for name in pair if name in MARKS], id="-".join(pair))
    for pair in combinations(SYSTEMS, 2)
]
Open = Callable[[str], Side]
Between = Callable[[str, str, str], Comparison]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Injected]:
    """A folder with both copies in every kind of file, and what was injected into the second."""
    folder = tmp_path_factory.mktemp("flights")
    original = flights.flights()
    changed, injected = flights.inject(original, SEED)
    tables = dict(zip(flights.TABLES, (original, changed), strict=True))
    flights.write_sqlite(tables, folder / "flights.db")
    for name, table in tables.items():
        flights.write_csv(table, folder / f"{name}.csv")
        flights.write_json_lines(table, folder / f"{name}.jsonl")
        flights.write_parquet(table, folder / f"{name}.parquet")
    return folder, injected


@pytest.fixture(scope="session")
def postgresql(postgres_url: str, written: tuple[Path, Injected]) -> Open:
    flights.load_postgresql(postgres_url, written[0])
    return lambda name: Sql(postgres_url, table=name)


@pytest.fixture(scope="session")
def mariadb(mariadb_url: str, written: tuple[Path, Injected]) -> Open:
    flights.load_mariadb(mariadb_url, written[0])
    return lambda name: Sql(mariadb_url, table=name, zone="UTC")


@pytest.fixture(scope="session")
def sqlite(written: tuple[Path, Injected]) -> Open:
    return lambda name: Sql(f"sqlite:///{written[0]}/flights.db", table=name, zone="UTC")


@pytest.fixture(scope="session")
def csv(written: tuple[Path, Injected]) -> Open:
    return lambda name: File(written[0] / f"{name}.csv", null="NA")


@pytest.fixture(scope="session")
def jsonl(written: tuple[Path, Injected]) -> Open:
    return lambda name: File(written[0] / f"{name}.jsonl")


@pytest.fixture(scope="session")
def parquet(written: tuple[Path, Injected]) -> Open:
    return lambda name: File(written[0] / f"{name}.parquet")


@pytest.fixture
def between(request: pytest.FixtureRequest) -> Iterator[Between]:
    """Compares the flights in one system with a table or file in another."""
    with ExitStack() as stack:

        def between(left: str, right: str, name: str) -> Comparison:
            sides = request.getfixturevalue(left)(flights.TABLES[0]), request.getfixturevalue(right)(name)
            for side in sides:
                stack.callback(side.close)
            planned = plan(sides[0].describe(), sides[1].describe(), key=KEY)
            return stack.enter_context(compare(*sides, planned))

        yield between


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_two_systems_with_the_same_flights_agree(left: str, right: str, between: Between) -> None:
    found = between(left, right, flights.TABLES[0])

    assert list(found.differences()) == []
    assert found.counts == Counts(left=ROWS, right=ROWS, same=ROWS)
    assert found.agree


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_exactly_the_injected_differences_are_found(
    left: str, right: str, between: Between, written: tuple[Path, Injected]
) -> None:
    expected = written[1]

    found = between(left, right, flights.TABLES[1])

    told = {
        each.key: (each.kind, frozenset(each.fields) if each.kind == "differ" else frozenset())
        for each in found.differences()
    }
    assert told == expected.found
    assert found.counts == Counts(
        left=ROWS, right=ROWS - 60 + 60 + 44, same=ROWS - 60 - 136 - 44, missing=60, extra=60, differ=136, duplicate=44
    )
    assert not found.agree


def test_300_differences_of_all_kinds_are_injected(written: tuple[Path, Injected]) -> None:
    injected = written[1]

    assert injected.counts() == {"missing": 60, "extra": 60, "differ": 136, "duplicate": 44}
    columns = {field for _, fields in injected.found.values() for field in fields}
    assert columns == set(flights.header(written[0] / "flights.csv")) - set(KEY)
