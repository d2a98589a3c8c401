"""Budgets in SQL: one row of JSON for each system, changed by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from trueup.model.budget import HEALTHY, Health
from trueup.ports import Clock
from trueup.stores.budgets import HealthBudgets, dump_health, read_health
from trueup.stores.sql.storage import Session, Storage

_T = TypeVar("_T")


class SqlBudgets(HealthBudgets):
    """Budgets in a database, shared by all its workers."""

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._storage = storage

    def _change(self, name: str, rule: Callable[[Health], tuple[_T, Health]]) -> _T:
        while True:
            before = self._text(name)
            health = HEALTHY if before is None else read_health(before)
            answer, after = rule(health)
            # Whoever changed the row meanwhile is judged again, whatever the database locks.
            if after == health or self._swapped(name, before, dump_health(after)):
                return answer

    def _swapped(self, name: str, before: str | None, after: str) -> bool:
        def swap(session: Session) -> bool:
            if before is None:
                statement = "INSERT INTO trueup_system (name, health) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
                return bool(session.execute(statement, (name, after)).rowcount == 1)
            statement = "UPDATE trueup_system SET health = ? WHERE name = ? AND health = ?"
            return bool(session.execute(statement, (after, name, before)).rowcount == 1)

        return self._storage.write(swap, repeatable=False)

    def _load(self, name: str) -> Health:
        text = self._text(name)
        return HEALTHY if text is None else read_health(text)

    def _text(self, name: str) -> str | None:
        statement = "SELECT health FROM trueup_system WHERE name = ?"
        found = self._storage.read(lambda session: session.execute(statement, (name,)).fetchone())
        return None if found is None else str(found[0])

    def names(self) -> list[str]:
        """Systems of which anything is known."""
        statement = "SELECT name FROM trueup_system ORDER BY name"
        found = self._storage.read(lambda session: session.execute(statement).fetchall())
        return [str(name) for (name,) in found]
