"""`--emit-sql` against real engines: what their own clients run makes the sides agree, whatever the values are."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from sql_tables import Tables, sqlite_tables
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.repairs import Script
from trueup.compare.result import Comparison
from trueup.model.kinds import INTEGER, TEXT, Kind, kind_named
from trueup.model.numbers import float_text
from trueup.sides.sql import Sql
from trueup.sides.sql.dialects.sqlite import SQLite

Row = Mapping[str, str | None]

HOSTILE = [
    "", " ", "null", "NULL", "it's", "'; DROP TABLE x; --", '"double"', "back\\slash", "\\", "\\'", "a\\\nb",
    "line\nbreak",
    "carriage\r\nreturn", "tab\t", "-- no comment", "/* nor this */", "#", "%s %% %(x)s", ":name ?", "$1 $$ $tag$",
    "\x1a", "\x7f", "Zoë 😀 中文", "é vs é", "\u202eright to left", "\ufeff", "`tick`", "\\x00ff", "E'x'", ";",
    "\\q", "\\g",
    "DELIMITER //",
]  # fmt: skip
VALUES: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "integer": ["0", "-9223372036854775808", "9223372036854775807", "-1"],
    "decimal": ["0", "-0.00000000000000000001", "12345678901234567890.5", "19.99"],
    "float": ["0", "0.1", "-1e-300", "5e-324", "1.7976931348623157e+308", "0.30000000000000004"],
    "float32": ["0.1", "16777216", "-3.4028235e+38"],
    "text": HOSTILE,
    "bytes": ["", "00", "00ff5c27220a0d1a", "5c"],
    "uuid": ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"],
    "date": ["2024-02-29", "1000-01-01", "9999-12-31"],
    "time": ["00:00:00", "23:59:59.999999"],
    "timestamp": ["2026-03-29T02:30:00.000001", "1970-01-01T00:00:00", "9999-12-31T23:59:59.999999"],
    "instant": ["2026-01-02T01:04:05Z", "2026-07-01T00:00:00.5Z"],
    "json": ["null", '{"a":[1,"it\'s \\\\ \\" é"],"b":null}', '""', "12345678901234567890.1"],
    "array of text": ['["a,b","q\\"q",null,"NULL","","\\\\"]'],
}
ONLY: dict[str, dict[str, list[str]]] = {
    "postgres": {
        "decimal": ["nan", "infinity"], "float": ["nan", "infinity", "-infinity"], "date": ["infinity", "-0043-03-15"],
        "timestamp": ["-infinity", "+294276-12-31T23:59:59.999999"], "instant": ["infinity"],
        "interval": ["P14MT273906.789S", "PT-0.5S"], "array of integer": ['["1",null,"-3"]'],
    },
    "sqlite": {
        "text": ["nul\0in", "\0"], "float": ["infinity", "-infinity", "nan"], "date": ["infinity", "+10000-01-01"],
        "decimal": ["nan"],
    },
    "duckdb": {"text": ["nul\0in"], "float": ["nan", "infinity"]},
    "mariadb": {"text": ["nul\0in", "\0"], "time": ["-838:59:59", "838:59:59"]},
}  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """name: of the engine. run: has its own client run a file of statements."""

    name: str
    tables: Tables
    run: Callable[[Path], None]


def psql(url: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        client = shutil.which("psql")
        if client is None:
            pytest.skip("psql is not installed")
        # Whatever the session is set to, the file must mean the same.
        odd = (
            "TimeZone=Asia/Kathmandu",
            "DateStyle=German",
            "IntervalStyle=sql_standard",
            "standard_conforming_strings=off",
        )
        settings = " ".join(f"-c {each}" for each in odd)
        command = [client, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(path), url]
        done = subprocess.run(
            command,
            check=False,
            env={**os.environ, "PGOPTIONS": settings, "PGCLIENTENCODING": "LATIN1"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")

    return run


def mysql(address: str) -> Callable[[Path], None]:
    url = make_url(address)

    def run(path: Path) -> None:
        client = shutil.which("mariadb") or shutil.which("mysql")
        if client is None:
            pytest.skip("no client of MariaDB is installed")
        command = [client, "--no-defaults", f"--host={url.host}", f"--port={url.port}", f"--user={url.username}",
                   "--protocol=tcp", "--default-character-set=latin1",
                   "--init-command=SET time_zone='+05:45', sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
                   url.database or ""]  # fmt: skip
        with path.open("rb") as statements:
            done = subprocess.run(
                command,
                check=False,
                env={**os.environ, "MYSQL_PWD": url.password or ""},
                stdin=statements,
                capture_output=True,
                text=True,
            )
        assert (done.returncode, done.stderr) == (0, "")

    return run


def executescript(path: Path) -> Callable[[Path], None]:
    def run(script: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script.read_bytes().decode())

    return run


def duckdb_execute(path: Path) -> Callable[[Path], None]:
    def run(script: Path) -> None:
        import duckdb

        with closing(duckdb.connect(path)) as connection:
            connection.execute(script.read_bytes().decode())

    return run


@pytest.fixture(
    params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres),
            pytest.param("mariadb", marks=pytest.mark.mariadb)]
)  # fmt: skip
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Tables on each engine in turn, and its client."""
    tables: Tables = request.getfixturevalue(f"on_{request.param}")
    runs = {
        "postgres": lambda: psql(tables.url), "mariadb": lambda: mysql(tables.url),
        "sqlite": lambda: executescript(tmp_path / "a b%20.db"),
        "duckdb": lambda: duckdb_execute(tmp_path / "a b%20.duckdb"),
    }  # fmt: skip
    return Engine(request.param, tables, runs[request.param]())


