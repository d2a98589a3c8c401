"""Repairs as statements to read: one for each record, with its values written out.

A row is read again before its statement is written, so that the condition names what the table really holds, in the
spelling that it has there. A statement changes nothing where the row has moved since: its condition no longer fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo

from trueup.model.canonical import is_odd
from trueup.model.kinds import Kind
from trueup.model.record import Field
from trueup.ports import Repair, Scripted, Write
from trueup.sides.sql.dialects import Dialect, Reading, Stored
from trueup.sides.sql.find import Row
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.spelling import as_stored
from trueup.sides.sql.write import columns_put

INFINITE: Final = ("infinity", "-infinity")
CLOSING: Final = ("COMMIT;",)


class Unspeakable(Exception):
    """No statement says this; the message says why, without the value."""


class Scribe(ABC):
    """How one engine reads statements from a file.

    opening: what makes any session read the file in the same way, and begins the transaction. nowhere: what a SELECT
    without a table is FROM.
    """

    opening: ClassVar[tuple[str, ...]]
    nowhere: ClassVar[str] = ""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @abstractmethod
    def literal(self, value: Any) -> str:
        """What reads as the value that would be bound. Raises Unspeakable."""

    @abstractmethod
    def unchanged(self, column: Stored, reading: Reading, raw: Any) -> tuple[str, list[Any]]:
        """A condition that holds while the column is this raw value, as it was read; and what is bound in it."""

    def keyed(self, column: Stored, value: Any) -> tuple[str, list[Any]]:
        """A condition that a key column is this value; and what is bound in it. An index may serve."""
        if value is None:
            return f"{self.dialect.quoted(column.name)} IS NULL", []
        sql, marks = self.dialect.exactly(column)
        return sql, [value] * marks

    def written(self, sql: str, values: Sequence[Any]) -> str:
        """A statement that is ready for the driver, with its values in it."""
        return sql % tuple(map(self.literal, values))

    def holds(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> bool:
        """Whether the column can hold this canonical text without bending it."""
        stored = as_stored(text, kind, column.kind, zone)
        if is_odd(text, kind) or is_odd(stored, column.kind):
            return False
        if column.kind.name != "decimal" or column.kind.scale is None:
            return True
        return stored not in INFINITE and len(stored.partition(".")[2]) <= column.kind.scale


def scripted(
    of: Selection, scribe: Scribe, repairs: Sequence[Repair], rows: Mapping[str, list[Row]]
) -> Iterator[Scripted]:
    """A statement for each repair, in order. rows: those that have its key now."""
    for repair in repairs:
        try:
            yield Scripted(repair.key, _statement(of, scribe, repair, rows.get(repair.key, [])))
        except Unspeakable as reason:
            yield Scripted(repair.key, None, str(reason))


def _statement(of: Selection, scribe: Scribe, repair: Repair, rows: Sequence[Row]) -> str:
    if len(rows) > 1:
        raise Unspeakable("several rows have this key")
    if not _as_seen(of, repair, rows):
        raise Unspeakable("it has changed since it was compared")
    table = of.dialect.named(of.inspected.table)
    if repair.after is None:
        where, binds = _unmoved(of, scribe, rows[0])
        return scribe.written(f"DELETE FROM {table} WHERE {where};", binds)
    put = columns_put(of, Write(repair.key, repair.after, None))
    if not rows:
        return _insert(of, scribe, put)
    put = [each for each in put if each[0] not in of.projection.key]
    computed = [name for name in repair.after if name not in {field.name for field, _, _ in put}]
    if computed:
        raise Unspeakable(f"{computed[0]} is computed by the database")
    assigned = ", ".join(f"{of.dialect.quoted(known.stored.name)} = {of.dialect.mark}" for _, known, _ in put)
    where, binds = _unmoved(of, scribe, rows[0])
    return scribe.written(f"UPDATE {table} SET {assigned} WHERE {where};", [*_values(of, scribe, put), *binds])


def _as_seen(of: Selection, repair: Repair, rows: Sequence[Row]) -> bool:
    """Whether the record is what the comparison saw of it."""
    if not rows or repair.before is None:
        return not rows and repair.before is None
    now = rows[0].found.values
    return all(now[field.name] == repair.before[field.name] for field in of.projection.fields)


def _insert(of: Selection, scribe: Scribe, put: Sequence[tuple[Field, Known, str | None]]) -> str:
    """Inserts where no row has the key, so that the statement may be run twice."""
    names = ", ".join(of.dialect.quoted(known.stored.name) for _, known, _ in put)
    values = _values(of, scribe, put)
    same_key = [
        scribe.keyed(known.stored, value)
        for (field, known, _), value in zip(put, values, strict=True)
        if field in of.projection.key
    ]
    override = " OVERRIDING SYSTEM VALUE" if any(known.stored.identity for _, known, _ in put) else ""
    table = of.dialect.named(of.inspected.table)
    absent = f"NOT EXISTS (SELECT 1 FROM {table} WHERE {' AND '.join(sql for sql, _ in same_key)})"
    listed = ", ".join([of.dialect.mark] * len(put))
    sql = f"INSERT INTO {table} ({names}){override} SELECT {listed}{scribe.nowhere} WHERE {absent};"
    return scribe.written(sql, [*values, *(bind for _, binds in same_key for bind in binds)])


def _values(of: Selection, scribe: Scribe, put: Sequence[tuple[Field, Known, str | None]]) -> list[Any]:
    for field, known, text in put:
        if text is not None and not scribe.holds(known.stored, text, field.kind, known.zone):
            column = known.stored
            raise Unspeakable(f"the value of {field.name} does not fit {column.name} {column.declared}".rstrip())
    return [of.dialect.value(known.stored, text, field.kind, known.zone) for field, known, text in put]


def _unmoved(of: Selection, scribe: Scribe, row: Row) -> tuple[str, list[Any]]:
    """A condition that only the row with this raw key meets, and only while it holds what it holds now."""
    told = [scribe.keyed(known.stored, raw) for raw, (_, known, _) in zip(row.raw, of.key, strict=True)]
    keys = len(of.key)
    for raw, (_, known, reading) in list(zip(row.cells, of.columns, strict=False))[keys:]:
        name = of.dialect.quoted(known.stored.name)
        told.append((f"{name} IS NULL", []) if raw is None else scribe.unchanged(known.stored, reading, raw))
    return " AND ".join(sql for sql, _ in told), [bind for _, binds in told for bind in binds]
