"""State in a database: one store holds ledger, archive and budgets of all pairs of a project."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from trueup.errors import StateError
from trueup.ports import Clock
from trueup.stores.sql.archive import SqlArchive
from trueup.stores.sql.budgets import SqlBudgets
from trueup.stores.sql.ledger import SqlLedger
from trueup.stores.sql.sqlite import BUSY_S, SqliteFile

__all__ = ["SqlArchive", "SqlBudgets", "SqlLedger", "SqlStore", "open_sqlite", "path_of"]


class SqlStore:
    """A state store by URL, such as `sqlite:///trueup.db` (relative) or `sqlite:////var/lib/trueup.db`.

    clock: the store's clock, for tests; by default this machine's.
    create: whether a store that does not exist is created. durable: see `SqliteFile`.
    busy_s: seconds to wait for another program that writes to the store.
    Raises StateError where the store is missing, locked, read-only, newer than this program, or no store.
    """

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        create: bool = True,
        durable: bool = True,
        busy_s: float = BUSY_S,
    ) -> None:
        self._file = SqliteFile(path_of(url), create=create, durable=durable, busy_s=busy_s)
        self.ledger = SqlLedger(self._file, clock)
        self.archive = SqlArchive(self._file, clock)
        self.budgets = SqlBudgets(self._file, clock)

    def close(self) -> None:
        """Gives back connections; safe to call twice."""
        self._file.close()


def open_sqlite(url: str, clock: Clock | None = None) -> tuple[SqlLedger, SqlArchive, SqlBudgets]:
    """The ledger, the archive and the budgets of the store at `url`, which is created where it does not exist."""
    store = SqlStore(url, clock)
    return store.ledger, store.archive, store.budgets


def path_of(url: str) -> Path:
    """The file of a store by URL; StateError where it names none."""
    split = urlsplit(url)
    path = unquote(split.path).removeprefix("/")
    if split.scheme != "sqlite" or split.netloc:
        raise StateError(
            f"State is kept in SQLite, and {split.scheme or 'this'} is not the scheme of an SQLite URL.",
            hint="Write state as sqlite:///trueup.db.",
        )
    if path in ("", ":memory:"):
        raise StateError("The state store names no file.", hint="Write state as sqlite:///trueup.db.")
    return Path(path)
