"""Hashes taken inside databases: canonical ones equal the reference byte for byte, native ones see every bit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.test_sql_types import MARIADB, POSTGRES
from sql_tables import Tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.columns import key_texts
from trueup.model.digest import digest_of
from trueup.model.kinds import INSTANT, INTEGER, TEXT, TIMESTAMP, Kind, kind_named
from trueup.model.record import Field, Projection, key_parts
from trueup.sides.sql import Sql

CANONICAL = "canonical"


def asked(side: Sql, *fields: tuple[str, Kind], key: Sequence[str] = ("id",)) -> Projection:
    keys = []
    for name in key:
        column = side.describe().column(name)
        assert column is not None
        keys.append(Field(name, name, column.kind, native=column.native))
    return Projection(tuple(keys), tuple(Field(name, name, kind) for name, kind in fields))


def hashes(side: Sql, projection: Projection, function: str = CANONICAL) -> dict[str, int | None] | None:
    """Hash by key text; None where the engine has no such function for these columns."""
    with closing(side.snapshot(projection)) as snapshot:
        if function not in snapshot.functions:
            return None
        answer: dict[str, int | None] = {}
        for batch in snapshot.hashes(function):
            keys = key_texts(batch.columns[:-1], projection.key)
            answer.update(zip(keys, batch.column("h").to_pylist(), strict=True))
        return answer


def expected(side: Sql, projection: Projection) -> dict[str, int]:
    """The reference: what Python says of the same records, read by key."""
    keys = [key for batch in side.scan(projection) for key in key_texts(batch.columns[: len(projection.key)], projection.key)]  # fmt: skip  # noqa: E501
    names = [field.name for field in projection.fields]
    return {
        key: int(digest_of([*key_parts(key), *(found.values[name] for name in names)])[:15], 16)
        for key, found in side.read(projection, keys).items()
    }


def check(side: Sql, projection: Projection) -> bool | None:
    """Whether every record is hashed as the reference says; None where the engine leaves the columns to Python."""
    told = hashes(side, projection)
    if told is None:
        return None
    reference = expected(side, projection)
    assert told.keys() == reference.keys()
    for key, hashed in told.items():
        assert hashed is None or hashed == reference[key], key
    return None not in told.values()


# ── canonical ────────────────────────────────────────────────────────────────────────────────────────

# Types that are left to Python, whatever their values.
LEFT = ("real", "double", "float", "json", "interval", "timetz", "money", "inet", "cidr", "xml", "bit(", "int4range",
        "set(", "point", "inet6")  # fmt: skip
CASES = [("postgresql", *case) for case in POSTGRES] + [("mariadb", *case) for case in MARIADB]


@pytest.mark.parametrize(
    ("engine", "declared", "value", "kind", "text"), CASES,
    ids=[f"{case[0]}-{case[1]}-{case[2][:30].encode('ascii', 'backslashreplace').decode()}" for case in CASES],
)  # fmt: skip
def test_each_type_is_hashed_as_the_reference_says_or_left_to_it(
    request: pytest.FixtureRequest, engine: str, declared: str, value: str, kind: str, text: str
) -> None:
    tables: Tables = request.getfixturevalue("on_postgres" if engine == "postgresql" else "on_mariadb")
    if engine == "mariadb":
        tables.execute("SET sql_mode = ''")  # a strict server would not let the worst values in
    for name, create in (("mood", "TYPE mood AS ENUM ('so so', 'well')"), ("amount", "DOMAIN amount AS numeric(9,2)")):
        if declared.startswith(name):
            tables.execute(f"DROP {create.partition(' ')[0]} IF EXISTS {name} CASCADE")
            tables.execute(f"CREATE {create}")
    table = tables.table(f"id int not null, value {declared}")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES (1, {value}), (2, NULL)")
    for zero_date in ("null", "strict"):
        side = tables.side(table, key="id", zero_date=zero_date)
        whole = check(side, asked(side, ("value", kind_named(kind))))
        as_text = check(side, asked(side, ("value", TEXT)))
        left = (
            declared.startswith(LEFT)
            or declared.endswith("[]")
            or (engine == "mariadb" and kind == "enum" and not text)
        )
        assert (whole is None) == (as_text is None)
        if not left:
            assert whole is not None
            far = "infinity" in text or text.startswith(("!", "-00", "+", "0000"))
            assert whole or (far and kind.startswith(("date", "timestamp")))


@pytest.mark.parametrize(("kind", "made"), [
    (k.TEXT, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)),
    (k.INTEGER, st.integers(-(2**63), 2**63 - 1)),
    (Kind("decimal", scale=4, precision=20), st.decimals(-(10**15), 10**15, places=4)),
    (Kind("decimal", scale=0, precision=9), st.integers(-(10**9) + 1, 10**9 - 1)),
    (k.BOOLEAN, st.booleans()),
    (k.BYTES, st.binary(max_size=40)),
    (k.UUID, st.uuids(version=4)),
    (k.DATE, st.dates()),
    (k.TIME, st.times()),
    (k.TIMESTAMP, st.datetimes()),
    (k.INSTANT, st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2037, 1, 1), timezones=st.just(dt.UTC))),  # noqa: DTZ001
], ids=lambda value: str(value) if isinstance(value, Kind) else "")  # fmt: skip
@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
@given(data=st.data())
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_generated_values_are_hashed_as_the_reference_says(
    on_postgres: Tables, on_mariadb: Tables, engine: str, kind: Kind, made: Any, data: st.DataObject
) -> None:
    tables = on_postgres if engine == "postgresql" else on_mariadb
    values = data.draw(st.lists(st.none() | made, min_size=1, max_size=12))
    rows = [{"id": str(at), "v": canonical_text(value, kind)} for at, value in enumerate(values)]
    side = tables.make({"id": INTEGER, "v": kind}, ("id",), rows=rows, constraint=", PRIMARY KEY (id)")
    assert check(side, asked(side, ("v", kind))) is True
    assert check(side, asked(side, ("v", TEXT))) is True
    side.close()


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_a_wall_clock_of_utc_is_hashed_as_an_instant_and_of_another_zone_left_to_python(
    on_postgres: Tables, on_mariadb: Tables, engine: str
) -> None:
    tables = on_postgres if engine == "postgresql" else on_mariadb
    rows = [{"id": "1", "at": "2026-03-29T02:30:00.5"}, {"id": "2", "at": None}]
    made = tables.make({"id": INTEGER, "at": TIMESTAMP}, ("id",), rows=rows)
    for zone, told in (("UTC", True), ("Europe/Berlin", None)):
        side = tables.side(made.label, key="id", zone=zone)
        assert check(side, asked(side, ("at", INSTANT))) is told


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_keys_of_several_columns_and_nulls_are_hashed(on_postgres: Tables, on_mariadb: Tables, engine: str) -> None:
    tables = on_postgres if engine == "postgresql" else on_mariadb
    rows = [{"a": a, "b": b, "v": "x"} for a in ("", "a", 'ä,"', None) for b in ("1", "-7", None)]
    side = tables.make({"a": TEXT, "b": INTEGER, "v": TEXT}, ("a", "b"), rows=rows)
    assert check(side, asked(side, ("v", TEXT), key=("a", "b"))) is True


# ── native ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("declared", "left", "right"),
    [
        # The engine's own hash does not tell these apart.
        ("numeric(12,2)", "5", "-5"),
        ("numeric", "'nan'", "'infinity'"),
        ("numeric", "'infinity'", "'-infinity'"),
        ("bigint", "1", "4294967296"),
        ("bigint", "8589934593", "4294967298"),
        ("timestamp", "'2000-01-01'", "'2000-01-01 01:11:34.967297'"),
        ("timestamptz", "'2000-01-01'", "'2000-01-01 01:11:34.967297'"),
        ("time", "'00:00'", "'01:11:34.967297'"),
    ],
)
def test_values_that_postgresql_hashes_alike_are_told_apart(
    on_postgres: Tables, declared: str, left: str, right: str
) -> None:
    sides = []
    for value in (left, right):
        table = on_postgres.table(f"id int PRIMARY KEY, v {declared}")
        on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} VALUES (1, {value})")
        sides.append(on_postgres.side(table))
    planned = plan(sides[0].describe(), sides[1].describe(), key=("id",))
    for strategy in ("gate", "segments", "keyhash", "sketch", None):
        with compare(*sides, planned, strategy=strategy) as found:
            assert found.counts.differ == 1, strategy


@pytest.mark.postgres
def test_equal_values_of_other_widths_and_scales_hash_alike(on_postgres: Tables) -> None:
    sides = []
    for columns, values in (
        ("a smallint, b numeric(9,4), c char(5)", "7, 1.5, 'x'"),
        ("a bigint, b numeric, c text", "7, 1.50, 'x'"),
    ):
        table = on_postgres.table(f"id int PRIMARY KEY, {columns}")
        on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} VALUES (1, {values})")
        sides.append(on_postgres.side(table))
    with compare(*sides, plan(sides[0].describe(), sides[1].describe(), key=("id",))) as found:
        assert (found.strategy, found.agree) == ("gate", True)
