"""Ranges of keys: where a table can be cut, and the condition that selects one piece of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from trueup.ports import Scope

if TYPE_CHECKING:
    from trueup.sides.sql.read import Selection


def cut(connection: sa.Connection, of: Selection, pieces: int) -> list[str]:
    """Texts of the first key column that divide the rows into about equal pieces; empty where an index can't help."""
    column = _column(of)
    if column is None or not of.inspected.key_index or pieces < 2:
        return []
    # An estimate that is far too low would leave nearly all of the table in the last piece.
    rows = connection.exec_driver_sql(f"SELECT count(*) {of.from_where()}").scalar()
    step, least = max(1, int(rows or 0) // pieces), None
    bounds: list[str] = []
    while len(bounds) < pieces - 1:
        condition = f"{column} > {least}" if least is not None else f"{column} IS NOT NULL"
        sql = f"SELECT {column} {of.from_where(condition)} ORDER BY {column} LIMIT 1 OFFSET {step}"
        found = connection.exec_driver_sql(sql).scalar()
        if found is None:
            break
        least = int(found)
        bounds.append(str(least))
    return bounds


def condition(of: Selection, scope: Scope) -> str:
    """SQL that selects the piece, nothing where the scope names none; a null key is in the first piece."""
    if scope.low is None and scope.high is None:
        return ""
    column = _column(of)
    assert column is not None, "a piece is asked of a side that was cut"
    parts = [f"{column} >= {int(scope.low)}"] if scope.low is not None else []
    if scope.high is not None:
        below = f"{column} < {int(scope.high)}"
        parts.append(below if scope.low is not None else f"({below} OR {column} IS NULL)")
    return " AND ".join(parts)


def _column(of: Selection) -> str | None:
    """The first key column, where the database and we agree that it holds integers."""
    field, known, _ = of.key[0]
    integer = known.stored.kind.name == field.kind.name == "integer"
    return of.dialect.quoted(field.source) if integer and known.kind.name == "integer" else None
