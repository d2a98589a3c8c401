"""What SQL databases share."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from trueup.ports import Side
from trueup.sides.sql import Sql
from trueup.testing.pairs.engines.engine import Engine, Table
from trueup.testing.pairs.types import Type


class _Kept(Sql):
    """A side whose connections outlive it: connecting would take longer than comparing."""

    def __init__(self, engine: sa.Engine, url: str, **declared: Any) -> None:
        super().__init__(url, **declared)
        self._lent = engine

    def _connected(self) -> sa.Engine:
        return self._lent

    def close(self) -> None:
        """Forgets the table, keeps the connections."""
        self._inspected = None


class Database(Engine):
    """A SQL database. quote: of names."""

    quote = '"'

    def __init__(self, url: str) -> None:
        self.url = url
        # Made by a side, so that its sessions are those that a side has.
        self._first = Sql(url, table="x")
        self._engine = self._first._connected()
        self._names: list[str] = []

    def make(self, table: Table, chance: random.Random) -> Side:
        """With its constraint, unless the engine finds that the rows do not meet it."""
        name = chance.choice(("t", "T %s", 'say "hi"', "select", "Größe.x", "it's")) + f" {chance.getrandbits(40):x}"
        defined = [self._column(each, type_, table) for each, type_ in table.columns.items()]
        if table.lone is not None:
            defined.append(f"{self.quoted(table.lone)} integer")
        rows = table.stored(chance)
        constraint = table.constraint
        self._create(name, [*defined, *self._constraint(table, constraint)], chance, table)
        try:
            self._fill(name, list(table.columns), rows)
        except self._duplicate():
            self._drop(name)
            self._create(name, defined, chance, table)
            self._fill(name, list(table.columns), rows)
        self._names.append(name)
        if constraint == "index":
            self._execute(f"CREATE INDEX {self.quoted('i ' + name[-12:])} ON {self.quoted(name)} ({self._key(table)})")
        return _Kept(
            self._engine, self.url, table=name, key=table.key, columns=table.told, zone=table.zone,
            zero_date="strict" if table.strict else "null",
        )  # fmt: skip

    def clear(self) -> None:
        """Drops the tables."""
        for name in self._names:
            self._drop(name)
        self._names = []

    def close(self) -> None:
        """Gives back all connections."""
        self._engine.dispose()

    def quoted(self, name: str) -> str:
        """A name in the engine's quotes."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def _key(self, table: Table) -> str:
        return ", ".join(map(self.quoted, table.key))

    def _constraint(self, table: Table, constraint: str) -> list[str]:
        words = {"primary": "PRIMARY KEY", "unique": "UNIQUE"}
        return [f"{words[constraint]} ({self._key(table)})"] if constraint in words else []

    def _column(self, name: str, type_: Type, table: Table) -> str:
        required = " NOT NULL" if table.constraint == "primary" and name in table.key else ""
        return f"{self.quoted(name)} {type_.declared.replace(' NULL', '') if required else type_.declared}{required}"

    def _create(self, name: str, defined: Sequence[str], chance: random.Random, table: Table) -> None:
        self._execute(f"CREATE TABLE {self.quoted(name)} ({', '.join(defined)})")

    def _drop(self, name: str) -> None:
        self._execute(f"DROP TABLE {self.quoted(name)}")

    @abstractmethod
    def _execute(self, sql: str) -> None: ...

    @abstractmethod
    def _fill(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None: ...

    @abstractmethod
    def _duplicate(self) -> type[Exception]: ...
