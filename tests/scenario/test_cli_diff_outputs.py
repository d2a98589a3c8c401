"""`trueup diff --output` and `--emit-sql` as people and programs use them."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup.cli.main import main

Run = Callable[..., tuple[int, str, str]]

SHOP = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total NUMERIC(12,2))",
    "INSERT INTO orders VALUES (1,'paid',19.9),(2,'open',5),(3,'pa\"id',7.25),(4,'open',NULL),(6,NULL,1)",
)
ERP = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total REAL)",
    "INSERT INTO orders VALUES (1,'paid',19.90),(2,'paid',5),(3,'pa\"id',7.255),(5,'a,b\n; --',1),(6,'',1)",
)
DIFFER = ("diff", "shop.db#orders", "erp.db#orders")


def database(name: str, *statements: str) -> None:
    with closing(sqlite3.connect(name)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


@pytest.fixture
def trueup(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line beside two tables; answers exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    database("shop.db", *SHOP)
    database("erp.db", *ERP)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


def answered(trueup: Run, *question: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(trueup(*question, "--json", "--limit", "0")[1])["differences"]
    return listed


def both(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {"left": row[f"{name}_left"], "right": row[f"{name}_right"]}


def as_answer(row: dict[str, Any], key: str, names: list[str], told: list[str]) -> dict[str, Any]:
    """A row of a table as the JSON answer has it."""
    return {"kind": row["kind"], "key": {key: row[key]}, "fields": {name: both(row, name) for name in told or names}}


# Formats


def test_json_lines_are_the_list_of_the_json_answer(trueup: Run) -> None:
    """Given every kind of difference, I expect one line each, the same as in the answer, and as many when packed."""
    code, _, _ = trueup(*DIFFER, "-q", "--output", "a.jsonl", "-o", "b.jsonl.gz")

    assert code == 1
    lines = Path("a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == answered(trueup, *DIFFER)
    assert gzip.decompress(Path("b.jsonl.gz").read_bytes()) == Path("a.jsonl").read_bytes()


def test_csv_has_the_same_differences_and_tells_null_from_empty(trueup: Run) -> None:
    """Given nulls, empty texts, quotes and line breaks, I expect a table from which the answer can be made again."""
    trueup(*DIFFER, "-q", "-o", "a.csv")

    text = Path("a.csv").read_text(encoding="utf-8")
    assert '"differ","status","6",1,1,,"","1","1"' in text
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    expected = answered(trueup, *DIFFER)
    for row, difference in zip(rows, expected, strict=True):
        told = [name for name in row["fields"].split(",") if name]
        made = as_answer(row, "id", ["status", "total"], told)
        assert json.loads(json.dumps(difference).replace("null", '""')) == made


def test_parquet_has_columns_in_their_types(trueup: Run) -> None:
    """Given columns that surely hold their kind, I expect its type; of others canonical texts, and the kind beside."""
    trueup(*DIFFER, "-q", "-o", "a.parquet")

    table = pq.read_table("a.parquet")
    assert table.schema.field("id").type == pa.int64()
    assert table.schema.field("total_left").type == pa.string()
    assert table.schema.field("total_left").metadata == {b"kind": b"decimal"}
    made = [
        as_answer({**row, "id": str(row["id"])}, "id", ["status", "total"], row["fields"]) for row in table.to_pylist()
    ]
    assert made == answered(trueup, *DIFFER)


def test_every_native_type_survives(trueup: Run) -> None:
    """Given Parquet files with every type, I expect the differences in those types, with the very values."""
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "id": (pa.int64(), [1, 2, 3]),
        "truth": (pa.bool_(), [True, False, None]),
        "amount": (pa.decimal128(12, 2), ["1.50", "-0.01", None]),
        "weight": (pa.float64(), [0.1, float("inf"), None]),
        "ratio": (pa.float32(), [0.5, float("-inf"), None]),
        "raw": (pa.binary(), [b"\x00\xff", b"", None]),
        "day": (pa.date32(), [0, -719162, 3_000_000]),
        "at": (pa.timestamp("us"), [1, -62_135_596_800_000_000, 300_000_000_000_000_000]),
        "moment": (pa.timestamp("us", "UTC"), [1_500_000, 0, None]),
    }
    arrays = {
        name: pa.array(values, pa.string()).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)
        for name, (kind, values) in columns.items()
    }
    full = pa.table(arrays)
    pq.write_table(full, "full.parquet")
    pq.write_table(full.slice(0, 0), "none.parquet")
    trueup("diff", "full.parquet", "none.parquet", "--key", "id", "-q", "-o", "a.parquet")

    found = pq.read_table("a.parquet")
    for name in full.schema.names:
        told = found.column(name if name == "id" else f"{name}_left")
        assert told.type == full.schema.field(name).type
        assert told.equals(full.column(name))


def test_a_duplicate_has_its_copies(trueup: Run) -> None:
    """Given a key that one side has twice, I expect one row with both counts, and all copies in JSON Lines."""
    Path("a.csv").write_text("id,name\n1,x\n1,y\n", encoding="utf-8")
    Path("b.csv").write_text("id,name\n1,x\n", encoding="utf-8")
    trueup("diff", "a.csv", "b.csv", "--key", "id", "-q", "-o", "d.jsonl", "-o", "d.csv")

    (line,) = Path("d.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["unmatched"] == {"left": [{"id": "1", "name": "y"}], "right": []}
    assert Path("d.csv").read_text(encoding="utf-8").splitlines()[1] == '"duplicate","","1",2,1,"y",'


def test_own_columns_give_way_to_those_of_the_tables(trueup: Run) -> None:
    """Given a key that is called kind, I expect it under its own name, and every column once."""
    Path("a.csv").write_text("kind,fields\n1,x\n", encoding="utf-8")
    Path("b.csv").write_text("kind,fields\n1,y\n", encoding="utf-8")
    trueup("diff", "a.csv", "b.csv", "--key", "kind", "-q", "-o", "d.csv")

    head, row = Path("d.csv").read_text(encoding="utf-8").splitlines()
    assert head == '"kind_","fields","kind","left_copies","right_copies","fields_left","fields_right"'
    assert row == '"differ","fields","1",1,1,"x","y"'


def test_outputs_are_complete_whatever_the_limit(trueup: Run) -> None:
    trueup(*DIFFER, "--limit", "1", "-o", "a.jsonl")
    assert len(Path("a.jsonl").read_text(encoding="utf-8").splitlines()) == 5


def test_no_difference_is_an_empty_table(trueup: Run) -> None:
    code, _, _ = trueup(
        "diff", "shop.db#orders", "shop.db#orders", "-q", "-o", "a.parquet", "-o", "a.csv", "-o", "a.jsonl"
    )
    assert code == 0
    assert pq.read_table("a.parquet").num_rows == 0
    assert len(Path("a.csv").read_text(encoding="utf-8").splitlines()) == 1
    assert Path("a.jsonl").read_bytes() == b""


# Standard output


@pytest.mark.parametrize("streamed", ["jsonl", "csv"])
def test_standard_output_has_nothing_but_the_data(trueup: Run, streamed: str) -> None:
    """Given `-` as output, I expect what would stand in the file; lines of JSON where no format is said."""
    trueup(*DIFFER, "-q", "-o", f"a.{streamed}")
    code, out, err = trueup(*DIFFER, "--output", "-", "--format", f"output={streamed}")
    assert (code, err) == (1, "")
    assert out == Path(f"a.{streamed}").read_text(encoding="utf-8")
    if streamed == "jsonl":
        assert trueup(*DIFFER, "--output", "-")[1] == out


def test_a_reader_that_leaves_is_no_error(trueup: Run) -> None:
    """Given a reader that takes one line of many, I expect the end without a word."""
    database("many.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)",
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
             " INSERT INTO t SELECT i, 'a text of some length' FROM n")  # fmt: skip
    database("none.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
    command = f"{sys.executable} -m trueup diff many.db#t none.db#t --output - | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert len(done.stdout.splitlines()) == 1


# Files


def test_a_file_is_replaced_only_when_it_is_complete(trueup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a comparison that is cut while it is written, I expect the old file, and nothing beside it."""
    Path("a.jsonl").write_text("old", encoding="utf-8")
    before = sorted(Path().iterdir())

    def cut(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("trueup.compare.outputs._line", cut)
    code, _, err = trueup(*DIFFER, "-q", "-o", "a.jsonl")
    assert (code, err) == (130, "error: interrupted.\n")
    assert sorted(Path().iterdir()) == before
    assert Path("a.jsonl").read_text(encoding="utf-8") == "old"


def test_a_link_stays_a_link(trueup: Run) -> None:
    Path("real.jsonl").write_text("old", encoding="utf-8")
    Path("link.jsonl").symlink_to("real.jsonl")
    trueup(*DIFFER, "-q", "-o", "link.jsonl")
    assert Path("link.jsonl").is_symlink()
    assert Path("real.jsonl").read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        (["-o", "a.txt"], "a.txt: its suffix does not say", ".jsonl, .csv, .parquet"),
        (["-o", "a.parquet.gz"], "a.parquet.gz: its suffix does not say", "the first two may be packed"),
        (["-o", "no/a.csv"], "no/a.csv: there is no folder no", "Make it first"),
        (["-o", "folder.csv"], "folder.csv is there already, and is no file", "Name a file"),
        (["--emit-sql", "erp.db"], "erp.db is one of the sides", "Name another file"),
        (["-o", "a.csv", "-o", "a.csv"], "a.csv is named twice", "a place of its own"),
        (["-o", "-", "--emit-sql", "-"], "- is named twice", "a place of its own"),
        (["-o", "-", "--json"], "standard output is asked for two things", "to a file"),
        (["--emit-sql", "-", "--explain"], "standard output is asked for two things", "to a file"),
        (["--format", "output=csv"], "--format output=csv needs --output -", "suffix"),
        (["-o", "-", "--format", "output=parquet"], "standard output can't be written as parquet", "jsonl, csv"),
    ],
)
def test_what_can_not_be_written_is_said_before_anything_is_read(
    trueup: Run, options: list[str], said: str, hint: str
) -> None:
    Path("folder.csv").mkdir()
    code, out, err = trueup("diff", "shop.db#nothing", "erp.db#orders", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert hint in err


# Statements


def test_statements_make_the_sides_agree(trueup: Run) -> None:
    """Given the statements of every kind of difference, I expect both tables to agree after they have run."""
    code, out, err = trueup(*DIFFER, "--emit-sql", "repair.sql", "--no-analysis")
    assert (code, err) == (1, "")
    assert "missing 1" in out
    with closing(sqlite3.connect("erp.db")) as db:
        assert db.execute("SELECT count(*) FROM orders WHERE id = 5").fetchone() == (1,)
        db.executescript(Path("repair.sql").read_text(encoding="utf-8"))
    assert trueup(*DIFFER, "-q")[0] == 0


def test_the_head_says_what_it_is_and_no_password(trueup: Run) -> None:
    """Given statements on standard output, I expect what, when and from where, and nothing else around them."""
    code, out, err = trueup(*DIFFER, "--emit-sql", "-")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("-- What would make erp.db#orders (SQLite")
    assert lines[1].startswith("-- equal to        shop.db#orders (SQLite")
    assert "trueup" in lines[2]
    assert "-- missing 1 (INSERT), extra 1 (DELETE), differ 3 (UPDATE), duplicate 0 (left out)" in lines
    assert lines[-2:] == ["COMMIT;", "-- 5 statements, 0 records left out."]
    keys = [line for line in lines if line.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [line.split()[0] for line in keys] == ["UPDATE", "UPDATE", "INSERT", "DELETE", "UPDATE"]


@pytest.mark.postgres
def test_a_password_never_stands_in_the_file(trueup: Run, postgres_url: str) -> None:
    import psycopg
    from sqlalchemy.engine import make_url

    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE emitted (id int PRIMARY KEY, status text, total numeric)")
        code, out, _ = trueup("diff", "shop.db#orders", f"{postgres_url}#emitted", "--emit-sql", "-")
        server.execute("DROP TABLE emitted")
    password = make_url(postgres_url).password
    assert password is not None
    assert code == 1
    assert str(password) not in out
    assert "%2F" not in out
    assert ":***@" in out


def test_a_file_is_not_repaired_by_sql(trueup: Run) -> None:
    Path("b.csv").write_text("id,status,total\n1,paid,2\n", encoding="utf-8")
    code, _, err = trueup("diff", "shop.db#orders", "b.csv", "--emit-sql", "-")
    assert code == 2
    assert "b.csv is a file, and no SQL can repair that" in err
    assert "--output differences.jsonl" in err


def test_records_that_are_left_out_are_counted_on_standard_error(trueup: Run) -> None:
    database("erp.db", "CREATE TABLE twice (id INTEGER, status TEXT, total REAL)",
             "INSERT INTO twice VALUES (1,'paid',19.9),(1,'paid',1)")  # fmt: skip
    code, _, err = trueup("diff", "shop.db#orders", "erp.db#twice", "--key", "id", "--emit-sql", "r.sql", "-q")
    assert code == 1
    assert err == "The statements leave out 1 record; comments among them say why.\n"
