"""Segments, keyhash and sketch over ranges of whole-number keys, on a table of some thousand records."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from sql_tables import Tables
from trueup.compare import hashed, keyhash, sampled, segments, sketch
from trueup.compare.choose import compare
from trueup.compare.keyhash import Hashed, match_ranges, ranges
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Comparison, Counts
from trueup.compare.suspects import Suspects
from trueup.compare.workspace import Workspace
from trueup.errors import SideError
from trueup.model.digest import CANONICAL
from trueup.sides.sql import Sql
from trueup.sides.sql.snapshot import SqlSnapshot

ROWS = 3_000
COLUMNS = "id bigint PRIMARY KEY, name varchar(40), amount decimal(12,2)"


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyhash, "ROWS_WANTED", 64)
    monkeypatch.setattr(keyhash, "ROWS_MAX", 100)
    monkeypatch.setattr(segments, "_ROWS_WANTED", 64)
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 0)


@pytest.fixture(params=["postgresql", "mariadb"])
def tables(request: pytest.FixtureRequest) -> Tables:
    made: Tables = request.getfixturevalue("on_postgres" if request.param == "postgresql" else "on_mariadb")
    return made


def filled(tables: Tables, ids: str = "n", rows: int = ROWS) -> str:
    """A table whose keys are an expression of n = 1…rows."""
    name = tables.table(COLUMNS)
    counted = f"SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < {rows}"
    numbers = f"(WITH RECURSIVE r AS ({counted}) SELECT CAST(i AS decimal(20)) AS n FROM r) AS r"
    if tables.quote == "`":
        tables.execute(f"SET max_recursive_iterations = {rows + 1}")
    values = f"{ids}, concat('name ', n), n / 8.0"
    tables.execute(f"INSERT INTO {tables.quoted(name)} SELECT {values} FROM {numbers}")
    if tables.quote == '"':
        tables.execute(f"ANALYZE {tables.quoted(name)}")
    return name


def pair(tables: Tables, *changes: str, ids: str = "n") -> tuple[Sql, Sql]:
    """Two such tables, and what is done to the second."""
    left, right = filled(tables, ids), filled(tables, ids)
    for change in changes:
        tables.execute(change.format(tables.quoted(right)))
    return tables.side(left), tables.side(right)


def planned(left: Sql, right: Sql) -> Plan:
    return plan(left.describe(), right.describe(), key=("id",))


SCATTERED = (
    "UPDATE {} SET amount = -amount WHERE id IN (1, 777, 778)",
    "DELETE FROM {} WHERE id IN (3000, 1500)",
    "INSERT INTO {} VALUES (-5, 'extra', 0), (10000, NULL, 1)",
)
FOUND = {'["-5"]': "extra", '["1"]': "differ", '["777"]': "differ", '["778"]': "differ", '["1500"]': "missing",
         '["3000"]': "missing", '["10000"]': "extra"}  # fmt: skip


@pytest.mark.parametrize("strategy", ["segments", "keyhash", "sketch", None])
def test_a_few_differences_are_found_and_little_else_is_read(tables: Tables, strategy: str | None) -> None:
    left, right = pair(tables, *SCATTERED)
    with compare(left, right, planned(left, right), strategy=strategy) as found:
        assert {each.key: each.kind for each in found.differences()} == FOUND
        assert found.counts == Counts(ROWS, ROWS, ROWS - 5, missing=2, extra=2, differ=3)
        assert found.differing_fields == {"name": 0, "amount": 3}
        mysql = tables.quote == "`"
        if strategy == "sketch":
            assert found.strategy == ("segments" if mysql else "sketch")
        elif strategy is not None:
            assert found.strategy == strategy
        if strategy == "segments":
            assert all(read.rows < 2 * ROWS / 3 for read in found.read)
        assert all(read.bytes > 0 and read.statements for read in found.read)


@pytest.mark.parametrize("strategy", ["gate", "segments", "keyhash", "sketch", None])
def test_equal_tables_agree_by_every_strategy(tables: Tables, strategy: str | None) -> None:
    left, right = pair(tables)
    with compare(left, right, planned(left, right), strategy=strategy) as found:
        assert found.agree
        assert found.counts == Counts(ROWS, ROWS, ROWS)


@pytest.mark.parametrize(
    "ids", ["n * n * n", "CASE WHEN n < 2900 THEN n ELSE n + 1000000000000 END", "n - 1500", "n * 1000000000000000"]
)
@pytest.mark.parametrize("strategy", ["segments", "keyhash"])
def test_keys_may_lie_as_unevenly_as_they_like(tables: Tables, ids: str, strategy: str) -> None:
    left, right = pair(tables, "UPDATE {} SET name = 'x' WHERE name = 'name 1234'", ids=ids)
    with compare(left, right, planned(left, right), strategy=strategy) as found:
        assert found.counts == Counts(ROWS, ROWS, ROWS - 1, differ=1)
        assert found.strategy == strategy


def test_keys_at_both_ends_of_the_integers_are_matched_without_ranges(tables: Tables) -> None:
    """Given keys too far apart for a difference in 64 bits, I expect the answer all the same."""
    change = "INSERT INTO {} VALUES (-9223372036854775808, 'first', 0), (9223372036854775807, 'last', 0)"
    for strategy in ("segments", "keyhash", "sketch", None):
        left, right = pair(tables, change)
        with compare(left, right, planned(left, right), strategy=strategy) as found:
            assert {each.key: each.kind for each in found.differences()} == {
                '["-9223372036854775808"]': "extra",
                '["9223372036854775807"]': "extra",
            }


@pytest.mark.parametrize("declared", ["int", "smallint"])
def test_narrow_keys_do_not_overflow(tables: Tables, declared: str) -> None:
    first, last = (-(2**31), 2**31 - 1) if declared == "int" else (-(2**15), 2**15 - 1)
    sides = []
    for value in ("a", "b"):
        name = tables.table(f"id {declared} PRIMARY KEY, v char(1)")
        tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES ({first}, 'x'), (0, 'x'), ({last}, '{value}')")
        sides.append(tables.side(name))
    for strategy in ("segments", "keyhash", "sketch", None):
        with compare(sides[0], sides[1], planned(sides[0], sides[1]), strategy=strategy) as found:
            assert {each.key: each.kind for each in found.differences()} == {f'["{last}"]': "differ"}


def test_one_side_may_be_empty(tables: Tables) -> None:
    for strategy in ("segments", "keyhash", "sketch", None):
        left, right = pair(tables, "DELETE FROM {}")
        with compare(left, right, planned(left, right), strategy=strategy) as found:
            assert found.counts == Counts(ROWS, 0, 0, missing=ROWS)


@pytest.mark.postgres
def test_a_sketch_that_is_too_small_is_left_for_segments(on_postgres: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashed, "_SKETCH_RECORDS", 10)
    left, right = pair(on_postgres, "UPDATE {} SET name = 'x' WHERE id <= 1000")
    with compare(left, right, planned(left, right), strategy="sketch") as found:
        assert (found.strategy, found.counts.differ) == ("segments", 1000)
        assert "decode" in found.reason


@pytest.mark.postgres
def test_a_slow_link_gets_blocks_or_a_sketch(on_postgres: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given one record in a hundred that differs and a slow link, I expect few bytes, and why; else all keys."""
    left, right = pair(on_postgres, "UPDATE {} SET name = 'x' WHERE id % 100 = 3")
    monkeypatch.setattr(hashed, "_MANY_ROWS", 0)
    for speed, strategy in ((1e5, "sketch"), (1e6, "segments"), (1e9, "keyhash"), (None, "keyhash")):
        found = at_pace(monkeypatch, speed, left, right)
        assert (found.strategy, found.counts) == (strategy, Counts(ROWS, ROWS, ROWS - 30, differ=30))
        assert ("in 1.0% of their records; the slower link brings 1.0 MB" in found.reason) == (speed == 1e6)
        assert any("bit_xor" in each for each in found.read[0].statements) == (speed in (1e5, 1e6))


