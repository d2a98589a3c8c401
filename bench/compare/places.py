"""Where the two sides lie: files filled into tables of real servers, or left as they are."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import duckdb
import psycopg
import pymysql  # type: ignore[import-untyped, unused-ignore]

from _servers import services

from .inputs import FIELDS, KEYS, TOUCHED_FROM, Input

PAIRS: Final = ("postgres-postgres", "postgres-mariadb", "sqlite-postgres", "parquet-parquet")
TABLE: Final = "orders"
# Touched records are this long older than the moment of the touch, at most.
TOUCHED_WITHIN: Final = timedelta(seconds=1)
_BATCH_ROWS: Final = 50_000
_CHUNK_BYTES: Final = 1 << 20
_FIELDS: Final = {
    "customer": "INTEGER NOT NULL", "status": "VARCHAR(20) NOT NULL", "amount": "DECIMAL(12, 2) NOT NULL",
    "quantity": "INTEGER", "reference": "VARCHAR(36) NOT NULL", "updated_at": "{timestamp} NOT NULL",
}  # fmt: skip
_KEYS: Final = {
    "integer": {"id": "BIGINT NOT NULL"},
    "uuid": {"id": "{uuid} NOT NULL"},
    "two": {"tenant": "INTEGER NOT NULL", "number": "BIGINT NOT NULL"},
    "text": {"code": "VARCHAR(24) NOT NULL"},
}
_TYPES: Final = {
    "postgres": {"timestamp": "TIMESTAMP(6)", "uuid": "UUID"},
    "mariadb": {"timestamp": "DATETIME(6)", "uuid": "CHAR(36)"},
    "sqlite": {"timestamp": "TIMESTAMP", "uuid": "TEXT"},
}


@dataclass(frozen=True)
class Place:
    """One side. url: of the database, or the path of the file. server: the process whose work counts, or None."""

    kind: str
    url: str
    server: int | None = None

    def behind(self, ports: Mapping[int, int]) -> str:
        """The URL through a link. ports: those to use, by the servers' own."""
        parts = urlsplit(self.url)
        if parts.port is None or parts.port not in ports:
            return self.url
        login, _, host = parts.netloc.rpartition("@")
        netloc = f"{login}@{host.rpartition(':')[0]}:{ports[parts.port]}"
        return urlunsplit(parts._replace(netloc=netloc))

    @property
    def port(self) -> int | None:
        """The server's, or None for a file."""
        return None if self.server is None else urlsplit(self.url).port


@contextmanager
def opened(pair: str, folder: Path) -> Iterator[tuple[Place, Place]]:
    """Two empty databases (of one server where both are of a kind), removed in the end; or nothing, for files."""
    kinds = pair.split("-")
    name = f"bench_{uuid.uuid4().hex[:12]}"
    places: list[Place] = []
    try:
        for kind, ending in zip(kinds, "lr", strict=True):
            places.append(_open(kind, f"{name}_{ending}", folder))
        yield places[0], places[1]
    finally:
        for place in places:
            _remove(place)


def fill(place: Place, source: Path, keys: str) -> Place:
    """The table, anew, with the records of a file in their order, its primary key and an index on `updated_at`."""
    match place.kind:
        case "postgres":
            _fill_postgres(place, source, keys)
        case "mariadb":
            _fill_mariadb(place, source, keys)
        case "sqlite":
            _fill_sqlite(place, source, keys)
        case _:
            return Place("parquet", str(source))
    return place


def touch(places: tuple[Place, Place], made: Input) -> datetime:
    """Writes what was touched on both sides; answers the moment since which it happened, in UTC, as both tables say."""
    assert made.touched is not None
    now = datetime.now(UTC).replace(tzinfo=None)
    moved = now - TOUCHED_WITHIN - datetime.fromisoformat(TOUCHED_FROM)
    key = KEYS[made.keys].names
    for place, source in zip(places, made.touched, strict=True):
        with psycopg.connect(place.url, autocommit=True) as database:
            database.execute(f"CREATE TEMP TABLE touched (LIKE {TABLE})".encode())
            _copy(database, "touched", source, made.keys)
            changed = [f"{name} = touched.{name}" for name in FIELDS if name != "updated_at"]
            changed.append(f"updated_at = touched.updated_at + interval '{moved // timedelta(microseconds=1)} us'")
            same = " AND ".join(f"{TABLE}.{name} = touched.{name}" for name in key)
            database.execute(f"UPDATE {TABLE} SET {', '.join(changed)} FROM touched WHERE {same}".encode())
            database.execute(f"VACUUM ANALYZE {TABLE}".encode())
    return now - TOUCHED_WITHIN


def settle(place: Place) -> None:
    """Has the server write what it still keeps from filling, so that nobody pays for that later."""
    if place.kind == "postgres":
        with psycopg.connect(place.url, autocommit=True) as database:
            database.execute(b"CHECKPOINT")
    elif place.kind == "mariadb":
        with closing(connected(place.url)) as database, database.cursor() as cursor:
            cursor.execute(f"FLUSH TABLES {TABLE} FOR EXPORT")
            cursor.execute("UNLOCK TABLES")


# Opening.


