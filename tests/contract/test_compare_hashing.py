"""Hashes taken inside databases: canonical ones equal the reference byte for byte, native ones see every bit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contract.test_sql_duckdb import TYPES as DUCKDB
from contract.test_sql_types import MARIADB, POSTGRES
from sql_tables import Tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model import kinds as k
from trueup.model.canonical import canonical_text
from trueup.model.columns import key_texts
from trueup.model.digest import digest_of
from trueup.model.kinds import INSTANT, INTEGER, TEXT, TIMESTAMP, Kind, kind_named
from trueup.model.record import Field, Projection, key_parts, key_text
from trueup.ports import Write
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
LEFT = {
    "postgresql": ("json", "interval", "timetz", "money", "inet", "cidr", "xml", "bit(", "int4range"),
    "mariadb": ("float", "json", "set(", "point", "inet6"),
    "duckdb": ("float", "json", "timetz", "timestamp_ns", "struct"),
}


def far(kind: str, text: str) -> bool:
    """Whether a value may be left to Python: no day of the calendar, or a number that others write with an exponent."""
    if kind.startswith("float"):
        return not 1e-4 <= abs(float(text)) < (1e6 if kind == "float32" else 1e15)
    return kind.startswith(("date", "timestamp")) and text.startswith(("infinity", "-", "!", "+", "0000"))


CASES = [
    (engine, *case)
    for engine, cases in (("postgresql", POSTGRES), ("mariadb", MARIADB), ("duckdb", DUCKDB))
    for case in cases
]
ENGINES = ["postgresql", "mariadb", "duckdb"]


@pytest.fixture
def on(on_postgres: Tables, on_mariadb: Tables, on_duckdb: Tables) -> Callable[[str], Tables]:
    """Tables on an engine by its name."""
    return {"postgresql": on_postgres, "mariadb": on_mariadb, "duckdb": on_duckdb}.__getitem__


@pytest.mark.parametrize(
    ("engine", "declared", "value", "kind", "text"), CASES,
    ids=[f"{case[0]}-{case[1]}-{case[2][:30].encode('ascii', 'backslashreplace').decode()}" for case in CASES],
)  # fmt: skip
def test_each_type_is_hashed_as_the_reference_says_or_left_to_it(
    request: pytest.FixtureRequest, engine: str, declared: str, value: str, kind: str, text: str
) -> None:
    tables: Tables = request.getfixturevalue("on_postgres" if engine == "postgresql" else f"on_{engine}")
    if engine == "mariadb":
        tables.execute("SET sql_mode = ''")  # a strict server would not let the worst values in
    for name, create in (("mood", "TYPE mood AS ENUM ('so so', 'well')"), ("amount", "DOMAIN amount AS numeric(9,2)")):
        if engine == "postgresql" and declared.startswith(name):
            tables.execute(f"DROP {create.partition(' ')[0]} IF EXISTS {name} CASCADE")
            tables.execute(f"CREATE {create}")
    table = tables.table(f"id int not null, value {declared}")
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES (1, {value}), (2, NULL)")
    for zero_date in ("null", "strict"):
        side = tables.side(table, key="id", zero_date=zero_date)
        whole = check(side, asked(side, ("value", kind_named(kind))))
        as_text = check(side, asked(side, ("value", TEXT)))
        left = (
            declared.startswith(LEFT[engine])
            or declared.endswith("]")
            or (engine == "mariadb" and kind == "enum" and not text)
        )
        assert (whole is None) == (as_text is None)
        if not left:
            assert whole is not None
            assert whole or far(kind, text)


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
@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_generated_values_are_hashed_as_the_reference_says(
    on: Callable[[str], Tables], engine: str, kind: Kind, made: Any, data: st.DataObject
) -> None:
    tables = on(engine)
    values = data.draw(st.lists(st.none() | made, min_size=1, max_size=12))
    rows = [{"id": str(at), "v": canonical_text(value, kind)} for at, value in enumerate(values)]
    side = tables.make({"id": INTEGER, "v": kind}, ("id",), rows=rows, constraint=", PRIMARY KEY (id)")
    assert check(side, asked(side, ("v", kind))) is True
    assert check(side, asked(side, ("v", TEXT))) is True
    side.close()


# Among them many that lie half way between two texts, where writers of the shortest text disagree.
_floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(lambda whole, bits: whole / 2.0**bits, st.integers(-(2**24), 2**24), st.integers(0, 40)),
    st.decimals(-(10**6), 10**6, places=2).map(float),
)


@pytest.mark.parametrize(("engine", "declared", "kind"), [
    ("postgresql", "double precision", "float"), ("postgresql", "real", "float32"), ("mariadb", "double", "float"),
    ("duckdb", "double", "float"),
])  # fmt: skip
@given(numbers=st.lists(_floats, min_size=1, max_size=40))
@settings(max_examples=10, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_floats_are_hashed_by_their_shortest_text(
    on: Callable[[str], Tables], engine: str, declared: str, kind: str, numbers: list[float]
) -> None:
    wide = kind_named(kind)
    low, high = (1e-30, 1e30) if wide.bits == 32 else (0, 2e308)
    fitting = [each for each in numbers if each == 0 or low <= abs(each) < high]
    table = on(engine).table(f"id int not null, v {declared}")
    side = on(engine).side(table, key="id", version=None)
    projection = asked(side, ("v", wide))
    side.apply(projection, [Write(key_text([str(at)]), {"v": canonical_text(each, wide)}, "") for at, each in enumerate(fitting)])  # fmt: skip  # noqa: E501
    for kinds in (wide, TEXT, Kind("decimal", bits=wide.bits)):
        projection = asked(side, ("v", kinds))
        told, reference = hashes(side, projection), expected(side, projection)
        assert told is not None
        for at, each in enumerate(fitting):
            key = key_text([str(at)])
            assert told[key] == reference[key] or (told[key] is None and far(kind, canonical_text(each, wide) or ""))
    side.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wall_clock_of_utc_is_hashed_as_an_instant_and_of_another_zone_left_to_python(
    on: Callable[[str], Tables], engine: str
) -> None:
    tables = on(engine)
    rows = [{"id": "1", "at": "2026-03-29T02:30:00.5"}, {"id": "2", "at": None}]
    made = tables.make({"id": INTEGER, "at": TIMESTAMP}, ("id",), rows=rows)
    for zone, told in (("UTC", True), ("Europe/Berlin", None)):
        side = tables.side(made.label, key="id", zone=zone)
        assert check(side, asked(side, ("at", INSTANT))) is told


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_of_several_columns_and_nulls_are_hashed(on: Callable[[str], Tables], engine: str) -> None:
    tables = on(engine)
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


@pytest.mark.postgres
def test_nulls_that_a_table_inherits_though_it_declares_none_are_seen(on_postgres: Tables) -> None:
    """Given a child that dropped the NOT NULL of its parent, I expect its null to differ from a value."""
    sides = []
    for value in ("NULL", "5"):
        child, parent = on_postgres.table("id int"), on_postgres.table("id int PRIMARY KEY, v int NOT NULL")
        names = {"parent": on_postgres.quoted(parent), "child": on_postgres.quoted(child)}
        for statement in (
            "DROP TABLE {child}", "CREATE TABLE {child} () INHERITS ({parent})",
            "ALTER TABLE {child} ALTER v DROP NOT NULL", f"INSERT INTO {{child}} VALUES (1, {value})",
            "INSERT INTO {parent} VALUES (2, 7)",
        ):  # fmt: skip
            on_postgres.execute(statement.format(**names))
        sides.append(on_postgres.side(parent))
    planned = plan(sides[0].describe(), sides[1].describe(), key=("id",))
    for strategy in ("gate", "segments", "keyhash", "sketch", None):
        with compare(*sides, planned, strategy=strategy) as found:
            assert (found.counts.differ, found.counts.same) == (1, 1), strategy


@pytest.mark.postgres
def test_a_column_may_hold_nulls_where_its_not_null_is_not_valid(on_postgres: Tables) -> None:
    """Given a NOT NULL that is not valid, as PostgreSQL 18 has it, I expect only its column to be nullable."""
    table = on_postgres.table("id int PRIMARY KEY, v int NOT NULL, w int NOT NULL, n int")
    name = on_postgres.quoted(table)
    if int(on_postgres.execute("SHOW server_version_num").fetchone()[0]) >= 180_000:
        on_postgres.execute(f"ALTER TABLE {name} ALTER v DROP NOT NULL")
        on_postgres.execute(f"ALTER TABLE {name} ADD CONSTRAINT v_not_null NOT NULL v NOT VALID")
        assert _nullable(on_postgres, table) == ["v", "n"]
        return
    # What its catalogue would list.
    columns = (
        "oid, conname, connamespace, contype, condeferrable, condeferred, convalidated, conrelid, contypid, conindid, "
        "conparentid, confrelid, confupdtype, confdeltype, confmatchtype, conislocal, coninhcount, connoinherit, conkey"
    )
    on_postgres.execute("SET allow_system_table_mods = on")
    try:
        on_postgres.execute(
            f"INSERT INTO pg_constraint ({columns}) SELECT 10 + attnum, attname || '_not_null', 2200, 'n', false, "
            "false, attname <> 'v', attrelid, 0, 0, 0, 0, ' ', ' ', ' ', true, 0, false, ARRAY[attnum] "
            f"FROM pg_attribute WHERE attrelid = '{name}'::regclass AND attname IN ('v', 'w')"
        )
        assert _nullable(on_postgres, table) == ["v", "n"]
    finally:
        on_postgres.execute(f"DELETE FROM pg_constraint WHERE contype = 'n' AND conrelid = '{name}'::regclass")
        on_postgres.execute("RESET allow_system_table_mods")


def _nullable(tables: Tables, table: str) -> list[str]:
    return [column.name for column in tables.side(table).describe().columns if column.nullable]


@pytest.mark.postgres
def test_a_key_that_a_child_repeats_is_no_key_of_the_parent(on_postgres: Tables) -> None:
    """Given two equal tables whose children repeat a key of theirs, I expect a duplicate and no gate that passes."""
    sides = []
    for _ in range(2):
        child, parent = on_postgres.table("id int"), on_postgres.table("id int PRIMARY KEY, v int NOT NULL")
        on_postgres.execute(f"DROP TABLE {on_postgres.quoted(child)}")
        on_postgres.execute(f"CREATE TABLE {on_postgres.quoted(child)} () INHERITS ({on_postgres.quoted(parent)})")
        for table in (child, parent):
            on_postgres.execute(f"INSERT INTO {on_postgres.quoted(table)} VALUES (1, 5)")
        sides.append(on_postgres.side(parent))
    planned = plan(sides[0].describe(), sides[1].describe(), key=("id",))
    for strategy in ("gate", "segments", "keyhash", "sketch", "rows", None):
        with compare(*sides, planned, strategy=strategy) as found:
            assert (found.counts.duplicate, found.counts.same) == (1, 0), strategy
    assert not sides[0].examine().unique_key