@pytest.mark.parametrize("strategy", [None, "gate", "segments", "keyhash", "sketch", "rows"])
@pytest.mark.parametrize("blocks", [False, True])
def test_progress_counts_each_record_once(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, strategy: str | None, blocks: bool
) -> None:
    """Given records that are asked for more than once, I expect no more to be told than there are."""
    left, right = pair(tables, *SCATTERED)
    asked = planned(left, right)
    if blocks:
        monkeypatch.setattr(hashed, "_MANY_ROWS", 0)
        monkeypatch.setattr(hashed, "_SHARE_MAX", -1.0)
        monkeypatch.setattr(SqlSnapshot, "pace", lambda _: 1e6)
    steps: list[int] = []
    with compare(left, right, asked, strategy=strategy, progress=lambda done, total: steps.append(done)) as found:
        every = found.counts.left + found.counts.right
    assert steps == sorted(steps)
    grouped = any("bit_xor" in each for each in found.read[0].statements)
    assert grouped == (tables.quote == '"' and (strategy == "sketch" or (blocks and strategy is None)))
    # Cells tell nothing of a record.
    assert max(steps, default=0) == (0 if found.strategy == "sketch" else every)


CHANGES = [
    *SCATTERED,
    "UPDATE {} SET name = NULL WHERE amount BETWEEN 70 AND 85",  # whole blocks
    "DELETE FROM {} WHERE amount BETWEEN 250 AND 275",
]


