"""Empty stores for contestants, on the servers that scripts/services starts and on files."""

from __future__ import annotations

import importlib.util
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pymysql
import sqlalchemy as sa


@cache
def services() -> ModuleType:
    """scripts/services as a module; what it starts lives as long as this process."""
    path = Path(__file__).parent.parent / "scripts" / "services"
    loader = SourceFileLoader("trueup_scripts_services", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@contextmanager
def empty_store(kind: str) -> Iterator[str]:
    """The URL of an empty store: `sqlite`, or the name of a server of scripts/services."""
    if kind == "sqlite":
        # Beside the data of the servers, so that all of them wait for the same disk.
        with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=services().home().parent) as folder:
            yield f"sqlite:///{folder}/state.db"
        return
    server = str(services().lease(kind))
    if kind.startswith("redis"):
        yield server
        return
    name = f"bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def empty_database(kind: str) -> Iterator[str]:
    """The URL of an empty database of `postgres` or `mariadb`, dropped at the end."""
    if kind == "postgres":
        with empty_store(kind) as url:
            yield url
        return
    at = sa.make_url(str(services().lease(kind)))
    name = f"bench_{uuid.uuid4().hex[:12]}"
    admin = pymysql.connect(host=at.host, port=at.port or 3306, user=at.username, password=at.password or "")
    with admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        try:
            yield at.set(database=name).render_as_string(hide_password=False)
        finally:
            cursor.execute(f"DROP DATABASE {name}")


def commits(url: str) -> tuple[int, int]:
    """Commits in a PostgreSQL database so far, and flushes of its server's log."""
    with psycopg.connect(url) as connection:
        [row] = connection.execute(
            """
            SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),
                (SELECT wal_sync FROM pg_stat_wal)
            """
        ).fetchall()
    return int(row[0]), int(row[1])
