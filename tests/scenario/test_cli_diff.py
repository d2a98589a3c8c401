"""`trueup diff` as people and programs use it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trueup.cli.main import main


@pytest.fixture
def trueup(capsys, tmp_path, monkeypatch):
    """Runs the command line in an empty folder; answers exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def table(name: str, *statements: str) -> None:
    with closing(sqlite3.connect(name)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


ORDERS = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total NUMERIC(12,2))",
    "INSERT INTO orders VALUES (1,'paid',19.9),(2,'open',5),(3,'paid',7.25),(4,'open',NULL),(6,NULL,1)",
)
INVOICES = (
    "CREATE TABLE invoices (order_id INTEGER PRIMARY KEY, status TEXT, amount REAL)",
    "INSERT INTO invoices VALUES (1,'paid',19.90),(2,'paid',5),(3,'paid',7.255),(5,'open',1),(6,'',1)",
)


@pytest.fixture
def shop(trueup):
    """Two tables: 1 agrees; 2, 3 and 6 differ; 4 is missing; 5 is extra."""
    table("shop.db", *ORDERS)
    table("erp.db", *INVOICES)

    def diff(*options: str) -> tuple[int, str, str]:
        return trueup(
            "diff", "shop.db#orders", "erp.db#invoices", "--map", "id=order_id", "--map", "total=amount", *options
        )

    return diff


def test_json_is_exact(shop):
    """Given every kind of difference, I expect counts, keys and canonical values of both sides."""
    code, out, err = shop("--json")

    answer = json.loads(out)
    assert (code, err) == (1, "")
    assert answer["agree"] is False
    assert answer["counts"] == {
        "left": 5, "right": 5, "same": 1, "missing": 1, "extra": 1, "differ": 3, "duplicate": 0,
    }  # fmt: skip
    assert answer["differences"] == [
        {"kind": "differ", "key": {"id": "2"}, "fields": {"status": {"left": "open", "right": "paid"}}},
        {"kind": "differ", "key": {"id": "3"}, "fields": {"total": {"left": "7.25", "right": "7.255"}}},
        {
            "kind": "missing",
            "key": {"id": "4"},
            "fields": {"status": {"left": "open", "right": None}, "total": {"left": None, "right": None}},
        },
        {
            "kind": "extra",
            "key": {"id": "5"},
            "fields": {"status": {"left": None, "right": "open"}, "total": {"left": None, "right": "1"}},
        },
        {"kind": "differ", "key": {"id": "6"}, "fields": {"status": {"left": None, "right": ""}}},
    ]
    assert answer["strategy"]
    assert answer["seconds"] >= 0


def test_a_limit_bounds_the_list_only(shop):
    """Given a limit, I expect as many differences and the same counts."""
    few, every = json.loads(shop("--json", "--limit", "2")[1]), json.loads(shop("--json", "--limit", "0")[1])

    assert len(few["differences"]) == 2
    assert few["differences"] == every["differences"][:2]
    assert few["counts"] == every["counts"]


def test_text_for_people(shop):
    """Given differences, I expect systems and counts, and each difference with both values, within 100 columns."""
    code, out, err = shop("--limit", "4")

    assert (code, err) == (1, "")
    assert "orders (SQLite" in out
    assert "5 rows)" in out
    assert "same 1   missing 1   extra 1   differ 3   duplicate 0" in out
    assert "total NUMERIC(12,2) ↔ amount REAL: compared as decimal" in out
    assert "status  − open" in out
    assert "+ paid" in out
    assert "1 more: --limit 0 for all, --json" in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 100


def test_agreement(shop):
    """Given rules that make the rest agree, I expect exit code 0 and the word."""
    code, out, _ = shop("--columns", "total", "--where", "1 = 1", "--where-left", "id < 4", "--where-right",
                        "order_id < 4", "--places", "total=2")  # fmt: skip
    assert (code, "differ 1" in out) == (1, True)

    code, out, _ = shop("--columns", "total", "--where-left", "id < 4", "--where-right", "order_id < 4",
                        "--tolerance", "total=0.01")  # fmt: skip
    assert code == 0
    assert "same 3   missing 0" in out
    assert "agree" in out


def test_quiet_and_explain(shop):
    """Given --quiet, I expect nothing but the exit code; given --explain, the strategy and its reason."""
    assert shop("--quiet") == (1, "", "")
    assert "strategy rows: " in shop("--explain")[1]


def test_one_sided_columns_do_not_agree(trueup):
    """Given a column on one side only, I expect no agreement until it is ignored or not asked for."""
    Path("a.csv").write_text("id,x\n1,a\n", "utf-8")
    Path("b.csv").write_text("id,x,y\n1,a,b\n", "utf-8")

    for left, right, only in (("a.csv", "b.csv", "only_right"), ("b.csv", "a.csv", "only_left")):
        code, out, _ = trueup("diff", left, right, "--key", "id", "--json")
        answer = json.loads(out)
        assert (code, answer["agree"], answer["counts"]["same"]) == (1, False, 1)
        assert answer["schema"][only] == ["y"]
    assert trueup("diff", "a.csv", "b.csv", "--key", "id", "--ignore", "y")[0] == 0
    assert trueup("diff", "a.csv", "b.csv", "--key", "id", "--columns", "x")[0] == 0
    assert "only in b.csv: y" in trueup("diff", "a.csv", "b.csv", "--key", "id")[1]


