"""A table that Spark reads, as a read-only side. Two of them are matched by the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from trueup.errors import ConfigError, SchemaError
from trueup.model.kinds import Column
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Capabilities, Description, Match, Scope, Side
from trueup.sides import scanning
from trueup.sides.lake import Delta, Iceberg
from trueup.sides.spark.session import session, trouble
from trueup.sides.spark.types import family, kind_of


class Spark:
    """Parquet files by path or glob, a table of a lake, or a DataFrame, as a read-only side.

    source: what `spark.read.parquet` understands, a `Delta` or `Iceberg` side, or a DataFrame of any origin. What is no
    DataFrame is read by the active Spark session, else by a new one.
    where: a condition in Spark SQL; records that it does not select are not there.
    label: for people; by default the last part of the path.

    Raises ConfigError where PySpark or Java is missing, BadInput where a path leads nowhere.
    """

    def __init__(
        self,
        source: Any,
        *,
        key: str | Sequence[str] = (),
        version: str | None = None,
        where: str | None = None,
        label: str | None = None,
    ) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self.label = label or _label(source)
        self._source, self._where = source, where
        self._opened: tuple[Any, dict[str, str], dict[str, Any]] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Nothing beyond being enumerated."""
        return Capabilities()

    def describe(self) -> Description:
        """The columns, from Spark's schema."""
        _, _, types = self._open()
        columns = tuple(_column(name, type_) for name, type_ in types.items())
        return Description(self.label, "Spark", columns, self.key)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every record in scope; all of them come here."""
        frame, places, types = self._open()
        scanning.check_columns(projection, self.describe().columns, self.label)
        batches = self._batches(frame, places, types, projection, scope.where)
        return batches if scope.since is None else scanning.since(batches, projection, scope.since)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts, found by reading everything once."""
        return scanning.read_by_scan(self.scan(projection), projection, keys) if keys else {}

    def match(self, projection: Projection, other: Side, asked: Projection, *, memory_mb: int) -> Match | None:
        """The two tables as Spark tells them apart; None where the other is no table of this Spark session."""
        if not isinstance(other, Spark):
            return None
        mine, theirs = self._open(), other._open()
        if mine[0].sparkSession != theirs[0].sparkSession:
            return None
        from trueup.sides.spark.match import Half, Match  # noqa: PLC0415  loads more of PySpark

        for side, asked_of in ((self, projection), (other, asked)):
            scanning.check_columns(asked_of, side.describe().columns, side.label)
        return Match(Half(self.label, *mine, projection), Half(other.label, *theirs, asked))

    def now_us(self) -> None:
        """A cluster has no clock that its tables go by."""

    def close(self) -> None:
        """The session stays: it may be somebody else's."""

    def _open(self) -> tuple[Any, dict[str, str], dict[str, Any]]:
        """The frame with columns c0…, these by name, and their types by name."""
        if self._opened is None:
            source = self._source
            running = session() if isinstance(source, str | Delta | Iceberg) else source.sparkSession
            with trouble(self.label):
                frame = _frame(source, running)
                names = [field.name for field in frame.schema.fields]
                types = {field.name: field.dataType for field in frame.schema.fields}
                if len(types) < len(names):
                    twice = next(name for name in names if names.count(name) > 1)
                    raise SchemaError(f"{self.label} has two columns named {twice}.", hint="Rename one of them.")
                if self._where is not None:
                    frame = frame.where(self._where)
                places = {name: f"c{at}" for at, name in enumerate(names)}
                # Names with dots, quotes or unlike cases mean nothing to Spark from here on.
                self._opened = frame.toDF(*places.values()), places, types
        return self._opened

    def _batches(
        self, frame: Any, places: dict[str, str], types: dict[str, Any], asked: Projection, where: str | None
    ) -> Iterator[pa.RecordBatch]:
        from trueup.sides.spark.collecting import collected  # noqa: PLC0415  loads more of PySpark

        if where is not None:
            raise ConfigError(f"{self.label}: a condition for one scan is not supported.", hint="Give it to the side.")
        with trouble(self.label):
            from pyspark.sql import functions as F  # noqa: N812, PLC0415

            columns = [F.col(places[each.source]).alias(f"v{at}") for at, each in enumerate(asked.columns)]
            rows = frame.count()
        yield from collected(frame.select(*columns), asked, types, self.label, rows)


def _label(source: Any) -> str:
    if isinstance(source, Delta | Iceberg):
        return source.label
    return PurePath(source).name if isinstance(source, str) else "DataFrame"


def _frame(source: Any, session: Any) -> Any:
    match source:
        case str():
            return session.read.parquet(source)
        case Delta() | Iceberg():
            from trueup.sides.spark.lake import frame_of  # noqa: PLC0415  loads more of PySpark

            return frame_of(source.table(), session)
        case _:
            return source


def _column(name: str, type_: Any) -> Column:
    kind = kind_of(type_)
    native = kind.arrow() is not None and family(type_) not in ("void", "other")
    return Column(name, kind, native=native, declared=type_.simpleString())
