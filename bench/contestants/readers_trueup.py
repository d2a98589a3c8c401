"""trueup's own readers: lines that the server writes, and rows that it packs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
from readers_roles import LEFT, Canonical, Columns, NotOffered, Question, main

from trueup.compare.plan import plan
from trueup.model.record import Field, Projection
from trueup.ports import Scope
from trueup.sides.sql import Sql
from trueup.sides.sql.hashing import Packed

KEYS = 32_768


def _projection(side: Sql, question: Question) -> Projection:
    described = side.describe()
    return plan(described, described, key=["id"], columns=question.columns).left


def scanned(question: Question) -> Iterator[Columns]:
    """Whole records, as a comparison by rows reads them: values that are not native come as canonical texts."""
    with closing(Sql(question.url, question.table, key="id", zero_date="strict")) as side:
        asked = _projection(side, question)
        for batch in side.scan(asked, Scope(where=question.where or None)):
            if question.table == "records":
                # SQLite's numbers come as texts, as any column there may hold anything.
                yield [batch.column(0).cast(pa.int64()), *batch.columns[1:]]
            else:
                yield [_canonical(each, field) for each, field in zip(batch.columns, asked.columns, strict=True)]


def packed(question: Question) -> Iterator[Columns]:
    """Numbers, and canonical texts where the server can make them of every value, a range of keys at a time."""
    with closing(Sql(question.url, question.table, key="id", zero_date="strict")) as side:
        asked = _projection(side, question)
        of, hasher = side._selection(asked), side._dialect.hasher()
        with side._connected().connect() as connection:
            hasher.begin(connection)
            hasher.functions(connection, of)  # MySQL's looks up which columns are UTF-8
            columns = [_packed(field, side, asked) for field in asked.columns]
            key, mark = of.dialect.quoted("id"), of.dialect.mark
            first = int(connection.exec_driver_sql(f"SELECT min({key}) {of.from_where()}").scalar() or 0)
            last = int(connection.exec_driver_sql(f"SELECT max({key}) {of.from_where()}").scalar() or 0)
            for at in range(first, last + 1, KEYS):
                rest = of.from_where(f"{key} >= {mark} AND {key} < {mark}", question.where) + f" ORDER BY {key}"
                arrays = hasher.pack(connection, columns, rest, (at, at + KEYS))
                canonical = question.table != "records"
                yield [
                    _canonical(each, field) if canonical else each
                    for each, field in zip(arrays, asked.columns, strict=True)
                ]


def _packed(field: Field, side: Sql, asked: Projection) -> Packed:
    of, hasher = side._selection(asked), side._dialect.hasher()
    known = of.inspected.column(field.source)
    plain = of.dialect.reading(known.stored, field.kind).sql == of.dialect.quoted(field.source)
    if plain and known.stored.native and known.stored.kind.name == field.kind.name == "integer":
        return Packed(of.dialect.quoted(field.source), "integer", known.stored.nullable)
    text = hasher.text(of, field, known)
    if text is None:
        raise NotOffered
    # A record for which that is true is read as a line.
    sql = f"CASE WHEN {text.unless} THEN '{LEFT}' ELSE {text.sql} END" if text.unless else text.sql
    return Packed(sql, "text", nullable=True)


def _canonical(array: Any, field: Field) -> Columns:
    if pa.types.is_string(array.type) and field.name != "id":
        return [None if each is None else Canonical(each) for each in array.to_pylist()]
    columns: Columns = array
    return columns


main({"trueup, lines": scanned, "trueup, packed": packed})