def _open(kind: str, name: str, folder: Path) -> Place:
    if kind == "parquet":
        return Place(kind, "")
    if kind == "sqlite":
        return Place(kind, f"sqlite:///{folder}/{name}.db")
    url = str(services().lease(kind))
    server = int(json.loads((services().home() / "state.json").read_text())[kind]["pid"])
    if kind == "postgres":
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}".encode())
    else:
        with closing(connected(url)) as admin, admin.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    return Place(kind, urlunsplit(urlsplit(url)._replace(path=f"/{name}")), server)


def _remove(place: Place) -> None:
    parts = urlsplit(place.url)
    name = parts.path.strip("/")
    if place.kind == "postgres":
        with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    elif place.kind == "mariadb":
        with closing(connected(place.url)) as admin, admin.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")
    elif place.kind == "sqlite":
        Path(place.url.removeprefix("sqlite:///")).unlink(missing_ok=True)


def connected(url: str) -> Any:
    """A connection to MariaDB that may send files."""
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or ""),
        password=unquote(parts.password or ""), database=parts.path.strip("/"), local_infile=True, autocommit=True,
    )  # fmt: skip


# Filling.


def _table(kind: str, keys: str) -> str:
    columns = {name: sql.format(**_TYPES[kind]) for name, sql in (_KEYS[keys] | _FIELDS).items()}
    key = ", ".join(KEYS[keys].names)
    if kind == "sqlite" and keys == "integer":
        columns["id"], key = "INTEGER NOT NULL", "id"
    primary = "" if kind == "postgres" else f", PRIMARY KEY ({key})"
    return f"CREATE TABLE {TABLE} ({', '.join(f'{name} {sql}' for name, sql in columns.items())}{primary})"


def _fill_postgres(place: Place, source: Path, keys: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as database:
        database.execute("SET maintenance_work_mem = '512MB'")
        database.execute(f"DROP TABLE IF EXISTS {TABLE}".encode())
        with database.transaction():
            database.execute(_table("postgres", keys).encode())
            _copy(database, TABLE, source, keys, "FREEZE,")
        database.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY ({', '.join(KEYS[keys].names)})".encode())
        database.execute(f"CREATE INDEX {TABLE}_updated ON {TABLE} (updated_at)".encode())
        database.execute(f"VACUUM ANALYZE {TABLE}".encode())


def _copy(database: psycopg.Connection, table: str, source: Path, keys: str, how: str = "") -> None:
    copy = f"COPY {table} ({_names(keys)}) FROM STDIN ({how} FORMAT csv, NULL '\\N')"
    with _as_csv(source, keys) as path, path.open("rb") as file, database.cursor().copy(copy.encode()) as to:
        while chunk := file.read(_CHUNK_BYTES):
            to.write(chunk)


def _fill_mariadb(place: Place, source: Path, keys: str) -> None:
    # Its rows lie in the order of the key; to bring them in any other would take a long time.
    order = "id::VARCHAR" if keys == "uuid" else ", ".join(KEYS[keys].names)
    with (
        _as_csv(source, keys, f"ORDER BY {order}") as path,
        closing(connected(place.url)) as database, database.cursor() as cursor,
    ):  # fmt: skip
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        cursor.execute(_table("mariadb", keys))
        cursor.execute("SET unique_checks = 0, foreign_key_checks = 0")
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {TABLE} CHARACTER SET utf8mb4"
            f" FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ({_names(keys)})"
        )
        cursor.execute(f"CREATE INDEX {TABLE}_updated ON {TABLE} (updated_at)")
        cursor.execute(f"ANALYZE TABLE {TABLE}")


def _fill_sqlite(place: Place, source: Path, keys: str) -> None:
    path = place.url.removeprefix("sqlite:///")
    Path(path).unlink(missing_ok=True)
    marks = ", ".join("?" for _ in _names(keys).split(","))
    with closing(sqlite3.connect(path, isolation_level=None)) as database, duckdb.connect() as files:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute(_table("sqlite", keys))
        texts = ["amount::VARCHAR AS amount", "strftime(updated_at, '%Y-%m-%d %H:%M:%S.%f') AS updated_at"]
        texts += ["id::VARCHAR AS id"] if keys == "uuid" else []
        found = files.execute(f"SELECT * REPLACE ({', '.join(texts)}) FROM '{source}'")
        database.execute("BEGIN")
        while rows := found.fetchmany(_BATCH_ROWS):
            database.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", rows)
        database.execute("COMMIT")
        database.execute(f"CREATE INDEX {TABLE}_updated ON {TABLE} (updated_at)")
        database.execute("ANALYZE")
        database.execute("PRAGMA journal_mode = WAL")


def _names(keys: str) -> str:
    return ", ".join((*KEYS[keys].names, *FIELDS))


@contextmanager
def _as_csv(source: Path, keys: str, order: str = "") -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=source.parent) as folder:
        path = Path(folder) / "records.csv"
        with duckdb.connect() as files:
            files.execute("SET memory_limit = '2GB'")
            files.execute(f"SET temp_directory = '{folder}/spill'")
            query = f"SELECT {_names(keys)} FROM '{source}' {order}"
            files.execute(f"COPY ({query}) TO '{path}' (FORMAT csv, HEADER false, NULLSTR '\\N')")
        yield path
