"""What all engines share: a table to be made, and who makes it. Values go in by drivers, never through trueup."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.model.kinds import Kind
from trueup.ports import Side
from trueup.testing.pairs.types import Type
from trueup.testing.pairs.values import KINDS

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Table:
    """One of the two tables of a pair, ready to be made.

    key: names of its columns. lone: name of one more column, with nothing in it. strict, alike: as in `Pair`.
    """

    columns: Mapping[str, Type]
    key: tuple[str, ...]
    rows: tuple[Row, ...]
    constraint: str
    zone: str | None
    lone: str | None
    strict: bool
    alike: bool

    @property
    def told(self) -> dict[str, Kind]:
        """The kinds that the side has to be told."""
        return {name: KINDS[each.family] for name, each in self.columns.items() if each.told}

    def stored(self, chance: random.Random) -> list[list[Any]]:
        """What is handed to the engine, row by row."""
        types = list(self.columns.values())
        return [[self._one(text, type_, chance) for type_, text in zip(types, row, strict=True)] for row in self.rows]

    def _one(self, text: str | None, type_: Type, chance: random.Random) -> Any:
        if self.alike and type_.spell is not None:
            chance.seed(text or "")
        return type_.stored(text, chance)


class Engine(ABC):
    """Makes tables. Those that it made before are gone after `clear`."""

    @abstractmethod
    def make(self, table: Table, chance: random.Random) -> Side:
        """A side over a new table with these rows. chance: picks among spellings of a value."""

    @abstractmethod
    def clear(self) -> None:
        """Drops what was made."""
