"""Where trueup keeps its own state: ledgers and archives. Adapters of `trueup.ports`, opened by URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trueup.errors import StateError
from trueup.ports import NOBODY, Archive, Budgets, Clock, Ledger, Observer, Runs

if TYPE_CHECKING:
    from trueup.stores.memory import MemoryLedger
    from trueup.stores.sql import SqlLedger
    from trueup.stores.sql.postgresql import PostgresqlLedger


def open_store(
    url: str, clock: Clock | None = None, observer: Observer = NOBODY
) -> tuple[Ledger, Archive, Budgets]:  # fmt: skip
    """The ledger, archive and budgets at this URL, by the store's own clock where none is given.

    observer: is told what the ledger answers.
    """
    ledger, archive, budgets = _opened(url, clock)
    ledger.observer = observer
    return ledger, archive, budgets


def _opened(
    url: str, clock: Clock | None
) -> tuple[MemoryLedger | SqlLedger | PostgresqlLedger, Archive, Budgets]:  # fmt: skip
    if url == "memory:":
        from trueup.stores.budgets import MemoryBudgets  # noqa: PLC0415  adapters load when used
        from trueup.stores.memory import MemoryArchive, MemoryLedger  # noqa: PLC0415

        return MemoryLedger(clock), MemoryArchive(clock), MemoryBudgets(clock)
    if url.startswith("sqlite:"):
        from trueup.stores.sql import open_sqlite  # noqa: PLC0415

        return open_sqlite(url, clock)
    if url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql import open_postgresql  # noqa: PLC0415

        return open_postgresql(url, clock)
    raise _unknown(url)


def name_of(url: str) -> str:
    """How people are told which store this is: never with a password. Raises StateError."""
    if url.startswith("sqlite:"):
        from trueup.stores.sql import path_of  # noqa: PLC0415  adapters load when used

        return str(path_of(url))
    if url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql.address import parse  # noqa: PLC0415

        return parse(url).label
    return url.partition(":")[0]


def check_store(url: str) -> None:
    """Whether what is at this URL can be read and written now; changes nothing. Raises StateError where not."""
    if url.startswith("sqlite:"):
        from trueup.stores.sql.sqlite import check_file  # noqa: PLC0415  adapters load when used

        check_file(Path(name_of(url)))
    elif url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql.database import check_server  # noqa: PLC0415

        check_server(url)


def back_up(url: str, target: Path) -> None:
    """Writes the store at this URL, as it is at one moment, to a new file. Raises StateError."""
    if url.startswith("sqlite:"):
        from trueup.stores.sql.copies import back_up as copy  # noqa: PLC0415  adapters load when used
    elif url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql.copies import back_up as copy  # noqa: PLC0415
    else:
        raise _unknown(url)
    copy(url, target)


def restore(url: str, source: Path) -> int:
    """Makes the store at this URL anew from a backup; answers how many records it knows. Raises StateError.

    What was learnt after the backup is not believed to be known: see `trueup.stores.sql.restored`.
    """
    if url.startswith("sqlite:"):
        from trueup.stores.sql.copies import restore as put_back  # noqa: PLC0415  adapters load when used
    elif url.startswith(("postgresql:", "postgres:")):
        from trueup.stores.sql.postgresql.copies import restore as put_back  # noqa: PLC0415
    else:
        raise _unknown(url)
    return put_back(url, source)


def vacuum(url: str) -> int:
    """Gives space that the store at this URL no longer needs back to the disk; answers how many bytes.

    Raises StateError, also where the store does so by itself.
    """
    if not url.startswith("sqlite:"):
        raise StateError("Only a state store on SQLite is vacuumed.", hint="PostgreSQL's autovacuum does it by itself.")
    from trueup.stores.sql.copies import vacuum as shrink  # noqa: PLC0415  adapters load when used

    return shrink(url)


def _unknown(url: str) -> StateError:
    return StateError(
        f"state {url.partition(':')[0]}: is not supported.",
        hint="Use sqlite:///path/to/trueup.db or postgresql://host/database.",
    )


def nowhere() -> Runs:
    """Where the plan of a dry run is kept until it was shown."""
    from trueup.stores.memory import MemoryArchive  # noqa: PLC0415  adapters load when used

    return MemoryArchive()
