"""PostgreSQL: what it holds, and how its tables are made."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, Final

from trueup.testing.pairs.engines.database import Server
from trueup.testing.pairs.engines.engine import Table
from trueup.testing.pairs.types import Type, clock, letters, numeric, plain, signed, told, written, years
from trueup.testing.pairs.values import LABELS


def _dated(text: str, chance: random.Random) -> str:
    """Years before 1 as PostgreSQL writes them."""
    found = re.match(r"(-?\d{4,})(-.*)\Z", text)
    if found is None or int(found[1]) > 0:
        return text.removeprefix("+")
    return (
        f"{1 - int(found[1]):04}{found[2].replace('T', ' ').removesuffix('Z')}{'+00' if text.endswith('Z') else ''} BC"
    )


def _array(text: str, chance: random.Random) -> str:
    return re.sub(r"\[(.*)\]\Z", r"{\1}", text, flags=re.DOTALL).replace("null", "NULL")


POSTGRESQL: Final = (
    Type("boolean", "boolean", spell=plain("boolean")),
    Type("smallint", "integer", signed(16), spell=plain("integer")),
    Type("integer", "integer", signed(32), spell=plain("integer")),
    Type("bigint", "integer", signed(64), spell=plain("integer")),
    Type("numeric(30,0)", "integer", numeric(30, 0), spell=plain("integer"), hashed=False),
    Type("numeric", "decimal", spell=written("decimal")),
    Type("numeric(12,2)", "decimal", numeric(12, 2, nan=True), spell=plain("decimal")),
    Type("numeric(38,10)", "decimal", numeric(38, 10, nan=True), spell=plain("decimal")),
    Type("numeric(60,20)", "decimal", numeric(60, 20, nan=True), spell=plain("decimal")),
    Type("double precision", "float", spell=written("float"), hashed=False),
    Type("real", "float32", spell=written("float32"), hashed=False),
    Type("text", "text", letters(6000, nul=False), spell=plain("text")),
    Type('text COLLATE "C"', "text", letters(6000, nul=False), spell=plain("text")),
    Type("varchar(300)", "text", letters(300, nul=False), spell=plain("text")),
    Type("char(40)", "text", letters(40, nul=False, padded=True), spell=plain("text")),
    Type("one_of_the_pairs", "enum", spell=plain("enum")),
    Type("text", "enum", spell=plain("enum")),
    Type("bytea", "bytes", spell=lambda text, chance: f"\\x{text}"),
    Type("uuid", "uuid", spell=written("uuid")),
    Type("date", "date", spell=_dated),
    Type("time", "time", clock("00:00:00", "24:00:00"), spell=plain("time")),
    Type("time(3)", "time", clock("00:00:00", "24:00:00", 3), spell=plain("time")),
    Type("timestamp", "timestamp", spell=_dated, wall=True),
    Type("timestamp(3)", "timestamp", years("0001", "9999", 3, infinite=True), spell=_dated, wall=True),
    Type("timestamptz", "instant", spell=_dated),
    Type("interval", "interval", spell=plain("interval"), hashed=False),
    Type("json", "json", spell=written("json"), hashed=False, indexed=False),
    Type("jsonb", "json", spell=written("json"), hashed=False),
    Type("bigint[]", "array of integer", spell=_array, hashed=False),
    Type("text[]", "array of text", spell=_array, hashed=False),
    *told("text", 6000, nul=False),
)


class PostgreSQL(Server):
    """Filled by COPY of texts, which the server reads by the column's type."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        import psycopg  # noqa: PLC0415  an extra

        self._connection = psycopg.connect(url, autocommit=True, client_encoding="utf8")
        labels = ", ".join("'{}'".format(each.replace("'", "''")) for each in LABELS)
        self._connection.execute("DROP TYPE IF EXISTS one_of_the_pairs CASCADE")
        self._connection.execute(f"CREATE TYPE one_of_the_pairs AS ENUM ({labels})".encode())

    def close(self) -> None:
        """And the one that fills."""
        super().close()
        self._connection.close()

    def _execute(self, sql: str) -> None:
        self._connection.execute(sql.replace("CREATE TABLE", "CREATE UNLOGGED TABLE", 1).encode())

    def _fill(self, name: str, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        listed = ", ".join(map(self.quoted, table.columns))
        sql = f"COPY {self.quoted(name)} ({listed}) FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)

    def _duplicate(self) -> type[Exception]:
        import psycopg  # noqa: PLC0415

        return psycopg.errors.UniqueViolation
