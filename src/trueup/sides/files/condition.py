"""Which records of a file a condition selects: SQL over its columns, evaluated by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from trueup.errors import ConfigError
from trueup.model.kinds import Column
from trueup.model.record import Field
from trueup.sides.files.chunk import Chunk

# Integers and decimals of any size end here; a value that does not fit is null to a condition.
_TYPES = {
    "boolean": "BOOLEAN",
    "integer": "HUGEINT",
    "decimal": "DECIMAL(38, 12)",
    "float": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "json": "JSON",
    "uuid": "UUID",
}


class Condition:
    """A SQL condition over described columns; a column of text is text there too.

    Raises ConfigError where it is not one.
    """

    def __init__(self, sql: str, columns: Sequence[Column], label: str) -> None:
        self._label = label
        self._columns = [column for column in columns if column.name.lower() in sql.lower()]
        chosen = ", ".join(f"{_cast(column, at)} AS {_quoted(column.name)}" for at, column in enumerate(self._columns))
        chosen = f"place, {chosen}" if chosen else "place"
        self._query = f"SELECT coalesce(({sql}\n), false)::BOOLEAN AS chosen FROM (SELECT {chosen} FROM chunk)"
        # No condition needs files, the network or an extension.
        self._database = duckdb.connect(config={"enable_external_access": "false", "lock_configuration": "true"})

    @property
    def names(self) -> list[str]:
        """Columns that it may speak of."""
        return [column.name for column in self._columns]

    def mask(self, chunk: Chunk) -> pa.Array[Any]:
        """True for each record that it selects."""
        texts = [chunk.deliver(Field(each.name, each.name, each.kind)) for each in self._columns]
        names = ["place", *(f"c{at}" for at in range(len(texts)))]
        self._database.register("chunk", pa.table([chunk.places, *texts], names=names))
        try:
            answer = self._database.sql(self._query).to_arrow_table()
        except duckdb.Error as failure:
            # Only what DuckDB says of the words of the condition; of values nothing may show.
            of_words = isinstance(failure, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException)
            why = str(failure).splitlines()[0] if of_words else "it fails on a value"
            raise ConfigError(
                f"the condition of {self._label} can't be evaluated: {why}.",
                hint="It is a SQL condition over the columns of the file, such as status = 'paid'.",
            ) from failure
        chosen: pa.Array[Any] = answer.column("chosen").combine_chunks()
        return chosen

    def close(self) -> None:
        """Lets go of the evaluator."""
        self._database.close()


def _cast(column: Column, at: int) -> str:
    kind = column.kind
    type_ = ("TIMESTAMPTZ" if kind.aware else "TIMESTAMP") if kind.name == "timestamp" else _TYPES.get(kind.name)
    return f"c{at}" if type_ is None else f"try_cast(c{at} AS {type_})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
