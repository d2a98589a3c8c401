"""Two small sides in memory and a project around them, for stories about the engine."""

from __future__ import annotations

from typing import Any

from trueup.bound import BoundPair
from trueup.project import Project
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock

COLUMNS = {"id": "integer", "name": "text", "fee": "decimal", "status": "text", "v": "integer"}


class School:
    """An authority with versions, a replica, a clock, and a pair `people` between them."""

    def __init__(self, rows: list[dict[str, Any]] | None = None, *, tokens: str = "digest", **options: Any) -> None:
        self.clock = ManualClock()
        rows = rows if rows is not None else [person(at) for at in range(1, 6)]
        self.authority = Memory(rows, key="id", version="v", columns=COLUMNS, clock=self.clock, label="school")
        replica = {name: kind for name, kind in COLUMNS.items() if name != "v"}
        copies = [{name: value for name, value in row.items() if name != "v"} for row in rows]
        self.replica = Memory(copies, key="id", columns=replica, clock=self.clock, tokens=tokens, label="platform")  # type: ignore[arg-type]
        self.project = Project(state="memory:", clock=self.clock, seed=7, threads=1)
        self.pair: BoundPair = self.project.pair(
            "people", authority=self.authority, replica=self.replica, **({"settle": 0} | options)
        )

    def adopted(self) -> School:
        """The same, with a complete baseline."""
        self.pair.adopt()
        return self

    @property
    def ledger(self) -> Any:
        return self.project.ledger

    @property
    def cases(self) -> dict[str, str]:
        """Drift by key of the open cases."""
        return {case.key: case.drift for case in self.project.archive.cases("people")}

    def drain(self) -> dict[str, int]:
        return dict(self.project.worker().drain(10_000_000_000))

    def row(self, ident: int) -> Any:
        return self.ledger.rows("people", [key(ident)]).get(key(ident))


def person(ident: int, **changed: Any) -> dict[str, Any]:
    return {"id": ident, "name": f"n{ident}", "fee": "1.50", "status": "registered", "v": ident} | changed


def key(ident: int) -> str:
    return f'["{ident}"]'
