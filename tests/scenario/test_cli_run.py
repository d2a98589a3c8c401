"""A project on the command line: adopt, run, status, explain, retry, from a trueup.toml and from a module."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trueup.cli.main import main

TOML = """\
[pair.orders]
authority = { url = "sqlite:///shop.db", table = "orders", key = "id", version = "rev" }
replica = { url = "sqlite:///erp.db", table = "orders", key = "id" }
settle = 0
"""

WEEK_ONE = """\
import trueup

project = trueup.Project("sqlite:///state.db")
orders = project.pair(
    "orders",
    authority=trueup.Sql("sqlite:///shop.db", table="orders", key="id", version="rev"),
    unsynced="not synced",
    mark="synced = true",
    settle=0,
)


@orders.on_change
def push(change):
    if change.values["total"] == 13:
        raise trueup.Reject("unknown SKU")
"""


def execute(name: str, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(name)) as db:
        answer = [db.execute(statement).fetchall() for statement in statements][-1]
        db.commit()
        return answer


@pytest.fixture
def trueup(capsys, tmp_path, monkeypatch):
    """Runs the command line in an empty folder; answers exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def shop(trueup):
    """A pair of two SQLite files, ten orders each, order 1 unlike before anybody watched."""
    Path("trueup.toml").write_text(TOML, "utf-8")
    create = "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, rev INTEGER)"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)"
    for name in ("shop.db", "erp.db"):
        execute(name, create, f"INSERT INTO orders {numbers} SELECT i, 'open', i FROM n")
    execute("erp.db", "UPDATE orders SET status = 'odd' WHERE id = 1")
    return trueup


def test_a_first_run_reports_and_changes_nothing(shop):
    """Given a pair that nobody adopted, I expect its differences, the next command, and no change."""
    before = Path("erp.db").read_bytes()

    code, out, err = shop("run", "orders")

    assert (code, err) == (1, "")
    assert "10 ↔ 10" in out
    assert "not adopted yet. Next: trueup adopt orders" in out
    assert Path("erp.db").read_bytes() == before


def test_from_adoption_to_repair(shop):
    """Given drift after adoption, I expect repairs of what was lost, a case of what was edited, and both explained."""
    code, out, _ = shop("adopt", "orders")
    assert (code, "9 agreeing records remembered" in out) == (1, True)
    assert shop("status")[0] == 1
    assert shop("adopt", "orders", "--trust-authority")[0] == 0
    execute("shop.db", "UPDATE orders SET status = 'paid', rev = 11 WHERE id = 2")
    execute("erp.db", "DELETE FROM orders WHERE id = 3", "UPDATE orders SET status = 'edited' WHERE id = 4")

    code, out, _ = shop("run", "--dry-run", "--json")
    [planned] = json.loads(out)["runs"]
    assert (code, len(planned["plan"])) == (1, 3)
    assert execute("erp.db", "SELECT count(*) FROM orders") == [(9,)]

    code, out, err = shop("run")
    assert (code, err) == (1, "")
    assert "1 case waits for a person" in out
    assert execute("erp.db", "SELECT id, status FROM orders WHERE id < 5") == [
        (1, "open"), (2, "paid"), (3, "open"), (4, "edited"),
    ]  # fmt: skip
    code, out, _ = shop("explain", "orders", "4")
    assert (code, "the sides differ" in out, "status − open + edited" in out) == (1, True, True)
    code, out, _ = shop("explain", "orders", '["2"]')
    assert (code, "agrees at both sides" in out) == (0, True)
    assert json.loads(shop("status", "--json")[1])["pairs"][0]["cases"] == 1


def test_agreement_is_exit_code_0(shop):
    """Given sides that agree, I expect exit code 0 and the word."""
    shop("adopt", "orders", "--trust-authority")

    assert shop("run")[0] == 0
    code, out, _ = shop("status")
    assert (code, "in agreement" in out) == (0, True)


def test_week_one_in_one_line(trueup):
    """Given a module with a one-sided pair, I expect the line that cron mails, and retry to give another life."""
    Path("week_one_orders.py").write_text(WEEK_ONE, "utf-8")
    execute(
        "shop.db", "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER, synced BOOLEAN, rev INTEGER)",
        "INSERT INTO orders VALUES (1, 5, 0, 1), (2, 13, 0, 2), (3, 7, 1, 3)",
    )  # fmt: skip
    project = ("--project", "week_one_orders")

    code, out, err = trueup(*project, "run", "orders")
    assert (code, err) == (1, "")
    assert out.startswith("orders: 2 stuck, ")
    assert out.endswith("1 done, 1 parked (rejected: unknown SKU)\n")
    assert execute("shop.db", "SELECT id FROM orders WHERE synced") == [(1,), (3,)]

    execute("shop.db", "UPDATE orders SET total = 12 WHERE id = 2")
    assert "1 record will be tried again" in trueup(*project, "retry", "orders")[1]
    code, out, _ = trueup(*project, "run", "orders")
    assert (code, out.endswith("done\n")) == (0, True)
    assert "no parked records" in trueup(*project, "retry", "orders")[1]


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (("run", "nope"), "no pair nope", "orders"),
        (("--project", "nope.toml", "run"), "there is no nope.toml", "trueup init"),
        (("--project", "no_such_module_here", "run"), "no module no_such_module_here", None),
        (("run", "--only", "everything"), "everything", None),
        (("run", "--dry-run", "--enqueue"), "exclude each other", None),
        (("explain", "orders", '["1","2"]'), "it has 2 of 1 columns", "id"),
        (("demo", "--folder", "."), "not an empty folder", None),
    ],
)
def test_what_cant_be_is_one_clear_line(shop, arguments, sentence, hint):
    """Given a name or key that does not fit, I expect one line with a hint, and exit code 2."""
    code, out, err = shop(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert sentence in err
    assert hint is None or hint in err
    assert "Traceback" not in err


def test_the_toml_names_its_mistakes(shop):
    """Given an unknown option, an unset variable or a handler that is not there, I expect the line, and no state."""
    for text, sentence in (
        (TOML.replace("settle", "setle"), "line 4, pair.orders.setle: there is no option 'setle'"),
        (TOML.replace("erp.db", "${ERP_FILE}"), "line 3, pair.orders.replica.url: the variable ERP_FILE is not set"),
        (TOML + 'handler = "nothere:push"\n', "nothere:push"),
        (
            TOML + 'action_field = "status"\nabsent_when = { status = ["dropped"] }\n'
            'handlers = { open = "json:dumps" }\n',
            "action dropped has no handler",
        ),
    ):
        Path("trueup.toml").write_text(text, "utf-8")
        code, _, err = shop("run")
        assert (code, sentence in err) == (2, True), err
        assert "hint: " in err
    assert not Path("trueup.db").exists()
