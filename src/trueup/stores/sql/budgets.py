"""Budgets in SQL: one row of JSON for each system, which whoever judges it holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, TypeVar

from trueup.model.health import HEALTHY, Health
from trueup.ports import Clock
from trueup.stores.budgets import ALL, HealthBudgets, Rule, dump_health, read_health
from trueup.stores.sql.storage import Session, Storage

_T = TypeVar("_T")
# For so long a system that was free is taken to be free: a pause made elsewhere is obeyed this much later at most.
FREE_S: Final = 0.05


class SqlBudgets(HealthBudgets):
    """Budgets in a database, shared by all its workers."""

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._storage = storage
        self._free: dict[str, tuple[float, Health]] = {}

    def _change(self, name: str, rule: Rule[_T], *, durable: bool = False) -> _T:
        def judged(session: Session) -> tuple[bool, _T, Health]:
            statement = f"SELECT health FROM trueup_system WHERE name = ? {self._storage.for_update}"
            found = session.execute(statement, (name,)).fetchone()
            health = HEALTHY if found is None else read_health(found[0])
            answer, after = rule(health, self._storage.now_us(session, self._clock))
            saved = after == health or _saved(session, name, dump_health(after), new=found is None)
            return saved, answer, after

        while True:
            saved, answer, after = self._storage.write(judged, repeatable=False, durable=durable)
            if saved:
                break
        if name == ALL or not after.free:
            self._free.clear()
        elif lately := self._free.get(name):
            self._free[name] = lately[0], after  # of this system no more is known than before, but what it spent
        return answer

    def healths(self, names: Sequence[str]) -> dict[str, Health]:
        """As the store knows them; a system that was free less than 50 ms ago is taken to be free."""
        asked_at = time.monotonic()
        found = {name: health for name in names if (health := self._lately(name, asked_at)) is not None}
        if len(found) < len(set(names)):
            found = super().healths(names)
            self._free.update({name: (asked_at, health) for name, health in found.items() if health.free})
        return found

    def _lately(self, name: str, now: float) -> Health | None:
        asked_at, health = self._free.get(name, (0.0, HEALTHY))
        return health if now - asked_at < FREE_S else None

    def _known(self, names: Sequence[str]) -> dict[str, Health]:
        marks = ", ".join("?" * len(names))
        statement = f"SELECT name, health FROM trueup_system WHERE name IN ({marks})"
        found = self._storage.read(lambda session: session.execute(statement, tuple(names)).fetchall())
        return {str(name): read_health(text) for name, text in found}

    def _now_us(self) -> int:
        return self._storage.read(lambda session: self._storage.now_us(session, self._clock))

    def names(self) -> list[str]:
        """Systems of which anything is known."""
        statement = "SELECT name FROM trueup_system ORDER BY name"
        found = self._storage.read(lambda session: session.execute(statement).fetchall())
        return [str(name) for (name,) in found]


def _saved(session: Session, name: str, health: str, *, new: bool) -> bool:
    """Whether the row was written: False where somebody else was the first to create it."""
    if new:
        statement = "INSERT INTO trueup_system (name, health) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
        return bool(session.execute(statement, (name, health)).rowcount == 1)
    session.execute("UPDATE trueup_system SET health = ? WHERE name = ?", (health, name))
    return True
