"""The command line on real servers: secrets, rights, and what is wrong named without giving a password away."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa

from trueup.cli.main import main
from trueup.config import load
from trueup.locations import hide_password

PASSWORD = "s3cret-pa55"


@pytest.fixture
def trueup(capsys, tmp_path, monkeypatch):
    """Runs the command line in an empty folder; answers exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUEUP_PROJECT", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), standalone=False)
        captured = capsys.readouterr()
        assert PASSWORD not in captured.out + captured.err
        return code, captured.out, captured.err

    return run


def as_user(url: str, user: str) -> str:
    return sa.make_url(url).set(username=user, password=PASSWORD).render_as_string(hide_password=False)


@pytest.fixture
def reader(postgres_url) -> Iterator[str]:
    """A PostgreSQL database with two tables, as a user who may read both and write none."""
    user = f"reader_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA IF NOT EXISTS sales")
        for table in ("sales.orders", "sales.invoices"):
            admin.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, total numeric(12,2), updated_at timestamptz)")
            admin.execute(f"INSERT INTO {table} SELECT i, i * 1.5, '2026-01-01Z' FROM generate_series(1, 1000) i")
        admin.execute("CREATE TABLE sales.hidden (id bigint PRIMARY KEY)")
        admin.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
        admin.execute(f"GRANT USAGE ON SCHEMA sales TO {user}")
        admin.execute(f"GRANT SELECT ON sales.orders, sales.invoices TO {user}")
        yield as_user(postgres_url, user)
        admin.execute("DROP SCHEMA sales CASCADE")
        admin.execute(f"DROP OWNED BY {user}")
        admin.execute(f"DROP ROLE {user}")


@pytest.mark.postgres
def test_secrets_and_rights_in_postgresql(trueup, reader, monkeypatch):
    """Given a URL with a password and a user who may not write, I expect a variable, and doctor to say what fails."""
    code, out, err = trueup(
        "init", "--authority", f"{reader}#sales.orders", "--replica", f"{reader}#sales.invoices", "--yes"
    )
    assert (code, err) == (0, "")
    assert "export ORDERS_AUTHORITY_PASSWORD=…" in out
    assert PASSWORD not in Path("trueup.toml").read_text("utf-8")

    code, _, err = trueup("doctor")
    assert (code, "line 4" in err, "ORDERS_AUTHORITY_PASSWORD is not set" in err) == (2, True, True)

    monkeypatch.setenv("ORDERS_AUTHORITY_PASSWORD", PASSWORD)
    monkeypatch.setenv("ORDERS_REPLICA_PASSWORD", PASSWORD)
    authority: Any = load("trueup.toml").pair["orders"].authority
    assert authority.url == reader
    code, out, _ = trueup("doctor", "--json")
    findings = {(each["where"], each["what"]): each for each in json.loads(out)["findings"]}
    assert code == 2
    assert findings["orders replica", "write"]["level"] == "fails"
    assert "not permitted" in findings["orders replica", "write"]["said"]
    assert findings["orders replica", "key"]["level"] == "good"
    assert [each for each in findings.values() if each["what"] == "version" and each["level"] == "change"]


@pytest.mark.postgres
def test_trouble_in_postgresql_is_one_clear_line(trueup, reader):
    """Given a refused login, a forbidden or a misspelt table, I expect one line each and exit code 2."""
    wrong = reader.replace(PASSWORD, "wrong-one")
    for left, sentence in (
        (f"{wrong}#sales.orders", "password"),
        (f"{reader}#sales.hidden", "not permitted"),
        (f"{reader}#sales.order", "no table order"),
        (reader, "names no table"),
    ):
        code, out, err = trueup("diff", left, f"{reader}#sales.orders", "--key", "id")

        assert (code, out) == (2, "")
        assert sentence in err
        assert len(err.splitlines()) <= 2
        assert "wrong-one" not in err
        assert "bug" not in err


@pytest.mark.postgres
@pytest.mark.mariadb
def test_two_engines(trueup, reader, mariadb_url, monkeypatch):
    """Given the same rows in both engines but one, I expect that one, with its systems named."""
    given = sa.make_url(mariadb_url)
    with closing(
        pymysql.connect(host=given.host, port=given.port or 3306, user=given.username, password=given.password or "",
                        database=given.database, autocommit=True)
    ) as admin, admin.cursor() as cursor:  # fmt: skip
        cursor.execute("CREATE TABLE invoices (id BIGINT PRIMARY KEY, amount DECIMAL(12,4), updated_at TIMESTAMP NULL)")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(
            "INSERT INTO invoices WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
            "SELECT i, i * 1.5 + (i = 7) * 0.005, '2026-01-01 00:00:00' FROM n"
        )
        left, right = f"{reader}#sales.orders", f"{mariadb_url}#invoices"

        code, out, err = trueup("diff", left, right, "--map", "total=amount")
        assert (code, err) == (1, "")
        assert "sales.orders (PostgreSQL" in out
        assert "invoices (MariaDB" in out
        assert "compared at 4 places" in out
        assert "same 999   missing 0   extra 0   differ 1" in out
        assert "− 10.5" in out
        assert "+ 10.505" in out
        assert trueup("diff", left, right, "--map", "total=amount", "--tolerance", "total=0.01")[0] == 0
        cursor.execute("DROP TABLE invoices")
    assert PASSWORD not in hide_password(reader)
