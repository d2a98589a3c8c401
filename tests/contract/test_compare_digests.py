"""Digests taken inside databases: those of the reference, or none; and read ahead by a thread that can be ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from sql_tables import Tables
from sql_tables import projection as asked
from trueup.engine.glance import UNKNOWN, glanced
from trueup.errors import IncompleteScan, SideError
from trueup.model.kinds import FLOAT, INTEGER, TEXT, TIMESTAMP, Kind
from trueup.model.record import Field, Projection, Rule
from trueup.ports import DigestingSide, provides
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql
from trueup.sides.sql.scan import Ahead, Running, Scan

ENGINES = ["postgresql", "mariadb", "duckdb"]
COLUMNS = {"id": INTEGER, "part": TEXT, "v": INTEGER, "name": TEXT, "ratio": FLOAT, "at": TIMESTAMP, "kind": TEXT}
ROWS: list[dict[str, str | None]] = [
    {"id": "1", "part": 'ä,"\\\n', "v": "7", "name": "", "ratio": "0.1", "at": "2026-03-29T02:30:00.5", "kind": "go"},
    {"id": "1", "part": "b", "v": "8", "name": None, "ratio": "0", "at": None, "kind": None},
    {"id": "-2", "part": "", "v": "9", "name": 'a"b~', "ratio": None, "at": "1969-12-31T23:59:59", "kind": "\n"},
    {"id": "4", "part": "old", "v": "6", "name": "x", "ratio": "1.5", "at": None, "kind": "go"},
    {"id": "5", "part": "old", "v": None, "name": "x", "ratio": "1.5", "at": None, "kind": "go"},
]


@pytest.fixture
def on(on_postgres: Tables, on_mariadb: Tables, on_duckdb: Tables) -> Callable[[str], Tables]:
    """Tables on an engine by its name."""
    return {"postgresql": on_postgres, "mariadb": on_mariadb, "duckdb": on_duckdb}.__getitem__


def made(tables: Tables) -> tuple[Sql, Projection]:
    side = tables.make(COLUMNS, ("id", "part"), version="v", rows=ROWS)
    return side, asked(side, "name", "ratio", "at", "kind", key=("id", "part"), version="v")


def told(side: Sql, projection: Projection, since: int, acting: str) -> dict[str, tuple[str, str]]:
    """Digest and action by key."""
    with closing(glanced(side, projection, since, acting)) as batches:
        return {
            key: (digest, action)
            for each in batches
            for key, digest, action in zip(each.keys, each.digests, each.actions, strict=True)
        }


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_digests_and_actions_are_those_of_the_reference(on: Callable[[str], Tables], engine: str) -> None:
    side, projection = made(on(engine))
    if engine == "mariadb":  # where a float of Python's range is kept as text
        projection = replace(projection, fields=tuple(each for each in projection.fields if each.name != "ratio"))
    with closing(side.digests(projection, 7) or pytest.fail("the server can tell")) as batches:
        assert sum(batch.num_rows for batch in batches) == 3
    found = told(side, projection, 7, "kind")
    reference = side.read(projection, list(found))
    assert len(found) == len(reference) == 3
    for key, (digest, kind) in found.items():
        assert (digest, kind) == (projection.digest(reference[key].values), reference[key].values["kind"] or "upsert")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_of_the_key_may_stand_beside(on: Callable[[str], Tables], engine: str) -> None:
    side, projection = made(on(engine))
    found = told(side, projection, 0, "part")
    assert {action for _, action in found.values()} == {row["part"] or "upsert" for row in ROWS if row["v"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_not_touched_has_nothing_to_tell(on: Callable[[str], Tables], engine: str) -> None:
    side, projection = made(on(engine))
    assert told(side, projection, 10, "kind") == {}


@pytest.mark.postgres
def test_only_the_record_whose_text_the_server_writes_in_another_way_is_not_known(on_postgres: Tables) -> None:
    rows = [{"id": str(at), "v": "1", "ratio": text} for at, text in enumerate(["0.5", "1e+300", "2.5"])]
    side = on_postgres.make({"id": INTEGER, "v": INTEGER, "ratio": FLOAT}, ("id",), version="v", rows=rows)
    projection = asked(side, "ratio", version="v")
    found = told(side, projection, 0, "v")
    assert [key for key, (digest, _) in found.items() if digest == UNKNOWN] == ['["1"]']
    assert found['["0"]'][0] == projection.digest({"ratio": "0.5"})


@pytest.mark.postgres
@pytest.mark.parametrize("rule", [Rule(trim=True), Rule(casefold=True), Rule(nfc=True), Rule(places=2)])
def test_what_is_folded_before_it_is_judged_is_digested_here(on_postgres: Tables, rule: Rule) -> None:
    rows = [{"id": "1", "v": "1", "name": " Å ", "price": "1.005"}]
    columns = {"id": INTEGER, "v": INTEGER, "name": TEXT, "price": Kind("decimal", scale=3, precision=9)}
    side = on_postgres.make(columns, ("id",), version="v", rows=rows)
    plain = asked(side, "name", "price", version="v")
    folded = replace(plain, fields=tuple(replace(field, rule=rule) for field in plain.fields))
    tolerant = replace(plain, fields=tuple(replace(field, rule=Rule(fill=True)) for field in plain.fields))
    assert side.digests(folded, 0) is None
    assert told(side, folded, 0, "name") == {'["1"]': (folded.digest(rows[0]), " Å ")}
    with closing(side.digests(tolerant, 0) or pytest.fail("a rule that does not fold")) as batches:
        assert [batch.column("d").to_pylist() for batch in batches] == [[plain.digest(rows[0])]]


def test_sides_that_take_no_digests_are_scanned(on_sqlite: Tables) -> None:
    side, projection = made(on_sqlite)
    assert side.digests(projection, 0) is None
    assert len(told(side, projection, 7, "kind")) == 3
    assert not provides(Memory([], key="id", columns={"id": "integer"}), DigestingSide)


@pytest.mark.postgres
def test_no_column_but_the_key_leaves_nothing_to_the_server(on_postgres: Tables) -> None:
    side, projection = made(on_postgres)
    assert side.digests(replace(projection, fields=()), 0) is None
    assert side.digests(replace(projection, version=None), 0) is None
    untimed = replace(projection, version=Field("name", "name", TEXT))
    assert side.digests(untimed, 0) is None


@pytest.mark.postgres
def test_many_records_come_in_several_packs(on_postgres: Tables) -> None:
    table = on_postgres.table("id bigint PRIMARY KEY, v bigint, name text")
    quoted = on_postgres.quoted(table)
    on_postgres.execute(f"INSERT INTO {quoted} SELECT i, i / 7, 'n' || i FROM generate_series(1, 70000) i")
    side = on_postgres.side(table, version="v")
    projection = asked(side, "name", version="v")
    with closing(side.digests(projection, 5) or pytest.fail("the server can tell")) as batches:
        sizes, keys, digests = [], list[int](), list[str]()
        for batch in batches:
            sizes.append(batch.num_rows)
            keys += map(int, map(str, batch.column(0)))
            digests += map(str, batch.column("d"))
    assert (max(sizes), sum(sizes), len(sizes)) == (32_768, 70_000 - 34, 3)
    assert set(keys) == set(range(35, 70_001))
    assert all(
        digest == projection.digest({"name": f"n{key}"}) for key, digest in zip(keys, digests, strict=True)
    )  # fmt: skip


@pytest.mark.postgres
def test_what_nobody_reads_to_its_end_ends_in_the_server(on_postgres: Tables) -> None:
    table = on_postgres.table("id bigint PRIMARY KEY, v bigint, name text")
    on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} SELECT i, 1, 'n' FROM generate_series(1, 9) i")
    slow = f"(SELECT *, pg_sleep(20) FROM {on_postgres.quoted(table)})"
    side = on_postgres.side(table, version="v", where=f"id IN (SELECT id FROM {slow} AS s)")
    began = time.monotonic()
    batches = side.digests(asked(side, "name", version="v"), 0)
    assert batches is not None
    batches.close()
    batches.close()
    assert time.monotonic() - began < 10
    side.close()


# ── reading ahead ────────────────────────────────────────────────────────────────────────────────────


def ahead(batches: Iterator[pa.RecordBatch]) -> Ahead:
    def generated() -> Generator[pa.RecordBatch, None, None]:
        yield from batches

    return Ahead(Scan(generated(), Running("orders", lambda connection: None)))


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number])})


def numbers(found: Iterator[pa.RecordBatch]) -> Iterator[int]:
    return (int(str(each.column("n")[0])) for each in found)


def test_batches_come_in_their_order_and_nothing_after_the_last() -> None:
    found = ahead(batch(number) for number in range(30))
    assert list(numbers(found)) == list(range(30))
    assert list(found) == []


def test_reading_begins_before_anybody_asks_and_stops_where_nobody_does() -> None:
    read: list[int] = []
    enough = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            read.append(number)
            if len(read) == 8:
                enough.set()
            yield batch(number)

    found = ahead(batches())
    assert enough.wait(10)
    found.close()
    assert 8 <= len(read) < 100


def test_an_error_is_told_where_it_happened() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise IncompleteScan("orders: it broke.", hint="Again.")

    found = ahead(batches())
    assert next(numbers(found)) == 1
    with pytest.raises(SideError, match="it broke"):
        next(found)
    assert list(found) == []
