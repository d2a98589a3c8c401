"""Writing: in bulk, each write under its precondition.

One transaction locks the rows, reads them as `read` does, compares each with what its write expects, changes
those that match and reads them back. So a version and a digest are the same kind of precondition, and the
rules of canonical values live in one place. Rows are updated where they are, never deleted and inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from trueup.errors import Unreachable
from trueup.model.record import Field, key_parts
from trueup.ports import Write, Written
from trueup.sides.scanning import missing_column
from trueup.sides.sql.dialects import Stored
from trueup.sides.sql.find import KEYS_MAX, Row, find
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection
from trueup.sides.sql.trouble import Busy, RowRefused, in_our_words

_TRIES_MAX: Final = 5
_T = TypeVar("_T")


def apply(engine: sa.Engine, of: Selection, writes: Sequence[Write], place: str) -> list[Written]:
    """Applies the writes in order; answers in the same order."""
    written: list[Written] = []
    for group in _groups(writes):
        written += _landed(engine, of, group, place)
    return written


def _landed(engine: sa.Engine, of: Selection, writes: Sequence[Write], place: str) -> list[Written]:
    """One row that a constraint refuses must not keep its neighbours from landing: it is closed in on by halves."""
    try:
        return _committed(engine, of, writes, place)
    except RowRefused:
        if len(writes) == 1:
            raise
        middle = len(writes) // 2
        return _landed(engine, of, writes[:middle], place) + _landed(engine, of, writes[middle:], place)


def mark(
    engine: sa.Engine, of: Selection, key: str, version: int | None, assignments: str, place: str
) -> tuple[bool, int | None]:
    """Assigns where the row still has this version; answers whether it did, and the version as it is now."""

    def attempt(connection: sa.Connection) -> tuple[bool, int | None]:
        rows = find(connection, of, [key], lock=True).get(key, [])
        if not rows:
            return False, None
        if of.inspected.version is not None and rows[0].found.version != version:
            return False, rows[0].found.version
        sql = f"UPDATE {of.dialect.named(of.inspected.table)} SET {of.dialect.verbatim(assignments)}"
        for row in rows:
            where, binds = _where(of, row)
            connection.exec_driver_sql(f"{sql} WHERE {where}", tuple(binds))
        after = find(connection, of, [key]).get(key, [])
        return True, after[0].found.version if after else None

    return _in_transaction(engine, of, place, attempt)


def _groups(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """Runs of writes of different keys: a second write of a key must see what the first one did."""
    group: dict[str, Write] = {}
    for write in writes:
        if write.key in group or len(group) >= KEYS_MAX:
            yield list(group.values())
            group = {}
        group[write.key] = write
    if group:
        yield list(group.values())


def _committed(engine: sa.Engine, of: Selection, writes: Sequence[Write], place: str) -> list[Written]:
    return _in_transaction(engine, of, place, lambda connection: _apply(connection, of, writes))


def _in_transaction(engine: sa.Engine, of: Selection, place: str, work: Callable[[sa.Connection], _T]) -> _T:
    label = of.inspected.description.label
    for _ in range(_TRIES_MAX):
        try:
            with (
                in_our_words(of.dialect, label, place),
                of.dialect.begin(engine) as connection,
                connection.begin(),
            ):
                return work(connection)
        except Busy as busy:
            said = str(busy)
    raise Unreachable(said, hint="Try again when the other session is done.")


@dataclass(frozen=True, slots=True)
class _Change:
    """A write whose precondition holds, and the rows that it is about."""

    write: Write
    rows: list[Row]


def _apply(connection: sa.Connection, of: Selection, writes: Sequence[Write]) -> list[Written]:
    before = find(connection, of, [write.key for write in writes], lock=True)
    changes = [
        _Change(write, before.get(write.key, []))
        for write in writes
        if _expected(write.expect, before.get(write.key, []))
    ]
    landed = {change.write.key for change in changes}
    _delete(connection, of, [change for change in changes if change.write.values is None])
    _update(connection, of, [change for change in changes if change.write.values is not None and change.rows])
    inserts = [change.write for change in changes if change.write.values is not None and not change.rows]
    lost = _insert(connection, of, inserts)
    lost -= _update_after_all(connection, of, [each for each in inserts if each.key in lost and each.expect is None])
    after = find(connection, of, [*landed]) if landed else {}
    if vanished := [key for key in lost if key not in after]:
        raise RowRefused(
            f"{of.inspected.description.label}: record {vanished[0]} can't be put.",
            hint="Another row has a unique value of it, or this side's condition hides the row that has its key.",
        )
    return [
        Written(write.key, write.key in landed - lost, _replica((after if write.key in landed else before), write.key))
        for write in writes
    ]


def _expected(expect: str | None, rows: Sequence[Row]) -> bool:
    if expect is None:
        return True
    return all(row.found.token == expect for row in rows) if rows else expect == ""


def _replica(rows: dict[str, list[Row]], key: str) -> Any:
    found = rows.get(key)
    return found[0].found if found else None


def _delete(connection: sa.Connection, of: Selection, changes: Sequence[_Change]) -> None:
    for change in changes:
        for row in change.rows:
            where, binds = _where(of, row)
            connection.exec_driver_sql(
                f"DELETE FROM {of.dialect.named(of.inspected.table)} WHERE {where}", tuple(binds)
            )


def _update(connection: sa.Connection, of: Selection, changes: Sequence[_Change]) -> None:
    """Sets the columns that a write names, all writes of the same columns in one go."""
    statements: dict[str, list[tuple[Any, ...]]] = {}
    for change in changes:
        put = [
            (field, known, text)
            for field, known, text in columns_put(of, change.write)
            if field not in of.projection.key
        ]
        assigned = ", ".join(f"{of.dialect.quoted(known.stored.name)} = {of.dialect.mark}" for _, known, _ in put)
        values = [of.dialect.value(known.stored, text, field.kind, known.zone) for field, known, text in put]
        for row in change.rows if put else ():
            where, binds = _where(of, row)
            sql = f"UPDATE {of.dialect.named(of.inspected.table)} SET {assigned} WHERE {where}"
            statements.setdefault(sql, []).append((*values, *binds))
    for sql, rows in statements.items():
        connection.exec_driver_sql(sql, rows)


def _insert(connection: sa.Connection, of: Selection, writes: Sequence[Write]) -> set[str]:
    """Inserts rows; answers the keys of those that lost to an insert made since they were found absent."""
    groups: dict[tuple[Stored, ...], list[tuple[str, tuple[Any, ...]]]] = {}
    for write in writes:
        put = columns_put(of, write)
        values = tuple(of.dialect.value(known.stored, text, field.kind, known.zone) for field, known, text in put)
        groups.setdefault(tuple(known.stored for _, known, _ in put), []).append((write.key, values))
    lost: set[str] = set()
    key = [field.source for field in of.projection.key]
    for columns, rows in groups.items():
        sql = of.dialect.inserting(of.inspected.table, columns, key)
        if not _inserted(connection, of, sql, [values for _, values in rows]):
            lost |= {name for name, values in rows if not _inserted(connection, of, sql, [values])}
    return lost


def _update_after_all(connection: sa.Connection, of: Selection, writes: Sequence[Write]) -> set[str]:
    """Writes without precondition that lost to an insert: the row is there now, and theirs to change."""
    rows = find(connection, of, [write.key for write in writes], lock=True) if writes else {}
    changes = [_Change(write, rows[write.key]) for write in writes if write.key in rows]
    _update(connection, of, changes)
    return {change.write.key for change in changes}


def _inserted(connection: sa.Connection, of: Selection, sql: str, rows: list[tuple[Any, ...]]) -> bool:
    """Inserts all of these rows, or none."""
    savepoint = connection.begin_nested()
    try:
        count = connection.exec_driver_sql(sql, rows).rowcount
    except sa.exc.IntegrityError as error:
        savepoint.rollback()
        if not of.dialect.duplicate(error.orig):
            raise
        return False
    if count != len(rows):
        savepoint.rollback()
        return False
    savepoint.commit()
    return True


def columns_put(of: Selection, write: Write) -> list[tuple[Field, Known, str | None]]:
    """The columns to write: the key, and what the write names except what the engine computes."""
    by_name = {field.name: (field, known) for field, known, _ in of.columns}
    keys = {field.name: part for field, part in zip(of.projection.key, key_parts(write.key), strict=True)}
    put = []
    for name, text in {**(write.values or {}), **keys}.items():
        if name not in by_name:
            raise missing_column(name, list(by_name), f"the projection of {of.inspected.description.label}")
        field, known = by_name[name]
        if not known.stored.generated:
            put.append((field, known, text))
    return put


def _where(of: Selection, row: Row) -> tuple[str, list[Any]]:
    """A condition that only rows with exactly this raw key meet."""
    conditions, binds = [], []
    for value, (_, known, _) in zip(row.raw, of.key, strict=True):
        if value is None:
            conditions.append(f"{of.dialect.quoted(known.stored.name)} IS NULL")
            continue
        sql, marks = of.dialect.exactly(known.stored)
        conditions.append(sql)
        binds += [value] * marks
    return " AND ".join(conditions), binds
