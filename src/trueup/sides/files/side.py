"""Files as a side: CSV, JSON Lines and Parquet, one or many."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute

from trueup.errors import ConfigError
from trueup.model import kinds
from trueup.model.digest import HashSum
from trueup.model.inputs import Inputs
from trueup.model.kinds import Column, Kind, kind_named
from trueup.model.record import Field, Found, Projection, key_parts
from trueup.model.window import Span
from trueup.ports import EVERYTHING, Capabilities, Description, Match, Scope, Side
from trueup.sides import scanning
from trueup.sides.files.chunk import Chunk, Format, first_true
from trueup.sides.files.condition import Condition
from trueup.sides.files.delimited import Delimited, Dialect
from trueup.sides.files.footer import Footer
from trueup.sides.files.json_lines import JsonLines
from trueup.sides.files.match import Half, match
from trueup.sides.files.numerals import Numerals
from trueup.sides.files.opening import files_of, fingerprint, unchanged
from trueup.sides.files.parquet import Parquet

# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute

FormatName = Literal["csv", "jsonl", "parquet"]
_SUFFIXES: dict[str, FormatName] = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_PACKED = re.compile(r"\.(?:gz|zst|zstd|zip)\Z", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,19}").fullmatch
_VERSION_SAMPLE = 1_000
_MOMENTS = (kinds.TIMESTAMP, kinds.INSTANT)


class File:
    """A file, or all files that a glob names, as a read-only side.

    path: gzip, zstd and a zip of one file are unpacked. format: by the suffix if not given.
    columns: kinds by name, such as {"amount": "decimal"}. A value that is not of its declared kind is an error
    that names line and column. Columns that are not declared: text in CSV; in JSON Lines the narrowest kind
    that holds the first records; in Parquet what the schema says.
    rename: name (in CSV also position from 1) to the name that is used instead.
    where: a SQL condition over the columns; records that it does not select are not there.
    zone: what wall-clock times are read in; they become instants.
    CSV only: encoding (a byte order mark outranks it; for JSON Lines too), delimiter, quote (None: quotes are
    letters), decimal and thousands marks of numbers, null (unquoted texts that mean null; the default makes
    `,,` null and `,"",` the empty text), skip_top (lines before the header), footer (texts by which the last
    row is known as a total: {"Text": "Total"}; declared numbers must add up to it).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | Sequence[str] = (),
        version: str | None = None,
        format: FormatName | None = None,  # noqa: A002  the word for it
        columns: Mapping[str, Kind | str] | None = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
        quote: str | None = '"',
        decimal: str = ".",
        thousands: str | None = None,
        null: str | Sequence[str] = ("",),
        zone: str | None = None,
        where: str | None = None,
        rename: Mapping[str | int, str] | None = None,
        skip_top: int = 0,
        footer: Mapping[str, str] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.label = Path(self.path).name
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.version = version
        self._declared = {name: kind_named(kind) for name, kind in (columns or {}).items()}
        self._format_name = format or _format_of(self.label)
        self._zone = _zone(zone)
        self._where, self._footer = where, dict(footer or {})
        self._rename = dict(rename or {})
        tab = _PACKED.sub("", self.label).lower().endswith(".tsv")
        self._encoding = encoding
        self._dialect = Dialect(
            encoding,
            delimiter or ("\t" if tab else ","),
            quote or None,
            (null,) if isinstance(null, str) else tuple(null),
            skip_top,
        )
        self._numerals = Numerals(decimal, thousands or None)
        self._format: Format | None = None
        self._columns: tuple[Column, ...] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """A file is read from its beginning, whatever is asked."""
        return Capabilities()

    def describe(self) -> Description:
        """The columns, from header, schema or first records."""
        form = self._opened()
        if self._columns is None:
            self._columns = self._described(form)
        system = form.system if len(self._files) == 1 else f"{form.system}, {len(self._files)} files"
        return Description(self.label, system, self._columns, self.key)

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Every record in scope, file by file."""
        columns = self.describe().columns
        scanning.check_columns(projection, columns, self.label)
        batches = self._batches(projection, columns, scope.where, window=scope.window)
        return batches if scope.since is None else scanning.since(batches, projection, scope.since)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts, found by reading once what may hold them."""
        columns = self.describe().columns
        scanning.check_columns(projection, columns, self.label)
        batches = self._batches(projection, columns, None, frozenset(keys))
        return scanning.read_by_scan(batches, projection, keys) if keys else {}

    def match(self, projection: Projection, other: Side, asked: Projection, *, memory_mb: int) -> Match | None:
        """Two sides of plain Parquet files, matched where they lie; None where only reading can tell records apart."""
        sides = ((self, projection), (other, asked))
        halves: list[Half] = []
        for side, of in sides:
            if not isinstance(side, File) or (form := side._plain()) is None:
                return None
            scanning.check_columns(of, side.describe().columns, side.label)
            halves.append(Half(side.label, form, form.own_names(), of, side._batch))
        return match(halves[0], halves[1], memory_mb)

    def sample(self, projection: Projection, most: int) -> Iterator[pa.RecordBatch]:
        """Evenly spread runs of records, in row groups all over the files; none where they are not plain Parquet."""
        if (form := self._plain()) is None:
            return
        scanning.check_columns(projection, self.describe().columns, self.label)
        for chunk in form.some([each.source for each in projection.columns], most):
            yield self._batch(chunk, projection)

    def _plain(self) -> Parquet | None:
        """The files, where they are Parquet and records are just what they hold."""
        interpreted = self._where or self._zone or self._declared or self._footer
        form = self._opened()
        return form if isinstance(form, Parquet) and not interpreted else None

    def window_kind(self, column: str) -> Kind:
        """The kind of a column of dates or times; of an undeclared column of texts, the one that they have."""
        columns = self.describe().columns
        if any(each.name == column and each.kind == kinds.TEXT for each in columns) and column not in self._declared:
            kind = self._kind_of_texts(self._opened(), column, _MOMENTS)
            columns = tuple(replace(each, kind=kind) if each.name == column else each for each in columns)
        return scanning.check_window(column, columns, self.label)

    def window_sum(self, projection: Projection, span: Span) -> HashSum | None:
        """None: only reading tells."""
        return None

    def declared(self) -> dict[str, str]:
        """Path and format, condition, zone, and the kinds that were given."""
        told = {
            "path": self.path, "format": self._format_name, "where": self._where or "",
            "zone": "" if self._zone is None else self._zone.key,
            "columns": ", ".join(f"{name} {kind}" for name, kind in sorted(self._declared.items())),
            "rename": ", ".join(f"{name} {new}" for name, new in sorted(self._rename.items(), key=str)),
            "footer": ", ".join(f"{name} {text}" for name, text in sorted(self._footer.items())),
        }  # fmt: skip
        return {name: text for name, text in told.items() if text}

    def inputs(self) -> Inputs:
        """The files that it names now, with the hashes of their bytes."""
        return Inputs(files=tuple(fingerprint(path) for path in files_of(self.path)))

    def elsewhere(self, path: str | os.PathLike[str]) -> File:
        """The same declaration, read from another place."""
        other = copy(self)
        other.path = os.fspath(path)
        other.label = Path(other.path).name
        other._format = other._columns = None
        return other

    def now_us(self) -> None:
        """A file has no clock."""

    def close(self) -> None:
        """Nothing stays open between scans."""

    # Description.

    def _opened(self) -> Format:
        if self._format is None:
            self._files = files_of(self.path)
            self._format = self._form(self._files)
        return self._format

    def _form(self, files: Sequence[Path]) -> Format:
        match self._format_name:
            case "csv":
                return Delimited(files, self._dialect, self._numerals, self._zone, self._rename)
            case "jsonl":
                return JsonLines(files, self._encoding, self._zone, self._rename, tuple(self._declared))
            case _:
                return Parquet(files, self._zone, self._rename)

    def _described(self, form: Format) -> tuple[Column, ...]:
        found = {column.name: column for column in form.columns()}
        for name in (*self._declared, *self._footer):
            if name not in found:
                raise scanning.missing_column(name, list(found), self.label)
        for name, kind in self._declared.items():
            same = kind == found[name].kind and found[name].native
            found[name] = replace(found[name], kind=kind, native=same or kind.name == "text", declared=str(kind))
        if self.version in found and self.version not in self._declared and found[self.version].kind == kinds.TEXT:
            version_kinds = (kinds.INTEGER, *_MOMENTS)
            found[self.version] = replace(
                found[self.version], kind=self._kind_of_texts(form, self.version, version_kinds), native=False
            )
        return tuple(found.values())

    def _kind_of_texts(self, form: Format, name: str, candidates: Sequence[Kind]) -> Kind:
        """The first of these that the texts of an undeclared column are, as far as the first records show."""
        chunk = next(form.chunks(self._files[0], [name]), None)
        if chunk is None:
            return kinds.TEXT
        sample = chunk.filter(pa.array([at < _VERSION_SAMPLE for at in range(len(chunk))]))
        for declared in candidates:
            kind = kinds.INSTANT if declared == kinds.TIMESTAMP and self._zone is not None else declared
            texts = sample.deliver(Field(name, name, kind))
            if texts.null_count < len(texts) and not pc.any(pc.starts_with(texts, "!")).as_py():
                return kind
        return kinds.TEXT

    # Enumeration.

    def _batches(
        self,
        projection: Projection,
        columns: Sequence[Column],
        where: str | None,
        keys: Set[str] = frozenset(),
        window: Span | None = None,
    ) -> Iterator[pa.RecordBatch]:
        moment = None if window is None else Field(window.column, window.column, self.window_kind(window.column))
        conditions = [Condition(sql, columns, self.label) for sql in (self._where, where) if sql is not None]
        try:
            for path in self._files:
                with unchanged(path):
                    more = () if window is None else [window.column]
                    for chunk in self._chunks(path, projection, conditions, more, keys):
                        few = self._having(chunk, projection.key[0], keys)
                        if window is not None and moment is not None:
                            low, high = window.bounds(moment.kind)
                            few = few.filter(
                                scanning.within(scanning.versions_of(self._column(few, moment), moment), low, high)
                            )
                        yield self._batch(few, projection)
        finally:
            for condition in conditions:
                condition.close()

    def _chunks(
        self, path: Path, projection: Projection, conditions: Sequence[Condition], more: Sequence[str], keys: Set[str]
    ) -> Iterator[Chunk]:
        totals = [name for name, kind in self._declared.items() if kind.name in ("integer", "decimal")]
        totals = totals if self._footer else []
        spoken_of = [name for condition in conditions for name in condition.names]
        asked = [*(each.source for each in projection.columns), *more]
        names = dict.fromkeys([*asked, *self._footer, *totals, *spoken_of])
        footer = Footer(self._footer, totals) if self._footer else None
        for chunk in self._read(path, list(names), projection.key[0], keys):
            records = chunk if footer is None else footer.strip(chunk)
            for condition in conditions:
                records = records.filter(condition.mask(records))
            if len(records):
                yield records
        if footer is not None:
            footer.check(path.name)

    def _read(self, path: Path, names: Sequence[str], first: Field, keys: Set[str]) -> Iterator[Chunk]:
        """All records of a file, or those of row groups that may have one of these keys."""
        form = self._opened()
        told = first.kind == kinds.INTEGER and first.source not in self._declared and not self._footer
        parts = {key_parts(key)[0] for key in keys}
        if not (isinstance(form, Parquet) and told and parts and all(part and _WHOLE(part) for part in parts)):
            return form.chunks(path, names)
        return form.chunks(path, names, form.holding(path, first.source, sorted(int(part or 0) for part in parts)))

    def _having(self, chunk: Chunk, first: Field, keys: Set[str]) -> Chunk:
        """Only what may have one of these keys, so that no other record is converted."""
        if not keys:
            return chunk
        return chunk.filter(scanning.key_mask(self._column(chunk, replace(first, native=False)), keys))

    def _batch(self, chunk: Chunk, projection: Projection) -> pa.RecordBatch:
        arrays = []
        for field in projection.columns:
            if field is projection.version:
                texts = self._column(chunk, replace(field, native=False))
                arrays.append(scanning.versions_of(texts, field))
            else:
                arrays.append(self._column(chunk, field))
        return pa.RecordBatch.from_arrays(arrays, schema=scanning.schema_of(projection))

    def _column(self, chunk: Chunk, field: Field) -> pa.Array[Any]:
        declared = self._declared.get(field.source)
        if declared is None or declared == kinds.TEXT:
            return chunk.deliver(field)
        asked = field if field.kind == declared else Field(field.source, field.source, declared)
        array = chunk.deliver(asked)
        _check(chunk, field.source, array, declared)
        if asked is field:
            return array
        texts = [scanning.respelled(text, declared, field.kind, self._zone) for text in array.to_pylist()]
        return scanning.delivered_texts(texts, field)


def _check(chunk: Chunk, name: str, array: pa.Array[Any], declared: Kind) -> None:
    """Raises BadInput at the first value that is not of its declared kind."""
    if array.type != pa.string() or declared.name in ("text", "enum"):
        return
    row = first_true(pc.fill_null(pc.starts_with(array, "!"), False))
    if row is not None:
        hint = "Repair the value, or declare the column as it is."
        raise chunk.bad(row, name, f"not a value of kind {declared}, as it is declared", hint)


def _format_of(name: str) -> FormatName:
    suffix = Path(_PACKED.sub("", name)).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ConfigError(
            f"{name}: the format can't be told from the name.", hint="Declare format: csv, jsonl or parquet."
        )
    return _SUFFIXES[suffix]


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"{name!r} is not a time zone.", hint="For example Europe/Berlin or UTC.") from None
