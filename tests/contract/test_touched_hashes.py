"""Databases that hash what was touched: those records are suspects that reading them would show, and no others."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from sql_tables import Tables
from sql_tables import projection as asked
from trueup.engine import alike
from trueup.engine.past import Past, touched
from trueup.engine.records import Records
from trueup.errors import IncompleteScan
from trueup.model.digest import digest_of
from trueup.model.kinds import FLOAT, INTEGER, TEXT, TIMESTAMP, Kind
from trueup.model.record import key_text
from trueup.model.row import Baseline
from trueup.pair import declare
from trueup.ports import NewerHashingSide, Side, provides
from trueup.sides.memory import Memory
from trueup.sides.sql import Sql
from trueup.stores.memory import MemoryLedger

SINCE = 100
COLUMNS = {
    "id": INTEGER, "part": TEXT, "v": INTEGER, "name": TEXT, "ratio": FLOAT, "at": TIMESTAMP,
    "price": Kind("decimal", scale=2, precision=9),
}  # fmt: skip
VALUES: dict[str, list[str | None]] = {
    "name": ["", "a", "A", 'ä,"\\\n', None],
    "ratio": ["0", "0.1", "1e+300", None],
    "at": ["2026-03-29T02:30:00.5", "1969-12-31T23:59:59", None],
    "price": ["1.5", "-0.05", "0", None],
}
FIELDS = list(VALUES)
Row = dict[str, str | None]
Found = tuple[int, int, set[str]]


def drawn(seed: int, count: int) -> tuple[list[Row], list[Row], list[Baseline]]:
    """Records of both sides, most of them alike, some twice; and what a ledger knows of them."""
    chance = random.Random(seed)
    sides: tuple[list[Row], list[Row]] = [], []
    known: list[Baseline] = []
    for number in range(count):
        key = {"id": str(number), "part": chance.choice(["", 'ü"', "b"])}
        states = [{**key, **{name: chance.choice(each) for name, each in VALUES.items()}} for _ in range(2)]
        for side in sides:
            if chance.random() < 0.9:
                side.append({**chance.choice([states[0], *states]), "v": chance.choice(["50", "100", "150", None])})
        if chance.random() < 0.8:
            a, b = (digest_of([chance.choice(states)[name] for name in FIELDS]) for _ in range(2))
            known.append(Baseline(key_text(key.values()), 0, a, b))
    return *sides, known


def found(left: Side, right: Side, known: list[Baseline]) -> Found:
    """How many records each side showed, and the suspects."""
    declared = declare("orders", authority=left, replica=right, fields=FIELDS, overlap=0)
    ledger = MemoryLedger()
    ledger.baseline("orders", known)
    batches = list(touched(Records(declared), ledger, Past(SINCE, SINCE), remember=False))
    suspects = {key for each in batches for key in each.suspects}
    return sum(each.left for each in batches), sum(each.right for each in batches), suspects


def made(tables: Tables, rows: list[Row]) -> Sql:
    return tables.make(COLUMNS, ("id", "part"), version="v", rows=rows)


def by_hashes(monkeypatch: pytest.MonkeyPatch, left: Sql, right: Sql, known: list[Baseline]) -> Found:
    """However many records must be read; fails where it is told in another way."""
    with monkeypatch.context() as patch:
        patch.setattr(alike, "READ_MAX", 10_000)
        for way in ("scan", "digests"):
            patch.setattr(Sql, way, lambda *_: pytest.fail("hashes should have told"))
        return found(left, right, known)


def by_records(monkeypatch: pytest.MonkeyPatch, left: Sql, right: Sql, known: list[Baseline]) -> Found:
    """The reference: all that was touched is brought here and digested."""
    with monkeypatch.context() as patch:
        for way in ("hashes", "digests"):
            patch.delattr(Sql, way)
        return found(left, right, known)


def test_each_engine_finds_what_reading_finds(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given states of records at both sides and in the ledger, I expect what is suspect not to hang on the way."""
    rows_left, rows_right, known = drawn(7, 300)
    left, right = made(tables, rows_left), made(tables, rows_right)
    told = by_hashes(monkeypatch, left, right, known)
    assert told == by_records(monkeypatch, left, right, known)
    shown = [sum(row["v"] in ("100", "150") for row in rows) for rows in (rows_left, rows_right)]
    assert list(told[:2]) == shown
    assert 50 < len(told[2]) < max(shown)


def test_keys_that_are_shown_twice_are_found(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_left, rows_right, known = drawn(8, 40)
    rows_left.append({**rows_left[0], "name": "twin", "v": "150"})
    rows_left[0]["v"] = "150"
    left, right = made(tables, rows_left), made(tables, rows_right)
    told = found(left, right, known)
    assert key_text([rows_left[0]["id"], rows_left[0]["part"]]) in told[2]
    assert told == by_records(monkeypatch, left, right, known)


def test_nothing_touched_is_nothing_shown(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"id": "1", "part": "b", "v": "50", "name": "a", "ratio": None, "at": None, "price": None}
    left, right = made(tables, [old]), made(tables, [])
    assert by_hashes(monkeypatch, left, right, []) == (0, 0, set())
    left, right = made(tables, [{**old, "v": "100"}]), made(tables, [])
    assert by_hashes(monkeypatch, left, right, []) == (1, 0, {key_text(["1", "b"])})


@pytest.mark.postgres
@pytest.mark.mariadb
def test_engines_of_two_kinds_find_what_reading_finds(
    on_postgres: Tables, on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VALUES, "ratio", ["0", "0.1", None])  # no number of which a server can't tell the digest
    rows_left, rows_right, known = drawn(9, 60)
    left, right = made(on_postgres, rows_left), made(on_mariadb, rows_right)
    assert found(left, right, known) == by_records(monkeypatch, left, right, known)


@pytest.mark.parametrize("key", [("id", "part"), ("id",)])
def test_no_more_are_hashed_than_asked_for(tables: Tables, key: tuple[str, ...]) -> None:
    side = made(tables, drawn(10, 40)[0])
    projection = asked(side, "name", key=key, version="v")
    ((_, begin), *_) = side.hashes(projection, SINCE, 9).items()
    with closing(begin()) as batches:
        assert sum(batch.num_rows for batch in batches) == 9
    assert provides(side, NewerHashingSide)
    assert not provides(Memory([], key="id", columns={"id": "integer"}), NewerHashingSide)


def test_what_is_newer_can_not_be_asked_for_without_a_version(tables: Tables) -> None:
    side = made(tables, [])
    assert side.hashes(asked(side, "name", key=("id", "part")), SINCE, 9) == {}
    assert side.hashes(asked(side, "name", key=("id", "part"), version="name"), SINCE, 9) == {}


def test_a_server_that_hashes_in_another_way_meanwhile_is_told(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a connection that leads to another server than the one before, I expect no hashes of two kinds."""
    side = made(tables, [])
    ((_, begin), *_) = side.hashes(asked(side, "name", key=("id", "part"), version="v"), SINCE, 9).items()
    monkeypatch.setattr(type(side._dialect.hasher()), "functions", lambda *_: [])
    with pytest.raises(IncompleteScan, match="hashes in another way"), closing(begin()) as batches:
        list(batches)
