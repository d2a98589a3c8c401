"""State on PostgreSQL, in a schema of its own: for several hosts, and for offers inside your own transactions."""

from __future__ import annotations

from trueup.errors import ConfigError
from trueup.ports import Clock

try:
    import psycopg as _psycopg  # noqa: F401
except ImportError:
    raise ConfigError(
        "State on PostgreSQL needs the driver psycopg, which is not installed.",
        hint='Run: pip install "trueup[postgres]"',
    ) from None

from trueup.stores.sql.archive import SqlArchive
from trueup.stores.sql.budgets import SqlBudgets
from trueup.stores.sql.postgresql.address import parse
from trueup.stores.sql.postgresql.database import PATIENCE_S, Database
from trueup.stores.sql.postgresql.ledger import PostgresqlLedger
from trueup.stores.sql.postgresql.migrations import migrate
from trueup.stores.sql.postgresql.trouble import in_our_words

__all__ = ["PostgresqlLedger", "PostgresqlStore", "open_postgresql"]


class PostgresqlStore:
    """A state store by URL, such as `postgresql://user@host/database?schema=trueup`.

    clock: the store's clock, for tests; by default the database's. patience_s: see `Database`.
    Raises StateError where the server does not answer, refuses, or holds a store newer than this program.
    """

    def __init__(self, url: str, clock: Clock | None = None, *, patience_s: float = PATIENCE_S) -> None:
        address = parse(url)
        self._database = Database(address, patience_s)
        with in_our_words(address.label), self._database.connect() as connection:
            migrate(connection, address)
        self.ledger = PostgresqlLedger(self._database, clock)
        self.archive = SqlArchive(self._database, clock)
        self.budgets = SqlBudgets(self._database, clock)

    def close(self) -> None:
        """Gives back connections; safe to call twice."""
        self.ledger.close()


def open_postgresql(url: str, clock: Clock | None = None) -> tuple[PostgresqlLedger, SqlArchive, SqlBudgets]:
    """The ledger, the archive and the budgets of the store at `url`; its tables are created where they lack."""
    store = PostgresqlStore(url, clock)
    return store.ledger, store.archive, store.budgets
