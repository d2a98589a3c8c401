"""DuckDB: every type against texts written by hand, queries in the place of tables, and files that others hold open."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from contract.test_sql_types import _check, _named
from sql_tables import Tables, key, projection, rows
from trueup.compare.choose import STRATEGIES, compare
from trueup.compare.plan import plan
from trueup.errors import SchemaError, SideError, TrueupError, Unreachable
from trueup.locations import TableLocation, open_side, parse_location
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.record import Field, Projection
from trueup.ports import Write
from trueup.sides.sql import Sql
from trueup.sides.sql.dialects import duckdb as dialect

TYPES = [
    # declared type, value in SQL, kind, canonical text
    ("boolean", "true", "boolean", "true"),
    ("tinyint", "-128", "integer", "-128"),
    ("utinyint", "255", "integer", "255"),
    ("bigint", "-9223372036854775808", "integer", "-9223372036854775808"),
    ("uinteger", "4294967295", "integer", "4294967295"),
    ("ubigint", "18446744073709551615", "integer", "18446744073709551615"),
    ("hugeint", f"-{'9' * 38}", "integer", f"-{'9' * 38}"),
    ("decimal(12,3)", "1.500", "decimal(12,3)", "1.5"),
    ("decimal(12,3)", "-0.001", "decimal(12,3)", "-0.001"),
    ("decimal(9,0)", "100", "decimal(9,0)", "100"),
    ("decimal(38,10)", f"{'1' * 28}.0000000001", "decimal(38,10)", f"{'1' * 28}.0000000001"),
    ("float", "0.1", "float32", "0.1"),
    ("float", "16777217", "float32", "16777216"),
    ("float", "1e-45", "float32", "1e-45"),
    ("float", "'nan'", "float32", "nan"),
    ("double", "0.1::double + 0.2::double", "float", "0.30000000000000004"),
    ("double", "'-0'", "float", "0"),
    ("double", "5e-324", "float", "5e-324"),
    ("double", "'-inf'", "float", "-infinity"),
    ("varchar", "''", "text", ""),
    ("varchar", "'trailing  '", "text", "trailing  "),
    ("varchar", "'nul' || chr(0) || 'in'", "text", "nul\0in"),
    ("varchar", "'Zoë 😀'", "text", "Zoë 😀"),
    ("blob", r"'\x00\xFF\x5C'", "bytes", "00ff5c"),
    ("blob", "''", "bytes", ""),
    ("bit", "'0101'", "text", "0101"),
    ("uuid", "'F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6'", "uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("date", "'2024-02-29'", "date", "2024-02-29"),
    ("date", "'infinity'", "date", "infinity"),
    ("date", "'0044-03-15 (BC)'", "date", "-0043-03-15"),
    ("date", "'5881580-07-10'", "date", "+5881580-07-10"),
    ("time", "'24:00'", "time", "24:00:00"),
    ("time", "'12:30:00.1256'", "time", "12:30:00.1256"),
    ("timetz", "'12:30:00-05:30'", "time", "12:30:00-05:30"),
    ("timestamp", "'2026-03-29 02:30:00.000001'", "timestamp without zone", "2026-03-29T02:30:00.000001"),
    ("timestamp", "'-infinity'", "timestamp without zone", "-infinity"),
    ("timestamp", "'0044-03-15 (BC) 12:00:00'", "timestamp without zone", "-0043-03-15T12:00:00"),
    ("timestamp_s", "'2026-03-29 02:30:00'", "timestamp without zone", "2026-03-29T02:30:00"),
    ("timestamp_ms", "'2026-03-29 02:30:00.001'", "timestamp without zone", "2026-03-29T02:30:00.001"),
    ("timestamp_ns", "'2026-03-29 02:30:00.000001400'", "timestamp without zone", "2026-03-29T02:30:00.000001"),
    ("timestamptz", "'2026-01-02 03:04:05+02'", "timestamp with zone", "2026-01-02T01:04:05Z"),
    ("timestamptz", "'infinity'", "timestamp with zone", "infinity"),
    ("timestamptz", "'0044-03-15 (BC) 12:00:00+00'", "timestamp with zone", "-0043-03-15T12:00:00Z"),
    ("timestamptz", "'10000-01-01 00:00:00.5+00'", "timestamp with zone", "+10000-01-01T00:00:00.5Z"),
    ("interval", "'0 seconds'", "interval", "PT0S"),
    ("interval", "'1 year 2 months 3 days 04:05:06.789'", "interval", "P14MT273906.789S"),
    ("interval", "'-1 month 1 day'", "interval", "P-1MT86400S"),
    ("interval", "'-0.5 seconds'", "interval", "PT-0.5S"),
    ("json", """'{"b": 1.0, "a": [1e2, "\\u00e9"]}'""", "json", '{"a":[100,"é"],"b":1}'),
    ("json", "'12345678901234567890.10'", "json", "12345678901234567890.1"),
    ("struct(a integer, b varchar)", "{'a': 1, 'b': 'x'}", "json", '{"a":1,"b":"x"}'),
    ("integer[]", "[1, NULL, -3]", "array of integer", '["1",null,"-3"]'),
    ("integer[2]", "[1, 2]", "array of integer", '["1","2"]'),
    ("decimal(9,2)[][]", "[[1.50, NULL], NULL]", "array of array of decimal(9,2)", '[["1.5",null],null]'),
    ("varchar[]", """['a,b', 'q"q', NULL, 'NULL', '']""", "array of text", '["a,b","q\\"q",null,"NULL",""]'),
    ("timestamptz[]", "['2026-01-02 03:04:05+02', 'infinity']", "array of timestamp with zone",
     '["2026-01-02T01:04:05Z","infinity"]'),
    ("blob[]", r"['\x00\xFF'::blob]", "array of bytes", '["00ff"]'),
    ("double[]", "['nan'::double, 0.1]", "array of float", '["nan","0.1"]'),
    ("enum('so so', 'well')", "'so so'", "enum", "so so"),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "value", "kind", "text"), _named(TYPES))
def test_each_type_is_read_and_written(on_duckdb: Tables, declared: str, value: str, kind: str, text: str) -> None:
    _check(on_duckdb, declared, value, kind, text)


def test_keys_past_a_collation(on_duckdb: Tables) -> None:
    table = on_duckdb.table("code VARCHAR COLLATE NOCASE, n INTEGER")
    on_duckdb.execute(f"INSERT INTO {on_duckdb.quoted(table)} VALUES ('a', 1), ('A', 2)")
    side = on_duckdb.side(table, key="code")
    asked = projection(side, "n", key=("code",))
    assert side.apply(asked, [Write(key("A"), {"n": "9"}, None)])[0].landed
    assert sorted(rows(side, asked)) == [("A", "9"), ("a", "1")]


@pytest.mark.parametrize("strategy", [*STRATEGIES, None])
def test_values_past_a_collation_and_halves_that_cancel_out(on_duckdb: Tables, strategy: str | None) -> None:
    """DuckDB's own hash takes texts that a collation takes for equal, and 0 and the wide decimal below it, for one."""
    sides = []
    for code, amount in (("na", "0"), ("NA", "-0.0000000001")):
        table = on_duckdb.table("id INTEGER PRIMARY KEY, code VARCHAR COLLATE NOCASE, amount DECIMAL(38, 10)")
        on_duckdb.execute(f"INSERT INTO {on_duckdb.quoted(table)} VALUES (1, '{code}', 0), (2, 'x', {amount})")
        sides.append(on_duckdb.side(table, key="id"))
    planned = plan(sides[0].describe(), sides[1].describe(), key=["id"])
    with compare(*sides, planned, strategy=strategy) as found:
        assert [(each.key, each.fields) for each in found.differences()] == [
            ('["1"]', ("code",)), ('["2"]', ("amount",)),
        ]  # fmt: skip


