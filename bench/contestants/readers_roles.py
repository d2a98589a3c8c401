"""What a contestant of readers.py can be told: SCRIPT READER ROLE, and a question in JSON on standard input.

    values   every value of these columns, one column after the other, as cells: what it is, and its text
    speed    all rows as Arrow columns, and the sum of the first one

A column that can't be read as a whole is read value by value, so that it is known which of them can't be. The answer
is one line of JSON on standard output. Needs pyarrow.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

# Stands for a value that the reader leaves to another one.
LEFT: Final = "?left"


class Canonical(str):
    """A text that is canonical already."""

    __slots__ = ()


@dataclass(frozen=True)
class Question:
    """What to read. where: a condition or nothing."""

    url: str
    table: str
    columns: Sequence[str]
    where: str = ""


# Columns, as Arrow arrays or as lists of Python values.
Columns: TypeAlias = Sequence[Any]
Read: TypeAlias = Callable[[Question], Iterator[Columns]]
Cell: TypeAlias = "list[str] | None"


class NotOffered(Exception):
    """The reader does not take such columns, and says so."""


def select(question: Question, quote: str = '"') -> str:
    """The statement."""
    names = ", ".join(f"{quote}{name}{quote}" for name in question.columns)
    where = f" WHERE {question.where}" if question.where else ""
    return f"SELECT {names} FROM {quote}{question.table}{quote}{where}"


def main(readers: Mapping[str, Read]) -> None:
    """Plays one role."""
    _, reader, role = sys.argv
    asked = json.load(sys.stdin)
    play = {"values": _values, "speed": _speed}[role]
    print(json.dumps(play(readers[reader], asked)))


def _speed(read: Read, asked: dict[str, Any]) -> dict[str, float]:
    for _ in read(Question(**asked, where="id = 1")):
        pass  # libraries are loaded now
    rows = total = 0
    started = time.perf_counter()
    for columns in read(Question(**asked)):
        arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in columns]
        rows += len(arrays[0])
        total += pc.sum(arrays[0]).as_py() or 0
    return {"rows": rows, "total": total, "seconds": time.perf_counter() - started}


def _values(read: Read, asked: dict[str, Any]) -> dict[str, dict[str, Cell | str]]:
    """By table: cells by id, or the name of an error where there is no value."""
    found = {}
    for table, ids in asked["tables"].items():
        question = Question(asked["url"], table, ("id", "v"))
        try:
            found[table] = _cells(read, question)
        except NotOffered:
            found[table] = {}
        except BaseException:  # some readers end a thread, not merely a call
            found[table] = {number: each for one in ids for number, each in _alone(read, question, one).items()}
    return found


def _alone(read: Read, question: Question, number: int) -> dict[str, Cell | str]:
    try:
        return _cells(read, Question(question.url, question.table, question.columns, f"id = {number}"))
    except BaseException as error:
        return {str(number): type(error).__name__}


def _cells(read: Read, question: Question) -> dict[str, Cell | str]:
    found: dict[str, Cell | str] = {}
    for numbers, values in read(question):
        plain = values if not isinstance(values, pa.Array) else list(_of_arrow(values))
        for number, value in zip(_numbers(numbers), plain, strict=True):
            found[str(number)] = cell(value)
    return found


def _numbers(values: Any) -> list[int]:
    numbers: list[Any] = values.to_pylist() if isinstance(values, pa.Array) else values
    return [int(each) for each in numbers]


def cell(value: Any) -> Cell:
    """What a value is, and its text."""
    match value:
        case None:
            return None
        case Canonical():
            return ["canonical", str(value)]
        case bool():
            return ["text", str(value).lower()]
        case float():
            return ["float", value.hex()]
        case int():
            return ["integer", str(value)]
        case decimal.Decimal() | uuid.UUID() | str():
            return ["text", str(value)]
        case bytes() | bytearray() | memoryview():
            return ["bytes", bytes(value).hex()]
        case dt.datetime():
            return ["datetime", value.isoformat()]
        case dt.date() | dt.time():
            return ["text", value.isoformat()]
        case dt.timedelta():
            return ["us", str(value // dt.timedelta(microseconds=1))]
        case list():
            return ["list", json.dumps([cell(each) for each in value])]
        case Arrow():
            return [value.what, value.text]
    return ["text", json.dumps(value) if isinstance(value, dict) else str(value)]


@dataclass(frozen=True)
class Arrow:
    """A value of an Arrow type for which Python has none that holds all of them."""

    what: str
    text: str


def _of_arrow(array: Any) -> Iterator[Any]:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _of_arrow(array.storage)
        return
    if pa.types.is_timestamp(kind):
        us = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 10**-3}[kind.unit]
        for number in array.cast(pa.int64()).to_pylist():
            yield None if number is None else Arrow("timestamp", f"{int(number * us)}{'Z' if kind.tz else ''}")
    elif pa.types.is_date(kind):
        day = 1 if kind == pa.date32() else 86_400_000
        whole = pa.int32() if kind == pa.date32() else pa.int64()
        for number in array.cast(whole).to_pylist():
            yield None if number is None else Arrow("days", str(number // day))
    elif pa.types.is_time(kind):
        us = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 10**-3}[kind.unit]
        for number in array.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).to_pylist():
            yield None if number is None else Arrow("us", str(int(number * us)))
    elif kind == pa.month_day_nano_interval():
        for each in array.to_pylist():
            if each is None:
                yield None
                continue
            yield Arrow("interval", f"{each.months} {each.days * 86_400_000_000 + each.nanoseconds // 1000}")
    else:
        yield from array.to_pylist()
