"""What only a database can be asked about a table: who may write it, and which indexes lead to a record."""

from __future__ import annotations

import sqlalchemy as sa

from trueup.errors import SideError
from trueup.ports import Examined
from trueup.sides.sql.dialects import Dialect, Stored
from trueup.sides.sql.inspect import Inspected
from trueup.sides.sql.trouble import in_our_words


def examine(dialect: Dialect, inspected: Inspected) -> Examined:
    """Indexes, from what inspection has already found."""
    key = inspected.key
    return Examined(
        unique_key=any(index.unique and set(index.columns) <= set(key) for index in inspected.table.indexes),
        key_index=inspected.key_index,
        version_index=inspected.version_index,
        make_key=_create(dialect, inspected, key, unique=True),
        make_version=None if inspected.version is None else _create(dialect, inspected, (inspected.version, *key)),
    )


def _create(dialect: Dialect, inspected: Inspected, columns: tuple[str, ...], *, unique: bool = False) -> str:
    name = dialect.quoted(f"{inspected.table.name}_{'_'.join(columns)}")
    listed = ", ".join(dialect.quoted(column) for column in columns)
    word = "UNIQUE INDEX" if unique else "INDEX"
    return f"CREATE {word} {name} ON {dialect.named(inspected.table)} ({listed});".replace("%%", "%")


def refused_write(dialect: Dialect, engine: sa.Engine, inspected: Inspected, place: str) -> SideError | None:
    """Why records could not be inserted, updated and deleted, or None where they could.

    Runs statements that select no record, and rolls them back: the server checks the rights all the same.
    """
    table = dialect.named(inspected.table)
    writable = [each.stored for each in inspected.known.values() if not (each.stored.generated or each.stored.identity)]
    names = ", ".join(dialect.quoted(column.name) for column in writable)
    statements = [f"DELETE FROM {table} WHERE 1 = 0"]
    if writable:
        statements.append(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} WHERE 1 = 0")
        statements.append(f"UPDATE {table} SET {_unchanged(dialect, writable[0])} WHERE 1 = 0")
    try:
        with in_our_words(dialect, inspected.description.label, place):
            connection = dialect.begin(engine)
            try:
                for statement in statements:
                    connection.exec_driver_sql(statement)
            finally:
                connection.rollback()
                connection.close()
    except SideError as error:
        return error
    return None


def _unchanged(dialect: Dialect, column: Stored) -> str:
    name = dialect.quoted(column.name)
    return f"{name} = {name}"
