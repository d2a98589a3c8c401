"""Reading: whole scopes as Arrow batches, and single records by key, from the same expressions and rules."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute
import sqlalchemy as sa

from trueup.errors import SchemaError
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.columns import delivered, versions
from trueup.model.record import Field, Found, Projection, key_parts, key_text, version_of
from trueup.ports import Scope
from trueup.sides.scanning import schema_of, within
from trueup.sides.sql import ranges, windows
from trueup.sides.sql.dialects import VERSION, Dialect, Raw, Reading, Stored
from trueup.sides.sql.inspect import Inspected, Known
from trueup.sides.sql.spelling import TEXTUAL

pc: Any = pyarrow.compute
KEYS_MAX: Final = 500
_BINDS_MAX: Final = 10_000
_LOOSE_KEYS_MAX: Final = 100
_ZERO_DATE: Final = r"^\d{4}-(?:00|\d\d-00)"
ZERO_DATES: Final = "zero dates read as null"


@dataclass(frozen=True, slots=True)
class Row:
    """A row found by key. raw: its key as the driver gave it, fit to be bound again; cells: all that was selected."""

    raw: tuple[Any, ...]
    found: Found
    cells: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Selection:
    """One projection over one table.

    where: the side's own condition. zero_null: zero dates become null.
    """

    dialect: Dialect
    inspected: Inspected
    projection: Projection
    where: str | None
    zero_null: bool

    @cached_property
    def columns(self) -> list[tuple[Field, Known, Reading]]:
        """The projection's columns and how each is read."""
        answer = []
        for field in self.projection.columns:
            known = self.inspected.column(field.source)
            asked = known.kind if field is self.projection.version else field.kind
            answer.append((field, known, self.dialect.reading(known.stored, asked)))
        return answer

    def check(self) -> None:
        """Raises SchemaError where the table lacks a column of the projection."""
        for field in self.projection.columns:
            self.inspected.column(field.source)

    @cached_property
    def key(self) -> list[tuple[Field, Known, Reading]]:
        """The key's columns."""
        return self.columns[: len(self.projection.key)]

    def from_where(self, *conditions: str) -> str:
        """FROM and WHERE with the side's own condition and these."""
        verbatim = self.dialect.verbatim
        held = [*([f"({verbatim(self.where)})"] if self.where else []), *(each for each in conditions if each)]
        return f"FROM {self.dialect.named(self.inspected.table)}" + (f" WHERE {' AND '.join(held)}" if held else "")


# Scopes.


