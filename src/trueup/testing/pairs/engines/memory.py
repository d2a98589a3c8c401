"""Memory: Python values, or texts; every column has its kind."""

from __future__ import annotations

import random
from typing import Final

from trueup.ports import Side
from trueup.sides.memory import Memory
from trueup.testing.pairs.engines.engine import Engine, Table
from trueup.testing.pairs.types import NOT_TEXT, Type, written
from trueup.testing.pairs.values import FAMILIES, KINDS


def _sayable(text: str) -> bool:
    """A Python text would be read as JSON, and None is null."""
    return text != "null" and not text.startswith('"')


MEMORY: Final = (
    *(Type("value", each, told=True) for each in FAMILIES if each != "json"),
    Type("value", "json", _sayable, told=True),
    *(Type("text", each, told=True, mistakes=True, spell=written(each)) for each in NOT_TEXT),
)


class InMemory(Engine):
    """Rows in this process."""

    def make(self, table: Table, chance: random.Random) -> Side:
        """With the kinds of all columns."""
        kinds = {**table.told, **({} if table.lone is None else {table.lone: KINDS["integer"]})}
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.stored(chance)]
        return Memory(rows, key=table.key, columns=kinds)

    def clear(self) -> None:
        """Nothing is kept."""
