"""JSON Lines: one object a line, numbers exact, kinds inferred from the first records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from trueup.errors import BadInput, SchemaError
from trueup.model.canonical import parse_json
from trueup.model.kinds import JSON, TEXT, Column
from trueup.sides.files.chunk import Chunk, PythonValues
from trueup.sides.files.opening import utf8
from trueup.sides.inference import inferred

SAMPLE_RECORDS = 10_000
_SAMPLED_FILES = 20
_CHUNK_LINES = 8_192


@dataclass(slots=True)
class JsonLines:
    """Files of one JSON object a line. Blank lines are no records; a missing member is null.

    declared: names of columns that need not occur in the sample.
    """

    files: Sequence[Path]
    encoding: str = "utf-8"
    zone: ZoneInfo | None = None
    rename: Mapping[str | int, str] = field(default_factory=dict)
    declared: Sequence[str] = ()
    system: str = "JSON Lines"
    _known: frozenset[str] = frozenset()

    def columns(self) -> tuple[Column, ...]:
        """Members of the first records, each under the narrowest kind that held all their values."""
        sampled = self.files[:_SAMPLED_FILES]
        share = SAMPLE_RECORDS // len(sampled)
        records = [each for path in sampled for _, each in itertools.islice(self._records(path), share)]
        names = dict.fromkeys([*(name for record in records for name in record), *self.declared])
        self._known = frozenset(names)
        return tuple(self._column(name, [record.get(name) for record in records]) for name in names)

    def _column(self, name: str, values: Sequence[object]) -> Column:
        kind = inferred(values)
        kind = JSON if kind.name == "array" else kind
        return Column(name, kind, native=kind == TEXT, declared="JSON")

    def chunks(self, path: Path, names: Sequence[str]) -> Iterator[Chunk]:
        """The records of one file; BadInput where one has a member that the sample never showed."""
        if not self._known:
            self.columns()
        records = self._records(path)
        while some := list(itertools.islice(records, _CHUNK_LINES)):
            for number, record in some:
                if not record.keys() <= self._known:
                    raise self._unknown(path, number, record)
            found = [record for _, record in some]
            values = {name: PythonValues([record.get(name) for record in found], self.zone) for name in names}
            yield Chunk(self, path, pa.array([number for number, _ in some], pa.int64()), values)

    def line(self, path: Path, place: int) -> str:
        """Places are line numbers."""
        return f"line {place:,}"

    def _unknown(self, path: Path, number: int, record: Mapping[str, object]) -> BadInput:
        name = sorted(record.keys() - self._known)[0]
        return BadInput(
            f"{path.name} line {number:,}: its member {name} is in none of the first records.",
            hint=f"Declare it, for example columns={{{name!r}: 'text'}}.",
        )

    def _records(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(_lines(utf8(path, self.encoding)), 1):
            if line.strip():
                yield number, self._renamed(self._parsed(path, number, line))

    def _parsed(self, path: Path, number: int, line: bytes) -> dict[str, Any]:
        try:
            record = parse_json(line.decode())
        except (json.JSONDecodeError, RecursionError) as failure:
            at = f", column {failure.colno:,}" if isinstance(failure, json.JSONDecodeError) else ""
            raise BadInput(f"{_where(path, number)}{at}: not JSON.", hint=_cut_off(line)) from failure
        except ValueError as failure:
            raise BadInput(f"{_where(path, number)}: {failure}.", hint="Repair the line.") from failure
        if not isinstance(record, dict):
            hint = 'Each line is one object, such as {"id": 1}.'
            raise BadInput(f"{_where(path, number)}: not a JSON object.", hint=hint)
        return record

    def _renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        if not self.rename:
            return record
        renamed = {self.rename.get(name, name): value for name, value in record.items()}
        if len(renamed) != len(record):
            raise SchemaError("a renamed member takes the name of another.", hint="Choose another name in rename.")
        return renamed


def _where(path: Path, number: int) -> str:
    return f"{path.name} line {number:,}"


def _cut_off(line: bytes) -> str:
    if line.strip() in (b"[", b"{"):
        return "This is one JSON document, not JSON Lines; write one object a line."
    return "The line may have been cut off." if not line.rstrip().endswith(b"}") else "Repair the line."


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for block in blocks:
        first, *more = block.split(b"\n")
        rest.append(first)
        if more:
            yield b"".join(rest)
            yield from more[:-1]
            rest = [more[-1]]
    if any(rest):
        yield b"".join(rest)
