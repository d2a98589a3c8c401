"""One definition for many clients, from trueup.toml to the replica: three that work, a thousand that are declared."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trueup as public
from trueup.cli.main import main
from trueup.errors import ConfigError
from trueup.loading import load
from trueup.model.change import Change
from trueup.sides.memory import Memory

DEFINED = """\
clients = "clients/*.toml"

[system.erp]
for_each = "clients"

[pair.users]
for_each = "clients"
authority = { url = "sqlite:///{client.name}-shop.db", table = "users", key = "user_id", version = "rev" }
replica = { url = "sqlite:///{client.name}-erp.db", table = "users", key = "user_id" }
system = "erp"
settle = 0

[pair.orders]
for_each = "clients"
authority = { url = "sqlite:///{client.name}-shop.db", table = "orders", key = "id", version = "rev" }
replica = { url = "sqlite:///{client.name}-erp.db", table = "orders", key = "id" }
system = "erp"
after = ["users"]
settle = 0

[source.shop]
for_each = "clients"
style = "github"
secrets = "${HOOK_{client.name}}"
events = [{ pair = "orders", values = { id = "order.id" } }]

[source.all]
style = "github"
secrets = "${HOOK_acme}"
events = [{ pair = "orders", client = "tenant", values = { id = "order.id" } }]
"""
CLIENTS = ("acme", "beta", "gamma")


def execute(name: str, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(name)) as db:
        answer = [db.execute(statement).fetchall() for statement in statements][-1]
        db.commit()
        return answer


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three clients, each with a shop and an ERP that lacks its orders; gamma has no users to keep."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)
    Path("trueup.toml").write_text(DEFINED, "utf-8")
    Path("clients").mkdir()
    for name in CLIENTS:
        monkeypatch.setenv(f"HOOK_{name}", f"secret of {name}")
        Path(f"clients/{name}.toml").write_text(
            "pair.users = false\npair.orders.after = []\n" if name == "gamma" else "", "utf-8"
        )
        for role in ("shop", "erp"):
            execute(
                f"{name}-{role}.db",
                "CREATE TABLE users (user_id INTEGER PRIMARY KEY, name TEXT, rev INTEGER)",
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, status TEXT, rev INTEGER)",
            )
        execute(
            f"{name}-shop.db", "INSERT INTO users VALUES (1, 'ann', 1)", "INSERT INTO orders VALUES (7, 1, 'new', 1)"
        )
    return tmp_path


@pytest.fixture
def trueup(folder, capsys):
    """Runs the command line; answers exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_each_client_gets_its_own_records(trueup):
    """Given three clients, I expect one command to bring each its own orders, and nothing to another."""
    code, out, err = trueup("adopt", "*", "--backfill")

    assert (code, err) == (0, "")
    assert "5 pairs: 5 in agreement" in out
    for name in CLIENTS:
        assert execute(f"{name}-erp.db", "SELECT * FROM orders") == [(7, 1, "new", 1)]
    assert execute("gamma-erp.db", "SELECT count(*) FROM users") == [(0,)]

    execute("beta-shop.db", "UPDATE orders SET status = 'paid', rev = 2")
    assert trueup("run", "--client", "acme")[0] == 0
    assert execute("beta-erp.db", "SELECT status FROM orders") == [("new",)]
    assert trueup("run", "orders", "--client", "beta")[0] == 0
    assert execute("beta-erp.db", "SELECT status FROM orders") == [("paid",)]