def scan(
    connection: sa.Connection,
    of: Selection,
    scope: Scope,
    warnings: dict[str, int],
    among: tuple[str, list[Any]] | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Every row in scope, in one statement and so in one snapshot. Counts oddities into `warnings`.

    among: one more condition, with what is bound in it.
    """
    schema = schema_of(of.projection)
    selected, at = _selected(of)
    conditions = [f"({of.dialect.verbatim(scope.where)})"] if scope.where else []
    conditions.append(ranges.condition(of, scope))
    order = ""
    binds: list[Any] = []
    if scope.since is not None:
        if at is None:
            raise SchemaError(f"{of.inspected.description.label} can't be ordered by version: none is declared.")
        condition, order, binds = newer(of, scope.since)
        conditions.append(condition)
    span = None if scope.window is None else windows.interval(of, scope.window)
    if span is not None:
        conditions.append(span.condition)
        binds = [*binds, *span.binds]
        selected.append((span.known.stored, of.dialect.reading(span.known.stored, span.known.kind)))
    if among is not None:
        conditions.append(among[0])
        binds = [*binds, *among[1]]
    for raw in of.dialect.scan(connection, selected, of.from_where(*conditions) + order, binds):
        arrays = [
            _version_array(array, known, reading)
            if index == at
            else delivered_array(array, (field, known, reading), of, warnings)
            for index, (array, (field, known, _), (_, reading)) in enumerate(zip(raw, of.columns, selected))  # noqa: B905  the interval's column stands behind
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if span is not None and not span.exact:
            times = _version_array(raw[-1], span.known, selected[-1][1])
            batch = batch.filter(within(times, span.low, span.high))
        # The condition on a wall clock is coarse; what counts is the version as delivered.
        yield batch if at is None or scope.since is None else _at_least(batch, at, scope.since)


def _at_least(batch: pa.RecordBatch, at: int, version: int) -> pa.RecordBatch:
    return batch.filter(pc.greater_equal(batch.column(at), pa.scalar(version, pa.int64())))


def _selected(of: Selection) -> tuple[list[tuple[Stored | None, Reading]], int | None]:
    selected: list[tuple[Stored | None, Reading]] = [(known.stored, reading) for _, known, reading in of.columns]
    if of.projection.version is None:
        return selected, None
    at = len(of.projection.key)
    known = of.columns[at][1]
    if not of.dialect.versioned(known.stored, known.kind):
        raise SchemaError(
            f"{of.inspected.description.label}: {known.stored.name} ({known.stored.declared}) can't be a version.",
            hint="A version is an integer or a timestamp.",
        )
    if sql := of.dialect.version(known.stored, known.kind, known.zone):
        selected[at] = (None, Reading(sql, "integer", VERSION))
    return selected, at


def newer(of: Selection, since: int) -> tuple[str, str, list[Any]]:
    """A condition that lets pass every version >= since, the order by version and key, and what is bound in them."""
    known = of.columns[len(of.projection.key)][1]
    condition, binds = of.dialect.since(known.stored, known.kind, known.zone, since)
    key = [of.dialect.quoted(field.source) for field, _, _ in of.key]
    by = [of.dialect.ordered(known.stored, known.kind, known.zone), *key]
    return condition, f" ORDER BY {', '.join(by)}", binds


def _version_array(array: Raw, known: Known, reading: Reading) -> pa.Array[Any]:
    if reading.kind is VERSION:
        return array.cast(pa.int64()) if isinstance(array, pa.Array) else pa.array(array, pa.int64())
    if not isinstance(array, pa.Array):
        return pa.array([_version(value, known) for value in array], pa.int64())
    return versions(delivered(array, known.kind, Field("", "", known.kind), known.zone), known.kind)


def delivered_array(
    raw: Raw, column: tuple[Field, Known, Reading], of: Selection, warnings: dict[str, int]
) -> pa.Array[Any]:
    """A raw column as it must be delivered."""
    field, known, reading = column
    if not isinstance(raw, pa.Array):
        return pa.array([_text(value, known, field, of) for value in raw], pa.string())
    array: pa.Array[Any] = raw
    if reading.shape == "hex":
        array = pa.array([_plain(value, reading) for value in array.to_pylist()], pa.binary())
    if known.stored.base in of.dialect.zero_dates and of.zero_null:
        zero = pc.match_substring_regex(array, _ZERO_DATE)
        if count := pc.sum(zero).as_py():
            warnings[ZERO_DATES] = warnings.get(ZERO_DATES, 0) + count
            array = pc.if_else(zero.fill_null(False), None, array)
    if field.kind.name in TEXTUAL and known.kind.name not in TEXTUAL:
        # Not the engine's spelling but the canonical one, so that 1.50 as text is 1.5 everywhere.
        array = delivered(array, known.kind, Field("", "", known.kind), known.zone)
    return delivered(array, known.kind, field, known.zone)


# Keys.


def read(connection: sa.Connection, of: Selection, keys: Sequence[str]) -> dict[str, Found]:
    """The records with these keys; of a duplicate, one of its rows and how many there are."""
    answer = {}
    for key, rows in find(connection, of, keys).items():
        found = rows[0].found
        answer[key] = Found(key, found.values, found.version, found.token, len(rows))
    return answer


def find(
    connection: sa.Connection,
    of: Selection,
    keys: Sequence[str],
    *,
    lock: bool = False,
    condition: str = "",
    every: bool = False,
) -> dict[str, list[Row]]:
    """The rows with these keys, locked if asked; condition: one more that they must meet.

    every: also rows that spell a key in an odd way while others spell it in a usual one, which is dear to look for.
    """
    answer: dict[str, list[Row]] = {}
    lookup = _Lookup(of, lock, f"({of.dialect.verbatim(condition)})" if condition else "")
    wanted = {key: _parts(of, key) for key in keys}
    loose = any(of.dialect.loose(known.stored, field.kind) for field, known, _ in of.key)
    if not (every and loose):
        lookup.collect(connection, wanted, answer)
    missing = [key for key, parts in wanted.items() if key not in answer and _possible(parts)]
    if missing and loose:
        lookup.collect(connection, _odd_spellings(connection, of, missing), answer)
    return answer


# For each key column the values to bind, any of which may be there; None asks for null.
_Parts: TypeAlias = Sequence[Sequence[Any] | None]


def _parts(of: Selection, key: str) -> _Parts:
    parts = key_parts(key)
    if len(parts) != len(of.key):
        raise SchemaError(
            f"{key} is not a key of {of.inspected.description.label}.",
            hint=f"Its key is {', '.join(field.name for field, _, _ in of.key)}.",
        )
    return [_options(of, part, field, known) for part, (field, known, _) in zip(parts, of.key, strict=True)]


def _possible(parts: _Parts) -> bool:
    return all(part is None or part for part in parts)


def _options(of: Selection, part: str | None, field: Field, known: Known) -> Sequence[Any] | None:
    if part is None:
        return None
    # A part that is no canonical text of its kind is the key of no record.
    canonical = is_odd(part, field.kind) or canonical_text(part, field.kind) == part
    return of.dialect.candidates(known.stored, part, field.kind, known.zone) if canonical else ()


def _odd_spellings(connection: sa.Connection, of: Selection, missing: Sequence[str]) -> dict[str, _Parts]:
    """Raw keys of rows that spell a missing key in a way that nobody guesses."""
    selected = [(known.stored, reading) for _, known, reading in of.key]
    wanted = set(missing)
    found: dict[str, list[list[Any] | None]] = {}
    for condition, binds in _loosely(of, missing):
        for raw in of.dialect.scan(connection, selected, of.from_where(condition), binds):
            columns = [array.to_pylist() if isinstance(array, pa.Array) else array for array in raw]
            for values in zip(*columns, strict=True):
                if (key := _key(values, of)) in wanted:
                    parts = found.setdefault(key, [None if value is None else [] for value in values])
                    for part, value in zip(parts, _rebound(values, of), strict=True):
                        if part is not None:
                            part.append(value)
    return dict(found)


def _loosely(of: Selection, missing: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """Conditions that together let pass every row with one of these keys, however it spells them."""
    each = [
        [
            (f"{of.dialect.quoted(known.stored.name)} IS NULL", [])
            if part is None
            else of.dialect.loosely(known.stored, part, field.kind, known.zone)
            for part, (field, known, _) in zip(key_parts(key), of.key, strict=True)
        ]
        for key in missing
    ]
    if any(all(part is None for part in parts) for parts in each):
        yield "", []
        return
    for start in range(0, len(each), _LOOSE_KEYS_MAX):
        some = [[part for part in parts if part is not None] for parts in each[start : start + _LOOSE_KEYS_MAX]]
        condition = " OR ".join(f"({' AND '.join(f'({sql})' for sql, _ in parts)})" for parts in some)
        yield f"({condition})", [bind for parts in some for _, binds in parts for bind in binds]


@dataclass(frozen=True, slots=True)
class _Lookup:
    of: Selection
    lock: bool
    condition: str

    def collect(self, connection: sa.Connection, wanted: Mapping[str, _Parts], answer: dict[str, list[Row]]) -> None:
        """Adds the rows that have the wanted keys in Python's sense: collations answer more than was asked."""
        for batch in _batches(wanted):
            sql, binds = self._statement(list(batch.values()))
            for row in connection.exec_driver_sql(sql, tuple(binds)).all():
                found = _row(tuple(row), self.of)
                if found.found.key in batch:
                    answer.setdefault(found.found.key, []).append(found)

    def _statement(self, batch: Sequence[_Parts]) -> tuple[str, list[Any]]:
        of = self.of
        names = [of.dialect.key(known.stored) for _, known, _ in of.key]
        marks = [of.dialect.key_mark(known.stored) for _, known, _ in of.key]
        binds = [value for parts in batch for part in parts for value in part or ()]
        if len(names) == 1 and None not in (parts[0] for parts in batch):
            among = _in(names[0], binds, marks[0])
        else:
            among = " OR ".join(f"({' AND '.join(map(_in, names, parts, marks))})" for parts in batch)
        selected = ", ".join(reading.sql for reading in _row_readings(of))
        # Locks in key order, or two sessions with the same rows could wait for each other.
        order = f" ORDER BY {', '.join(names)}{of.dialect.lock}" if self.lock else ""
        return f"SELECT {selected} {of.from_where(f'({among})', self.condition)}{order}", binds


def _in(name: str, values: Sequence[Any] | None, mark: str) -> str:
    if values is None:
        return f"{name} IS NULL"
    return f"{name} = {mark}" if len(values) == 1 else f"{name} IN ({', '.join([mark] * len(values))})"


def _batches(wanted: Mapping[str, _Parts]) -> Iterator[dict[str, _Parts]]:
    """As many keys as a statement may hold; without those that no row can have."""
    batch: dict[str, _Parts] = {}
    binds = 0
    for key, parts in wanted.items():
        if not _possible(parts):
            continue
        batch[key] = parts
        binds += sum(len(part) for part in parts if part is not None)
        if len(batch) >= KEYS_MAX or binds >= _BINDS_MAX:
            yield batch
            batch, binds = {}, 0
    if batch:
        yield batch


def _row_readings(of: Selection) -> list[Reading]:
    own = [] if of.inspected.version is None else [_own_version(of)[1]]
    return [*(reading for _, _, reading in of.columns), *own]


def _own_version(of: Selection) -> tuple[Known, Reading]:
    known = of.inspected.column(of.inspected.version or "")
    return known, of.dialect.reading(known.stored, known.kind)


def _row(values: tuple[Any, ...], of: Selection) -> Row:
    texts: dict[str, str | None] = {}
    version = None
    for value, (field, known, reading) in zip(values, of.columns, strict=False):
        plain = _plain(value, reading)
        texts[field.name] = _text(plain, known, field, of)
        if field is of.projection.version:
            version = _version(plain, known)
    token = of.projection.digest(texts)
    if of.inspected.version is not None:
        known, reading = _own_version(of)
        own = _version(_plain(values[-1], reading), known)
        # The digest too: not every hand that edits a row moves its version, and clocks tick coarsely.
        token = f"{'' if own is None else own}.{token}"
        version = own if of.projection.version is None else version
    found = Found(key_text(texts[field.name] for field in of.projection.key), texts, version, token)
    return Row(_rebound(values[: len(of.key)], of), found, values)


def _key(values: Sequence[Any], of: Selection) -> str:
    return key_text(
        _text(_plain(value, reading), known, field, of)
        for value, (field, known, reading) in zip(values, of.key, strict=True)
    )


def _rebound(values: Sequence[Any], of: Selection) -> tuple[Any, ...]:
    return tuple(
        None if value is None else of.dialect.rebind(value, reading)
        for value, (_, _, reading) in zip(values, of.key, strict=True)
    )


def _version(value: Any, known: Known) -> int | None:
    return version_of(canonical_text(value, known.kind, known.zone), known.kind)


def _plain(value: Any, reading: Reading) -> Any:
    return bytes.fromhex(value) if reading.shape == "hex" and isinstance(value, str) else value


def _text(value: Any, known: Known, field: Field, of: Selection) -> str | None:
    """The canonical text of a raw value in the kind that is asked for; the twin of `delivered_array`."""
    if of.zero_null and known.stored.base in of.dialect.zero_dates and isinstance(value, str):
        value = None if value[5:7] == "00" or value[8:10] == "00" else value
    if field.kind.name in TEXTUAL and known.kind.name not in TEXTUAL:
        value = canonical_text(value, known.kind, known.zone)
    return canonical_text(value, field.kind, known.zone)