@pytest.mark.parametrize("ids", ["n", "n * n * n", "CASE WHEN n < 2900 THEN n ELSE n + 1000000000000 END", "n * -7"])
@pytest.mark.parametrize("bits", [1, 4, 9, 40])
@pytest.mark.parametrize("function", ["", CANONICAL])
def test_blocks_tell_the_same(tables: Tables, ids: str, bits: int, function: str) -> None:
    """Given keys that lie in whatever way and blocks of any width, I expect what all hashes tell, in every count."""
    left, right = pair(tables, *CHANGES, ids=ids)
    asked = planned(left, right)
    with closing(left.snapshot(asked.left)) as a, closing(right.snapshot(asked.right)) as b:
        sides = Hashed(a, b, function or a.functions[0])
        (first, last), (low, high) = a.span() or (0, 0), b.span() or (0, 0)
        span = min(first, low), max(last, high)
        told = []
        for blocks in (0, bits):
            with closing(Workspace(64)) as workspace:
                suspects = Suspects(workspace, asked)
                asked_for = [(each, None) for each in ranges(span, ROWS, blocks=blocks > 0)]
                match = match_ranges(sides, suspects, asked_for, blocks)
                suspects.records()
                found = workspace.batches("SELECT k0, n FROM suspects ORDER BY ALL", 8192)
                told.append((match, [line for batch in found for line in batch.to_pylist()]))
        assert told[0] == told[1]
        assert len(told[0][1]) > 300


def test_a_block_with_a_record_that_has_no_hash_differs(tables: Tables) -> None:
    """Given equal sides with a value that SQL can't hash as we do, I expect its block to be looked into."""
    name = tables.table("id bigint PRIMARY KEY, v double precision")
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES (1, 0.5), (17, 0.5), (18, 1e-25), (40, 0.5)")
    side = tables.side(name)
    with closing(side.snapshot(planned(side, side).left)) as snapshot:
        found = snapshot.blocks(CANONICAL, 0, 47, 4)
        alone = snapshot.hashes_within(CANONICAL, 0, 15, 100)
        assert (found["k0"].to_pylist(), found["n"].to_pylist()) == ([0, 1, 2], [1, 2, 1])
        assert (found["h"].is_null().to_pylist(), found["h"][0]) == ([False, True, False], alone["h"][0])
        assert snapshot.hashes_within(CANONICAL, 0, 47, 100, (4, [1]))["k0"].to_pylist() == [17, 18]


def at_pace(monkeypatch: pytest.MonkeyPatch, speed: float | None, left: Sql, right: Sql) -> Comparison:
    """How sides are compared behind a link of this speed, bytes a second; the answer's files are gone."""
    monkeypatch.setattr(SqlSnapshot, "pace", lambda _: speed)
    with compare(left, right, planned(left, right)) as found:
        return found


