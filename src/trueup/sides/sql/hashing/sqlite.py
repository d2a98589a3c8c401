"""SQLite: MD5 of a row's raw values, by functions of ours that run inside the query.

A file has no server whose network could be spared. There is no canonical function: a call from SQL to Python for each
row takes twice as long as reading the rows and hashing them here.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from hashlib import md5
from typing import Any, ClassVar, Final

import pyarrow as pa
import sqlalchemy as sa

from trueup.model.record import Field
from trueup.sides.sql.find import indexed
from trueup.sides.sql.hashing import Function, Hasher, Packed, Text, hashed_columns, named, read_as
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection

# Each column is an argument of a function, of which SQLite allows 127 unless it was told otherwise.
_COLUMNS_MAX: Final = 100
_KEYS: Final = {"integer": int, "text": bytes}
# Looking for a row by its key takes about as long as reading so many in order.
_SEEK_ROWS: Final = 5
# Of so many keys, comparing each row with all takes less time than handing over all rows.
_SCANNED_FOR_MAX: Final = 50


class SQLite(Hasher):
    """SQLite."""

    here: ClassVar[bool] = True
    dear: ClassVar[bool] = True

    def begin(self, connection: sa.Connection) -> str:
        """The first read of a transaction fixes what it sees."""
        return ""

    def functions(self, connection: sa.Connection, of: Selection) -> list[Function]:
        """Its own, where keys are whole numbers or texts: of other values it is not plain which count as equal."""
        columns = hashed_columns(of)
        expected = [_KEYS.get(field.kind.name) for field, _, _ in of.key]
        if None in expected or len(columns) > _COLUMNS_MAX:
            return []
        driver: Any = connection.connection.driver_connection
        keys, texts = len(expected), [at for at, type_ in enumerate(expected) if type_ is bytes]

        def hashed(*values: Any) -> int | None:
            if [*map(type, values[:keys])] != expected:
                return None
            try:
                for at in texts:
                    values[at].decode()
            except UnicodeDecodeError:
                return None
            # Spells any row of these types, and no two rows alike.
            return int.from_bytes(md5(marshal.dumps(values, 0), usedforsecurity=False).digest()[:8], signed=True)

        driver.create_function("trueup_hash", len(columns), hashed, deterministic=True)
        driver.create_aggregate("trueup_sum", 1, _Sum)
        row = f"trueup_hash({', '.join(_told_apart(of.dialect.quoted(field.source)) for field, _ in columns)})"
        return [Function(named("sqlite", of, [read_as(*each) for each in columns]), row, summed="trueup_sum({})")]

    def text(self, of: Selection, field: Field, known: Known) -> Text | None:
        """None: any column may hold any value, and only Python knows what it means."""
        return None

    def pack(
        self, connection: sa.Connection, columns: Sequence[Packed], rest: str, values: Sequence[Any], order: str = ""
    ) -> list[pa.Array[Any]]:
        """There is nothing to pack for: rows come one by one, but no network is between."""
        driver: Any = connection.connection.driver_connection
        sql = f"SELECT {', '.join(column.sql for column in columns)} {rest}{order}"
        rows = driver.execute(sql, tuple(values)).fetchall()
        found = list(zip(*rows, strict=True)) or [()] * len(columns)
        types = [pa.int64() if column.shape == "integer" else pa.string() for column in columns]
        return [pa.array(each, type_) for each, type_ in zip(found, types, strict=True)]

    def seeks(self, of: Selection, keys: int, records: int) -> bool:
        """Where they are few, and an index leads to them or one statement asks for all of them."""
        return keys <= _SCANNED_FOR_MAX or (indexed(of) and keys * _SEEK_ROWS < records)

    def cancel(self, connection: sa.Connection) -> None:
        """Between two steps of its machine."""
        driver: Any = connection.connection.driver_connection
        driver.interrupt()


class _Sum:
    """Of integers, wider than SQLite's own, as text; null where one is null."""

    def __init__(self) -> None:
        self.total = 0
        self.known = True

    def step(self, value: int | None) -> None:
        if value is None:
            self.known = False
        else:
            self.total += value

    def finalize(self) -> str | None:
        return str(self.total) if self.known else None


def _told_apart(name: str) -> str:
    """A text as bytes, since not every text is UTF-8 and Python would refuse to decode it; and so bytes as text."""
    return f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) WHEN 'blob' THEN hex({name}) ELSE {name} END"
