"""CSV and its relatives: read by Arrow, with what Arrow lets pass checked beside it.

Arrow takes half a quoted field at the end of a file for a whole one, and a quote in the middle of a field for
a letter. Here both are errors. Where something is wrong the file is read once more, slowly, to name the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv

from trueup.errors import BadInput, ConfigError, SchemaError
from trueup.model.kinds import TEXT, Column
from trueup.sides.files.chunk import CHUNK_ROWS, Chunk, numbered
from trueup.sides.files.numerals import Numerals, TextValues
from trueup.sides.files.opening import utf8

_SEPARATORS = ",;\t|"
_RECORD_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are told apart, and which unquoted texts mean null."""

    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str | None = '"'
    null: tuple[str, ...] = ("",)
    skip_top: int = 0

    def __post_init__(self) -> None:
        for name, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if mark is not None and (len(mark) != 1 or not mark.isascii()):
                raise ConfigError(f"{name} is {mark!r}, not one ASCII character.", hint=f"For example {name}=';'.")
        if self.skip_top < 0:
            raise ConfigError("skip_top is less than 0.", hint="It is the number of lines before the header.")

    def reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Python's slower reader of the same dialect."""
        if self.quote is None:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)


@dataclass(slots=True)
class Delimited:
    """CSV files with one header each.

    rename: header name, or position from 1, to the name that is used.
    """

    files: Sequence[Path]
    dialect: Dialect
    numerals: Numerals
    zone: ZoneInfo | None = None
    rename: Mapping[str | int, str] = field(default_factory=dict)
    system: str = "CSV"

    def columns(self) -> tuple[Column, ...]:
        """Every column is text: nothing is inferred, so that no key loses its zeros."""
        first = self._header(self.files[0])[0]
        for path in self.files[1:]:
            if set(other := self._header(path)[0]) != set(first):
                odd = sorted(set(other) ^ set(first))[0]
                raise SchemaError(
                    f"{path.name} and {self.files[0].name} differ in their columns: {odd} is in one of them only.",
                    hint="Files that are read as one side have the same columns.",
                )
        return tuple(Column(name, TEXT, native=True, declared="text") for name in first)

    def chunks(self, path: Path, names: Sequence[str]) -> Iterator[Chunk]:
        """The records of one file."""
        header, body = self._header(path)
        place = 0
        try:
            for batch in self._batches(body, header):
                for start in range(0, batch.num_rows, CHUNK_ROWS):
                    some = batch.slice(start, CHUNK_ROWS)
                    values = {
                        name: TextValues(some.column(header.index(name)), self.numerals, self.zone) for name in names
                    }
                    yield Chunk(self, path, numbered(place, some.num_rows), values)
                    place += some.num_rows
        except (pa.ArrowInvalid, _MalformedError) as failure:
            raise self._explained(path, len(header)) from failure

    def _batches(self, body: _Body, header: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not body.fill():
            return
        names = [str(at) for at in range(len(header))]
        # The stubs know neither what Arrow needs of a file nor that it reads its own.
        file: Any
        with pa.PythonFile(cast("io.IOBase", body), mode="r") as file:
            reader = pyarrow.csv.open_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=_RECORD_BYTES, use_threads=False),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self.dialect.delimiter, quote_char=self.dialect.quote or False, newlines_in_values=True
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=list(self.dialect.null),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    check_utf8=False,  # the body has been checked
                ),
            )
            with reader:
                yield from reader

    def _header(self, path: Path) -> tuple[list[str], _Body]:
        stream = utf8(path, self.dialect.encoding)
        start = next(stream, b"")
        if start.startswith(b"PAR1"):
            raise BadInput(f"{path.name} is a Parquet file.", hint='Declare format="parquet".')
        lines = _Lines(start.decode(errors="replace"))
        for _ in range(self.dialect.skip_top):
            next(lines, "")
        try:
            names = next(self.dialect.reader(lines), [])
        except csv.Error as failure:
            raise BadInput(f"{path.name} line {lines.number}: the header is not well quoted.") from failure
        if not any(names):
            raise BadInput(f"{path.name} has no header.", hint="The first line after skip_top names the columns.")
        self._check_separator(path, names)
        used = len("".join(lines.taken).encode())
        return self._named(path, names), _Body(start[used:], stream, self.dialect)

    def _check_separator(self, path: Path, names: Sequence[str]) -> None:
        if len(names) == 1:
            found = next((mark for mark in _SEPARATORS if mark in names[0]), None)
            if found is not None:
                raise BadInput(
                    f"{path.name} has a single column, whose name holds {found!r}.",
                    hint=f"Declare delimiter={found!r}.",
                )

    def _named(self, path: Path, names: Sequence[str]) -> list[str]:
        for old in self.rename:
            if not (old in names if isinstance(old, str) else 1 <= old <= len(names)):
                raise SchemaError(f"{path.name} has no column {old} to rename.", hint=f"It has {', '.join(names)}.")
        given = [self.rename.get(at, self.rename.get(name, name)) for at, name in enumerate(names, 1)]
        for at, name in enumerate(given):
            if name in given[:at]:
                raise BadInput(
                    f"{path.name} has two columns named {name}, at positions {given.index(name) + 1} and {at + 1}.",
                    hint=f"Rename one by its position, for example rename={{{at + 1}: '{name}_2'}}.",
                )
        return given

    # What is wrong, and where: the slow way, taken only after the fast one failed.

    def line(self, path: Path, place: int) -> str:
        """The physical line on which a record begins."""
        for at, (number, _, _) in enumerate(self._records(path)):
            if at == place:
                return f"line {number:,}"
        return f"record {place + 1:,}"

    def _explained(self, path: Path, width: int) -> BadInput:
        try:
            for number, fields, raw in self._records(path):
                where = f"{path.name} line {number:,}"
                if self.dialect.quote and self.dialect.quote in raw and (column := self._misquoted(raw)):
                    return BadInput(
                        f"{where}, column {column}: a quote inside a field that is not quoted as a whole.",
                        hint="A quote is doubled inside quotes; declare quote=None if quotes mean nothing here.",
                    )
                if len(fields) != width:
                    return BadInput(
                        f"{where}: {len(fields)} fields where the header has {width}.",
                        hint="Check the delimiter and the quotes; the file may also have been cut off.",
                    )
        except _MalformedError as failure:
            return BadInput(
                f"{path.name} line {failure.line:,}: a quoted field of the record that begins here does not end well.",
                hint="Its closing quote is missing or misplaced; the file may have been cut off.",
            )
        return BadInput(
            f"{path.name} can't be read as CSV.",
            hint=f"Check the delimiter and the quotes; a record has at most {_RECORD_BYTES >> 20} MiB.",
        )

    def _misquoted(self, raw: str) -> int:
        """Position from 1 of the first field of a record that is not well quoted; 0 where all are."""
        mark, stop = re.escape(self.dialect.quote or ""), re.escape(self.dialect.delimiter)
        one = re.compile(rf"{mark}(?:[^{mark}]|{mark}{mark})*{mark}|[^{mark}{stop}\r\n]*")
        at, column = 0, 1
        while found := one.match(raw, at):
            at = found.end()
            if raw[at : at + 1] != self.dialect.delimiter:
                return 0 if not raw[at:].strip("\r\n") else column
            at, column = at + 1, column + 1
        return column

    def _records(self, path: Path) -> Iterator[tuple[int, list[str], str]]:
        """Every record after the header: its first physical line, its fields, its raw text."""
        lines = _Lines(utf8(path, self.dialect.encoding))
        for _ in range(self.dialect.skip_top):
            next(lines, "")
        limit = csv.field_size_limit(_RECORD_BYTES)
        try:
            before, reader = lines.number, self.dialect.reader(lines)
            next(reader, None)
            while True:
                before, lines.taken = lines.number, []
                names = next(reader, None)
                if names is None:
                    return
                if names:
                    yield before + 1, names, "".join(lines.taken)
        except csv.Error as failure:
            raise _MalformedError(before + 1) from failure
        finally:
            csv.field_size_limit(limit)


