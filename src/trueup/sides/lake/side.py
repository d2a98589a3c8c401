"""A lake table as a read-only side: read file by file, at one state of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from trueup.errors import ConfigError
from trueup.model import kinds
from trueup.model.kinds import Column
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Capabilities, Description, Scope
from trueup.sides import scanning
from trueup.sides.files.chunk import Chunk, numbered
from trueup.sides.files.condition import Condition
from trueup.sides.files.parquet import ArrowValues, kind_of_type
from trueup.sides.lake.tables import DeltaTable, IcebergTable, LakeTable


class _Lake:
    """What both kinds of table share. The first use decides on the state that is read from then on."""

    def __init__(
        self,
        newest: Callable[[], LakeTable],
        label: str,
        key: str | Sequence[str],
        version: str | None,
        where: str | None,
        zone: str | None,
    ) -> None:
        self.label = label
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self._where, self._zone = where, _zone(zone)
        self._newest = newest
        self._table: LakeTable | None = None

    @property
    def capabilities(self) -> Capabilities:
        """A scan sees one state of the table."""
        return Capabilities(snapshot=True)

    def describe(self) -> Description:
        """The columns, from the table's schema."""
        table = self.table()
        columns = tuple(_column(each, self._zone) for each in table.schema())
        return Description(self.label, table.system, columns, self.key)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every record in scope, file by file."""
        columns = self.describe().columns
        scanning.check_columns(projection, columns, self.label)
        batches = self._batches(projection, columns, scope.where)
        return batches if scope.since is None else scanning.since(batches, projection, scope.since)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts, found by reading everything once."""
        columns = self.describe().columns
        scanning.check_columns(projection, columns, self.label)
        batches = self._batches(projection, columns, None, frozenset(keys))
        return scanning.read_by_scan(batches, projection, keys) if keys else {}

    def now_us(self) -> None:
        """A table in files has no clock."""

    def close(self) -> None:
        """Nothing stays open between scans."""

    def table(self) -> LakeTable:
        """The table at the state that is read."""
        if self._table is None:
            self._table = self._newest()
        return self._table

    def _batches(
        self, projection: Projection, columns: Sequence[Column], where: str | None, keys: Set[str] = frozenset()
    ) -> Iterator[pa.RecordBatch]:
        conditions = [Condition(sql, columns, self.label) for sql in (self._where, where) if sql is not None]
        spoken_of = [name for condition in conditions for name in condition.names]
        names = list(dict.fromkeys([*(each.source for each in projection.columns), *spoken_of]))
        form = _Form(self.table().system)
        try:
            for piece in self.table().pieces():
                place = 0
                for batch in self.table().batches(piece, names):
                    values = {name: ArrowValues(batch.column(name), self._zone) for name in names}
                    chunk = Chunk(form, Path(PurePath(piece).name), numbered(place, batch.num_rows), values)
                    place += batch.num_rows
                    for condition in conditions:
                        chunk = chunk.filter(condition.mask(chunk))
                    if keys:
                        first = chunk.deliver(replace(projection.key[0], native=False))
                        chunk = chunk.filter(scanning.key_mask(first, keys))
                    if len(chunk):
                        yield _delivered(chunk, projection)
        finally:
            for condition in conditions:
                condition.close()


class Delta(_Lake):
    """A Delta table by path, as a read-only side.

    where: a SQL condition over the columns; records that it does not select are not there. zone: what wall-clock times
    are read in; they become instants.
    """

    def __init__(
        self,
        path: str,
        *,
        key: str | Sequence[str] = (),
        version: str | None = None,
        where: str | None = None,
        zone: str | None = None,
    ) -> None:
        super().__init__(lambda: DeltaTable.newest(path), PurePath(path).name, key, version, where, zone)


class Iceberg(_Lake):
    """A table of an Iceberg catalog, as a read-only side.

    catalog: the SQLite file of a catalog, or the name of one that is configured for PyIceberg. name: such as
    shop.orders. where, zone: as for `Delta`.
    """

    def __init__(
        self,
        catalog: str,
        name: str,
        *,
        key: str | Sequence[str] = (),
        version: str | None = None,
        where: str | None = None,
        zone: str | None = None,
    ) -> None:
        super().__init__(lambda: IcebergTable.newest(catalog, name), name, key, version, where, zone)


class _Form:
    """How a place in a data file is named in errors."""

    def __init__(self, system: str) -> None:
        self.system = system

    def columns(self) -> tuple[Column, ...]:
        """None of its own."""
        return ()

    def chunks(self, path: Path, names: Sequence[str]) -> Iterator[Chunk]:
        """None of its own."""
        return iter(())

    def line(self, path: Path, place: int) -> str:
        """Data files have rows, not lines."""
        return f"row {place + 1:,}"


def _column(each: pa.Field[Any], zone: ZoneInfo | None) -> Column:
    kind = kind_of_type(each.type)
    zoned = zone is not None and kind == kinds.TIMESTAMP
    native = not zoned and kind.arrow() is not None and not pa.types.is_uint64(each.type)
    return Column(each.name, kinds.INSTANT if zoned else kind, native, each.nullable, str(each.type))


def _delivered(chunk: Chunk, projection: Projection) -> pa.RecordBatch:
    arrays = []
    for field in projection.columns:
        if field is projection.version:
            arrays.append(scanning.versions_of(chunk.deliver(replace(field, native=False)), field))
        else:
            arrays.append(chunk.deliver(field))
    return pa.RecordBatch.from_arrays(arrays, schema=scanning.schema_of(projection))


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"{name!r} is not a time zone.", hint="For example Europe/Berlin or UTC.") from None
