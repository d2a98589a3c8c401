"""What is asked of a database stays within its limits: connections, seconds for a statement, share of the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa

from sql_tables import Tables, projection
from trueup.compare import hashed, keyhash, segments
from trueup.compare.choose import compare
from trueup.compare.plan import Plan, plan
from trueup.errors import IncompleteScan, SideError, Unreachable
from trueup.sides.sql import Sql
from trueup.sides.sql import snapshot as snapshots
from trueup.sides.sql.dialects.postgresql import PostgreSQL
from trueup.sides.sql.hashing import mysql, postgresql
from trueup.sides.sql.instant import Instant
from trueup.sides.sql.limits import Limits
from trueup.sides.sql.scan import Running

ROWS = 2_000
# A view whose rows take a while, for each engine.
SLOW = {
    "postgres": "SELECT id, pg_sleep(0.05)::text AS v FROM {}",
    "mariadb": "SELECT id, SLEEP(0.05) AS v FROM {}",
    "sqlite": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000000000) "
    "SELECT id, (SELECT count(*) FROM r) AS v FROM {}",
}
DIFFERENCES = (
    "UPDATE {} SET v = 'changed' WHERE id IN (1, 777, 778)",
    "DELETE FROM {} WHERE id IN (1500, 2000)",
    "INSERT INTO {} VALUES (-5, 'extra')",
)
FOUND = {'["-5"]': "extra", '["1"]': "differ", '["777"]': "differ", '["778"]': "differ", '["1500"]': "missing",
         '["2000"]': "missing"}  # fmt: skip


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyhash, "ROWS_WANTED", 64)
    monkeypatch.setattr(keyhash, "ROWS_MAX", 100)
    monkeypatch.setattr(segments, "_ROWS_WANTED", 64)
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 0)
    monkeypatch.setattr(snapshots, "_PIECE_ROWS", 64)
    monkeypatch.setattr(postgresql, "_PAGES_AT_ONCE", 1)
    monkeypatch.setattr(mysql, "_PAGE_ROWS", 64)


@pytest.fixture(params=["postgres", "mariadb"])
def servers(request: pytest.FixtureRequest) -> Tables:
    made: Tables = request.getfixturevalue(f"on_{request.param}")
    return made


def filled(tables: Tables) -> str:
    name = tables.table("id bigint PRIMARY KEY, v varchar(40)")
    quoted = tables.quoted(name)
    if tables.quote == '"':
        tables.execute(f"INSERT INTO {quoted} SELECT n, 'v' || n FROM generate_series(1, {ROWS}) n")
        tables.execute(f"ANALYZE {quoted}")
    else:
        tables.execute(f"INSERT INTO {quoted} SELECT seq, concat('v', seq) FROM seq_1_to_{ROWS}")
    return name


def pair(tables: Tables, *changes: str, **limits: Any) -> tuple[Sql, Sql]:
    left, right = filled(tables), filled(tables)
    for change in changes:
        tables.execute(change.format(tables.quoted(right)))
    return tables.side(left, **limits), tables.side(right, **limits)


def planned(left: Sql, right: Sql) -> Plan:
    return plan(left.describe(), right.describe(), key=("id",))


def found(left: Sql, right: Sql, strategy: str | None) -> dict[str, str]:
    with compare(left, right, planned(left, right), strategy=strategy) as answer:
        return {each.key: each.kind for each in answer.differences()}


# ── seconds ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["sqlite", "postgres", "mariadb"])
def test_a_statement_that_takes_too_long_is_ended(request: pytest.FixtureRequest, engine: str) -> None:
    """Given a time limit, I expect the server to end the statement, and an error that names the side and says why."""
    tables: Tables = request.getfixturevalue(f"on_{engine}")
    table = tables.table("id int PRIMARY KEY")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES {', '.join(f'({number})' for number in range(100))}")
    view = f"slow {table[-11:-3]}"
    tables.execute(f"CREATE VIEW {tables.quoted(view)} AS {SLOW[engine].format(tables.quoted(table))}")
    try:
        side = tables.side(view, key="id", timeout_s=1)
        asked = projection(side, "v")
        started = time.monotonic()
        with pytest.raises(Unreachable, match=view) as caught:
            list(side.scan(asked))
        assert time.monotonic() - started < 4
        assert "timeout_s" in str(caught.value.hint)
        # The side goes on after it.
        assert side.now_us() > 0
    finally:
        tables.execute(f"DROP VIEW {tables.quoted(view)}")


@pytest.mark.postgres
def test_a_scan_that_takes_too_long_midway_is_no_end(on_postgres: Tables) -> None:
    """Given a scan that is read too slowly, I expect it to be told as incomplete and why."""
    table = on_postgres.table("id int PRIMARY KEY, v text")
    on_postgres.execute(
        f"INSERT INTO {on_postgres.quoted(table)} SELECT n, repeat('x', 2000) FROM generate_series(1, 20000) n"
    )
    side = on_postgres.side(table, timeout_s=1.5)
    batches = side.scan(projection(side, "v"))
    next(batches)
    time.sleep(2)
    with pytest.raises(IncompleteScan, match="ended early") as caught:
        list(batches)
    assert "timeout_s" in str(caught.value.hint)


# ── connections and instants ─────────────────────────────────────────────────────────────────────────


@pytest.mark.postgres
@pytest.mark.parametrize("connections", [1, 3])
def test_no_more_connections_than_allowed(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch, small_ranges: None, connections: int
) -> None:
    """Given a number of connections, I expect a comparison to use that many, and no more, on each side."""
    left, right = pair(on_postgres, *DIFFERENCES, connections=connections)
    used: set[tuple[str, int]] = set()
    pack = postgresql.PostgreSQL.pack

    def watched(self: Any, connection: Any, columns: Any, rest: str, values: Any, order: str = "") -> Any:
        used.add((rest.partition("WHERE")[0], connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()))
        time.sleep(0.01)  # others find this one at work
        return pack(self, connection, columns, rest, values, order)

    monkeypatch.setattr(postgresql.PostgreSQL, "pack", watched)
    assert found(left, right, "keyhash") == FOUND
    sides = [from_ for from_, _ in used]
    assert {from_: sides.count(from_) for from_ in set(sides)} == dict.fromkeys(set(sides), connections)
    assert len(set(sides)) == 2


@pytest.mark.postgres
@pytest.mark.parametrize(("told", "optimised"), [("500000", "120000"), ("-1", "-1")])
def test_what_postgresql_compiles_it_optimises(on_postgres: Tables, told: str, optimised: str) -> None:
    """Given when to compile, I expect all connections to optimise from there on, until they are given back.

    Where nothing is to be optimised, nothing is.
    """
    settings = f"-c jit_above_cost=120000 -c jit_optimize_above_cost={told}"
    url = sa.make_url(on_postgres.url).update_query_dict({"options": settings})
    engine = PostgreSQL().engine(url)
    ask = "SELECT current_setting('jit_optimize_above_cost')"
    instant = Instant(engine.connect, postgresql.PostgreSQL(), Limits(connections=2))
    with closing(instant), instant.connection() as first, instant.connection() as second:
        assert {each.exec_driver_sql(ask).scalar() for each in (first, second)} == {optimised}
    with engine.connect() as later:
        assert later.exec_driver_sql(ask).scalar() == told
    engine.dispose()


@pytest.mark.parametrize("strategy", ["gate", "segments", "keyhash", "sketch"])
def test_what_is_committed_between_two_questions_is_not_seen(
    servers: Tables, monkeypatch: pytest.MonkeyPatch, small_ranges: None, strategy: str
) -> None:
    """Given a writer that commits before every question, I expect the answer to be that of the beginning."""
    left, right = pair(servers, *DIFFERENCES, connections=3)
    asked = planned(left, right)
    name = servers.quoted(left.label)
    lock, commits = threading.Lock(), 0

    def writing_first(method: Callable[..., Any]) -> Callable[..., Any]:
        def write_then_ask(self: Any, *arguments: Any) -> Any:
            nonlocal commits
            with lock:
                commits += 1
                servers.execute(f"UPDATE {name} SET v = 'torn {commits}' WHERE id = {7 * commits % ROWS}")
                servers.execute(f"DELETE FROM {name} WHERE id = {1 + 11 * commits % ROWS}")
            return method(self, *arguments)

        return write_then_ask

    for method in ("span", "total", "segments", "hashes_within", "cells", "records"):
        original = getattr(snapshots.SqlSnapshot, method)
        monkeypatch.setattr(snapshots.SqlSnapshot, method, writing_first(original))
    if strategy == "gate":
        with closing(left.snapshot(asked.left)) as snapshot:
            function = snapshot.functions[0]
            assert snapshot.total(function) == snapshot.total(function)
        return
    with compare(left, right, asked, strategy=strategy) as answer:
        assert {each.key: each.kind for each in answer.differences()} == FOUND
        assert (answer.counts.left, answer.counts.right) == (ROWS, ROWS - 1)
    assert commits > 2


# ── share of the time ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["gate", "segments", "keyhash", "sketch", "rows", None])
def test_a_throttled_side_gives_the_same_answer(
    servers: Tables, monkeypatch: pytest.MonkeyPatch, small_ranges: None, strategy: str | None
) -> None:
    """Given sides that may work a part of the time, I expect the same answer, and rests in between."""
    rests: list[float] = []
    for resting, name in ((Instant, "_rest"), (Running, "rest")):
        monkeypatch.setattr(resting, name, lambda self, seconds: rests.append(seconds))
    left, right = pair(servers, *DIFFERENCES, throttle=0.9)
    assert found(left, right, strategy) == FOUND
    # One piece after the other, where the database adds up.
    assert len(rests) > (0 if strategy == "rows" else 20)
    rests.clear()
    same, other = pair(servers, throttle=0.9)
    with compare(same, other, planned(same, other), strategy=strategy) as answer:
        assert answer.agree
        assert answer.counts.same == ROWS


def test_sums_in_pieces_are_those_of_the_whole(servers: Tables, small_ranges: None) -> None:
    """Given a table asked for in pieces, I expect the sums of one statement."""
    table = filled(servers)
    whole, gentle = servers.side(table), servers.side(table, throttle=0.99)
    asked = planned(whole, whole).left
    with closing(whole.snapshot(asked)) as a, closing(gentle.snapshot(asked)) as b:
        for function in a.functions:
            assert b.total(function) == a.total(function)
            assert b.segments(function, 1, 5) == a.segments(function, 1, 5)
            assert len(a.segments(function, 1, 5)) > ROWS // 64


# ── ending ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_scan_is_stopped_by_another_thread(request: pytest.FixtureRequest, engine: str) -> None:
    """Given a statement that has not answered yet, I expect another thread to be able to end it."""
    tables: Tables = request.getfixturevalue(f"on_{engine}")
    table = filled(tables)
    side = tables.side(table, where="pg_sleep(0.05) IS NOT NULL" if engine == "postgres" else "SLEEP(0.05) = 0")
    batches = side.scan(projection(side, "v"))
    timer = threading.Timer(0.3, batches.stop)
    timer.start()
    started = time.monotonic()
    with pytest.raises((Unreachable, IncompleteScan)):
        list(batches)
    assert time.monotonic() - started < 20
    timer.join()
    batches.stop()  # nothing runs any more
    stopped = side.scan(projection(side, "v"))
    stopped.stop()
    with pytest.raises(IncompleteScan, match="stopped"):
        next(stopped)


@pytest.mark.parametrize("strategy", ["gate", "segments", "keyhash", "rows"])
def test_when_one_side_fails_the_other_is_ended(on_postgres: Tables, strategy: str) -> None:
    """Given a side that fails while the other has a long time to go, I expect the failure at once."""
    table = filled(on_postgres)
    slow = on_postgres.side(table, where="pg_sleep(0.05) IS NOT NULL")
    broken = on_postgres.side(table, where="1 / (id - 1000) < 2")
    started = time.monotonic()
    with pytest.raises(SideError, match="SQLSTATE 22012"):
        compare(slow, broken, planned(slow, broken), strategy=strategy)
    assert time.monotonic() - started < 20
