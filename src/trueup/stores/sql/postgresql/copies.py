"""Backup and restore of a store on PostgreSQL, by its own pg_dump and pg_restore."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from psycopg import conninfo

from trueup.errors import StateError
from trueup.stores.sql.copies import appearing
from trueup.stores.sql.postgresql.address import Address, parse
from trueup.stores.sql.postgresql.database import Database
from trueup.stores.sql.postgresql.migrations import migrate
from trueup.stores.sql.postgresql.trouble import in_our_words
from trueup.stores.sql.restored import distrust

_MAGIC: Final = b"PGDMP"
_SAID_CHARACTERS_MAX: Final = 300


def back_up(url: str, target: Path) -> None:
    """Writes a dump of the store's schema as it is at one moment. StateError where there is none, or a file already."""
    address = parse(url)
    if not _has_schema(address):
        raise StateError(f"{address.label}: there is no state store.", hint="Run `trueup run` or `trueup adopt` first.")
    with appearing(target) as part:
        _call(
            "pg_dump", address, "--format=custom", "--no-owner", "--no-privileges",
            f"--schema={address.quoted_schema}", f"--file={part}",
        )  # fmt: skip


def restore(url: str, source: Path) -> int:
    """Puts a dump where the store was, and marks what it must not believe; answers how many records it knows.

    StateError where the schema is there, or `source` is no dump of it.
    """
    address = parse(url)
    if _has_schema(address):
        raise StateError(
            f"{address.label} has a schema {address.schema}.",
            hint="Stop all programs that use it, and move it away: "
            f"ALTER SCHEMA {address.quoted_schema} RENAME TO {address.schema}_lost",
        )
    try:
        with source.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise StateError(f"{source} can't be read: {error.strerror}.", hint="Name another one.") from None
    if magic != _MAGIC:
        raise StateError(f"{source} is no backup of a state store on PostgreSQL.", hint="Name another one.")
    _call(
        "pg_restore", address, "--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", str(source)
    )
    if not _has_schema(address):
        raise StateError(
            f"{source} holds another schema than {address.schema}.",
            hint="Name the schema that it was made of: ?schema=… at the end of state.",
        )
    with in_our_words(address.label):
        database = Database(address)
        try:
            with database.connect() as connection:
                migrate(connection, address)
            return distrust(database)
        finally:
            database.close()


def _has_schema(address: Address) -> bool:
    with in_our_words(address.label):
        database = Database(address)
        try:
            with database.connect() as connection:
                asked = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
                return connection.execute(asked, (address.schema,)).fetchone() is not None
        finally:
            database.close()


def _call(program: str, address: Address, *options: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise StateError(
            f"{program} is not installed.",
            hint="Install PostgreSQL's client programs, of the server's version or newer.",
        )
    parameters = dict(address.parameters)
    # Everybody on the machine sees the arguments of a program, and nobody else its environment.
    password = parameters.pop("password", None)
    environment = os.environ | ({} if password is None else {"PGPASSWORD": str(password)})
    place = f"--dbname={conninfo.make_conninfo(**parameters)}"
    done = subprocess.run(  # noqa: S603  no shell, and a program of a fixed name
        [found, place, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StateError(
            f"{address.label}: {program} failed: {_said(done.stderr.splitlines())}.", hint="Mend its cause."
        )


def _said(lines: Sequence[str]) -> str:
    """What it complained about first."""
    errors = [line for line in lines if "error:" in line] or list(lines) or ["it gave no reason"]
    return errors[0].strip().rstrip(".")[:_SAID_CHARACTERS_MAX]
