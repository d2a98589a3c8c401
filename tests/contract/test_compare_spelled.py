"""Keys that a table spells in usual and in unusual ways: all are found, and not by one scan after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from sql_tables import Tables, key
from trueup.compare import suspects
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Counts
from trueup.model.kinds import DATE, DECIMAL, INSTANT, INTEGER, TEXT, UUID, Kind, kind_named
from trueup.model.record import Field, Projection
from trueup.sides.sql import Sql
from trueup.sides.sql.dialects import Dialect
from trueup.sides.sql.dialects.mysql import MySQL
from trueup.sides.sql.dialects.postgresql import PostgreSQL
from trueup.sides.sql.dialects.sqlite import SQLite

ROWS = 20_000
V = Field("v", "v", INTEGER)
# What programs write into a column, and what only SQLite lets them write.
WRITTEN = ["7", "7.0", "07", " 7", "1.50", "true", "x", "", "2026-01-02", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z",
           "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "{F81D4FAE-7DEC-11d0-a765-00A0C91E6BF6}", "ü", "\\xff"]  # fmt: skip
OTHERS = ["7", "0", "1", "-3", "7.0", "7.5", "2", "0.1", "9e999", "1e20", "9223372036854775807", "x'37'", "x''",
          "x'f81d4fae7dec11d0a76500a0c91e6bf6'", "CAST(x'61ff' AS TEXT)", "CAST(x'ff' AS TEXT)"]  # fmt: skip
KINDS = ["text", "integer", "decimal", "float", "float32", "boolean", "bytes", "uuid", "date", "timestamp", "instant",
         "time", "interval", "json"]  # fmt: skip


class Plans:
    """The plans of SQLite for whatever it streams; scans: how many of them read a whole table or index."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: list[list[str]] = []
        scan = SQLite.scan

        def watched(
            dialect: SQLite, connection: Any, columns: Sequence[Any], rest: str, values: list[Any]
        ) -> Iterator[Any]:
            selected = ", ".join(reading.sql for _, reading in columns)
            driver = connection.connection.driver_connection
            rows = driver.execute(f"EXPLAIN QUERY PLAN SELECT {selected} {rest}", values).fetchall()
            self.plans.append([row[3] for row in rows])
            return scan(dialect, connection, columns, rest, values)

        monkeypatch.setattr(SQLite, "scan", watched)

    @property
    def scans(self) -> int:
        return sum(any(step.startswith("SCAN") for step in steps) for steps in self.plans)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    return Plans(monkeypatch)


def _flights(tables: Tables, constraint: str = ", PRIMARY KEY (day, carrier, number)") -> str:
    name = tables.table(f"day TEXT, carrier TEXT, number INTEGER, v INTEGER{constraint}")
    tables.execute(
        f"""INSERT INTO "{name}"
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1})
            SELECT date('2026-01-01', (i % 28) || ' days'), 'c' || i % 7, i, 0 FROM n"""
    )
    return name


def _told(left: Sql, right: Sql, names: Sequence[str], strategy: str) -> tuple[Counts, dict[str, str]]:
    planned = plan(left.describe(), right.describe(), key=list(names))
    with compare(left, right, planned, strategy=strategy) as found:
        assert found.strategy == strategy
        return found.counts, {each.key: each.kind for each in found.differences()}


@pytest.mark.parametrize("differing", [30, 1_500, ROWS])
@pytest.mark.parametrize("constraint", [", PRIMARY KEY (day, carrier, number)", ""])
def test_a_table_is_scanned_twice_however_many_records_differ(
    on_sqlite: Tables, plans: Plans, monkeypatch: pytest.MonkeyPatch, differing: int, constraint: str
) -> None:
    """Given a key of several columns, I expect one scan a side for hashes and one for what look-ups do not find."""
    monkeypatch.setattr(suspects, "_KEYS_AT_ONCE", 200)
    left, right = (_flights(on_sqlite, constraint) for _ in range(2))
    on_sqlite.execute(f'UPDATE "{right}" SET v = 1 WHERE number < {differing}')
    names = ["day", "carrier", "number"]

    counts, _ = _told(on_sqlite.side(left, key=names), on_sqlite.side(right, key=names), names, "keyhash")

    assert counts == Counts(left=ROWS, right=ROWS, same=ROWS - differing, differ=differing)
    # Without an index, a few keys are looked for by one scan more.
    assert plans.scans <= (4 if constraint else 6)
    assert len(plans.plans) >= 4


def test_keys_that_are_not_there_are_looked_for_in_the_index(on_sqlite: Tables, plans: Plans) -> None:
    """Given hundreds of keys of several columns, none of which is there, I expect that no index is read whole."""
    side = on_sqlite.side(_flights(on_sqlite))
    asked = tuple(Field(name, name, kind) for name, kind in [("day", TEXT), ("carrier", TEXT), ("number", INTEGER)])
    keys = [key(f"2026-01-{at % 28 + 1:02}", "c8", str(at)) for at in range(300)]

    assert side.read(Projection(asked, (V,)), keys) == {}
    assert plans.plans
    assert plans.scans == 0