def test_one_client_in_trouble_keeps_nobody_from_their_turn(trueup):
    """Given a client whose ERP is away, I expect the others done, its error with its name, and the worst exit code."""
    trueup("adopt", "*", "--backfill")
    for name in CLIENTS:
        execute(f"{name}-shop.db", "UPDATE orders SET status = 'paid', rev = 2")
    Path("beta-erp.db").rename("away.db")

    code, out, err = trueup("run", "orders@*")

    assert code == 2
    assert err.startswith("error: orders@beta: ")
    assert "beta-erp.db: no such file" in err
    assert "3 pairs: 2 in agreement, 1 in trouble" in out
    assert execute("gamma-erp.db", "SELECT status FROM orders") == [("paid",)]

    runs = json.loads(trueup("run", "orders@*", "--json")[1])["runs"]
    assert [(each["pair"], each["exit_code"]) for each in runs] == [
        ("orders@acme", 0), ("orders@beta", 2), ("orders@gamma", 0)
    ]  # fmt: skip
    assert "no such file" in runs[1]["error"]


def test_status_sums_up_and_names_who_needs_somebody(trueup):
    """Given many pairs of a definition, I expect one line for them, those in trouble below, and each with --all."""
    trueup("adopt", "*", "--backfill")
    Path("beta-erp.db").rename("away.db")
    trueup("run", "orders@*")

    code, out, _ = trueup("status")

    assert code == 2
    assert "orders@*  3 clients: 2 in agreement, 1 last run failed" in out
    assert "→ trueup run orders@beta" in out
    assert "orders@acme" not in out
    assert "users@*   2 clients: 2 in agreement" in out
    everything = trueup("status", "--all")[1]
    assert [line.split()[0] for line in everything.splitlines() if "@" in line.split()[0]] == [
        "users@acme", "orders@acme", "users@beta", "orders@beta", "orders@gamma"
    ]  # fmt: skip
    assert len(json.loads(trueup("status", "--json")[1])["pairs"]) == 5
    one = trueup("status", "--client", "gamma")
    assert one[0] == 0
    assert one[1].startswith("orders@gamma  in agreement")


def test_a_client_is_held_without_the_others(trueup):
    """Given a pause of one client, I expect its systems paused and no other's; a shared one is not paused by it."""
    code, out, _ = trueup("pause", "--client", "beta")

    assert (code, out) == (0, "3 systems of client beta are paused: trueup resume --client beta\n")
    paused = {name for name, words in _words(trueup).items() if words == "paused"}
    assert paused == {"orders@beta", "users@beta"}
    assert trueup("resume", "--client", "beta")[1] == "3 systems of client beta go on\n"
    assert trueup("pause", "erp@*")[1] == "3 systems are paused: trueup resume 'erp@*'\n"
    assert set(_words(trueup).values()) == {"paused"}
    assert trueup("resume", "erp@*")[0] == 0


SHARED = """
[system.api]
[pair.orders]
for_each = "clients"
authority = { api = "http://{client.name}.example/orders", key = "id", system = "api" }
handler = "operator:truth"
system = "api"
[clients.acme]
[clients.beta]
"""


def test_a_client_is_not_held_by_a_system_that_others_call_too(trueup):
    """Given a pair all of whose systems are shared, I expect no pause, and what would pause them all."""
    Path("trueup.toml").write_text(SHARED, "utf-8")

    code, _, err = trueup("pause", "--client", "beta")

    assert code == 2
    assert "orders@beta calls no system that is only client beta's: api." in err
    assert trueup("pause", "api")[1] == "api is paused: trueup resume api\n"


def _words(trueup: Any) -> dict[str, str]:
    return {each["pair"]: each["word"] for each in json.loads(trueup("status", "--json")[1])["pairs"]}


def test_parked_records_of_many_are_tried_again(trueup):
    """Given a pattern, I expect retry to take all of them, and no key without one pair."""
    trueup("adopt", "*", "--backfill")
    assert trueup("retry", "orders@*")[1] == "no parked records of 'orders@*'\n"
    assert json.loads(trueup("retry", "orders@*", "--json")[1]) == {"pair": "orders@*", "retried": 0}
    assert trueup("retry", "orders", "--client", "beta")[1] == "no parked records of orders@beta\n"
    code, _, err = trueup("retry", "orders@*", "7")
    assert code == 2
    assert "a key is one of a pair" in err


