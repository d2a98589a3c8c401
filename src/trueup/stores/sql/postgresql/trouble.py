"""Errors of PostgreSQL in our own words: they name the server, and never a value or a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors

from trueup.errors import StateError

_SAID: Final[tuple[tuple[tuple[type[psycopg.Error], ...], str, str], ...]] = (
    (
        (errors.InsufficientPrivilege,),
        "the state store refuses this user",
        "Grant the user of the URL CREATE on the database, or USAGE and CREATE on a schema that exists.",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "the state store is read-only",
        "Name the primary server in the URL, not a standby.",
    ),
    (
        (errors.DiskFull, errors.OutOfMemory),
        "the state store can't grow",
        "Free some space on the server; nothing that was acknowledged is lost.",
    ),
    (
        (errors.TooManyConnections, errors.ConfigurationLimitExceeded),
        "the server of the state store has no connection left",
        "Raise max_connections, or run fewer programs.",
    ),
    (
        (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn),
        "the tables of the state store are missing or changed",
        "Restore them, or name another schema and run `trueup adopt` again.",
    ),
    (
        (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected),
        "the state store is locked by another program",
        "Try again, or find out in pg_stat_activity who holds the lock.",
    ),
    (
        (errors.SerializationFailure,),
        "the caller's transaction was overtaken by another",
        "Repeat the transaction, or run it in READ COMMITTED.",
    ),
    (
        (errors.InFailedSqlTransaction,),
        "the caller's transaction has failed before",
        "Roll it back, and offer in a new one.",
    ),
)


def is_lost(error: psycopg.Error, connection: psycopg.Connection[object] | None) -> bool:
    """Whether the server went away, or is starting or stopping: a state that may pass by itself."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    return isinstance(error, psycopg.OperationalError) and (connection is None or connection.closed)


def is_beaten(error: psycopg.Error) -> bool:
    """Whether another transaction was faster: this one was undone as if it had never been, and may run again."""
    return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)


@contextmanager
def in_our_words(label: str) -> Iterator[None]:
    """Turns errors of psycopg into StateErrors."""
    try:
        yield
    except psycopg.Error as error:
        raise _said(error, label) from None


def _said(error: psycopg.Error, label: str) -> StateError:
    for kinds, sentence, hint in _SAID:
        if isinstance(error, kinds):
            return StateError(f"{label}: {sentence}.", hint=hint)
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        # libpq names host, port and user, one line for each address that it tried.
        words = str(error).strip().splitlines()[-1].strip()
        hint = "Is it running, and do host, port, user, password and database in the URL of the state fit?"
        return StateError(f"{label}: the state store does not answer ({words}).", hint=hint)
    # Messages of the server may quote values.
    name = f"{type(error).__name__}, {error.sqlstate}" if error.sqlstate else type(error).__name__
    return StateError(f"{label}: the state store answers with an error ({name}).", hint="The server's log says more.")
