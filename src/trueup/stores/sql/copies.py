"""Backup and restore of a store in an SQLite file.

SQLite's own online backup (https://www.sqlite.org/backup.html) copies one moment while others write.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trueup.errors import StateError
from trueup.stores.sql import path_of
from trueup.stores.sql.restored import distrust
from trueup.stores.sql.sqlite import SqliteFile


def back_up(url: str, target: Path) -> None:
    """Writes a copy of the store as it is at one moment. StateError where there is no store, or a file already."""
    file = SqliteFile(path_of(url), create=False)
    try:
        with appearing(target) as part, file.reading() as connection, closing(sqlite3.connect(part)) as copy:
            connection.backup(copy)
            # Without a second file beside it: a backup is one file.
            copy.execute("PRAGMA journal_mode = DELETE")
            if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise StateError(f"{target}: the copy is damaged.", hint="Is the disk sound? Back up again.")
    finally:
        file.close()


def restore(url: str, source: Path) -> int:
    """Puts a backup where the store was, and marks what it must not believe; answers how many records it knows.

    StateError where a store is there, or `source` is no backup of one.
    """
    path = path_of(url)
    if found := [each for each in beside(path) if each.exists()]:
        raise StateError(f"{found[0]} exists.", hint="Stop all programs that use it, and move it away first.")
    check(source)
    with appearing(path) as part:
        shutil.copyfile(source, part)
        file = SqliteFile(part, create=False)
        try:
            records = distrust(file)
            with file.reading() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            file.close()
            for each in (*beside(part)[1:], part.with_name(part.name + "-turn")):
                each.unlink(missing_ok=True)
    return records


def vacuum(url: str) -> int:
    """Writes the file anew without its gaps; answers how many bytes it is smaller. Writers wait meanwhile."""
    file = SqliteFile(path_of(url), create=False)
    try:
        before = sum(each.stat().st_size for each in beside(file.path) if each.exists())
        with file.reading() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA optimize")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return max(0, before - sum(each.stat().st_size for each in beside(file.path) if each.exists()))
    finally:
        file.close()


def check(source: Path) -> None:
    """StateError where `source` holds no state store, or a damaged one."""
    if not source.is_file():
        raise StateError(f"there is no {source}.", hint="Write one: trueup state backup FILE")
    try:
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trueup_schema'").fetchone()
            sound = known is not None and connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except sqlite3.DatabaseError:
        sound = False
    if not sound:
        raise StateError(f"{source} is no backup of a state store, or it is damaged.", hint="Name another one.")


def beside(path: Path) -> list[Path]:
    """The file, and those in which SQLite keeps what belongs to it."""
    return [path, *(path.with_name(path.name + each) for each in ("-wal", "-shm", "-journal"))]


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A file that only the owner may read, which becomes `target` at the end of the block, whole or not at all.

    StateError where `target` exists, or can't be written.
    """
    if target.exists():
        raise StateError(f"{target} exists.", hint="Name a new file; a backup is never written over another one.")
    part = target.with_name(f".{target.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(target)
    except OSError as error:
        raise StateError(f"{target} can't be written: {error.strerror}.", hint="Name another file.") from None
    finally:
        part.unlink(missing_ok=True)