def test_an_interval_that_merely_counts_as_equal_is_another_key(on_duckdb: Tables) -> None:
    table = on_duckdb.table("every INTERVAL, n INTEGER")
    on_duckdb.execute(f"INSERT INTO {on_duckdb.quoted(table)} VALUES ('1 month', 1), ('30 days', 2)")
    side = on_duckdb.side(table, key="every")
    asked = projection(side, "n", key=("every",))
    assert side.apply(asked, [Write(key("P1M"), {"n": "9"}, None)])[0].landed
    assert sorted(rows(side, asked)) == [("P1M", "9"), ("PT2592000S", "2")]


def test_a_query_in_parentheses_is_a_table(on_duckdb: Tables) -> None:
    table = on_duckdb.table("id int, v varchar")
    on_duckdb.execute(f"INSERT INTO {on_duckdb.quoted(table)} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    side = on_duckdb.side(f"(SELECT id, upper(v) AS big FROM {on_duckdb.quoted(table)} WHERE id > 1)", key="id")
    asked = projection(side, "big")
    assert rows(side, asked) == [("2", "B"), ("3", "C")]
    assert side.read(asked, [key("1"), key("3")])[key("3")].values == {"id": "3", "big": "C"}
    assert key("1") not in side.read(asked, [key("1")])


def test_names_of_this_program_are_no_tables(on_duckdb: Tables) -> None:
    visible = duckdb.sql("SELECT 1 AS id")
    side = on_duckdb.side("(SELECT * FROM visible)", key="id")
    with pytest.raises(SchemaError, match="visible"):
        side.describe()
    assert visible


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that nobody has open, with a table `t`."""
    path = tmp_path / "shop.duckdb"
    with closing(duckdb.connect(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id, 'v' || range AS v FROM range(50000)")
    return path


def made(path: Path, table: str = "t") -> tuple[Sql, Projection]:
    side = Sql(f"duckdb:///{path}", table, key="id")
    return side, Projection((Field("id", "id", INTEGER),), (Field("v", "v", TEXT),))


def test_reading_leaves_the_file_as_it_is_and_open_to_other_readers(file: Path) -> None:
    before = file.read_bytes()
    side, asked = made(file)
    batches = side.scan(asked)
    next(batches)
    other = (
        f"import duckdb; print(duckdb.connect({str(file)!r}, read_only=True).sql('SELECT count(*) FROM t').fetchall())"
    )
    told = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
    assert told.stdout == "[(50000,)]\n"
    assert sum(batch.num_rows for batch in batches) < 50_000
    side.close()
    assert file.read_bytes() == before


def test_a_writer_waits_for_readers_of_this_process(file: Path) -> None:
    side, asked = made(file)
    batches = side.scan(asked)
    next(batches)
    release = threading.Timer(0.3, batches.close)
    release.start()
    assert side.apply(asked, [Write(key("7"), {"v": "new"}, None)])[0].landed
    release.join()
    assert side.read(asked, [key("7")])[key("7")].values["v"] == "new"
    side.close()


def test_a_reader_that_stays_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_WAIT_S", 0.1)
    side, asked = made(file)
    batches = side.scan(asked)
    next(batches)
    with pytest.raises(Unreachable, match="open in another way") as caught:
        side.apply(asked, [Write(key("7"), {"v": "new"}, None)])
    assert caught.value.hint
    batches.close()


def test_a_file_that_another_program_writes_is_said(file: Path) -> None:
    held = f"import duckdb, sys; c = duckdb.connect({str(file)!r}); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        side, _ = made(file)
        with pytest.raises(Unreachable, match="another program has the file open") as caught:
            side.describe()
        assert caught.value.hint
        other.communicate()
    assert side.describe().rows == 50_000


def test_a_missing_file_is_not_made_and_another_one_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "missing.duckdb"
    with pytest.raises(SideError, match="no such file"):
        made(path)[0].describe()
    assert not path.exists()
    path.write_text("These are notes and no database at all. " * 200)
    with pytest.raises(TrueupError, match="no DuckDB database"):
        made(path)[0].describe()


def test_a_file_is_named_like_any_other_database(file: Path) -> None:
    for text in (f"duckdb:///{file}#t", f"{file}#t"):
        assert parse_location(text) == TableLocation(f"duckdb:///{file}", "t")
    with closing(open_side(f"{file}#t", key=["id"])) as side:
        assert side.describe().system.startswith("DuckDB ")
