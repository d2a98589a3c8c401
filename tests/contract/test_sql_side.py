"""The SQL side keeps the contract of sides on every engine."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from trueup.model.kinds import Kind
from trueup.sides.sql import Sql
from trueup.testing.sides import MarkableSideContract, WritableSideContract

Execute = Callable[[str], Any]
# How each engine declares a column of a kind. Where it has no such type, text that the side reads as the kind.
POSTGRES = {
    "boolean": "boolean", "integer": "bigint", "decimal": "numeric", "float": "double precision", "float32": "real",
    "text": "text", "bytes": "bytea", "uuid": "uuid", "date": "date", "time": "time", "interval": "interval",
    "timestamp without zone": "timestamp", "timestamp with zone": "timestamptz", "json": "jsonb", "enum": "text",
    "array of integer": "bigint[]", "array of text": "text[]",
}  # fmt: skip
MARIADB = {
    "boolean": "tinyint(1)", "integer": "bigint", "decimal": "longtext", "float": "longtext", "float32": "float",
    "text": "varchar(300) CHARACTER SET utf8mb4", "bytes": "varbinary(40)", "uuid": "uuid", "date": "date",
    "time": "time(6)", "timestamp without zone": "datetime(6)", "timestamp with zone": "timestamp(6) NULL",
    "interval": "varchar(40)", "json": "json", "array of integer": "longtext", "array of text": "longtext",
}  # fmt: skip
SQLITE = {
    "boolean": "BOOLEAN", "integer": "INTEGER", "decimal": "TEXT", "float": "REAL", "float32": "REAL", "text": "TEXT",
    "bytes": "BLOB", "uuid": "UUID", "date": "DATE", "time": "TIME", "timestamp without zone": "DATETIME",
    "timestamp with zone": "TIMESTAMPTZ", "interval": "TEXT", "json": "TEXT", "array of integer": "TEXT",
    "array of text": "TEXT",
}  # fmt: skip
TEXTUAL = {"text", "longtext", "varchar(40)", "TEXT"}


class Tables:
    """Makes tables and fills them through the side itself."""

    def __init__(self, url: str, types: Mapping[str, str], execute: Execute, quote: str) -> None:
        self.url, self.types, self.execute, self.quote = url, types, execute, quote
        self.sides: list[Sql] = []
        self.names: list[str] = []

    def make(
        self,
        columns: Mapping[str, Kind],
        key: Sequence[str],
        version: str | None = None,
        rows: Sequence[Mapping[str, str | None]] = (),
    ) -> Sql:
        """A side over a new table with these rows, none of whose columns is unique."""
        name = f"t {uuid.uuid4().hex[:8]} %s"
        quoted = {each: f"{self.quote}{each}{self.quote}" for each in (name, *columns)}
        declared = {each: self.declared(kind) for each, kind in columns.items()}
        spelled = ", ".join(f"{quoted[each]} {declared[each]}" for each in columns)
        self.names.append(quoted[name])
        self.execute(f"CREATE TABLE {quoted[name]} ({spelled})")
        kinds = {
            each: kind
            for each, kind in columns.items()
            if declared[each] in TEXTUAL and kind.name not in ("text", "enum")
        }
        side = Sql(self.url, table=name, key=list(key), version=version, columns=kinds)
        self.sides.append(side)
        self.fill(side, columns, rows)
        return side

    def declared(self, kind: Kind) -> str:
        if kind.name == "decimal" and kind.scale is not None and "text" not in self.types["decimal"].lower():
            return f"numeric({kind.precision},{kind.scale})"
        if kind.name == "decimal" and kind.scale is not None and self.quote == "`":
            return f"decimal({kind.precision},{kind.scale})"
        return self.types[kind.name if kind.name == "decimal" else str(kind)]

    def fill(self, side: Sql, columns: Mapping[str, Kind], rows: Sequence[Mapping[str, str | None]]) -> None:
        """Puts rows, duplicates of a key as well: each under a key of its own position, in another column."""
        described = {column.name: column.kind for column in side.describe().columns}
        asked = {name: described[name] if described[name].name == kind.name else kind for name, kind in columns.items()}
        sql = self.insert(side, columns)
        known = {name: side._inspect().column(name) for name in columns}
        for row in rows:
            values = tuple(
                side._dialect.value(known[name].stored, row.get(name), asked[name], known[name].zone)
                for name in columns
            )
            with side._connected().begin() as connection:
                connection.exec_driver_sql(sql, values)

    def insert(self, side: Sql, columns: Mapping[str, Kind]) -> str:
        dialect, table = side._dialect, side._inspect().table
        names = ", ".join(dialect.quoted(name) for name in columns)
        return f"INSERT INTO {dialect.named(table)} ({names}) VALUES ({', '.join(dialect.mark for _ in columns)})"

    def drop(self) -> None:
        """Closes what was opened."""
        for side in self.sides:
            side.close()
        for name in self.names:
            self.execute(f"DROP TABLE {name}")


@pytest.fixture
def sqlite_tables(tmp_path: Path) -> Iterator[Tables]:
    path = tmp_path / "a b%20.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = Tables(f"sqlite:///{path}", SQLITE, connection.execute, '"')
        yield tables
        tables.drop()


@pytest.fixture
def postgres_tables(postgres_url: str) -> Iterator[Tables]:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        tables = Tables(postgres_url, POSTGRES, connection.execute, '"')
        yield tables
        tables.drop()


@pytest.fixture
def mariadb_tables(mariadb_url: str) -> Iterator[Tables]:
    import pymysql

    url = make_url(mariadb_url)
    with (
        pymysql.connect(
            host=url.host, port=url.port or 3306, user=url.username, password=url.password or "",
            database=url.database or "", autocommit=True,
        ) as connection,
        connection.cursor() as cursor,
    ):  # fmt: skip
        tables = Tables(mariadb_url, MARIADB, cursor.execute, "`")
        yield tables
        tables.drop()


class SqlContract(WritableSideContract, MarkableSideContract):
    """Both suites, over tables of one engine."""


class TestSQLite(SqlContract):
    @pytest.fixture
    def make(self, sqlite_tables: Tables) -> Callable[..., Sql]:
        return sqlite_tables.make


@pytest.mark.postgres
class TestPostgreSQL(SqlContract):
    @pytest.fixture
    def make(self, postgres_tables: Tables) -> Callable[..., Sql]:
        return postgres_tables.make


@pytest.mark.mariadb
class TestMariaDB(SqlContract):
    @pytest.fixture
    def make(self, mariadb_tables: Tables) -> Callable[..., Sql]:
        return mariadb_tables.make
