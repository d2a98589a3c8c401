"""Finding rows by key: by the usual spellings of a key first, which an index serves, then by the unusual ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import SchemaError
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.record import Found, key_parts, key_text
from trueup.sides.sql.dialects import Reading
from trueup.sides.sql.inspect import Known
from trueup.sides.sql.read import Selection, plain, spelled_as, text, version_value

KEYS_MAX: Final = 500
_BINDS_MAX: Final = 10_000

# A condition and what is bound in it.
_Bound: TypeAlias = tuple[str, tuple[Any, ...]]
# For each key column the values to bind, any of which may be there; None asks for null.
_Parts: TypeAlias = Sequence[Sequence[Any] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A row found by key. raw: its key as the driver gave it, fit to be bound again; cells: all that was selected."""

    raw: tuple[Any, ...]
    found: Found
    cells: tuple[Any, ...] = ()


def read(connection: sa.Connection, of: Selection, keys: Sequence[str]) -> dict[str, Found]:
    """The records with these keys; of a duplicate, one of its rows and how many there are."""
    answer = {}
    for key, rows in find(connection, of, keys).items():
        found = rows[0].found
        answer[key] = Found(key, found.values, found.version, found.token, len(rows))
    return answer


def find(
    connection: sa.Connection, of: Selection, keys: Sequence[str], *, lock: bool = False, condition: str = ""
) -> dict[str, list[Row]]:
    """The rows with these keys, locked if asked; condition: one more that they must meet.

    Unusual spellings are only looked for where no row has the usual one.
    """
    answer: dict[str, list[Row]] = {}
    lookup = _Lookup(of, lock, f"({of.dialect.verbatim(condition)})" if condition else "")
    wanted = _wanted(of, keys)
    lookup.collect(connection, wanted, answer)
    missing = [key for key in wanted if key not in answer]
    if missing and any(_is_loose(of, at) for at in range(len(of.key))):
        lookup.collect(connection, _unusually_spelled(connection, of, missing), answer)
    return answer


def indexed(of: Selection) -> bool:
    """Whether an index leads to a few rows with the same key."""
    names = {known.stored.name for _, known, _ in of.key}
    return any(
        names.issuperset(index.columns) if index.unique else names == set(index.columns[: len(names)])
        for index in of.inspected.table.indexes
    )


# All rows with some keys, those that spell a key in two ways included: the rows that `usual` and `unusual` select.


def usual(of: Selection, keys: Sequence[str]) -> Iterator[tuple[Collection[str], str, list[Any]]]:
    """Conditions for the rows that spell these keys in a usual way: the keys that each is for, SQL, and its binds.

    Collations may let other rows pass.
    """
    others = unusual(of)
    if others == "true":
        return
    usually = "" if others is None else f"({others}) IS NOT TRUE"
    for batch in _batches(_wanted(of, keys)):
        among, binds = _among(of, batch.values())
        yield batch.keys(), " AND ".join(filter(None, (f"({among})", usually))), binds


def unusual(of: Selection) -> str | None:
    """A condition for all rows whose key `usual` does not look for; None where there can be none."""
    each = [of.dialect.unusual(known.stored, spelled_as(field, known)) for field, known, _ in of.key]
    found = [condition for condition in each if condition is not None]
    return "true" if "true" in found else " OR ".join(found) or None


# Keys as values to bind.


def _wanted(of: Selection, keys: Iterable[str]) -> dict[str, _Parts]:
    """Without those that no row can have."""
    wanted = {key: _parts(of, key) for key in keys}
    return {key: parts for key, parts in wanted.items() if all(part is None or part for part in parts)}


def _parts(of: Selection, key: str) -> _Parts:
    parts = key_parts(key)
    if len(parts) != len(of.key):
        raise SchemaError(
            f"{key} is not a key of {of.inspected.description.label}.",
            hint=f"Its key is {', '.join(field.name for field, _, _ in of.key)}.",
        )
    answer: list[Sequence[Any] | None] = []
    for part, (field, known, _) in zip(parts, of.key, strict=True):
        kind = spelled_as(field, known)
        if part is None:
            answer.append(None)
        elif is_odd(part, kind) or canonical_text(part, kind) == part:
            answer.append(of.dialect.candidates(known.stored, part, kind, known.zone))
        else:
            answer.append(())  # no canonical text of its kind is the key of no record
    return answer


def _batches(wanted: Mapping[str, _Parts]) -> Iterator[dict[str, _Parts]]:
    """As many keys as a statement may hold."""
    batch: dict[str, _Parts] = {}
    binds = 0
    for key, parts in wanted.items():
        batch[key] = parts
        binds += sum(len(part) for part in parts if part is not None)
        if len(batch) >= KEYS_MAX or binds >= _BINDS_MAX:
            yield batch
            batch, binds = {}, 0
    if batch:
        yield batch


