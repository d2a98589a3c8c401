"""What SQL databases share: tables on servers, or each in a file of its own."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from trueup.ports import Side
from trueup.sides.sql import Sql
from trueup.testing.pairs.engines.engine import Engine, Table
from trueup.testing.pairs.types import Type

_WORDS = {"primary": "PRIMARY KEY", "unique": "UNIQUE"}


class Database(Engine):
    """Makes a table, fills it, and answers a side over it. quote: of names."""

    quote: ClassVar[str] = '"'

    def make(self, table: Table, chance: random.Random) -> Side:
        """With its constraint, unless the engine finds that the rows do not meet it."""
        self._begin()
        name = chance.choice(("t", "T %s", 'say "hi"', "select", "Größe.x", "it's")) + f" {chance.getrandbits(40):x}"
        rows = table.stored(chance)
        options = self._options(table, chance)
        try:
            self._create(name, table, table.constraint, options)
            self._fill(name, table, rows)
        except self._duplicate():
            self._execute(f"DROP TABLE {self.quoted(name)}")
            self._create(name, table, "", "")
            self._fill(name, table, rows)
        if table.constraint == "index":
            self._execute(f"CREATE INDEX {self.quoted('i ' + name[-12:])} ON {self.quoted(name)} ({self._key(table)})")
        return self._side(
            table=name, key=table.key, columns=table.told, zone=table.zone,
            zero_date="strict" if table.strict else "null",
        )  # fmt: skip

    def quoted(self, name: str) -> str:
        """A name in the engine's quotes."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def _key(self, table: Table) -> str:
        return ", ".join(map(self.quoted, table.key))

    def _create(self, name: str, table: Table, constraint: str, options: str) -> None:
        defined = [self._column(each, type_, table) for each, type_ in table.columns.items()]
        if table.lone is not None:
            defined.append(f"{self.quoted(table.lone)} integer")
        if constraint in _WORDS:
            defined.append(f"{_WORDS[constraint]} ({self._key(table)})")
        self._execute(f"CREATE TABLE {self.quoted(name)} ({', '.join(defined)}) {options}")

    def _column(self, name: str, type_: Type, table: Table) -> str:
        required = " NOT NULL" if table.constraint == "primary" and name in table.key else ""
        return f"{self.quoted(name)} {type_.declared.replace(' NULL', '') if required else type_.declared}{required}"

    def _options(self, table: Table, chance: random.Random) -> str:
        """What stands behind the columns, where there is a constraint."""
        return ""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _side(self, **declared: Any) -> Side: ...

    @abstractmethod
    def _execute(self, sql: str) -> None: ...

    @abstractmethod
    def _fill(self, name: str, table: Table, rows: Sequence[Sequence[Any]]) -> None: ...

    @abstractmethod
    def _duplicate(self) -> type[Exception]: ...


class Server(Database):
    """A database on a server. Connecting would take longer than comparing, so connections are kept."""

    def __init__(self, url: str) -> None:
        self._url = url
        # Made by a side, so that its sessions are those that a side has.
        self._engine = Sql(url, table="x")._connected()
        self._names: list[str] = []

    def clear(self) -> None:
        """Drops the tables."""
        for name in self._names:
            self._execute(f"DROP TABLE {self.quoted(name)}")
        self._names = []

    def close(self) -> None:
        """Gives back all connections."""
        self._engine.dispose()

    def _begin(self) -> None:
        """Tables lie side by side."""

    def _side(self, **declared: Any) -> Side:
        self._names.append(declared["table"])
        return _Lent(self._engine, self._url, **declared)


class _Lent(Sql):
    """A side whose connections outlive it."""

    def __init__(self, engine: sa.Engine, url: str, **declared: Any) -> None:
        super().__init__(url, **declared)
        self._lent = engine

    def _connected(self) -> sa.Engine:
        return self._lent

    def close(self) -> None:
        """Forgets the table."""
        self._inspected = None


class FileDatabase(Database):
    """A database in a file, for each table one. scheme: of its URL."""

    scheme: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0

    def clear(self) -> None:
        """Removes the files."""
        for path in self._folder.iterdir():
            path.unlink()

    def _begin(self) -> None:
        self._made += 1
        self._path = self._folder / f"{self._made} %20 é.db"
        self._connection = self._connect(self._path)

    def _side(self, **declared: Any) -> Side:
        self._connection.close()
        return Sql(f"{self.scheme}:///{self._path}", **declared)

    def _execute(self, sql: str) -> None:
        self._connection.execute(sql)

    @abstractmethod
    def _connect(self, path: Path) -> Any: ...