@contextmanager
def compared(left: Sql, right: Sql) -> Iterator[tuple[Comparison, Any]]:
    planned = plan(left.describe(), right.describe(), key=left.describe().key if not left.key else left.key)
    with compare(left, right, planned, strategy="rows") as comparison:
        yield comparison, planned


def emitted(left: Sql, right: Sql) -> tuple[Script, list[str]]:
    with compared(left, right) as (comparison, planned):
        script = Script(comparison, planned, right, "left", "right", "a test", 0)
        return script, list(script.lines())


def saved(lines: Sequence[str], folder: Path) -> Path:
    path = folder / "repair.sql"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def agree(left: Sql, right: Sql) -> bool:
    with compared(left, right) as (comparison, _):
        return comparison.agree


def columns_of(engine: str) -> dict[str, list[str]]:
    """Values by kind, those that only this engine holds among them."""
    return {name: [*VALUES.get(name, []), *ONLY[engine].get(name, [])] for name in {**VALUES, **ONLY[engine]}}


def rows_of(values: Mapping[str, Sequence[str]]) -> tuple[list[Row], list[Row]]:
    """Records that are missing, extra, and differ from other values and from null both ways, for every value."""
    left: list[Row] = []
    right: list[Row] = []
    for at in range(max(map(len, values.values()))):
        full, other = ({name: each[n % len(each)] for name, each in values.items()} for n in (at, at + 1))
        null = dict.fromkeys(values)
        pairs: list[tuple[Row | None, Row | None]] = [
            (full, None), (None, full), (full, other), (other, full), (null, full), (full, null),
        ]  # fmt: skip
        for n, (a, b) in enumerate(pairs):
            left += [] if a is None else [{"id": str(at * 10 + n), **a}]
            right += [] if b is None else [{"id": str(at * 10 + n), **b}]
    return left, right


# Values


def test_what_the_engines_own_client_runs_makes_the_sides_agree(engine: Engine, tmp_path: Path) -> None:
    """Given every kind with its worst values, missing, extra and differing, I expect agreement, also run twice."""
    values = columns_of(engine.name)
    columns = {"id": INTEGER, **{name: kind_named(name) for name in values}}
    left, right = (engine.tables.make(columns, ["id"], rows=rows) for rows in rows_of(values))
    script, lines = emitted(left, right)
    assert script.left_out == 0
    assert not agree(left, right)

    for _ in range(2):
        engine.run(saved(lines, tmp_path))
        assert agree(left, right)


def test_keys_may_be_texts_of_any_sort(engine: Engine, tmp_path: Path) -> None:
    """Given keys of hostile text in two columns, I expect each statement to find its row and no other."""
    columns = {'it\'s a "key" ?%s': TEXT, "part": INTEGER, "set": TEXT}
    key = list(columns)[:2]
    rows = [{key[0]: text, "part": str(part), "set": "x"} for text in [*HOSTILE, "A", "a", "a "] for part in (1, 2)]
    changed = [{**row, "set": "y"} if row["part"] == "1" else row for row in rows]
    left = engine.tables.make(columns, key, rows=changed[:-3])
    right = engine.tables.make(columns, key, rows=rows[3:])
    script, lines = emitted(left, right)

    engine.run(saved(lines, tmp_path))
    assert script.left_out == 0
    assert agree(left, right)


# Rows that moved


def test_a_row_that_moved_is_left_as_it_is(engine: Engine, tmp_path: Path) -> None:
    """Given rows that change after the statements were written, I expect the statements to change nothing of them."""
    columns = {"id": INTEGER, "state": TEXT, "note": TEXT}
    same = {"note": "x"}
    right_rows: list[Row] = [{"id": str(at), "state": "open", **same} for at in (1, 2, 3)]
    left_rows: list[Row] = [
        {"id": "1", "state": "paid", **same},
        {"id": "3", "state": "paid", **same},
        {"id": "4", "state": "new"},
    ]
    left = engine.tables.make(columns, ["id"], rows=left_rows)
    right = engine.tables.make(columns, ["id"], rows=right_rows)
    _, lines = emitted(left, right)
    name = engine.tables.quoted(right.label)
    # In another column than the statement sets, by case only, and by a blank at the end.
    engine.tables.execute(f"UPDATE {name} SET note = 'moved' WHERE id = 1")
    engine.tables.execute(f"UPDATE {name} SET state = 'OPEN' WHERE id = 2")
    engine.tables.execute(f"UPDATE {name} SET state = 'open ' WHERE id = 3")
    engine.tables.execute(f"INSERT INTO {name} VALUES (4, 'theirs', NULL)")

    engine.run(saved(lines, tmp_path))
    moved = engine.tables.make(
        columns, ["id"],
        rows=[{"id": "1", "state": "open", "note": "moved"}, {"id": "2", "state": "OPEN", **same},
              {"id": "3", "state": "open ", **same}, {"id": "4", "state": "theirs", "note": None}],
    )  # fmt: skip
    assert agree(moved, right)