class _Lines:
    """Physical lines of text with their number; keeps those it gave since `taken` was emptied."""

    def __init__(self, source: str | Iterator[bytes]) -> None:
        self.number = 0
        self.taken: list[str] = []
        self._lines: Iterator[str]
        if isinstance(source, str):
            self._lines = iter(io.StringIO(source, newline=""))
        else:
            self._lines = iter(io.TextIOWrapper(io.BufferedReader(_Raw(source)), "utf-8", newline=""))

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.taken.append(line)
        return line


class _Raw(io.RawIOBase):
    """Blocks of bytes as a raw stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        some, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(some)] = some
        return len(some)


class _MalformedError(Exception):
    """Quotes are not where the rules want them; `line` is where the record begins, if that is known."""

    def __init__(self, line: int = 0) -> None:
        super().__init__(line)
        self.line = line


class _Body:
    """What follows the header, as the file object that Arrow reads from; checks quotes on the way."""

    closed = False

    def __init__(self, start: bytes, blocks: Iterator[bytes], dialect: Dialect) -> None:
        self._rest, self._file, self._blocks = b"", blocks, itertools.chain((start,), blocks)
        self._quotes = _Quotes(dialect) if dialect.quote else None
        # The last byte that was given, none before the first.
        self._last = b""

    def fill(self) -> bool:
        """Whether anything is left to read."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                if self._quotes:
                    self._quotes.end()
                if self._last in (b"", b"\n", b"\r"):
                    return False
                # Without it, an empty field at the end is as quoted to Arrow as the one before it was.
                block = b"\n"
            elif self._quotes:
                self._quotes.see(block)
            # What Arrow takes for a mark of the encoding is the first letter of a record here.
            marked = not self._last and block.startswith(codecs.BOM_UTF8)
            self._rest = codecs.BOM_UTF8 + block if marked else block
            self._last = block[-1:] or self._last
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        if not self.fill():
            return b""
        some, self._rest = self._rest[:size], self._rest[size:]
        return some

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is not."""
        return False

    def close(self) -> None:
        """Lets go of the file."""
        self.closed = True
        self._file.close()  # type: ignore[attr-defined]


class _Quotes:
    """Checks that every quote opens or closes a whole field, or is doubled inside one.

    What lies between a closing quote and the next opening one begins and ends at a field's edge, or is
    empty (a doubled quote). Of such a stretch only its first and last byte are kept between blocks.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._quote = (dialect.quote or "").encode()
        self._edges = tuple(mark.encode() for mark in (dialect.delimiter, "\n", "\r"))
        self._inside, self._carried = False, b"\n"

    def see(self, block: bytes) -> None:
        """Looks at the next block."""
        pieces = block.split(self._quote)
        if not self._inside:
            pieces[0] = self._carried + pieces[0]
        outside = pieces[self._inside :: 2]
        self._inside ^= len(pieces) % 2 == 0
        if not self._inside:
            last = outside.pop()
            self._carried = last if len(last) <= 2 else last[:1] + last[-1:]
        if any(piece and not (piece.startswith(self._edges) and piece.endswith(self._edges)) for piece in set(outside)):
            raise _MalformedError

    def end(self) -> None:
        """Looks at the end of the file."""
        if self._inside or (self._carried and not self._carried.startswith(self._edges)):
            raise _MalformedError
