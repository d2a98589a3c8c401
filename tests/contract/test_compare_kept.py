"""A side that can't hash is read once, kept, and compared with a database by hashes: the answer is that of `rows`."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sql_tables import Tables
from trueup.compare import hashed, keyhash, sampled, segments
from trueup.compare.choose import STRATEGIES, compare
from trueup.compare.expected import Expected
from trueup.compare.kept import Kept
from trueup.compare.plan import plan
from trueup.compare.watched import Traffic
from trueup.errors import BadInput
from trueup.model.digest import CANONICAL, digest_of
from trueup.model.kinds import DATE, DECIMAL, INTEGER, JSON, TEXT, Kind
from trueup.model.record import Projection
from trueup.ports import EVERYTHING, Scope, Side
from trueup.sides.files import File
from trueup.sides.memory import Memory

COLUMNS = {"id": INTEGER, "name": TEXT, "amount": Kind("decimal", precision=12, scale=2), "day": DATE}
RECORDS = [
    {
        "id": str(at), "name": None if at % 7 == 0 else f'n "{at}", ä', "amount": f"{at}.5" if at % 3 else None,
        "day": "2024-02-29" if at % 2 else None,
    }
    for at in range(-20, 60)
]  # fmt: skip


def changed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record missing, one extra, two that differ."""
    other = [dict(each) for each in records[1:]]
    other[5]["name"], other[9]["amount"] = "another", "0.01"
    return [*other, {"id": "1000", "name": "extra", "amount": None, "day": None}]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyhash, "ROWS_WANTED", 8)
    monkeypatch.setattr(segments, "_ROWS_WANTED", 4)
    monkeypatch.setattr(hashed, "_SMALL_ROWS", -1)
    monkeypatch.setattr(sampled, "_RANGE_ROWS", 4)


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres),
                        pytest.param("mariadb", marks=pytest.mark.mariadb)])  # fmt: skip
def database(request: pytest.FixtureRequest) -> Tables:
    made: Tables = request.getfixturevalue(f"on_{request.param}")
    return made


def file(path: Path, records: list[dict[str, Any]]) -> File:
    """A Parquet file of these records."""
    typed = {"id": pa.int64(), "name": pa.string(), "amount": pa.decimal128(12, 2), "day": pa.date32()}
    texts = {name: pa.array([each[name] for each in records], pa.string()) for name in typed}
    pq.write_table(pa.table({name: column.cast(typed[name]) for name, column in texts.items()}), path)
    return File(str(path), key="id")


def told(left: Side, right: Side, strategy: str | None) -> tuple[str, str, Any, list[tuple[Any, ...]]]:
    planned = plan(left.describe(), right.describe(), key=("id",))
    with compare(left, right, planned, strategy=strategy) as found:
        listed = [(each.key, each.kind, each.fields) for each in found.differences()]
        return found.strategy, found.reason, found.counts, sorted(listed)


@pytest.mark.parametrize("strategy", [*STRATEGIES, None])
@pytest.mark.parametrize("keyed", [True, False])
def test_a_file_and_a_database(database: Tables, tmp_path: Path, keyed: bool, strategy: str | None) -> None:
    left = file(tmp_path / "a.parquet", changed(RECORDS))
    constraint = ", PRIMARY KEY (id)" if keyed else ""
    right = database.make(COLUMNS, ("id",), rows=RECORDS, constraint=constraint)
    used, reason, *answer = told(left, right, strategy)
    _, _, *expected = told(left, right, "rows")
    assert answer == expected
    assert len(answer[1]) == 4
    if strategy in (None, "match") and database.url.startswith("duckdb"):
        assert "both sides are in this process" in reason
    elif strategy not in ("gate", "rows"):
        assert used != "rows", reason
    _, _, *mirrored = told(right, left, strategy)
    assert tuple(mirrored) == told(right, left, "rows")[2:]


@pytest.mark.postgres
@pytest.mark.parametrize(("link", "arriving"), [(0, True), (math.inf, False)])
def test_hashes_arrive_while_a_side_is_read_unless_the_link_is_slow(
    on_postgres: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: float, arriving: bool
) -> None:
    """Given a link that is fast enough, I expect no sample; given a slow one, I expect ranges, and the same answer."""
    monkeypatch.setattr(hashed, "_KEPT_LINK", link)
    left = file(tmp_path / "a.parquet", changed(RECORDS))
    right = on_postgres.make(COLUMNS, ("id",), rows=RECORDS, constraint=", PRIMARY KEY (id)")
    used, reason, *answer = told(left, right, None)
    assert answer == list(told(left, right, "rows")[2:])
    assert (used, "arrive while" in reason) == ("keyhash" if arriving else used, arriving)


@pytest.mark.postgres
def test_after_sums_that_differ_ranges_are_asked_for(on_postgres: Tables, tmp_path: Path) -> None:
    """Given sides that have always agreed, I expect a gate first; then that only what differs is sent."""
    left = file(tmp_path / "a.parquet", changed(RECORDS))
    right = on_postgres.make(COLUMNS, ("id",), rows=RECORDS, constraint=", PRIMARY KEY (id)")
    planned = plan(left.describe(), right.describe(), key=("id",))
    with compare(left, right, planned, expected=Expected(agreed=9, compared=9)) as found:
        assert "sampled" in found.reason
        assert [found.counts, len(list(found.differences()))] == [told(left, right, "rows")[2], 4]


