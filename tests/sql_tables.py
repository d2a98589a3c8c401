"""Tables of the four SQL engines, made for one test and dropped after it."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from trueup.model.columns import texts
from trueup.model.kinds import Kind
from trueup.model.record import Field, Projection, key_text
from trueup.ports import Scope, Side
from trueup.sides.sql import Sql

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
DUCKDB = {
    **POSTGRES, "float": "double", "float32": "float", "bytes": "blob", "decimal": "varchar", "text": "varchar",
    "enum": "varchar", "json": "json", "array of text": "varchar[]",
}  # fmt: skip
_TEXTUAL = {"text", "longtext", "varchar(40)", "TEXT", "varchar"}


class Tables:
    """Makes tables on one engine, and sides over them.

    quote: the engine's quote for names. types: how it declares each kind. execute: runs a statement and commits.
    """

    def __init__(self, url: str, types: Mapping[str, str], execute: Execute, quote: str) -> None:
        self.url, self.types, self.execute, self.quote = url, types, execute, quote
        self._sides: list[Sql] = []
        self._names: list[str] = []

    def quoted(self, name: str) -> str:
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def table(self, columns: str, name: str | None = None) -> str:
        """A new table with these column definitions; its name."""
        name = name or f"t {uuid.uuid4().hex[:8]} %s"
        self.execute(f"CREATE TABLE {self.quoted(name)} ({columns})")
        self._names.append(name)
        return name

    def side(self, table: str, **options: Any) -> Sql:
        """A side that is closed after the test."""
        side = Sql(self.url, table=table, **options)
        self._sides.append(side)
        return side

    def make(
        self,
        columns: Mapping[str, Kind],
        key: Sequence[str],
        version: str | None = None,
        rows: Sequence[Mapping[str, str | None]] = (),
        constraint: str = "",
    ) -> Sql:
        """A side over a new table with these rows of canonical texts; nothing is unique unless constrained."""
        declared = {name: self._declared(kind) for name, kind in columns.items()}
        defined = ", ".join(f"{self.quoted(name)} {declared[name]}" for name in columns) + constraint
        kinds = {
            name: kind
            for name, kind in columns.items()
            if declared[name] in _TEXTUAL and kind.name not in ("text", "enum")
        }
        side = self.side(self.table(defined), key=list(key), version=version, columns=kinds)
        self._fill(side, columns, rows)
        return side

    def _declared(self, kind: Kind) -> str:
        if kind.name == "decimal" and kind.scale is not None and self.types is not SQLITE:
            return f"decimal({kind.precision},{kind.scale})"
        return self.types[kind.name if kind.name == "decimal" else str(kind)]

    def _fill(self, side: Sql, columns: Mapping[str, Kind], rows: Sequence[Mapping[str, str | None]]) -> None:
        """Inserts with the side's own values but past its preconditions, which would refuse a duplicate."""
        dialect, inspected = side._dialect, side._inspect()
        names = ", ".join(dialect.quoted(name) for name in columns)
        marks = ", ".join(dialect.mark for _ in columns)
        sql = f"INSERT INTO {dialect.named(inspected.table)} ({names}) VALUES ({marks})"
        known = {name: inspected.column(name) for name in columns}
        with dialect.begin(side._connected()) as connection, connection.begin():
            for row in rows:
                values = tuple(
                    dialect.value(
                        known[name].stored,
                        row.get(name),
                        known[name].kind if known[name].kind.name == kind.name else kind,
                        known[name].zone,
                    )
                    for name, kind in columns.items()
                )
                connection.exec_driver_sql(sql, values)

    def drop(self) -> None:
        """Closes what was opened and drops what was made."""
        for side in self._sides:
            side.close()
        for name in self._names:
            self.execute(f"DROP TABLE {self.quoted(name)}")


@contextmanager
def sqlite_tables(path: Path) -> Iterator[Tables]:
    """Tables in a SQLite file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = Tables(f"sqlite:///{path}", SQLITE, connection.execute, '"')
        yield tables
        tables.drop()


@contextmanager
def duckdb_tables(path: Path) -> Iterator[Tables]:
    """Tables in a DuckDB file that stays open for writing, so that sides need not load it each time."""
    import duckdb

    with closing(duckdb.connect(path)) as connection:
        tables = Tables(f"duckdb:///{path}", DUCKDB, connection.execute, '"')
        yield tables
        tables.drop()


@contextmanager
def postgres_tables(url: str) -> Iterator[Tables]:
    """Tables in a PostgreSQL database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        tables = Tables(url, POSTGRES, connection.execute, '"')
        yield tables
        tables.drop()


@contextmanager
def mariadb_tables(address: str) -> Iterator[Tables]:
    """Tables in a MariaDB database."""
    import pymysql
    from sqlalchemy.engine import make_url

    url = make_url(address)
    connection = pymysql.connect(
        host=url.host, port=url.port or 3306, user=url.username, password=url.password or "",
        database=url.database or "", charset="utf8mb4", autocommit=True,
    )  # fmt: skip
    with connection, connection.cursor() as cursor:
        tables = Tables(address, MARIADB, cursor.execute, "`")
        yield tables
        tables.drop()


def projection(side: Sql, *fields: str, key: tuple[str, ...] = ("id",), version: str | None = None) -> Projection:
    def field(name: str) -> Field:
        column = side.describe().column(name)
        assert column is not None
        return Field(name, name, column.kind, native=column.native)

    return Projection(tuple(map(field, key)), tuple(map(field, fields)), field(version) if version else None)


def rows(side: Side, asked: Projection, scope: Scope | None = None) -> list[tuple[Any, ...]]:
    answer: list[tuple[Any, ...]] = []
    for batch in side.scan(asked, scope or Scope()):
        columns = [
            array.to_pylist() if field is asked.version else texts(array, field)
            for array, field in zip(batch.columns, asked.columns, strict=True)
        ]
        answer += zip(*columns, strict=True)
    return answer


def key(*parts: str | None) -> str:
    return key_text(parts)
