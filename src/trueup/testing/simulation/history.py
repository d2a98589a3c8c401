"""The authority, with a number for every state that each record ever had, and a copy of it that lags."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from trueup.model.record import key_text
from trueup.sides.memory import Memory

LAG_US: Final = 4_000_000
Row = Mapping[str, Any]


class History:
    """All states of all records. The number of a state grows with true time, whatever its version says.

    digest: of a row's compared fields. wanted: the digest that the replica should hold, by number of the state; None
    for absent. Restored states get new numbers: they are what is true now.
    """

    def __init__(
        self,
        authority: Memory,
        standby: Memory,
        digest: Callable[[Row], str],
        wanted: Callable[[Row | None], str | None],
    ) -> None:
        self.authority, self.standby = authority, standby
        self._digest, self._wanted = digest, wanted
        self.wanted: dict[int, str | None] = {}
        self._count = count(1)
        self._numbers: dict[str, int] = {}
        self._standby_numbers: dict[str, int] = {}
        self._by_digest: dict[str, dict[str, int]] = {}
        self._coming: deque[tuple[int, str, Row | None, int]] = deque()
        self._absences: set[int] = set()
        self._gone: dict[str, list[tuple[int, int | None]]] = {}
        self.restored_at: dict[str, int] = {}
        for row in authority.rows():
            self._note(_key(row["id"]), row)
        self._standby_numbers = dict(self._numbers)

    def next(self) -> int:
        """The number that the next state will have."""
        return max(self._numbers.values(), default=0) + 1

    def number(self, key: str, *, lagging: bool = False) -> int:
        """The number of the record's state now, or of the one that the lagging copy still shows."""
        return (self._standby_numbers if lagging else self._numbers).get(key, 0)

    def number_of(self, key: str, digest: str | None) -> int | None:
        """The newest number of a state with this digest; None for an absence, or for what never was."""
        return None if digest is None else self._by_digest.get(key, {}).get(digest)

    def put(self, row: Row, now_us: int) -> int:
        """The record has a new state; answers its number."""
        self.authority.put(row)
        return self._note(_key(row["id"]), row, now_us)

    def remove(self, ident: int, now_us: int, version: int | None = None) -> int:
        """The record is gone; answers the number of that state. version: the one that its event will bring."""
        self.authority.remove(ident)
        number = self._note(_key(ident), None, now_us)
        self._absences.add(number)
        self._gone.setdefault(_key(ident), []).append((number, version))
        return number

    def gone(self, number: int) -> bool:
        """Whether this state is an absence."""
        return number in self._absences

    def shown(self, key: str, version: int, number: int) -> int:
        """What a delete of this version shows of an absence: the newest such delete, not what came after it."""
        dated = [at for at, of in self._gone.get(key, ()) if of is not None and of <= version and at <= number]
        return max(dated, default=number)

    def restore(self, rows: list[dict[str, Any]], now_us: int) -> None:
        """The authority is as it was when these were its rows."""
        kept = {row["id"]: row for row in rows}
        for ident in {*kept, *(row["id"] for row in self.authority.rows())}:
            if kept.get(ident) == self.authority.get(ident):
                continue
            number = self.put(kept[ident], now_us) if ident in kept else self.remove(ident, now_us)
            self.restored_at[_key(ident)] = number

    def catch_up(self, now_us: int) -> None:
        """The lagging copy learns what is old enough."""
        while self._coming and self._coming[0][0] <= now_us:
            _, key, row, number = self._coming.popleft()
            if row is None:
                self.standby.remove(ident_of(key))
            else:
                self.standby.put(row)
            self._standby_numbers[key] = number

    def _note(self, key: str, row: Row | None, now_us: int = 0) -> int:
        number = self._numbers[key] = next(self._count)
        self.wanted[number] = self._wanted(row)
        if row is not None:
            self._by_digest.setdefault(key, {})[self._digest(row)] = number
        if now_us:
            self._coming.append((now_us + LAG_US, key, row, number))
        return number


def _key(ident: int) -> str:
    return key_text([str(ident)])


def ident_of(key: str) -> int:
    """The id in a key text."""
    return int(key[2:-2])