@pytest.mark.postgres
def test_a_link_has_to_be_slower_where_segments_leave_little_to_send(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a tenth of all segments to look into, I expect no blocks, and a sketch ten times later."""
    left, right = pair(on_postgres, "UPDATE {} SET name = 'x' WHERE id % 100 = 3")
    monkeypatch.setattr(hashed, "_MANY_ROWS", 0)
    monkeypatch.setattr(sampled.Sample, "segments", lambda *_: 0.1)
    for speed, strategy in ((2e4, "sketch"), (1e5, "segments"), (6e6, "segments"), (None, "segments")):
        found = at_pace(monkeypatch, speed, left, right)
        assert (found.strategy, found.counts.differ) == (strategy, ROWS // 100)
        assert ("the slower link" in found.reason) == (speed == 2e4)


@pytest.mark.postgres
def test_differences_that_cluster_where_nobody_sampled_are_found(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a sketch that was made for too few, I expect blocks instead."""
    left, right = pair(on_postgres, "UPDATE {} SET name = 'x' WHERE id % 100 = 3")
    monkeypatch.setattr(hashed, "_MANY_ROWS", 0)
    monkeypatch.setattr(SqlSnapshot, "pace", lambda _: 1e5)
    monkeypatch.setattr(sampled.Sample, "expected", lambda *_: 1)
    monkeypatch.setattr(sketch, "_CELLS_MIN", 8)
    with compare(left, right, planned(left, right)) as found:
        assert (found.strategy, found.counts.differ) == ("segments", ROWS // 100)


@pytest.mark.postgres
def test_differences_everywhere_are_looked_for_key_by_key_at_once(on_postgres: Tables) -> None:
    left, right = pair(on_postgres, "UPDATE {} SET name = 'x' WHERE id % 10 = 3")
    with compare(left, right, planned(left, right)) as found:
        assert (found.strategy, found.counts.differ) == ("keyhash", ROWS // 10)
        assert "100% of the ranges" in found.reason


def test_all_hashes_and_records_are_of_one_instant(tables: Tables) -> None:
    """Given a table that changes after the snapshot, I expect what it was, by every connection."""
    (side, _) = pair(tables)
    projection = planned(side, side).left
    with closing(side.snapshot(projection)) as snapshot:
        name = tables.quoted(side.label)
        function = snapshot.functions[0]
        before = snapshot.total(function)
        tables.execute(f"UPDATE {name} SET amount = 0")
        tables.execute(f"DELETE FROM {name} WHERE id < 100")
        assert snapshot.total(function) == before
        assert sum(batch.num_rows for batch in snapshot.hashes(function)) == ROWS
        results: list[Any] = []
        threads = [
            threading.Thread(target=lambda: results.append(snapshot.hashes_within(function, 1, 10, 100)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 4
        assert all(each.equals(results[0]) and each.num_rows == 10 for each in results)
        (records,) = snapshot.records(pa.table({"k0": pa.array([7], pa.int64())}))
        ((number, name, amount),) = (row.values() for row in records.to_pylist())
        assert (number, name, Decimal(amount)) == (7, "name 7", Decimal("0.88"))


def test_closing_ends_what_runs_in_the_server(tables: Tables) -> None:
    """Given a query that would take a minute, I expect it to end when the comparison is broken off."""
    side, _ = pair(tables)
    snapshot = side.snapshot(planned(side, side).left)
    sleep = "SELECT pg_sleep(60)" if tables.quote == '"' else "SELECT SLEEP(60)"
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            snapshot._all(sleep)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    started = time.monotonic()
    snapshot.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("strategy", ["segments", "keyhash"])
def test_a_side_that_fails_in_the_middle_fails_the_comparison(
    tables: Tables, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = pair(tables, "UPDATE {} SET name = 'x' WHERE id = 1500")
    taken = right.snapshot(planned(left, right).right)
    monkeypatch.setattr(type(right), "snapshot", _failing(type(right).snapshot, right))
    taken.close()
    with pytest.raises(SideError):
        compare(left, right, planned(left, right), strategy=strategy)


def _failing(original: Any, which: Sql) -> Any:
    def snapshot(self: Sql, projection: Any) -> Any:
        made = original(self, projection)
        if self is which:
            made.hashes_within = lambda *_: made._all("SELECT * FROM a_table_that_is_gone")
        return made

    return snapshot


def test_ranges_cover_the_span_and_nothing_twice() -> None:
    for span, rows in (((1, 1), 0), ((-5, 1000), 700), ((0, 2**61), 10**6), ((3, 4), 10**9)):
        pieces = list(ranges(span, rows))[:2000]
        assert pieces[0][0] == span[0]
        assert all(a[1] + 1 == b[0] and a[0] <= a[1] for a, b in pairwise(pieces))


def test_the_command_line_shows_strategy_cost_and_statements(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    from trueup.cli.main import main

    left, right = pair(tables, *SCATTERED)
    places = [f"{tables.url}#{side.label}" for side in (left, right)]
    assert main(["diff", *places, "--strategy", "segments", "--explain-sql", "--limit", "1"], standalone=False) == 1
    told = capsys.readouterr().out
    assert "strategy segments: asked for" in told
    assert "read     left " in told
    assert "GROUP BY" in told
    assert "10000" not in told
    assert "true/up" not in told


@pytest.mark.postgres
def test_a_snapshot_outlives_the_servers_patience_with_idle_transactions(on_postgres: Tables) -> None:
    """Given a server that ends transactions idle for 100 ms, I expect a side that waits for the other to keep its."""
    impatient = f"{on_postgres.url}?options=-c%20idle_in_transaction_session_timeout%3D100"
    (left, right) = pair(on_postgres)
    side = Sql(impatient, table=left.label, key="id")
    with closing(side.snapshot(planned(left, right).left)) as snapshot:
        before = snapshot.total(snapshot.functions[0])
        time.sleep(0.3)
        assert snapshot.total(snapshot.functions[0]) == before
    side.close()


def test_ranges_asked_for_at_once_are_those_asked_for_alone(tables: Tables) -> None:
    """Given ranges with records, without any, and with too many, I expect one statement, and what each gives alone."""
    (left, right) = pair(tables, "DELETE FROM {} WHERE id BETWEEN 500 AND 599")
    asked = [(1, 40), (520, 580), (90, 250), (2_990, 9_000), (700, 700)]
    with closing(right.snapshot(planned(left, right).right)) as snapshot:
        for function in snapshot.functions:
            before = len(snapshot.statements)
            found = snapshot.hashes_within_each(function, asked, 100)
            assert len(snapshot.statements) <= before + 1
            assert found == [snapshot.hashes_within(function, *each, 100) for each in asked]
            assert [None if each is None else each.num_rows for each in found] == [40, 0, None, 11, 1]
        assert snapshot.hashes_within_each(snapshot.functions[0], [], 100) == []
