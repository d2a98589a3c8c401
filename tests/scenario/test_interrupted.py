"""Ctrl-C in the middle of a comparison of databases: the program ends, and so does what it asked of the servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa

TRUEUP = (sys.executable, "-c", "from trueup.cli.main import main; main()")
ROWS = 30_000
# A record takes this long, so that a statement over all of them would take many minutes.
SLEEP_S = 0.02
Running = Callable[[], list[str]]


@contextmanager
def tables(execute: Callable[[str], Any], numbers: str) -> Iterator[None]:
    """Two equal tables with keys that one number identifies, and two views of them that no number does."""
    for name in ("interrupted_a", "interrupted_b"):
        execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, code varchar(20) NOT NULL, v varchar(20))")
        execute(f"INSERT INTO {name} SELECT n, concat('c', n), concat('v', n) FROM {numbers}")
        execute(f"CREATE VIEW {name}_view AS SELECT code, v FROM {name}")
    try:
        yield
    finally:
        for name in ("interrupted_a", "interrupted_b"):
            execute(f"DROP VIEW {name}_view")
            execute(f"DROP TABLE {name}")


@contextmanager
def on_postgresql(url: str) -> Iterator[Running]:
    """The tables there; answers what the program's sessions are doing."""
    with psycopg.connect(url, autocommit=True) as admin:

        def running() -> list[str]:
            found = admin.execute(
                "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
                " AND pid <> pg_backend_pid() AND application_name = 'trueup' AND query LIKE '%interrupted_%'"
            )
            return [str(query) for (query,) in found]

        with tables(admin.execute, f"generate_series(1, {ROWS}) AS n"):
            admin.execute("ANALYZE interrupted_a, interrupted_b")
            yield running


@contextmanager
def on_mariadb(url: str) -> Iterator[Running]:
    """The tables there; answers what the program's sessions are doing."""
    at = sa.make_url(url)
    connection = pymysql.connect(
        host=at.host, port=at.port or 3306, user=at.username, password=at.password or "", database=at.database,
        autocommit=True,
    )  # fmt: skip
    with connection, connection.cursor() as cursor:

        def running() -> list[str]:
            cursor.execute(
                "SELECT info FROM information_schema.processlist WHERE db = DATABASE() AND command = 'Query'"
                " AND id <> CONNECTION_ID() AND info LIKE '%interrupted\\_%'"
            )
            return [str(info) for (info,) in cursor.fetchall()]

        with tables(cursor.execute, f"(SELECT seq AS n FROM seq_1_to_{ROWS}) AS numbers"):
            yield running


SERVERS = {
    "postgres": (on_postgresql, f"pg_sleep({SLEEP_S}) IS NOT NULL"),
    "mariadb": (on_mariadb, f"SLEEP({SLEEP_S}) = 0"),
}
HOW = {
    "gate": ("", ("--strategy", "gate")),
    "segments": ("", ("--strategy", "segments")),
    "keyhash": ("", ("--strategy", "keyhash")),
    "staged": ("_view", ("--strategy", "keyhash", "--key", "code")),
    "rows": ("_view", ("--strategy", "rows", "--key", "code")),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("engine", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in SERVERS])
def test_ctrl_c_ends_the_statements_in_the_servers(request: pytest.FixtureRequest, engine: str, how: str) -> None:
    """Given Ctrl-C during long statements, I expect exit code 130 soon, one line, and no statement left over."""
    url = request.getfixturevalue(f"{engine}_url")
    open_, slowly = SERVERS[engine]
    suffix, options = HOW[how]
    with open_(url) as running:
        # Keys and schema are looked up before; only what selects records is slow.
        sides = (f"{url}#interrupted_{each}{suffix}" for each in "ab")
        process = subprocess.Popen(
            [*TRUEUP, "diff", *sides, "--where", slowly, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A shell that runs the tests in the background has them ignore Ctrl-C, and so would the program.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  it only sets a handler
            env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        try:
            both = wait_for(lambda: len(running()) >= 2 or process.poll() is not None)
            assert both, running()
            assert process.poll() is None, process.communicate()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode == 130
        assert (out, err) == ("", "error: interrupted.\n")
        assert wait_for(lambda: not running()), running()


def wait_for(true: Callable[[], bool], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not (answer := true()) and time.monotonic() < until:
        time.sleep(0.05)
    return answer