def test_what_can_not_be_written_is_left_out_with_its_reason(engine: Engine) -> None:
    """Given a duplicate, and a record that moved before its statement was written, I expect comments instead."""
    columns = {"id": INTEGER, "state": TEXT}
    left = engine.tables.make(columns, ["id"], rows=[{"id": "1", "state": "a"}, {"id": "2", "state": "a"}])
    twice: list[Row] = [{"id": "1", "state": "b"}, {"id": "2", "state": "b"}, {"id": "2", "state": "c"}]
    right = engine.tables.make(columns, ["id"], rows=twice)
    with compared(left, right) as (comparison, planned):
        engine.tables.execute(f"UPDATE {engine.tables.quoted(right.label)} SET state = 'z' WHERE id = 1")
        script = Script(comparison, planned, right, "left", "right", "a test", 0)
        left_out = [line for line in script.lines() if line.startswith("-- left out")]

    assert left_out == [
        '-- left out, differ ["1"]: it has changed since it was compared',
        '-- left out, duplicate ["2"]: 1 × left, 2 × right, and nobody can say which one is meant',
    ]
    assert script.left_out == 2


@pytest.mark.postgres
def test_values_that_the_column_can_not_hold_are_left_out(tmp_path: Path, on_postgres: Tables) -> None:
    """Given numbers with more digits than the column keeps, and texts that are no numbers, I expect comments."""
    with sqlite_tables(tmp_path / "left.db") as here:
        name = here.table("id INTEGER PRIMARY KEY, price DECIMAL, word TEXT")
        values = "(1, 1.255, 'x'), (2, 'many', 'x'), (3, 1.5, 'a' || char(0)), (4, 1.5, 'x')"
        here.execute(f"INSERT INTO {here.quoted(name)} VALUES {values}")
        left = here.side(name)
        right = on_postgres.side(on_postgres.table("id bigint PRIMARY KEY, price numeric(9,2), word text"))
        _, lines = emitted(left, right)

    told = [line for line in lines if "left out," in line]
    assert told == [
        '-- left out, missing ["1"]: the value of price does not fit price numeric(9,2)',
        '-- left out, missing ["2"]: the value of price does not fit price numeric(9,2)',
        '-- left out, missing ["3"]: the value of word does not fit word text',
    ]
    assert sum(line.startswith("INSERT") for line in lines) == 1


# Literals of SQLite, which no library writes exactly

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
FLOATS = st.floats(allow_nan=False) | st.binary(min_size=8, max_size=8).map(
    lambda raw: struct.unpack("d", raw)[0]
).filter(lambda number: not math.isnan(number))


@pytest.fixture(scope="module")
def asked() -> Iterator[Callable[[str], Any]]:
    """Has SQLite say what a literal is."""
    with closing(sqlite3.connect(":memory:")) as connection:

        def ask(literal: str) -> Any:
            connection.executescript(
                f"DROP TABLE IF EXISTS t; CREATE TABLE t (x BLOB); INSERT INTO t SELECT {literal};"
            )
            return connection.execute("SELECT x FROM t").fetchone()[0]

        yield ask


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=TEXTS | st.binary(max_size=30) | st.integers(-(2**63), 2**63 - 1) | FLOATS | st.none())
@example(value="a\0b")
@example(value="\r\n")
@example(value="'; --")
@example(value=-(2**63))
@example(value=math.inf)
@example(value=5e-324)
@example(value=8.41e21)
def test_a_literal_of_sqlite_is_the_value(value: Any, asked: Callable[[str], Any]) -> None:
    read = asked(SQLite().scribe().literal(value))
    assert read == value
    assert type(read) is type(value)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left=st.dictionaries(st.integers(0, 9), st.tuples(TEXTS | st.none(), FLOATS), max_size=8),
    right=st.dictionaries(st.integers(0, 9), st.tuples(TEXTS | st.none(), FLOATS), max_size=8),
)
def test_any_two_tables_of_sqlite_agree_after_the_statements(
    left: dict[int, tuple[str | None, float]], right: dict[int, tuple[str | None, float]], tmp_path: Path
) -> None:
    columns = {"id": INTEGER, "word": TEXT, "number": Kind("float")}
    path = tmp_path / "laws.db"
    with sqlite_tables(path) as tables:
        sides = [
            tables.make(
                columns, ["id"],
                rows=[{"id": str(key), "word": word, "number": float_text(each)} for key, (word, each) in rows.items()],
            )
            for rows in (left, right)
        ]  # fmt: skip
        script, lines = emitted(*sides)
        executescript(path)(saved(lines, tmp_path))
        assert script.left_out == 0
        assert agree(*sides)