def test_duplicates_are_shown(trueup):
    """Given a key twice on one side, I expect it as one duplicate with its copies."""
    Path("a.csv").write_text("id,x\n1,a\n1,b\n2,c\n", "utf-8")
    Path("b.csv").write_text("id,x\n1,a\n2,c\n", "utf-8")

    [duplicate] = json.loads(trueup("diff", "a.csv", "b.csv", "--key", "id", "--json")[1])["differences"]

    assert duplicate == {
        "kind": "duplicate", "key": {"id": "1"}, "fields": {}, "copies": {"left": 2, "right": 1},
        "unmatched": {"left": [{"id": "1", "x": "b"}], "right": []},
    }  # fmt: skip
    assert " duplicate 1  2 × left, 1 × right" in trueup("diff", "a.csv", "b.csv", "--key", "id")[1]


def test_options_of_files_by_side(trueup):
    """Given two dialects of CSV, I expect each read by its own options."""
    Path("a.csv").write_text("id;x;n\n1;1.250,50;NA\n", "utf-8")
    Path("b.csv").write_bytes("id,x,n\n1,1250.5,\n".encode("utf-16"))

    code, out, err = trueup(
        "diff", "a.csv", "b.csv", "--key", "id", "--delimiter", "left=;", "--decimal", "left=,",
        "--thousands", "left=.", "--null", "left=NA", "--null", "right=",
        "--encoding", "right=utf-16", "--type", "x=decimal",
    )  # fmt: skip

    assert (code, err) == (0, "")
    assert "same 1" in out


def test_control_characters_do_not_reach_the_terminal(trueup):
    """Given values with escape sequences, I expect them spelled out."""
    table("a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)", "INSERT INTO t VALUES (1, char(27) || '[2J')")
    table("b.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)", "INSERT INTO t VALUES (1, char(10))")

    out = trueup("diff", "a.db#t", "b.db#t")[1]

    assert "\x1b" not in out
    assert "\\x1b[2J" in out


BAD = [
    (("nothere.csv", "b.csv", "--key", "id"), "nothere.csv", None),
    (("a.csv", "b.csv"), "which records belong together", "--key id"),
    (("a.csv", "b.csv", "--key", "idd"), "idd", "'id'"),
    (("a.csv", "b.csv", "--key", "id", "--columns", "xx"), "xx", "'x'"),
    (("a.csv", "b.csv", "--key", "id", "--ignore", "nope"), "nope", None),
    (("a.csv", "b.csv", "--key", "id", "--tolerance", "nope=1"), "nope", None),
    (("a.csv", "b.csv", "--key", "id", "--type", "x=decimul"), "decimul", "decimal"),
    (("a.csv", "b.csv", "--key", "id", "--where", "nope = 1"), "nope", None),
    (("a.csv", "b.csv", "--key", "id", "--where", "(("), "", None),
    (("a.csv", "b.csv", "--key", "id", "--zone", "left=Mars/X"), "Mars/X", None),
    (("a.csv", "b.csv", "--key", "id", "--strategy", "magic"), "magic", "rows"),
    (("a.csv", "b.csv", "--key", "id", "--nope"), "--nope", "trueup diff --help"),
    (("a.csv", "b.csv", "--key", "id", "--limit", "-1"), "--limit", None),
    (("a.csv",), "RIGHT", "trueup diff --help"),
    (("a.csv", "c.xlsx", "--key", "id"), "suffix", "Files end in"),
    (("a.csv", "half.csv.gz", "--key", "id"), "half.csv.gz", None),
    (("a.csv", "latin.csv", "--key", "id"), "latin.csv", "encoding"),
    (("a.csv", "ragged.csv", "--key", "id"), "ragged.csv", None),
    (("shop.db", "shop.db#orders"), "names no table", "orders"),
    (("shop.db#order", "shop.db#orders"), "order", "orders"),
    (("shop.db#orders", "gone.db#orders"), "gone.db", None),
    (("shop.db#orders", "shop.db#orders", "--delimiter", ";"), "--delimiter is an option of files", "tables"),
    (("shop.db#orders", "shop.db#orders", "--where", "nope > 1"), "", None),
    (("shop.db#orders", "shop.db#orders", "--where", "(("), "", None),
    (("shop.db#orders", "broken.db#orders"), "broken.db", None),
    (("shop.db#orders", "oracle://u:hidden@h/d#t"), "oracle://", "Systems"),
    (("shop.db#orders", "postgresql://u:hidden@127.0.0.1:9/d#t"), "127.0.0.1", None),
    (("shop.db#orders", "mysql://u:hidden@127.0.0.1:9/d#t"), "127.0.0.1", None),
]


@pytest.mark.parametrize(("arguments", "sentence", "hint"), BAD, ids=[" ".join(each[0])[:60] for each in BAD])
def test_bad_input_is_one_clear_line(trueup, arguments, sentence, hint):
    """Given input that can't work, I expect one line and a hint, exit code 2, and nothing created or changed."""
    Path("a.csv").write_text("id,x\n1,a\n", "utf-8")
    Path("b.csv").write_text("id,x\n1,a\n", "utf-8")
    Path("half.csv.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbL\xd1")
    Path("latin.csv").write_bytes(b"id,x\n1,M\xfcller\n")
    Path("ragged.csv").write_text("id,x\n1,a\n2\n", "utf-8")
    Path("broken.db").write_bytes(b"this is no database, whatever its name says" * 100)
    table("shop.db", *ORDERS)
    before = {path: path.read_bytes() for path in Path().iterdir()}

    code, out, err = trueup("diff", *arguments)

    lines = err.splitlines()
    assert code == 2
    assert out == ""
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2
    assert sentence in lines[0]
    assert "Traceback" not in err
    assert "hidden" not in err
    assert "this is a bug" not in err
    if hint is not None:
        assert hint in err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
