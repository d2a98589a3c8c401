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
from trueup.sides.sql.spelling import TEXTUAL

KEYS_MAX: Final = 500
_BINDS_MAX: Final = 10_000

# A condition and what is bound in it.
_Bound: TypeAlias = tuple[str, tuple[Any, ...]]
# For each key column the values to bind, any of which may be there; None among them asks for null.
_Parts: TypeAlias = Sequence[Sequence[Any]]


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
    if missing:
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
        yield batch.keys(), " AND ".join(filter(None, (f"({among})", usually))), list(binds)


def unusual(of: Selection) -> str | None:
    """A condition for all rows whose key `usual` does not look for; None where there can be none."""
    each = [of.dialect.unusual(known.stored, spelled_as(field, known)) for field, known, _ in of.key]
    nulls = [_null_otherwise(of, known) for _, known, _ in of.key]
    found = [condition for condition in (*each, *nulls) if condition is not None]
    return "true" if "true" in found else " OR ".join(found) or None


# Keys as values to bind.


def _wanted(of: Selection, keys: Iterable[str]) -> dict[str, _Parts]:
    """Without those that no row can have."""
    wanted = {key: _parts(of, key) for key in keys}
    return {key: parts for key, parts in wanted.items() if all(parts)}


def possible(of: Selection, keys: pa.Table) -> pa.Table:
    """Without those that no row can have. What is no text in the table has to fit into 64 bits."""
    for name, (field, known, _) in zip(keys.column_names, of.key, strict=True):
        if pa.types.is_string(keys.column(name).type) and known.stored.kind.name not in TEXTUAL:
            texts: list[Any] = keys.column(name).to_pylist()
            kind = spelled_as(field, known)
            found = (of.dialect.candidates(known.stored, text, kind, known.zone) for text in texts)
            keys = keys.filter(pa.array([any(map(_fits, values)) for values in found], pa.bool_()))
    return keys


def _fits(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _parts(of: Selection, key: str) -> _Parts:
    parts = key_parts(key)
    if len(parts) != len(of.key):
        raise SchemaError(
            f"{key} is not a key of {of.inspected.description.label}.",
            hint=f"Its key is {', '.join(field.name for field, _, _ in of.key)}.",
        )
    answer: list[Sequence[Any]] = []
    for part, (field, known, _) in zip(parts, of.key, strict=True):
        kind = spelled_as(field, known)
        if part is None:
            answer.append((None,))
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
        binds += sum(map(len, parts))
        if len(batch) >= KEYS_MAX or binds >= _BINDS_MAX:
            yield batch
            batch, binds = {}, 0
    if batch:
        yield batch


def _among(of: Selection, batch: Collection[_Parts]) -> _Bound:
    names = [of.dialect.key(known.stored) for _, known, _ in of.key]
    marks = [of.dialect.key_mark(known.stored) for _, known, _ in of.key]
    if len(names) == 1:
        return _in(names[0], [value for parts in batch for value in parts[0]], marks[0])
    each = [list(map(_in, names, parts, marks)) for parts in batch]
    sql = " OR ".join(f"({' AND '.join(condition for condition, _ in bounds)})" for bounds in each)
    return sql, tuple(value for bounds in each for _, binds in bounds for value in binds)


def _in(name: str, values: Sequence[Any], mark: str) -> _Bound:
    binds = tuple(value for value in values if value is not None)
    if not binds:
        return f"{name} IS NULL", ()
    among = f"{name} = {mark}" if len(binds) == 1 else f"{name} IN ({', '.join([mark] * len(binds))})"
    return among if len(binds) == len(values) else f"({name} IS NULL OR {among})", binds


# Unusual spellings of a few keys.


def _unusually_spelled(connection: sa.Connection, of: Selection, missing: Sequence[str]) -> dict[str, _Parts]:
    """Raw keys of rows that spell a missing key in a way that nobody guesses."""
    selected = [(known.stored, reading) for _, known, reading in of.key]
    wanted = set(missing)
    found: dict[str, list[list[Any]]] = {}
    for condition, binds in _loosely(of, missing):
        for raw in of.dialect.scan(connection, selected, of.from_where(condition), binds):
            columns = [array.to_pylist() if isinstance(array, pa.Array) else array for array in raw]
            for values in zip(*columns, strict=True):
                if (key := _key(values, of)) in wanted:
                    parts = found.setdefault(key, [[] for _ in values])
                    for part, value in zip(parts, _rebound(values, of), strict=True):
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
    loosely = [_otherwise(of, at, part) for at, part in enumerate(key_parts(key))]
    if not any(loosely):
        return
    exact = [_exactly(of, at, values) for at, values in enumerate(_parts(of, key))]
    order = _order(of)
    for place, at in enumerate(order):
        others = [exact[each] for each in order if not loosely[each] or each in order[:place]]
        for loose in loosely[at]:
            each = [bound for bound in (*others, loose) if bound[0]]
            yield " AND ".join(f"({sql})" for sql, _ in each), tuple(value for _, binds in each for value in binds)


def _exactly(of: Selection, at: int, values: Sequence[Any]) -> _Bound:
    stored = of.key[at][1].stored
    return _in(of.dialect.key(stored), values, of.dialect.key_mark(stored))


def _otherwise(of: Selection, at: int, part: str | None) -> Sequence[_Bound]:
    """Conditions that together let pass every row whose column spells this part of a key in an unusual way."""
    field, known, _ = of.key[at]
    kind = spelled_as(field, known)
    if part is None:
        null = _null_otherwise(of, known)
        return [] if null is None else [(null, ())]
    return of.dialect.loosely(known.stored, part, kind, known.zone) if of.dialect.loose(known.stored, kind) else []


def _null_otherwise(of: Selection, known: Known) -> str | None:
    """A condition for the rows whose column is read as null and holds something."""
    return of.dialect.zero_date(known.stored) if of.zero_null else None


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
            for row in connection.exec_driver_sql(sql, binds).all():
                found = _row(tuple(row), self.of)
                if found.found.key in batch:
                    answer.setdefault(found.found.key, []).append(found)

    def _statement(self, batch: Sequence[_Parts]) -> _Bound:
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
