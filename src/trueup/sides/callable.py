"""A Python generator as a read-only side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from trueup.errors import BadInput, ConfigError, IncompleteScan, TrueupError
from trueup.model.canonical import canonical_text
from trueup.model.digest import HashSum
from trueup.model.kinds import TEXT, Column, Kind, kind_named
from trueup.model.record import Field, Found, Projection
from trueup.model.window import Span
from trueup.ports import EVERYTHING, Capabilities, Description, Scope
from trueup.sides import scanning
from trueup.sides.inference import inferred

_SAMPLE_ROWS = 1_000
_Row = Mapping[str, Any]


class Rows:
    """What a function yields, called anew for each scan.

    factory: gives an iterable of mappings of column to Python value. An exception that it raises ends the scan
    as IncompleteScan, so that nothing is concluded from the rows that did not come.
    columns: kinds by name; undeclared ones are inferred from the first 1,000 rows, by one call of their own.
    A row may leave a column out (null), but never a key column, and may not bring one that nobody knows.
    """

    def __init__(
        self,
        factory: Callable[[], Iterable[_Row]],
        *,
        key: str | Sequence[str],
        version: str | None = None,
        columns: Mapping[str, Kind | str] | None = None,
        label: str = "rows",
    ) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self.label = label
        self._factory = factory
        self._declared = {name: kind_named(kind) for name, kind in (columns or {}).items()}
        self._columns: tuple[Column, ...] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """A generator is run from its beginning, whatever is asked."""
        return Capabilities()

    def describe(self) -> Description:
        """Declared columns, then those that the first rows have."""
        if self._columns is None:
            sample = list(itertools.islice(self._rows(), _SAMPLE_ROWS))
            names = dict.fromkeys([*self._declared, *(name for row in sample for name in row)])
            found = {name: self._declared.get(name) or inferred(row.get(name) for row in sample) for name in names}
            self._columns = tuple(Column(name, kind, native=kind == TEXT) for name, kind in found.items())
        return Description(self.label, "Python", self._columns, self.key)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every row that the function yields."""
        columns = self.describe().columns
        scanning.check_columns(projection, columns, self.label)
        if scope.where is not None:
            raise ConfigError(f"{self.label} takes no condition.", hint="Leave the rows out in the function itself.")
        batches = self._batches(projection, frozenset(column.name for column in columns), scope.window)
        return batches if scope.since is None else scanning.since(batches, projection, scope.since)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts, found by one whole scan."""
        return scanning.read_by_scan(self.scan(projection), projection, keys) if keys else {}

    def window_kind(self, column: str) -> Kind:
        """The kind of a column of dates or times."""
        return scanning.check_window(column, self.describe().columns, self.label)

    def window_sum(self, projection: Projection, span: Span) -> HashSum | None:
        """None: only reading tells."""
        return None

    def now_us(self) -> None:
        """A function has no clock."""

    def close(self) -> None:
        """Nothing stays open between scans."""

    def _batches(self, projection: Projection, known: frozenset[str], window: Span | None) -> Iterator[pa.RecordBatch]:
        kind = None if window is None else self.window_kind(window.column)
        rows = self._rows()
        number = 0
        while some := list(itertools.islice(rows, scanning.BATCH_ROWS)):
            for at, row in enumerate(some, number + 1):
                self._check(row, at, known)
            number += len(some)
            if window is not None and kind is not None:
                some = [each for each in some if self._lies_within(each, window, kind)]
            arrays = [self._array(some, field, projection) for field in projection.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=scanning.schema_of(projection))

    def _array(self, rows: Sequence[_Row], field: Field, projection: Projection) -> pa.Array[Any]:
        values = [row.get(field.source) for row in rows]
        if field is not projection.version:
            return scanning.column_of(values, field)
        return scanning.versions_of(scanning.column_of(values, replace(field, native=False)), field)

    @staticmethod
    def _lies_within(row: _Row, window: Span, kind: Kind) -> bool:
        return scanning.lies_within(canonical_text(row.get(window.column), kind), kind, window)

    def _check(self, row: _Row, number: int, known: frozenset[str]) -> None:
        if missing := [name for name in self.key if name not in row]:
            raise BadInput(f"row {number:,} of {self.label} has no key column {missing[0]}.")
        if not row.keys() <= known:
            name = sorted(row.keys() - known)[0]
            raise BadInput(
                f"row {number:,} of {self.label} has a column {name} that no earlier row had.",
                hint=f"Declare it, for example columns={{{name!r}: 'text'}}.",
            )

    def _rows(self) -> Iterator[_Row]:
        count = 0
        try:
            for row in self._factory():
                if not isinstance(row, Mapping):
                    raise BadInput(f"row {count + 1:,} of {self.label} is not a mapping of columns to values.")  # noqa: TRY301
                count += 1
                yield row
        except TrueupError:
            raise
        except Exception as failure:
            raise IncompleteScan(
                f"{self.label} ended with {type(failure).__name__} after {count:,} rows.",
                hint="Nothing is concluded from a scan that did not reach its end. Repair the function.",
            ) from failure
