"""One state of a Delta or Iceberg table as a value, and how it is read file by file, here or in a cluster's worker."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Final, Protocol

import pyarrow as pa

from trueup.errors import BadInput, ConfigError, SideError, TrueupError, Unreachable

_INSTALL: Final = "Install it with: pip install 'trueup[lake]'."
_CATALOG_FILES: Final = (".db", ".sqlite", ".sqlite3")
_BATCH_ROWS: Final = 65_536


class LakeTable(Protocol):
    """A table at one state. It can be pickled; what it has opened stays behind."""

    @property
    def system(self) -> str:
        """For people, with the state that is read."""

    def schema(self) -> pa.Schema:
        """The columns."""

    def pieces(self) -> list[str]:
        """The files that the state consists of, by path."""

    def batches(self, piece: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of one file, deletions applied, with these columns."""


@dataclass(frozen=True)
class DeltaTable:
    """A version of a Delta table. Raises BadInput where there is none, or one that the library can't read exactly."""

    path: str
    version: int

    @staticmethod
    def newest(path: str) -> DeltaTable:
        """The table as it is now."""
        with _trouble(path):
            return DeltaTable(path, _delta().DeltaTable(path).version())

    @property
    def system(self) -> str:
        """The version that is read."""
        return f"Delta, version {self.version}"

    def schema(self) -> pa.Schema:
        """The columns, those of partitions included."""
        found: pa.Schema = self._dataset.schema
        return found

    def pieces(self) -> list[str]:
        """Paths of data files."""
        return list(self._fragments)

    def batches(self, piece: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of one data file."""
        with _trouble(self.path):
            schema = self._dataset.schema
            yield from self._fragments[piece].to_batches(schema=schema, columns=list(names), batch_size=_BATCH_ROWS)

    @cached_property
    def _dataset(self) -> Any:
        with _trouble(self.path):
            return _delta().DeltaTable(self.path, version=self.version).to_pyarrow_dataset()

    @cached_property
    def _fragments(self) -> dict[str, Any]:
        return {fragment.path: fragment for fragment in self._dataset.get_fragments()}

    def __reduce__(self) -> Any:
        return DeltaTable, (self.path, self.version)


@dataclass(frozen=True)
class IcebergTable:
    """A snapshot of an Iceberg table; None before the first.

    catalog: the SQLite file of a catalog, or the name of a catalog that is configured for PyIceberg. name: such as
    shop.orders. Raises BadInput where there is no such table, ConfigError where the catalog is not known.
    """

    catalog: str
    name: str
    snapshot: int | None

    @staticmethod
    def newest(catalog: str, name: str) -> IcebergTable:
        """The table as it is now."""
        with _trouble(name):
            now = _catalog(catalog).load_table(name).current_snapshot()
        return IcebergTable(catalog, name, None if now is None else now.snapshot_id)

    @property
    def system(self) -> str:
        """The snapshot that is read."""
        return "Iceberg, empty" if self.snapshot is None else f"Iceberg, snapshot {self.snapshot}"

    def schema(self) -> pa.Schema:
        """The columns."""
        with _trouble(self.name):
            found: pa.Schema = self._scan.projection().as_arrow()
            return found

    def pieces(self) -> list[str]:
        """Paths of data files."""
        return list(self._tasks)

    def batches(self, piece: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of one data file, without those that its delete files name."""
        with _trouble(self.name):
            from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415  an extra
            from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415

            table, wanted = self._table, self._scan.select(*names).projection() if names else self._scan.projection()
            scan = ArrowScan(table.metadata, table.io, wanted, AlwaysTrue())
            for batch in scan.to_record_batches([self._tasks[piece]]):
                yield batch.select(list(names))

    @cached_property
    def _table(self) -> Any:
        return _catalog(self.catalog).load_table(self.name)

    @cached_property
    def _scan(self) -> Any:
        return self._table.scan(snapshot_id=self.snapshot)

    @cached_property
    def _tasks(self) -> dict[str, Any]:
        with _trouble(self.name):
            return {task.file.file_path: task for task in self._scan.plan_files()}

    def __reduce__(self) -> Any:
        return IcebergTable, (self.catalog, self.name, self.snapshot)


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError("The package deltalake is not installed.", hint=_INSTALL) from None
    return deltalake


def _catalog(catalog: str) -> Any:
    try:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError("The package pyiceberg is not installed.", hint=_INSTALL) from None
    if PurePath(catalog).suffix.lower() in _CATALOG_FILES:
        path = Path(catalog).absolute()
        return load_catalog(_only_name(path), type="sql", uri=f"sqlite:///{path}", init_catalog_tables="false")
    try:
        return load_catalog(catalog)
    except ValueError:
        raise ConfigError(
            f"there is no Iceberg catalog {catalog}.",
            hint="Configure it for PyIceberg (.pyiceberg.yaml), or name the SQLite file of one, such as catalog.db.",
        ) from None


def _only_name(path: Path) -> str:
    """The name under which a catalog's file keeps its tables."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            names = [name for (name,) in database.execute("SELECT DISTINCT catalog_name FROM iceberg_tables")]
    except sqlite3.Error:
        raise BadInput(f"{path.name} is no Iceberg catalog.", hint="Name the SQLite file of one.") from None
    if len(names) > 1:
        raise BadInput(f"{path.name} holds {len(names)} catalogs.", hint="Configure the one you mean for PyIceberg.")
    return names[0] if names else "default"


@contextmanager
def _trouble(label: str) -> Iterator[None]:
    """Errors of the libraries in our words. Their classes are told, not their texts, which may hold values."""
    try:
        yield
    except (TrueupError, GeneratorExit):
        raise
    except Exception as failure:
        name = type(failure).__name__
        if name in ("TableNotFoundError", "NoSuchTableError", "NoSuchNamespaceError", "NoSuchIcebergTableError"):
            raise BadInput(f"{label}: there is no such table.", hint="Check the path or the name.") from failure
        if name == "DeltaProtocolError":
            hint = "Let Spark read it, and compare the DataFrames (trueup.spark.diff)."
            raise BadInput(f"{label} uses a feature that deltalake can't read.", hint=hint) from failure
        if isinstance(failure, OSError):
            raise Unreachable(
                f"{label} can't be read ({name}).", hint="Check that all its files are there."
            ) from failure
        raise SideError(
            f"{label}: reading failed ({name}).", hint="Read it with its own library to see why."
        ) from failure
