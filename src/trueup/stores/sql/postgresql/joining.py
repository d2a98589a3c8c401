"""Offers inside a caller's own transaction: they live and die with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from trueup.errors import StateError
from trueup.stores.sql.postgresql.database import Connection, Database, Overtaken, Session
from trueup.stores.sql.postgresql.trouble import in_our_words

_T = TypeVar("_T")
# When a server started and the number of the database name a database among all servers, whatever proxies and
# names lie between; both are free to ask.
_WHICH: Final = """
    SELECT pg_postmaster_start_time()::text, (SELECT oid::text FROM pg_database WHERE datname = current_database())
"""


class Joining:
    """Runs work in transactions of callers on the database that holds the state."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: weakref.WeakSet[Connection] = weakref.WeakSet()

    def run(self, work: Callable[[Session], _T], caller: Any) -> _T:
        """What `work` answers, kept if the caller commits and undone if it raises.

        caller: a psycopg.Connection, or an SQLAlchemy Connection or Session over psycopg, with a transaction.
        Raises StateError for anything else.
        """
        connection = self._connection_of(caller)
        session = Session(connection)
        with in_our_words(self._database.address.label):
            if connection.info.transaction_status is TransactionStatus.IDLE:
                if connection.autocommit:
                    raise StateError(
                        "connection= has no open transaction to join.",
                        hint="Begin one before the offer, and commit it.",
                    )
                session.send("SELECT 1")  # psycopg begins one with the first statement
            self._check(session)
            while True:
                try:
                    with connection.transaction():
                        return work(session)
                except Overtaken:
                    continue

    def _connection_of(self, caller: Any) -> Connection:
        if hasattr(caller, "get_bind") and callable(getattr(caller, "connection", None)):
            caller = caller.connection()  # of an SQLAlchemy session
        if isinstance(caller, psycopg.Connection):
            return caller
        inner = getattr(getattr(caller, "connection", None), "driver_connection", None)
        if not isinstance(inner, psycopg.Connection):
            if inner is None:
                raise self._elsewhere()
            raise StateError(
                f"connection= uses the driver {type(inner).__module__.partition('.')[0]}, which can't be joined.",
                hint="Write the URL of your engine as postgresql+psycopg://….",
            )
        if not caller.in_transaction():
            # Else the caller's commit() would find nothing to commit, and the offer would be lost.
            caller.begin()
        return inner

    def _check(self, session: Session) -> None:
        if session.connection in self._known:
            return
        theirs = session.send(_WHICH).fetchone()
        ours = self._database.read(lambda own: own.send(_WHICH).fetchone())
        if theirs != ours:
            raise self._elsewhere()
        self._known.add(session.connection)

    def _elsewhere(self) -> StateError:
        return StateError(
            f"connection= is not a connection to the database that holds the state, {self._database.address.label}.",
            hint="Leave out connection=, or keep the state in the same database.",
        )