def test_webhooks_find_their_client_by_address_or_by_body(folder):
    """Given a sender for each client and one for all, I expect the right pair, and no other secret to do."""
    from starlette.testclient import TestClient

    from trueup.web.ingest import app

    with load("trueup.toml") as project:
        client = TestClient(app(project, project.sources.values()))

        def send(source: str, secret: str, body: dict[str, Any]) -> tuple[int, Any]:
            text = json.dumps(body).encode()
            signature = "sha256=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
            answer = client.post(f"/events/{source}", content=text, headers={"X-Hub-Signature-256": signature})
            return answer.status_code, answer.json()

        order = {"order": {"id": 7}}
        assert send("shop@beta", "secret of beta", order) == (200, {"refetch": 1})
        assert send("shop@beta", "secret of acme", order)[0] == 401
        assert send("shop", "secret of beta", order)[0] == 404
        assert send("all", "secret of acme", order | {"tenant": "gamma"}) == (200, {"refetch": 1})
        assert [name for name in project.pairs if project.ledger.counts(name)["pending"]] == [
            "orders@beta", "orders@gamma"
        ]  # fmt: skip

        status, said = send("all", "secret of acme", order | {"tenant": "delta"})
        assert (status, said["error"]) == (422, "there is no pair orders of the client that the event names.")
        status, said = send("all", "secret of acme", order)
        assert status == 422
        assert "finds no name of a client" in said["error"]
        assert project.archive.count_letters("all") == 2


def test_a_loop_declares_them_in_python():
    """Given a plain loop, I expect one handler for all that is told whose change it is."""
    seen: list[tuple[str | None, str]] = []

    def push(change: Change) -> None:
        seen.append((change.client, change.pair))

    with public.Project("memory:") as project:
        for name in CLIENTS:
            pair = project.pair(f"orders@{name}", authority=Memory([{"id": 1, "v": 1}], key="id", version="v"))
            pair.on_change(push)
        for bound in project.select("orders@*"):
            bound.offer({"id": 1, "v": 1})
            bound.work()
        assert seen == [(name, f"orders@{name}") for name in CLIENTS]
        assert [bound.name for bound in project.select("orders", client="beta")] == ["orders@beta"]
        with pytest.raises(ConfigError, match="two pairs orders@beta"):
            project.pair("orders@beta", authority=Memory([{"id": 1}], key="id"))


def test_a_mistake_in_after_is_found_at_start_although_a_side_is_away(folder):
    """Given a first client whose shop is away, I expect a worker to start; given one that answers, the mistake said."""
    Path("acme-shop.db").rename("away.db")
    wrong = DEFINED.replace('after = ["users"]', 'after = { users = ["nobody"] }')
    Path("trueup.toml").write_text(wrong, "utf-8")
    with load("trueup.toml") as project:
        project.worker()
    Path("away.db").rename("acme-shop.db")
    with load("trueup.toml") as project, pytest.raises(ConfigError, match="orders@acme comes after users@acme"):
        project.worker()


def test_a_thousand_clients_start_without_a_connection(tmp_path, monkeypatch, capsys):
    """Given 1,000 clients whose databases are not even there, I expect a project, a worker and a status."""
    monkeypatch.chdir(tmp_path)
    Path("clients.csv").write_text("name\n" + "".join(f"c{at:04}\n" for at in range(1000)), "utf-8")
    Path("trueup.toml").write_text(
        DEFINED.partition("[source.shop]")[0].replace("clients/*.toml", "clients.csv"), "utf-8"
    )

    began = time.process_time()
    with load("trueup.toml") as project:
        loaded = time.process_time() - began
        assert len(project.pairs) == 2000
        assert project.worker().once(project.chance()) == []
    code = main(["status"], standalone=False)
    spent = time.process_time() - began

    assert code == 1
    out = capsys.readouterr().out
    assert "orders@*  1,000 clients: 1,000 not adopted" in out
    assert len(out.splitlines()) == 6
    # A second or two of a processor; ten times that would be felt.
    assert loaded < 10
    assert spent < 30
