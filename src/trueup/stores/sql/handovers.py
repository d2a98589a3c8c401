"""Handovers in SQL: a table for each kind of place. Whoever changes a place holds its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic

from trueup.model import handover as rules
from trueup.model.handover import H
from trueup.ports import Clock
from trueup.stores.sql.storage import Session, Storage, marks, storable

_SHARED: Final = ("owner", "fence", "ready_us", "tries", "failed", "error")


class SqlHandovers(Generic[H]):
    """Places of one kind in a database. clock: by default the storage's.

    table, columns: of a kind: what names a place, what it has, and when something arrived. new: a place that nobody was
    at. has: what it has, as columns. made: a place from what all places have, by name, and those columns.
    """

    def __init__(
        self, storage: Storage, clock: Clock | None, table: str, columns: tuple[str, str, str, str], *,
        new: Callable[[str], H], has: Callable[[H], tuple[Any, Any]], made: Callable[[Mapping[str, Any], Any, Any], H],
    ) -> None:  # fmt: skip
        self._storage, self._clock, self._new, self._has, self._made = storage, clock, new, has, made
        key, *rest = names = (*columns[:3], *_SHARED, columns[3])
        self._select = f"SELECT {', '.join(names)} FROM {table} WHERE {key}"
        self._insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks(names)}) ON CONFLICT ({key}) DO"
        self._update = f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in rest)}"

    def known(self, names: Sequence[str]) -> dict[str, H]:
        """How it stands with each of these places."""
        statement = f"{self._select} IN ({marks(names) or 'NULL'})"
        found = self._storage.read(lambda session: session.execute(statement, tuple(names)).fetchall())
        return {name: self._new(name) for name in names} | {each.name: each for each in map(self._read, found)}

    def claim(self, seen: H, take: Callable[[H, int], H]) -> H | None:
        """Takes a place that nobody changed since it was read; None where somebody did."""
        taken: H | None = None

        def claim(session: Session) -> H | None:
            nonlocal taken
            # There is a row to hold, whoever else wants it.
            session.execute(f"{self._insert} NOTHING", self._values(self._new(seen.name)))
            stored = self._held(session, seen.name)
            if taken is not None and rules.held(stored, taken):
                return taken  # this is a repetition: the answer to the commit was lost
            now_us = self._storage.now_us(session, self._clock)
            if not rules.claimable(stored, seen, now_us):
                return None
            taken = take(stored or seen, now_us)
            session.execute(f"{self._insert} {self._update}", self._values(taken))
            return taken

        return self._storage.write(claim)

    def end(self, ended: H) -> bool:
        """Frees a place and stores what it has now; False where the fence is old."""

        def end(session: Session) -> bool:
            stored = self._held(session, ended.name)
            if not rules.held(stored, ended):
                # Stored already, where the answer to the commit was lost.
                return stored is not None and self._values(stored) == self._values(ended)
            session.execute(f"{self._insert} {self._update}", self._values(ended))
            return True

        return self._storage.write(end)

    def _held(self, session: Session, name: str) -> H | None:
        """The place as it is stored, held until the transaction ends."""
        found = session.execute(f"{self._select} = ? {self._storage.for_update}", (name,)).fetchone()
        return None if found is None else self._read(found)

    def _values(self, of: H) -> tuple[Any, ...]:
        shared = (of.owner, of.fence, of.ready_us, of.tries, of.failed, storable(of.error))
        return (of.name, *self._has(of), *shared, of.arrived_us)

    def _read(self, values: Sequence[Any]) -> H:
        name, first, second, *shared = values
        named = dict(zip(("name", *_SHARED, "arrived_us"), (name, *shared), strict=True))
        return self._made(named, first, second)
