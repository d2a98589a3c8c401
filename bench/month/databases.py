"""The shop's and the ERP's databases: tables, what the ERP does by itself, and statements that bypass trueup.

The ERP stamps every row with its own clock, refuses a customer whom it does not know, and notes every write that lands
and who made it: that log, and not trueup's own account, says what took effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

SHOP, ERP, BACKUP = "shop_orders", "erp_orders", "backup_orders"
COLUMNS: Final = "id, customer, cents, status"
STRANGER: Final = "a stranger"  # a customer whom the ERP refuses
GONE: Final = ""  # the state of a record that was deleted
_STATE: Final = "NEW.customer || '/' || NEW.cents || '/' || NEW.status"

_SHOP_TABLES: Final = (
    f"CREATE TABLE {SHOP} (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, status TEXT, updated_at TIMESTAMPTZ)",
    f"CREATE INDEX shop_changed ON {SHOP} (updated_at)",
    f"CREATE TABLE {BACKUP} (id INTEGER, customer TEXT, cents INTEGER, status TEXT, updated_at TIMESTAMPTZ)",
)
_ERP_TABLES: Final = (
    f"CREATE TABLE {ERP} (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, status TEXT, changed_at TIMESTAMPTZ)",
    f"CREATE INDEX erp_changed ON {ERP} (changed_at)",
    "CREATE TABLE clock (now_us BIGINT, person INTEGER)",
    "INSERT INTO clock VALUES (0, 0)",
)
# No two writes have the same time: it is what trueup's preconditions are made of.
_SQLITE_STAMP: Final = (
    f"UPDATE {ERP} SET changed_at = (SELECT strftime('%Y-%m-%d %H:%M:%S', us / 1000000, 'unixepoch') "
    "|| printf('.%06d+00:00', us % 1000000) FROM (SELECT now_us + (SELECT max(seq) FROM effects) AS us FROM clock)) "
    "WHERE id = NEW.id;"
)
_SQLITE_RULES: Final = (
    "CREATE TABLE effects (seq INTEGER PRIMARY KEY, id INTEGER, state TEXT, person INTEGER)",
    f"""CREATE TRIGGER refuses BEFORE INSERT ON {ERP} WHEN NEW.customer = '{STRANGER}'
        BEGIN SELECT RAISE(ABORT, 'unknown customer'); END""",
    *(
        f"CREATE TRIGGER {name} AFTER {how} ON {ERP} BEGIN "
        f"INSERT INTO effects (id, state, person) SELECT NEW.id, {_STATE}, person FROM clock; {_SQLITE_STAMP} END"
        for name, how in (("put", "INSERT"), ("changed", f"UPDATE OF {COLUMNS}"))
    ),
    f"""CREATE TRIGGER removed AFTER DELETE ON {ERP}
        BEGIN INSERT INTO effects (id, state, person) SELECT OLD.id, '{GONE}', person FROM clock; END""",
)
_POSTGRES_RULES: Final = (
    "CREATE TABLE effects (seq BIGSERIAL PRIMARY KEY, id INTEGER, state TEXT, person INTEGER)",
    "CREATE SEQUENCE ticks",
    f"""CREATE FUNCTION stamped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.customer = '{STRANGER}' THEN
            RAISE EXCEPTION 'unknown customer' USING ERRCODE = 'check_violation';
        END IF;
        NEW.changed_at := to_timestamp(0) + (now_us + nextval('ticks')) * interval '1 microsecond' FROM clock;
        RETURN NEW; END $$""",
    f"""CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO effects (id, state, person) SELECT OLD.id, '{GONE}', person FROM clock;
        ELSE
            INSERT INTO effects (id, state, person) SELECT NEW.id, {_STATE}, person FROM clock;
        END IF;
        RETURN NULL; END $$""",
    f"CREATE TRIGGER stamps BEFORE INSERT OR UPDATE ON {ERP} FOR EACH ROW EXECUTE FUNCTION stamped()",
    f"CREATE TRIGGER notes AFTER INSERT OR UPDATE OR DELETE ON {ERP} FOR EACH ROW EXECUTE FUNCTION noted()",
)


class Database:
    """Statements with `?` for values, each in a transaction of its own unless `transaction` is around them."""

    def __init__(self, connection: Any, mark: str) -> None:
        self._connection, self._mark = connection, mark

    def run(self, sql: str, *values: object) -> list[Any]:
        """The rows that it answers."""
        cursor = self._connection.execute(sql.replace("?", self._mark), values)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """The statement for each of the rows."""
        self._connection.cursor().executemany(sql.replace("?", self._mark), rows)

    def stream(self, sql: str) -> Iterator[Any]:
        """The rows that it answers, one after the other."""
        if isinstance(self._connection, sqlite3.Connection):
            yield from self._connection.execute(sql)
            return
        with self._connection.transaction(), self._connection.cursor("stream") as cursor:
            cursor.itersize = 20_000
            yield from cursor.execute(sql)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.run("BEGIN")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK")
            raise
        self.run("COMMIT")

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


@dataclass(frozen=True)
class Places:
    """Where everything is: URLs of the state store and of both sides, and connections that bypass trueup."""

    kind: str
    state: str
    shop_url: str
    erp_url: str
    shop: Database
    erp: Database

    def close(self) -> None:
        """Ends the connections."""
        self.shop.close()
        self.erp.close()


def connected(url: str) -> Database:
    """A connection to the database of a URL, which is made where it is a file."""
    if not url.startswith("sqlite:///"):
        return Database(psycopg.connect(url, autocommit=True), "%s")
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return Database(connection, "?")


def on_sqlite(folder: Path) -> Places:
    """Three new files in this folder."""
    state, shop, erp = (f"sqlite:///{folder}/{name}.db" for name in ("state", "shop", "erp"))
    places = Places("SQLite", state, shop, erp, connected(shop), connected(erp))
    for statement in _SHOP_TABLES:
        places.shop.run(statement)
    for statement in (*_ERP_TABLES, *_SQLITE_RULES):
        places.erp.run(statement)
    return places


def on_postgres(url: str) -> Places:
    """All three in one empty database."""
    places = Places("PostgreSQL", url, url, url, connected(url), connected(url))
    for statement in (*_SHOP_TABLES, *_ERP_TABLES, *_POSTGRES_RULES):
        places.shop.run(statement)
    return places