def _among(of: Selection, batch: Collection[_Parts]) -> tuple[str, list[Any]]:
    binds = [value for parts in batch for part in parts for value in part or ()]
    names = [of.dialect.key(known.stored) for _, known, _ in of.key]
    marks = [of.dialect.key_mark(known.stored) for _, known, _ in of.key]
    if len(names) == 1 and None not in (parts[0] for parts in batch):
        return _in(names[0], binds, marks[0]), binds
    return " OR ".join(f"({' AND '.join(map(_in, names, parts, marks))})" for parts in batch), binds


def _in(name: str, values: Sequence[Any] | None, mark: str) -> str:
    if values is None:
        return f"{name} IS NULL"
    return f"{name} = {mark}" if len(values) == 1 else f"{name} IN ({', '.join([mark] * len(values))})"


# Unusual spellings of a few keys.


def _unusually_spelled(connection: sa.Connection, of: Selection, missing: Sequence[str]) -> dict[str, _Parts]:
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
    """Conditions that together let pass every row with one of these keys in an unusual spelling."""
    conditions = dict.fromkeys(each for key in missing for each in _each_loosely(of, key))
    if ("", ()) in conditions:
        yield "", []
        return
    listed = list(conditions)
    for start in range(0, len(listed), KEYS_MAX):
        some = listed[start : start + KEYS_MAX]
        either = " OR ".join(f"({condition})" for condition, _ in some)
        yield f"({either})", [value for _, values in some for value in values]


def _each_loosely(of: Selection, key: str) -> Iterator[_Bound]:
    """One for each column that may be the first in an unusual spelling.

    The columns before it are spelled as usual: where they lead an index, it serves every condition.
    """
    parts = key_parts(key)
    exact = [_exactly(of, at, values) for at, values in enumerate(_parts(of, key))]
    sure = {at for at, part in enumerate(parts) if part is None or not _is_loose(of, at)}
    order = _order(of)
    for place, at in enumerate(order):
        part, (field, known, _) = parts[at], of.key[at]
        if part is None or at in sure:
            continue
        others = [exact[each] for each in order if each in sure or each in order[:place]]
        for loosely in of.dialect.loosely(known.stored, part, spelled_as(field, known), known.zone):
            each = [bound for bound in (*others, loosely) if bound[0]]
            yield " AND ".join(f"({sql})" for sql, _ in each), tuple(value for _, binds in each for value in binds)


def _exactly(of: Selection, at: int, values: Sequence[Any] | None) -> _Bound:
    stored = of.key[at][1].stored
    return _in(of.dialect.key(stored), values, of.dialect.key_mark(stored)), tuple(values or ())


def _is_loose(of: Selection, at: int) -> bool:
    field, known, _ = of.key[at]
    return of.dialect.loose(known.stored, spelled_as(field, known))


def _order(of: Selection) -> list[int]:
    """Places of the key's columns, in the order of an index that leads to it."""
    names = [known.stored.name for _, known, _ in of.key]
    leading = (index.columns[: len(names)] for index in of.inspected.table.indexes)
    columns = next((columns for columns in leading if set(columns) == set(names)), names)
    return sorted(range(len(names)), key=lambda at: columns.index(names[at]))


# Rows.


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
        among, binds = _among(of, batch)
        selected = ", ".join(reading.sql for reading in _row_readings(of))
        # Locks in key order, or two sessions with the same rows could wait for each other.
        names = ", ".join(of.dialect.key(known.stored) for _, known, _ in of.key)
        order = f" ORDER BY {names}{of.dialect.lock}" if self.lock else ""
        return f"SELECT {selected} {of.from_where(f'({among})', self.condition)}{order}", binds


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
        read = plain(value, reading)
        texts[field.name] = text(read, known, field, of)
        if field is of.projection.version:
            version = version_value(read, known)
    token = of.projection.digest(texts)
    if of.inspected.version is not None:
        known, reading = _own_version(of)
        own = version_value(plain(values[-1], reading), known)
        # The digest too: not every hand that edits a row moves its version, and clocks tick coarsely.
        token = f"{'' if own is None else own}.{token}"
        version = own if of.projection.version is None else version
    found = Found(key_text(texts[field.name] for field in of.projection.key), texts, version, token)
    return Row(_rebound(values[: len(of.key)], of), found, values)


def _key(values: Sequence[Any], of: Selection) -> str:
    return key_text(
        text(plain(value, reading), known, field, of)
        for value, (field, known, reading) in zip(values, of.key, strict=True)
    )


def _rebound(values: Sequence[Any], of: Selection) -> tuple[Any, ...]:
    return tuple(
        None if value is None else of.dialect.rebind(value, reading)
        for value, (_, _, reading) in zip(values, of.key, strict=True)
    )