def test_equal_sides_agree_by_sums(database: Tables, tmp_path: Path) -> None:
    left = file(tmp_path / "a.parquet", RECORDS)
    right = database.make(COLUMNS, ("id",), rows=RECORDS, constraint=", PRIMARY KEY (id)")
    for strategy in ("gate", "segments"):
        used, _, counts, listed = told(left, right, strategy)
        assert (used, counts.same, listed) == (strategy, len(RECORDS), [])


def test_a_key_that_repeats_in_the_file_is_a_duplicate(database: Tables, tmp_path: Path) -> None:
    right = database.make(COLUMNS, ("id",), rows=RECORDS, constraint=", PRIMARY KEY (id)")
    left = file(tmp_path / "a.parquet", [*RECORDS, RECORDS[3]])
    for strategy in (*STRATEGIES, None):
        _, _, counts, listed = told(left, right, strategy)
        assert counts.duplicate == 1, strategy
        assert [each[1] for each in listed] == ["duplicate"]


def test_small_sides_are_read(database: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 1_000)
    left, right = file(tmp_path / "a.parquet", RECORDS), database.make(COLUMNS, ("id",), rows=RECORDS)
    used, reason, *_ = told(left, right, None)
    assert used == "rows"
    assert "so few" in reason


@pytest.mark.postgres
def test_what_has_no_sql_is_named(on_postgres: Tables, tmp_path: Path) -> None:
    columns = {"id": INTEGER, "payload": JSON}
    right = on_postgres.make(columns, ("id",), rows=[{"id": "1", "payload": "{}"}])
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "payload": {}}\n')
    used, reason, *_ = told(File(str(path), key="id"), right, "keyhash")
    assert used == "rows"
    assert "payload (jsonb)" in reason


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────


def kept(side: Side) -> Kept:
    planned = plan(side.describe(), side.describe(), key=("id",))
    return Kept(side, planned.left, Traffic(), 128)


def test_hashes_are_those_of_the_reference() -> None:
    """Given values of every kind, I expect the digits of the digest that the model says."""
    records = [
        {"id": "1", "amount": "1.5", "name": None}, {"id": "2", "amount": "nan", "name": 'ä "x"\0\n'},
        {"id": "3", "amount": "-0.000001", "name": ""}, {"id": "4", "amount": None, "name": "~"},
    ]  # fmt: skip
    side = Memory(records, key="id", columns={"id": INTEGER, "amount": DECIMAL, "name": TEXT})
    snapshot = kept(side)
    told = {
        row["k0"]: row["h"] for batch in snapshot.hashes(CANONICAL) for row in batch.to_pylist()
    }  # fmt: skip
    snapshot.close()
    assert told == {
        row["id"]: int(digest_of([row["id"], row["amount"], row["name"]])[:15], 16) for row in records
    }  # fmt: skip


def test_what_needs_more_memory_than_keeping_gets_it() -> None:
    """Given memory for keeping alone, I expect records to be found by texts, for which a join needs 16 MB."""
    side = Memory([{"id": each} for each in ("5", "45", "1244921165")], key="id", columns={"id": INTEGER})
    snapshot = Kept(side, plan(side.describe(), side.describe(), key=("id",)).left, Traffic(), 12)
    keys = pa.table({"k0": pa.array(["-1454547115", "-2147483648", "1244921165", "45", "5"])})
    found = [key for batch in snapshot.records(keys) for key in batch["k0"].to_pylist()]
    snapshot.close()
    assert found == ["5", "45", "1244921165"]


def test_an_error_of_the_side_is_raised_by_what_is_asked_first(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,name\n1,a\n2,b,too many\n")
    snapshot = kept(File(str(path), key="id"))
    with pytest.raises(BadInput, match="line"):
        list(snapshot.hashes(CANONICAL))
    snapshot.close()


class Slow:
    """A side whose scan goes on until it is told to end."""

    def __init__(self, side: Side) -> None:
        self._side, self.ended = side, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield from self._side.scan(projection, scope)
        finally:
            self.ended.set()


def test_closing_ends_the_reading_and_leaves_no_file() -> None:
    side = Slow(Memory([{"id": "1", "name": "a"}], key="id", columns={"id": INTEGER, "name": TEXT}))
    snapshot = kept(side)  # type: ignore[arg-type]
    folder = snapshot._workspace.path
    snapshot.close()
    assert side.ended.wait(5)
    assert not folder.exists()


def test_what_can_not_be_kept_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a spool that takes no more, I expect the scan to be at its end before anybody is told."""

    def full(self: Kept, batches: Any, insert: Any) -> None:
        raise BadInput("no room is left.")

    monkeypatch.setattr(Kept, "_keep", full)
    side = Slow(Memory([{"id": "1", "name": "a"}], key="id", columns={"id": INTEGER, "name": TEXT}))
    snapshot = kept(side)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no room"):
        list(snapshot.hashes(CANONICAL))
    assert side.ended.is_set()
    snapshot.close()


@pytest.mark.parametrize("twice", [False, True])
def test_keys_are_counted_in_little_memory(tmp_path: Path, twice: bool) -> None:
    """Given many more keys than fit into the memory allowed, I expect to be told whether one repeats."""
    keys = pa.array(range(0, 1_400_000, 2), pa.int64())
    keys = pa.concat_arrays([keys, keys[7:8]]) if twice else keys
    pq.write_table(pa.table({"id": keys}), tmp_path / "keys.parquet")
    side = File(str(tmp_path / "keys.parquet"), key="id")
    asked = plan(side.describe(), side.describe(), key=("id",)).left
    kept = Kept(side, asked, Traffic(lambda records: None), 16)
    try:
        assert kept.unique is not twice
    finally:
        kept.close()
