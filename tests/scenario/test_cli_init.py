"""`trueup init` and `trueup doctor`: a project from two sides, and what it still lacks."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trueup.cli import checkup
from trueup.cli.main import main
from trueup.config import load

SHOP = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total NUMERIC(12,2), updated_at TIMESTAMP, note TEXT)",
    "CREATE INDEX orders_updated ON orders (updated_at)",
    "INSERT INTO orders VALUES (1, 'paid', 5, '2026-01-01 00:00:00', NULL)",
)
ERP = ("CREATE TABLE invoices (order_id INTEGER, status TEXT, amount REAL)",)


@pytest.fixture
def trueup(capsys, tmp_path, monkeypatch):
    """Runs the command line in a folder with two databases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)
    for name, statements in (("shop.db", SHOP), ("erp.db", ERP)):
        with closing(sqlite3.connect(name)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


INIT = (
    "init", "--authority", "shop.db#orders", "--replica", "erp.db#invoices",
    "--map", "id=order_id", "--map", "total=amount", "--zone", "left=UTC", "--yes",
)  # fmt: skip


def test_init_writes_what_works(trueup):
    """Given two tables, I expect a project with the key and version found, that adopt can use."""
    code, out, err = trueup(*INIT)

    assert (code, err) == (0, "")
    assert "pair orders, key id, version updated_at" in out
    assert "total NUMERIC(12,2) ↔ amount REAL: compared as decimal" in out
    assert "trueup doctor && trueup adopt orders" in out
    pair = load("trueup.toml").pair["orders"]
    assert pair.authority.key == ("id",)
    assert pair.authority.version == "updated_at"
    assert pair.replica is not None
    assert pair.replica.key == ("order_id",)
    with Path("trueup.toml").open("a", encoding="utf-8") as file:
        file.write("settle = 0\n")
    code, out, err = trueup("adopt", "orders", "--backfill", "--json")
    assert err == ""
    with closing(sqlite3.connect("erp.db")) as db:
        assert db.execute("SELECT order_id, status, amount FROM invoices").fetchall() == [(1, "paid", 5)]
    assert code == 0


def test_init_works_from_another_folder(trueup):
    """Given a project file elsewhere, I expect paths that start there."""
    Path("sub").mkdir()

    assert trueup("--project", "sub/trueup.toml", *INIT)[0] == 0

    assert 'url = "sqlite:///../shop.db"' in Path("sub/trueup.toml").read_text("utf-8")
    assert trueup("--project", "sub/trueup.toml", "doctor")[0] == 1


def test_init_never_overwrites(trueup):
    """Given a file that is there, I expect it untouched, unless forced."""
    Path("trueup.toml").write_text("mine", "utf-8")

    code, _, err = trueup(*INIT)
    assert (code, Path("trueup.toml").read_text("utf-8")) == (2, "mine")
    assert "--force" in err

    assert trueup(*INIT, "--force")[0] == 0
    assert "[pair.orders]" in Path("trueup.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("init", "--yes"), "init needs --authority"),
        (("init", "--authority", "shop.db#orders", "--yes"), "init needs --replica"),
        (("init", "--authority", "shop.db#order", "--replica", "erp.db#invoices", "--yes"), "order"),
        ((*INIT, "--key", "idd"), "no column idd"),
        ((*INIT, "--version", "nope"), "no column nope"),
        (("init", "--authority", "shop.db#orders", "--replica", "out.csv", "--yes"), "can't write"),
        ((*INIT, "--handler", "push"), "names no function"),
    ],
)
def test_init_that_cant_work_writes_nothing(trueup, arguments, sentence):
    """Given too little or a mistake, I expect it named and no file."""
    Path("out.csv").write_text("id,status\n", "utf-8")

    code, out, err = trueup(*arguments)

    assert (code, out) == (2, "")
    assert sentence in err
    assert not list(Path().glob("*.toml*"))
    assert not list(Path().glob(".*"))


def test_doctor_says_what_to_change(trueup):
    """Given a replica without unique key, I expect the statement that makes one, and exit code 1; nothing changed."""
    trueup(*INIT)
    before = Path("erp.db").read_bytes()

    code, out, err = trueup("doctor")

    assert (code, err) == (1, "")
    assert 'CREATE UNIQUE INDEX "invoices_order_id" ON "invoices" ("order_id");' in out
    assert "an index begins with updated_at" in out
    assert "records can be written" in out
    assert Path("erp.db").read_bytes() == before
    assert not Path("trueup.db").exists()
    with closing(sqlite3.connect("erp.db")) as db:
        db.execute('CREATE UNIQUE INDEX "invoices_order_id" ON "invoices" ("order_id")')
    code, out, _ = trueup("doctor")
    assert (code, "all is well" in out) == (0, True)


def test_doctor_finds_what_fails(trueup):
    """Given a lost database, I expect the connection named, exit code 2, and the same in JSON."""
    trueup(*INIT)
    Path("erp.db").unlink()

    code, out, _ = trueup("doctor")
    assert (code, "fails" in out) == (2, True)
    answer = json.loads(trueup("doctor", "--json")[1])
    assert answer["exit_code"] == 2
    [failed] = [finding for finding in answer["findings"] if finding["level"] == "fails"]
    assert (failed["where"], failed["what"]) == ("orders replica", "connection")


@pytest.mark.parametrize(("kind", "code"), [("nfs4", 2), ("cifs", 2), ("ext4", 0)])
def test_state_on_a_network_file_system_is_refused(tmp_path, monkeypatch, kind, code):
    """Given the mounts of a machine, I expect SQLite state to be refused where locks can't be trusted."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n", "utf-8")
    monkeypatch.setattr(checkup, "MOUNTS", mounts)

    assert checkup.exit_code(checkup.check_state(f"sqlite:///{tmp_path}/trueup.db")) == code


def test_state_without_folder_is_refused(tmp_path):
    """Given a folder that is not there, I expect the command that makes it."""
    [finding] = checkup.check_state(f"sqlite:///{tmp_path}/none/trueup.db")

    assert (finding.level, finding.fix) == ("fails", f"mkdir -p {tmp_path}/none")
