"""Where trueup keeps its own state: ledgers and archives. Adapters of `trueup.ports`, opened by URL."""

from __future__ import annotations

from trueup.errors import StateError
from trueup.ports import Archive, Budgets, Clock, Ledger, Runs


def open_store(url: str, clock: Clock | None = None) -> tuple[Ledger, Archive, Budgets]:
    """The ledger, archive and budgets at this URL, by the store's own clock where none is given."""
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
    raise StateError(
        f"state {url.partition(':')[0]}: is not supported.",
        hint="Use sqlite:///path/to/trueup.db or postgresql://host/database.",
    )


def nowhere() -> Runs:
    """Where the plan of a dry run is kept until it was shown."""
    from trueup.stores.memory import MemoryArchive  # noqa: PLC0415  adapters load when used

    return MemoryArchive()
