"""Every strategy gives the answer of an independent reference, on every pair of engines and for every kind of key."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sql_tables import Tables
from trueup.compare import hashed, keyhash, sampled, segments
from trueup.compare.choose import STRATEGIES, compare
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Counts
from trueup.model.kinds import (
    BYTES,
    DATE,
    INSTANT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    UUID,
    Kind,
)
from trueup.model.record import key_text
from trueup.sides.sql import Sql

Row = dict[str, str | None]
MONEY = Kind("decimal", precision=12, scale=2)
# Columns whose names need care, and values that break boundaries, encodings and sums.
FIELDS: dict[str, tuple[Kind, list[str | None]]] = {
    'a "name" %s': (
        TEXT,
        [None, "", "~", "1:x", "x", "X", "x ", "ä", "e\u0301", "é", "😀", '","', "\\N", "a\nb", "%s"],
    ),
    "Amount": (MONEY, [None, "0", "-5", "5", "0.01", "-0.01", "9999999999.99"]),
    "n": (INTEGER, [None, "0", "-1", "1", "4294967296", "9223372036854775807", "-9223372036854775808"]),
    "b": (BYTES, [None, "", "00", "0001", "ff"]),
    "at": (TIMESTAMP, [None, "2024-02-29T12:00:00", "2024-02-29T12:00:00.000001", "1969-12-31T23:59:59.5"]),
    "seen": (INSTANT, [None, "2024-02-29T12:00:00Z", "2024-02-29T13:11:34.967297Z"]),
    "day": (DATE, [None, "2024-02-29", "9999-12-31"]),
}
KEYS: dict[str, dict[str, tuple[Kind, list[str | None]]]] = {
    "whole number": {"id": (INTEGER, [str(number) for number in (*range(-3, 40), 2**40, -(2**40))])},
    "uuid": {"id": (UUID, [f"6f9619ff-8b86-d011-b42d-{number:012x}" for number in range(40)])},
    "two columns": {
        "group": (INTEGER, ["1", "2", "3"]),
        "id": (TEXT, ["a", "A", "b", "ä", "", "a ", "1:", "~", '"', "é", "e\u0301", "x,y"]),
    },
    "text": {
        "Key %": (TEXT, ["", " ", "a", "A", "a ", "ä", "Ä", "ß", "ss", "\n", "!", "~", "null", "😀", '"', "'", "`"])
    },
}


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given bounds so small, a few dozen records fill many ranges and segments, and some ranges too full."""
    monkeypatch.setattr(keyhash, "ROWS_WANTED", 4)
    monkeypatch.setattr(keyhash, "ROWS_MAX", 6)
    monkeypatch.setattr(segments, "_ROWS_WANTED", 2)
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 0)
    monkeypatch.setattr(sampled, "_RANGE_ROWS", 2)


def reference(left: Sequence[Row], right: Sequence[Row], key: Sequence[str]) -> dict[str, tuple[str, frozenset[str]]]:
    """Kind and differing fields of every key that differs, told without any code of the comparison."""
    sides: list[dict[str, list[Row]]] = []
    for rows in (left, right):
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(key_text(row[name] for name in key), []).append(row)
        sides.append(found)
    told: dict[str, tuple[str, frozenset[str]]] = {}
    for each in {*sides[0], *sides[1]}:
        a, b = (side.get(each, []) for side in sides)
        if len(a) > 1 or len(b) > 1:
            told[each] = ("duplicate", frozenset())
        elif not b:
            told[each] = ("missing", frozenset())
        elif not a:
            told[each] = ("extra", frozenset())
        elif changed := frozenset(name for name in a[0] if a[0][name] != b[0][name]):
            told[each] = ("differ", changed)
    return told


