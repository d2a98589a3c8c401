"""What a table is, as the engine says it and as the user declared it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from trueup.errors import SchemaError, did_you_mean
from trueup.model.kinds import Column, Kind
from trueup.ports import Description
from trueup.sides.scanning import missing_column
from trueup.sides.sql.dialects import Dialect, Stored, Table

_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Known:
    """A column of the table as this side takes it. zone: of the wall clock that its raw values show."""

    stored: Stored
    column: Column
    zone: ZoneInfo | None

    @property
    def kind(self) -> Kind:
        """The kind as this side describes it."""
        return self.column.kind


@dataclass(frozen=True)
class Inspected:
    """A table with what was declared about it."""

    table: Table
    known: Mapping[str, Known]
    description: Description
    key: tuple[str, ...]
    version: str | None

    def column(self, name: str) -> Known:
        """The column of exactly this name; SchemaError where there is none."""
        if name not in self.known:
            raise missing_column(name, list(self.known), self.description.label)
        return self.known[name]

    @cached_property
    def key_index(self) -> bool:
        """Whether an index leads to the key."""
        names = set(self.key)
        return any(set(index.columns[: len(names)]) == names for index in self.table.indexes)

    @cached_property
    def version_index(self) -> bool:
        """Whether an index begins with the version."""
        return any(index.columns[0] == self.version for index in self.table.indexes)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a user said about a table. kinds: by column. zone: of its wall-clock timestamps."""

    table: str
    label: str
    key: tuple[str, ...]
    version: str | None
    kinds: Mapping[str, Kind]
    zone: ZoneInfo | None


def inspect(dialect: Dialect, connection: sa.Connection, declared: Declared) -> Inspected:
    """The table as it is now. SchemaError where it, or a column that was named, is not there."""
    table = _found(dialect, connection, declared.table)
    known = {stored.name: _known(stored, declared) for stored in table.columns}
    key = declared.key or table.key
    description = Description(
        declared.label, dialect.system(connection), tuple(each.column for each in known.values()), table.key, table.rows
    )
    inspected = Inspected(table, known, description, key, declared.version)
    for name in (*key, *declared.kinds, *([] if declared.version is None else [declared.version])):
        inspected.column(name)
    return inspected


def _known(stored: Stored, declared: Declared) -> Known:
    kind = declared.kinds.get(stored.name, stored.kind)
    zone = _UTC if stored.unzoned else declared.zone
    if kind.name == "timestamp" and zone is not None:
        kind = replace(kind, aware=True)
    native = stored.native and kind == stored.kind
    return Known(stored, Column(stored.name, kind, native, stored.nullable, stored.declared, stored.collation), zone)


def _found(dialect: Dialect, connection: sa.Connection, name: str) -> Table:
    for schema, table in _readings_of(name):
        if (found := dialect.table(connection, schema, table)) is not None:
            return found
    schema, table = _readings_of(name)[-1]
    names = dialect.names(connection, schema)
    where = f"in schema {schema}" if schema else "here"
    raise SchemaError(f"there is no table {table} {where}.", hint=did_you_mean(table, names, "Tables"))


def _readings_of(name: str) -> Sequence[tuple[str | None, str]]:
    """A dot may part schema and table, or belong to the table's own name."""
    schema, dot, table = name.partition(".")
    return [(None, name), *([(schema, table)] if dot else [])]
