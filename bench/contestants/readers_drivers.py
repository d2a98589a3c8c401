"""Readers that are the drivers themselves: psycopg, PyMySQL, sqlite3."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import unquote, urlsplit

from readers_roles import Columns, NotOffered, Question, main, select

ROWS = 10_000


def _columns(rows: list[Any]) -> Columns:
    return [list(each) for each in zip(*rows, strict=True)]


def copy_binary(question: Question) -> Iterator[Columns]:
    """COPY in its binary form, each value made by psycopg's loader for its type."""
    import psycopg

    with psycopg.connect(question.url) as connection, connection.cursor() as cursor:
        cursor.execute(f"{select(question)} LIMIT 0")
        types = [each.type_code for each in cursor.description or ()]
        with cursor.copy(f"COPY ({select(question)}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(types)
            rows: list[Any] = []
            for row in copy.rows():
                rows.append(row)
                if len(rows) == ROWS:
                    yield _columns(rows)
                    rows = []
    if rows:
        yield _columns(rows)


def copy_unpacked(question: Question) -> Iterator[Columns]:
    """The same for two numbers without null, which make rows of one length: taken apart in one go."""
    import psycopg

    if question.table != "records" or len(question.columns) != 2:
        raise NotOffered
    row = struct.Struct(">hiqiq")
    held = bytearray()
    statement = f"COPY ({select(question)}) TO STDOUT (FORMAT binary)"
    with psycopg.connect(question.url) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for at, block in enumerate(copy):
            held += memoryview(block)[19:] if at == 0 else block
            if len(held) >= row.size * ROWS:
                whole = len(held) // row.size * row.size
                found = _columns(list(row.iter_unpack(held[:whole])))
                held = held[whole:]
                yield [found[2], found[4]]
    found = _columns(list(row.iter_unpack(held[: len(held) // row.size * row.size])))
    if found:
        yield [found[2], found[4]]


def server_cursor(question: Question) -> Iterator[Columns]:
    """psycopg's cursor in the server."""
    import psycopg

    with psycopg.connect(question.url) as connection, connection.cursor(name="bench") as cursor:
        cursor.execute(select(question))
        while rows := cursor.fetchmany(ROWS):
            yield _columns(rows)


def pymysql_cursor(question: Question) -> Iterator[Columns]:
    """PyMySQL's unbuffered cursor."""
    import pymysql  # type: ignore[import-untyped, unused-ignore]
    import pymysql.cursors

    at = urlsplit(question.url)
    connection = pymysql.connect(
        host=at.hostname, port=at.port or 3306, user=at.username, password=unquote(at.password or ""),
        database=at.path.lstrip("/"), cursorclass=pymysql.cursors.SSCursor,
    )  # fmt: skip
    with connection, connection.cursor() as cursor:
        cursor.execute(select(question, "`"))
        while rows := cursor.fetchmany(ROWS):
            yield _columns(list(rows))


def sqlite_cursor(question: Question) -> Iterator[Columns]:
    """Python's sqlite3."""
    with closing(sqlite3.connect(question.url.removeprefix("sqlite:///"))) as connection:
        cursor = connection.execute(select(question))
        while rows := cursor.fetchmany(ROWS):
            yield _columns(rows)


main(
    {
        "copy binary": copy_binary,
        "copy unpacked": copy_unpacked,
        "psycopg": server_cursor,
        "PyMySQL": pymysql_cursor,
        "sqlite3": sqlite_cursor,
    }
)