def drawn(chance: random.Random, keys: Mapping[str, Any], count: int, *, repeat: bool) -> tuple[list[Row], list[Row]]:
    """Two tables that mostly agree."""
    columns = {**keys, **FIELDS}
    every = [{name: chance.choice(values) for name, (_, values) in columns.items()} for _ in range(3 * count)]
    left = list({key_text(row[name] for name in keys): row for row in every}.values())[:count]
    right = [dict(row) for row in left]
    for row in right:
        if chance.random() < 0.2:
            name = chance.choice(list(FIELDS))
            row[name] = chance.choice(FIELDS[name][1])
    names = list(FIELDS)
    if len(right) > 3 and chance.random() < 0.5:
        # Two values that change places: a sum that is linear in the values would not see it.
        name = chance.choice(names)
        right[0][name], right[1][name] = right[1][name], right[0][name]
    chance.shuffle(right)
    lost = chance.randrange(3) if right else 0
    extra = {key_text(row[name] for name in keys): row for row in every if row not in left}
    known = {key_text(row[name] for name in keys) for row in right}
    right = right[lost:] + [row for key, row in extra.items() if key not in known][: chance.randrange(3)]
    if repeat and left and right:
        left += [dict(chance.choice(left)) for _ in range(chance.randrange(3))]
        right += [dict(chance.choice(right)) for _ in range(chance.randrange(3))]
    return left, right


def made(tables: Tables, keys: Mapping[str, Any], rows: Sequence[Row], *, unique: bool) -> Sql:
    columns = {name: kind for name, (kind, _) in {**keys, **FIELDS}.items()}
    quoted = ", ".join(map(tables.quoted, keys))
    constraint = f", PRIMARY KEY ({quoted})" if unique else ""
    return tables.make(columns, tuple(keys), rows=rows, constraint=constraint)


def counted(
    told: Mapping[str, tuple[str, frozenset[str]]], left: Sequence[Row], right: Sequence[Row], key: Any
) -> Counts:
    kinds = Counter(kind for kind, _ in told.values())
    keys = {key_text(row[name] for name in key) for row in (*left, *right)}
    return Counts(len(left), len(right), len(keys) - len(told), kinds["missing"], kinds["extra"], kinds["differ"],
                  kinds["duplicate"])  # fmt: skip


ENGINES = {"sqlite": "on_sqlite", "postgresql": "on_postgres", "mariadb": "on_mariadb", "duckdb": "on_duckdb"}
PAIRS = [("postgresql", "postgresql"), ("mariadb", "mariadb"), ("sqlite", "sqlite"), ("postgresql", "mariadb"),
         ("mariadb", "sqlite"), ("sqlite", "postgresql"), ("duckdb", "duckdb"), ("duckdb", "postgresql"),
         ("mariadb", "duckdb"), ("sqlite", "duckdb")]  # fmt: skip


@pytest.fixture(params=PAIRS, ids="-".join)
def engines(request: pytest.FixtureRequest) -> tuple[Tables, ...]:
    return tuple(request.getfixturevalue(ENGINES[name]) for name in request.param)


@given(st.data())
@settings(max_examples=12, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_every_strategy_tells_what_differs(engines: tuple[Tables, ...], keys: str, data: st.DataObject) -> None:
    chance = random.Random(data.draw(st.integers(0, 2**32), label="seed"))
    # MariaDB holds keys for one that differ in case or in blanks; there only such tables are made that it takes.
    collates = any(tables.quote == "`" for tables in engines) and keys in ("text", "two columns")
    unique = data.draw(st.booleans(), label="unique") and not collates
    strategy = data.draw(st.sampled_from((*STRATEGIES, None)), label="strategy")
    count = data.draw(st.integers(0, 25), label="records")
    left, right = drawn(chance, KEYS[keys], count, repeat=not unique)
    sides = [made(tables, KEYS[keys], rows, unique=unique) for tables, rows in zip(engines, (left, right), strict=True)]
    planned = _planned(sides, KEYS[keys])
    expected = reference(left, right, list(KEYS[keys]))
    with compare(*sides, planned, strategy=strategy) as found:
        told = {
            each.key: (each.kind, frozenset(each.fields) if each.kind == "differ" else frozenset())
            for each in found.differences()
        }
        assert told == expected, found.strategy
        assert found.counts == counted(expected, left, right, list(KEYS[keys])), found.strategy
    for side in sides:
        side.close()


def _planned(sides: Sequence[Sql], keys: Mapping[str, Any]) -> Plan:
    kinds = {name: str(kind) for name, (kind, _) in FIELDS.items()}
    return plan(sides[0].describe(), sides[1].describe(), key=list(keys), kinds=kinds)
