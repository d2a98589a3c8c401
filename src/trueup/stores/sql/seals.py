"""Seals in SQL. Sums are kept as text: they are wider than a column of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from trueup.model.digest import HashSum
from trueup.model.window import Seal
from trueup.stores.sql.storage import Session, Storage, marks

_PLACE: Final = ("pair", "from_us", "to_us")
_HELD: Final = (
    "authority_count", "authority_sum", "replica_count", "replica_sum", "asked", "run", "sealed_us", "checked_us",
)  # fmt: skip
_COLUMNS: Final = (*_PLACE, *_HELD)
_SEAL: Final = f"""
    INSERT INTO trueup_seal ({", ".join(_COLUMNS)}) VALUES ({marks(_COLUMNS)})
    ON CONFLICT ({", ".join(_PLACE)}) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _HELD)}
"""
_BREAK: Final = f"DELETE FROM trueup_seal WHERE {' AND '.join(f'{name} = ?' for name in _PLACE)}"


class SqlSeals:
    """Seals in a database."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def seals(self, pair: str) -> list[Seal]:
        """All seals of the pair, the earliest window first."""
        statement = f"SELECT {', '.join(_COLUMNS)} FROM trueup_seal WHERE pair = ? ORDER BY from_us, to_us"
        found: list[Any] = self._storage.read(lambda session: session.execute(statement, (pair,)).fetchall())
        return [_seal(values) for values in found]

    def seal(self, seals: Sequence[Seal]) -> None:
        """Stores seals; one of the same window replaces the former."""
        rows = [_kept(seal) for seal in sorted(seals, key=_place)]
        self._storage.write(lambda session: session.executemany(_SEAL, rows))

    def break_seals(self, seals: Sequence[Seal]) -> int:
        """Forgets the seals of these windows; answers how many there were."""

        def forget(session: Session) -> int:
            return sum(session.execute(_BREAK, _place(seal)).rowcount for seal in sorted(seals, key=_place))

        return self._storage.write(forget)


def _place(seal: Seal) -> tuple[str, int, int]:
    return seal.pair, seal.from_us, seal.to_us


def _kept(seal: Seal) -> tuple[Any, ...]:
    left, right = seal.left, seal.right
    held = left.count, str(left.total), right.count, str(right.total)
    return (*_place(seal), *held, seal.asked, seal.run, seal.sealed_us, seal.checked_us)


def _seal(values: Sequence[Any]) -> Seal:
    pair, from_us, to_us, left_count, left_sum, right_count, right_sum, *rest = values
    left, right = HashSum(left_count, int(left_sum)), HashSum(right_count, int(right_sum))
    return Seal(pair, from_us, to_us, left, right, *rest)
