"""A complete side in memory: for tests, for the simulation, and as the shortest example of an adapter."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from trueup.errors import BadInput, ConfigError, SchemaError
from trueup.model.canonical import canonical_text
from trueup.model.digest import HashSum
from trueup.model.kinds import Column, Kind, kind_named
from trueup.model.natural import natural
from trueup.model.record import Field, Found, Projection, key_parts, key_text, version_of
from trueup.model.window import Span
from trueup.ports import EVERYTHING, Capabilities, Clock, Description, Scope, Write, Written
from trueup.sides.inference import inferred
from trueup.sides.scanning import (
    check_columns,
    check_window,
    delivered_texts,
    lies_within,
    missing_column,
    respelled,
    schema_of,
    slices,
    version_text,
    versions_of,
)

Tokens = Literal["version", "digest", "opaque", "none"]
_LITERAL = r"true|false|null|-?\d+(?:\.\d+)?|'(?:[^']|'')*'"
_ASSIGNMENT = re.compile(rf'\s*("(?:[^"]|"")+"|\w+)\s*=\s*({_LITERAL})\s*(?:,|\Z)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Row:
    """One stored row: canonical texts by column, and a number that no other state of any row ever had."""

    texts: Mapping[str, str | None]
    revision: int


class Memory:
    """Rows held in memory, writable, safe to share between threads.

    rows: mappings of column to Python value or canonical text; or a mapping of key to such rows, whose keys
    fill the key columns.
    columns: kinds by name; undeclared ones are inferred from the rows.
    tokens: what a conditional write compares: the `version` column, the `digest` of the fields, an `opaque`
    revision that changes with every write (as an ETag does), or `none` (every write lands). By default
    `version` where one is declared, else `digest`.
    stamp: whether every write that brings no version sets a higher one than any row has, as a trigger would.
    conditions: what `Scope.where` may say, each with the predicate over a row's Python values that it means.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]] | Mapping[Any, Mapping[str, Any]] = (),
        *,
        key: str | Sequence[str],
        version: str | None = None,
        columns: Mapping[str, Kind | str] | None = None,
        clock: Clock | None = None,
        tokens: Tokens | None = None,
        stamp: bool = False,
        conditions: Mapping[str, Callable[[Mapping[str, Any]], bool]] | None = None,
        label: str = "memory",
    ) -> None:
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self.label = label
        self._tokens: Tokens = tokens or ("version" if version else "digest")
        self._stamp, self._clock = stamp, clock
        self._conditions = dict(conditions or {})
        self._lock = threading.RLock()
        self._revision = self._highest = 0
        listed = [_with_key(self.key, each, row) for each, row in rows.items()] if isinstance(rows, Mapping) else rows
        given = [dict(row) for row in listed]
        self._kinds = _kinds({name: kind_named(kind) for name, kind in (columns or {}).items()}, given)
        for name in (*self.key, *([version] if version else [])):
            self._kind(name)
        self._rows: dict[str, list[_Row]] = {}
        for row in given:
            self.add(row)

    @property
    def capabilities(self) -> Capabilities:
        """Reads by key, has its versions at hand, and scans one instant."""
        return Capabilities(reads_by_key=True, version_index=True, snapshot=True)

    def describe(self) -> Description:
        """The declared or inferred columns."""
        columns = tuple(Column(name, kind, native=kind.name in ("text", "enum")) for name, kind in self._kinds.items())
        with self._lock:
            rows = sum(len(copies) for copies in self._rows.values())
        return Description(self.label, "memory", columns, self.key, rows)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every row in scope, as of the moment the scan began."""
        check_columns(projection, self.describe().columns, self.label)
        with self._lock:
            rows = [row for copies in self._rows.values() for row in copies]
        if scope.where is not None:
            chosen = self._condition(scope.where)
            rows = [row for row in rows if chosen(self._natural(row))]
        if scope.low is not None or scope.high is not None:
            rows = [row for row in rows if _within(self._text(row, projection.key[0]), scope)]
        if scope.window is not None:
            name, kind = scope.window.column, self.window_kind(scope.window.column)
            rows = [row for row in rows if lies_within(row.texts[name], kind, scope.window)]
        if scope.since is not None:
            rows = self._since(rows, projection, scope.since)
        return slices(rows, lambda some: self._batch(some, projection))

    def cut(self, projection: Projection, pieces: int) -> list[str]:
        """Where to divide the rows into equal pieces."""
        with self._lock:
            texts = [self._text(row, projection.key[0]) for copies in self._rows.values() for row in copies]
        if pieces < 2 or projection.key[0].kind.name != "integer" or not all(map(_integer, texts)):
            return []
        numbers = sorted({int(text) for text in texts if text is not None})
        step = -(-len(numbers) // pieces)
        return [str(number) for number in numbers[step::step]] if step else []

    def window_kind(self, column: str) -> Kind:
        """The kind of a column of dates or times."""
        return check_window(column, self.describe().columns, self.label)

    def window_sum(self, projection: Projection, span: Span) -> HashSum | None:
        """None: reading the rows is as fast."""
        return None

    def _since(self, rows: list[_Row], projection: Projection, since: int) -> list[_Row]:
        version = projection.version
        if version is None:
            raise SchemaError(f"{self.label} can't be ordered by version: no version column is declared.")
        dated = [(version_of(self._text(row, version), version.kind), self._key_of(row), row) for row in rows]
        newer = [(at, key, row) for at, key, row in dated if at is not None and at >= since]
        return [row for _, _, row in sorted(newer, key=lambda each: each[:2])]

    def _batch(self, rows: Sequence[_Row], projection: Projection) -> pa.RecordBatch:
        columns: list[pa.Array[Any]] = []
        for field in projection.columns:
            texts = [self._text(row, field) for row in rows]
            is_version = field is projection.version
            array = delivered_texts(texts, replace(field, native=False) if is_version else field)
            columns.append(versions_of(array, field) if is_version else array)
        return pa.RecordBatch.from_arrays(columns, schema=schema_of(projection))

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts."""
        with self._lock:
            answers = {key: self._found(projection, key) for key in keys}
        return {key: answer for key, answer in answers.items() if answer is not None}

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Applies the writes in order, all in one step as others see it. Of a duplicated key, all rows."""
        with self._lock:
            return [self._write(projection, write) for write in writes]

    def mark(self, projection: Projection, key: str, version: int | None, assignments: str) -> tuple[bool, int | None]:
        """Sets `name = literal, …` where the row still has this version; a null version is one of its own."""
        values = self._assigned(assignments)
        with self._lock:
            at, copies = self._locate(projection, key)
            if not copies:
                return False, None
            if self.version is not None and self._version_of(copies[0]) != version:
                return False, self._version_of(copies[0])
            self._replace(at, [{**row.texts, **values} for row in copies], versioned=self.version in values)
            return True, self._version_of(self._rows[at][0])

    def selects(self, projection: Projection, keys: Sequence[str], condition: str) -> set[str]:
        """Which of these records the given condition of this name selects now."""
        chosen = self._condition(condition)
        with self._lock:
            located = {key: self._locate(projection, key)[1] for key in keys}
            return {key for key, copies in located.items() if any(chosen(self._natural(row)) for row in copies)}

    def now_us(self) -> int:
        """The given clock, else this machine's."""
        return self._clock.now_us() if self._clock else time.time_ns() // 1_000

    def close(self) -> None:
        """Nothing to give back; the rows stay."""

    # What a person or a test does to the rows, past every precondition.

    def put(self, row: Mapping[str, Any]) -> None:
        """Inserts or updates the row with this key; columns that are not named stay as they are."""
        texts = self._texts(row)
        with self._lock:
            key = self._key_text(texts)
            before = [each.texts for each in self._rows.get(key, ())] or [dict.fromkeys(self._kinds)]
            self._replace(key, [{**each, **texts} for each in before], versioned=self.version in row)

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a row even where its key is taken: a duplicate."""
        texts = {**dict.fromkeys(self._kinds), **self._texts(row)}
        with self._lock:
            key = self._key_text(texts)
            before = [each.texts for each in self._rows.get(key, ())]
            self._replace(key, [*before, texts], versioned=True)

    def remove(self, *key: Any) -> bool:
        """Removes the row (and its duplicates); answers whether there was one."""
        with self._lock:
            return (
                self._rows.pop(self._key_text(dict(zip(self.key, self._key_texts(key), strict=True))), None) is not None
            )

    def rows(self) -> list[dict[str, Any]]:
        """All rows as Python values."""
        with self._lock:
            return [self._natural(row) for copies in self._rows.values() for row in copies]

    def get(self, *key: Any) -> dict[str, Any] | None:
        """One row as Python values, or None."""
        with self._lock:
            copies = self._rows.get(key_text(self._key_texts(key)))
        return self._natural(copies[0]) if copies else None

    # Rows and texts.

    def _kind(self, name: str) -> Kind:
        if name not in self._kinds:
            raise missing_column(name, list(self._kinds), self.label)
        return self._kinds[name]

    def _texts(self, row: Mapping[str, Any]) -> dict[str, str | None]:
        return {name: canonical_text(value, self._kind(name)) for name, value in row.items()}

    def _key_texts(self, key: Sequence[Any]) -> list[str | None]:
        return [canonical_text(part, self._kind(name)) for name, part in zip(self.key, key, strict=True)]

    def _key_text(self, texts: Mapping[str, str | None]) -> str:
        if missing := [name for name in self.key if name not in texts]:
            raise BadInput(f"a row of {self.label} has no key column {missing[0]}.")
        return key_text(texts[name] for name in self.key)

    def _key_of(self, row: _Row) -> str:
        return self._key_text(row.texts)

    def _natural(self, row: _Row) -> dict[str, Any]:
        return {name: natural(text, self._kinds[name]) for name, text in row.texts.items()}

    def _text(self, row: _Row, field: Field) -> str | None:
        return respelled(row.texts[field.source], self._kind(field.source), field.kind)

    def _version_of(self, row: _Row) -> int | None:
        return None if self.version is None else version_of(row.texts[self.version], self._kinds[self.version])

    def _condition(self, where: str) -> Callable[[Mapping[str, Any]], bool]:
        if where not in self._conditions:
            known = ", ".join(self._conditions) or "none"
            raise ConfigError(f"{self.label} has no condition {where!r}.", hint=f"Its conditions are: {known}.")
        return self._conditions[where]

    def _assigned(self, assignments: str) -> dict[str, str | None]:
        values: dict[str, str | None] = {}
        at = 0
        while at < len(assignments):
            found = _ASSIGNMENT.match(assignments, at)
            if found is None:
                raise ConfigError(
                    f"{self.label} can't carry out the mark {assignments!r}.",
                    hint="It understands NAME = LITERAL, such as synced = true, separated by commas.",
                )
            name, literal = found[1], found[2]
            name = name[1:-1].replace('""', '"') if name.startswith('"') else name
            value = literal[1:-1].replace("''", "'") if literal.startswith("'") else literal
            values |= self._texts({name: None if literal.lower() == "null" else value})
            at = found.end()
        return values

    # Finding and writing; the lock is held.

    def _locate(self, projection: Projection, key: str) -> tuple[str, list[_Row]]:
        """The stored key and the rows of a key text that may be spelled in the projection's kinds."""
        asked = [(field.source, field.kind) for field in projection.key]
        if asked == [(name, self._kind(name)) for name in self.key]:
            return key, self._rows.get(key, [])
        for at, copies in self._rows.items():
            if key_text(self._text(copies[0], field) for field in projection.key) == key:
                return at, copies
        return key, []

    def _found(self, projection: Projection, key: str) -> Found | None:
        _, copies = self._locate(projection, key)
        if not copies:
            return None
        row = copies[0]
        values = {field.name: self._text(row, field) for field in projection.columns}
        version = None
        if projection.version is not None:
            version = version_of(values[projection.version.name], projection.version.kind)
        return Found(key, values, version, self._token(row, projection, values), len(copies))

    def _token(self, row: _Row, projection: Projection, values: Mapping[str, str | None]) -> str:
        version = self._version_of(row)
        if self._tokens == "version" and version is not None:
            return str(version)
        return str(row.revision) if self._tokens == "opaque" else projection.digest(values)

    def _write(self, projection: Projection, write: Write) -> Written:
        before = self._found(projection, write.key)
        token = "" if before is None else before.token
        if self._tokens != "none" and write.expect is not None and write.expect != token:
            return Written(write.key, landed=False, replica=before)
        at, copies = self._locate(projection, write.key)
        if write.values is None:
            self._rows.pop(at, None)
        else:
            texts = self._written_texts(projection, write)
            at = at if copies else self._key_text(texts)
            rows: list[Mapping[str, str | None]] = [row.texts for row in copies] or [dict.fromkeys(self._kinds)]
            self._replace(at, [{**row, **texts} for row in rows], versioned=self.version in texts)
        return Written(write.key, landed=True, replica=self._found(projection, write.key))

    def _written_texts(self, projection: Projection, write: Write) -> dict[str, str | None]:
        by_name = {field.name: field for field in projection.columns}
        if unknown := [name for name in write.values or () if name not in by_name]:
            raise missing_column(unknown[0], list(by_name), f"the projection of {self.label}")
        keys = {field.name: part for field, part in zip(projection.key, key_parts(write.key), strict=True)}
        return {
            by_name[name].source: respelled(text, by_name[name].kind, self._kind(by_name[name].source))
            for name, text in {**(write.values or {}), **keys}.items()
        }

    def _replace(self, key: str, rows: Sequence[Mapping[str, str | None]], *, versioned: bool) -> None:
        self._revision += 1
        stored = [_Row(dict(texts), self._revision) for texts in rows]
        if self._stamp and self.version is not None and not versioned:
            stored = [self._stamped(row, self.version) for row in stored]
        self._rows[key] = stored
        self._highest = max(self._highest, *(self._version_of(row) or 0 for row in stored))

    def _stamped(self, row: _Row, version: str) -> _Row:
        kind = self._kinds[version]
        after = max(self._highest, self._version_of(row) or 0) + 1
        after = max(after, self.now_us()) if kind.name == "timestamp" else after
        return replace(row, texts={**row.texts, version: version_text(after, Field(version, version, kind))})


def _with_key(key: tuple[str, ...], each: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    parts = each if isinstance(each, tuple) else (each,)
    return {**dict(zip(key, parts, strict=True)), **row}


def _kinds(declared: Mapping[str, Kind], rows: Sequence[Mapping[str, Any]]) -> dict[str, Kind]:
    names = dict.fromkeys([*declared, *(name for row in rows for name in row)])
    return {name: declared[name] if name in declared else inferred(row.get(name) for row in rows) for name in names}


def _integer(text: str | None) -> bool:
    return text is None or text.lstrip("-").isdecimal()


def _within(text: str | None, scope: Scope) -> bool:
    """Whether a key is in the piece; a null key is in the first."""
    if text is None:
        return scope.low is None
    above = scope.low is None or int(text) >= int(scope.low)
    return above and (scope.high is None or int(text) < int(scope.high))
