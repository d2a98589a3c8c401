"""The real servers that tests run against (see scripts/services), each process in a database of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit, urlunsplit

import pytest


def _scripts_services() -> ModuleType:
    path = Path(__file__).parent.parent / "scripts" / "services"
    loader = SourceFileLoader("trueup_scripts_services", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def server_url(name: str) -> str:
    """The URL of a running server; where there is none a desk skips and CI fails."""
    services = _scripts_services()
    try:
        return str(services.lease(name))
    except services.Absent as absent:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(absent))


@contextmanager
def postgres_database() -> Iterator[str]:
    """The URL of an empty PostgreSQL database that lives as long as the context."""
    import psycopg

    server = server_url("postgres")
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def mariadb_database() -> Iterator[str]:
    """The URL of an empty MariaDB database that lives as long as the context."""
    import pymysql
    from sqlalchemy.engine import make_url

    server = make_url(server_url("mariadb"))
    name = f"test_{uuid.uuid4().hex[:12]}"
    admin = pymysql.connect(
        host=server.host, port=server.port or 3306, user=server.username, password=server.password or ""
    )
    with admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield server.set(database=name).render_as_string(hide_password=False)
        cursor.execute(f"DROP DATABASE {name}")


class RestartablePostgres:
    """A PostgreSQL server of its own, which can be ended and started again."""

    def __init__(self, folder: Path) -> None:
        self._services = _scripts_services()
        self._folder = folder
        folder.chmod(0o755)
        self.pid, self._port, self.url = self._services._start_postgres(folder, False)

    def end(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)
        deadline = time.monotonic() + 20
        while self._services._alive(self.pid):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def start(self) -> None:
        command = [self._services._program("postgres", "postgres", False), "-D", str(self._folder / "data"),
                   "-p", str(self._port), "-c", "listen_addresses=127.0.0.1",
                   "-c", f"unix_socket_directories={self._folder}"]  # fmt: skip
        account = self._services._account("postgres")
        self.pid = self._services._launch(
            command, self._folder, account, self._port, lambda log: "ready to accept connections" in log
        )


@contextmanager
def restartable_postgres() -> Iterator[RestartablePostgres]:
    """A server that lives as long as the context."""
    server_url("postgres")  # skips where there is none
    folder = Path(tempfile.mkdtemp(prefix="trueup-restart-"))
    server = RestartablePostgres(folder)
    try:
        yield server
    finally:
        server.end(signal.SIGINT)
        shutil.rmtree(folder, ignore_errors=True)
