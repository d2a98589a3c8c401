"""Delta and Iceberg tables as DataFrames: workers of Spark read the files with the tables' Python libraries.

A Python data source of Spark 4. Spark itself needs no library of Java for these formats; its workers need trueup with
the extra `lake`.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from trueup.sides.lake.tables import LakeTable

_FORMAT: Final = "trueup-lake"


def frame_of(table: LakeTable, session: Any) -> Any:
    """The table as a DataFrame, read in as many parts as it has data files."""
    session.dataSource.register(LakeSource)
    # Options are texts.
    return session.read.format(_FORMAT).option("table", b64encode(pickle.dumps(table)).decode()).load()


class LakeSource(DataSource):  # type: ignore[misc]  # PySpark may be absent
    """Registered by `frame_of`."""

    @classmethod
    def name(cls) -> str:
        """As `frame_of` asks for it."""
        return _FORMAT

    def schema(self) -> Any:
        """The table's columns as Spark's types. Wall-clock times stay what they are."""
        return from_arrow_schema(self._table().schema(), prefer_timestamp_ntz=True)

    def reader(self, schema: Any) -> LakeReader:
        """For one reading."""
        return LakeReader(self._table(), schema)

    def _table(self) -> LakeTable:
        # Written by `frame_of` in this program.
        table: LakeTable = pickle.loads(b64decode(self.options["table"]))  # noqa: S301
        return table


class LakeReader(DataSourceReader):  # type: ignore[misc]  # PySpark may be absent
    """Reads one data file for each part."""

    def __init__(self, table: LakeTable, schema: Any) -> None:
        self._table, self._schema = table, schema

    def partitions(self) -> list[Any]:
        """One for each data file."""
        return [InputPartition(piece) for piece in self._table.pieces()]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The records of one data file; runs in a worker."""
        if partition is None or partition.value is None:
            # So Spark asks where there are no parts.
            return
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        for batch in self._table.batches(partition.value, wanted.names):
            arrays = [array.cast(each.type) for array, each in zip(batch.columns, wanted, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