@pytest.mark.parametrize(("spelled", "missing"), [
    ("'9', CAST(x'61ff' AS TEXT)", ("9", "a\\xff")),
    ("'9.0', 'b'", ("9", "b")),
    ("x'39', 'b'", ("!39", "b")),
    ("9, x'62'", ("9", "62")),
    ("'9', NULL", ("9", None)),
])  # fmt: skip
@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_key_of_two_columns_is_found_however_it_is_spelled(
    on_sqlite: Tables, spelled: str, missing: tuple[str | None, ...], strategy: str
) -> None:
    """Given one unusual spelling in a key of two columns, I expect what a reading of all records says."""
    names = [on_sqlite.table("a BLOB, b TEXT, v INT") for _ in range(2)]
    for name in names:
        on_sqlite.execute(f"""INSERT INTO "{name}" VALUES (7, 'a', 1), ('7.0', 'a', 1), (8, 'a', 1)""")
    on_sqlite.execute(f'INSERT INTO "{names[0]}" VALUES ({spelled}, 2)')
    on_sqlite.execute(f"""UPDATE "{names[1]}" SET v = 3 WHERE a = 8""")
    left, right = [on_sqlite.side(name, key=["a", "b"], columns={"a": "integer"}) for name in names]

    assert _told(left, right, ["a", "b"], strategy) == (
        Counts(left=4, right=3, missing=1, differ=1, duplicate=1),
        {key("7", "a"): "duplicate", key("8", "a"): "differ", key(*missing): "missing"},
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_key_that_is_no_utf8_is_compared(on_sqlite: Tables, strategy: str) -> None:
    names = [on_sqlite.table("id TEXT PRIMARY KEY, v INT") for _ in range(2)]
    for number, name in enumerate(names):
        on_sqlite.execute(f"""INSERT INTO "{name}" VALUES (CAST(x'61ff' AS TEXT), {number}), ('ok', 1)""")

    left, right = [on_sqlite.side(name) for name in names]
    assert _told(left, right, ["id"], strategy) == (
        Counts(left=2, right=2, same=1, differ=1), {key("a\\xff"): "differ"},
    )  # fmt: skip


# The snapshot itself.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("declared", ["TEXT", "INTEGER", "REAL", "NUMERIC", "BLOB", "", "TEXT COLLATE NOCASE"])
def test_every_row_has_a_usual_spelling_or_an_unusual_one(on_sqlite: Tables, declared: str, kind: str) -> None:
    """Given whatever SQLite lets into a column, I expect each row once: by its key, or among the unusual ones."""
    name = on_sqlite.table(f"id {declared}, v INTEGER")
    values = ["NULL", *OTHERS, *(f"'{each}'" for each in WRITTEN), "'X'"]
    on_sqlite.execute(f'INSERT INTO "{name}" VALUES {", ".join(f"({each}, {at})" for at, each in enumerate(values))}')

    _check_each_once(on_sqlite.side(name, key="id", columns={"id": kind}), kind_named(kind), len(values))


@pytest.mark.parametrize(("kind", "spelled"), [
    (INTEGER, ["7", "7.0", "8", "x"]), (DECIMAL, ["1.50", "1.5", "2"]), (DATE, ["2026-01-02", " 2026-01-02"]),
    (INSTANT, ["2026-01-02 03:04:05+02", "2026-01-02T01:04:05Z"]), (TEXT, ["7", "7.0", "x"]),
    (UUID, ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "{F81D4FAE-7DEC-11d0-a765-00A0C91E6BF6}"]),
])  # fmt: skip
def test_texts_that_are_read_as_another_kind_are_found(tables: Tables, kind: Kind, spelled: Sequence[str]) -> None:
    """Given texts that the side reads as numbers, times or the like, I expect each row once, on every engine."""
    name = tables.table("id varchar(60), v int")
    rows = ", ".join(f"('{each}', {at})" for at, each in enumerate(spelled))
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES {rows}, (NULL, -1)")

    _check_each_once(tables.side(name, key="id", columns={"id": kind}), kind, len(spelled) + 1)


@pytest.mark.parametrize(("engine", "dialect"), [("on_postgres", PostgreSQL), ("on_mariadb", MySQL)])
def test_a_uuid_that_is_not_there_is_looked_for_among_unusual_texts(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, engine: str, dialect: type[Dialect]
) -> None:
    """Given texts of UUIDs, two of them spelled in their own way, I expect that the others are not read for them."""
    tables: Tables = request.getfixturevalue(engine)
    name = tables.table("id varchar(60), v int")
    spelled = [*(f"00000000-0000-4000-8000-{at:012x}" for at in range(500)), f"{{{'F' * 32}}}", "x"]
    rows = ", ".join(f"('{each}', {at})" for at, each in enumerate(spelled))
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES {rows}, (NULL, -1)")
    side = tables.side(name, key="id", columns={"id": UUID})
    read, scan = [], dialect.scan

    def watched(*asked: Any) -> Iterator[Any]:
        for raw in scan(*asked):
            read.append(len(raw[0]))
            yield raw

    monkeypatch.setattr(dialect, "scan", watched)
    braces, absent = "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12, "f" * 8 + "-ffff-ffff-ffff-" + "e" * 12
    wanted = [key(each) for each in (spelled[7], braces, absent, "!x")]

    found = side.read(Projection((Field("id", "id", UUID),), (V,)), wanted)
    assert {each.key: each.values["v"] for each in found.values()} == {
        wanted[0]: "7",
        wanted[1]: "500",
        wanted[3]: "501",
    }
    assert sum(read) == 2


def _check_each_once(side: Sql, kind: Kind, rows: int) -> None:
    projection = Projection((Field("id", "id", kind),), (V,))
    with closing(side.snapshot(projection)) as snapshot:
        everything = _rows(snapshot.everything())
        assert sum(everything.values()) == rows
        keys = list({text for text, _ in everything})
        assert _rows(snapshot.records(_asked(keys))) + _rows(snapshot.unusual()) == everything
        for wanted in keys:
            assert {text for text, _ in _rows(snapshot.records(_asked([wanted])))} <= {wanted}


def _asked(keys: Sequence[str | None]) -> pa.Table:
    return pa.table({"k0": pa.array(keys, pa.string())})


def _rows(batches: Iterator[pa.RecordBatch]) -> Counter[tuple[str | None, str | None]]:
    return Counter((row["id"], row["v"]) for batch in batches for row in batch.to_pylist())
