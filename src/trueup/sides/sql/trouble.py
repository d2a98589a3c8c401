"""Errors of drivers and servers in our own words: they name the table and the host, and never a value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import BadInput, IncompleteScan, SchemaError, SideError, TrueupError, Unreachable
from trueup.sides.sql.dialects import Dialect, Trouble


class Busy(Exception):
    """Another session holds what this one needs; the transaction may be repeated."""


class RowRefused(BadInput):
    """The server refused what a row would hold; nothing of its transaction was kept."""


@contextmanager
def in_our_words(dialect: Dialect, label: str, place: str, *, scanning: bool = False) -> Iterator[None]:
    """Turns errors of SQLAlchemy, drivers and Arrow into TrueupErrors.

    place: host or file. scanning: rows were already delivered, so an end is an early end.
    """
    try:
        yield
    except TrueupError:
        raise
    except sa.exc.DBAPIError as error:
        raise _said(dialect, error.orig or error, label, place, scanning) from None
    except sa.exc.TimeoutError:
        raise Unreachable(f"{label} at {place}: all connections are in use.", hint="Run fewer workers.") from None
    except pa.ArrowException as error:
        raise IncompleteScan(f"{label} at {place}: a row can't be parsed ({type(error).__name__}).") from error
    except Exception as error:
        if not _of_a_driver(error):
            raise
        raise _said(dialect, error, label, place, scanning) from None


@contextmanager
def unrepeated() -> Iterator[None]:
    """Where nobody repeats the transaction: Busy is raised as Unreachable."""
    try:
        yield
    except Busy as busy:
        raise Unreachable(str(busy), hint=_KINDS["retry"][1]) from None


def _of_a_driver(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) or type(error).__module__.split(".")[0] in ("psycopg", "pymysql", "_duckdb")


def _said(dialect: Dialect, error: BaseException, label: str, place: str, scanning: bool) -> Exception:
    trouble, words = dialect.trouble(error)
    if trouble == "retry":
        return Busy(f"{label} at {place}: {words}.")
    if scanning and trouble in ("unreachable", "timeout", "other"):
        hint = _TIMEOUT if trouble == "timeout" else "Nothing was concluded from it; run it again."
        return IncompleteScan(f"{label} at {place}: the enumeration ended early ({words}).", hint=hint)
    kind, hint = _KINDS[trouble]
    return kind(f"{label} at {place}: {_SENTENCES[trouble].format(words=words)}.", hint=hint)


_TIMEOUT = "Give its statements more time (timeout_s, or --timeout of diff), or let it read less."
_SENTENCES: dict[Trouble, str] = {
    "unreachable": "it does not answer ({words})",
    "login": "{words}",
    "permission": "not permitted ({words})",
    "schema": "{words}",
    "constraint": "a constraint refuses the row ({words})",
    "value": "the server refuses a value ({words})",
    "retry": "{words}",
    "busy": "{words}",
    "timeout": "the statement was ended ({words})",
    "other": "the server answers with an error ({words})",
}
_KINDS: dict[Trouble, tuple[type[SideError], str]] = {
    "unreachable": (Unreachable, "Is it running, and do host and port in the URL fit?"),
    "login": (Unreachable, "Check user, password and database in the URL."),
    "permission": (Unreachable, "Grant the user of the URL this right."),
    "schema": (SchemaError, "Check table, columns and conditions against the database."),
    "constraint": (RowRefused, "Put the record it depends on first, or look at what the constraint demands."),
    "value": (RowRefused, "Compare the types of the two columns."),
    "retry": (Unreachable, "Try again when the other session is done."),
    "busy": (Unreachable, "Try again when it is done."),
    "timeout": (Unreachable, _TIMEOUT),
    "other": (SideError, "The server's log says more."),
}
