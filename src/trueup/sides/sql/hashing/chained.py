"""A PostgreSQL row's hash: the engine's own hashes of its values, each seeded with the one before.

Chained by their seeds, they need no row to be formed and see which row and column a value stands in, so that sums
over rows miss no two values that are exchanged (Jenkins' lookup3, which these functions are, takes a seed in before
the data). It takes less time than `hash_record_extended`, which combines the columns' hashes by a linear formula.

Some of these functions do not see all of a value: of bigint, time and timestamp the upper half is folded into the
lower one, numeric leaves out the sign, a zero gives back the seed. What they miss is given to them beside it, so that
only values that are equal hash alike, but for chance. A null is hashed as the zero of its type, and marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from trueup.sides.sql.hashing import Covered, alike, read_as
from trueup.sides.sql.read import Selection

# Deeper expressions come near what the server's parser can hold.
COLUMNS_MAX: Final = 800
TEXTS: Final = ("text", "varchar", "bpchar", "name")
_MARK: Final = "{h} # CASE WHEN {v} IS NULL THEN 1 ELSE 0 END"


@dataclass(frozen=True, slots=True)
class _Link:
    """Formats of a seeded hash that takes in the value v after the hash h. sure: where v can't be null."""

    name: str
    sure: str
    other: str


_TEXT: Final = _Link(
    "text",
    'hashtextextended({v}::text COLLATE "C", {h})',
    f"hashtextextended(coalesce({{v}}::text, '') COLLATE \"C\", {_MARK})",
)
# A whole number is part of the seed, all of its bits; as the first value it is the seed.
_FIRST: Final = "hashint4extended(0, {v}::int8)"
_INTEGER: Final = _Link(
    "integer",
    "hashint4extended(0, {h} # {v})",
    "hashint4extended(CASE WHEN {v} IS NULL THEN 1 ELSE 0 END, {h} # coalesce({v}, 0))",
)


def _decimal(positive: str) -> _Link:
    """Zero and NaN give back the seed less one and the seed, the infinities the seed: so the result is hashed again."""
    sure = f"hashint4extended(CASE WHEN {{v}} >= 0 THEN {positive} ELSE 2 END, hash_numeric_extended({{v}}, {{h}}))"
    other = sure.replace("ELSE 2", "WHEN {v} IS NULL THEN 1 ELSE 2").replace("({v}, ", "(coalesce({v}, 0), ")
    return _Link("decimal", sure, other)


_DECIMAL: Final = _decimal("0")
# Without a precision, there may be infinity.
_ANY_DECIMAL: Final = _decimal("(CASE WHEN {v} = 'infinity' THEN 3 ELSE 0 END)")
# Zero gives back the seed here too.
_FLOAT: Final = _Link(
    "float",
    "hashint4extended(0, hashfloat8extended({v}::float8, {h}))",
    "hashint4extended(CASE WHEN {v} IS NULL THEN 1 ELSE 0 END, hashfloat8extended(coalesce({v}::float8, 0), {h}))",
)
_BOOLEAN: Final = "hashint4extended(CASE WHEN {v} THEN 1 WHEN NOT {v} THEN 0 ELSE 2 END, {h})"
# No finite date is that far from 2000.
_DATE: Final = (
    "hashint4extended(CASE WHEN isfinite({v}) THEN {v} - date '2000-01-01' WHEN {v} IS NULL THEN 2147483646 "
    "WHEN {v} > '2000-01-01' THEN 2147483647 ELSE -2147483647 END, {h})"
)
# Of times since 2000 a fold of both halves, and one of the upper half alone: rounded down to 2^32 µs, nothing is lower.
_TIME: Final = (
    "hashint4extended(0, {{h}} # CASE WHEN {v} >= '2000-01-01' THEN timestamp_hash_extended({v}, "
    "timestamp_hash_extended(date_bin('4294.967296 s', {v}, '2000-01-01'), 0)) "
    "WHEN {v} IS NULL THEN 1 ELSE hash_record_extended(ROW(timestamp_send({v})), 0) END)"
)
_WALL: Final = _TIME.format(v="{v}")
# Moved by no hours, which costs less than to ask for a zone by its name.
_INSTANT: Final = _TIME.format(v="({v} AT TIME ZONE interval '0')")
_UUID: Final = _Link(
    "uuid",
    "uuid_hash_extended({v}, {h})",
    f"uuid_hash_extended(coalesce({{v}}, '00000000-0000-0000-0000-000000000000'), {_MARK})",
)


def _by_record(name: str, value: str, zero: str) -> _Link:
    """Of a type whose hash takes no seed when it is called by itself."""
    sure = f"hash_record_extended(ROW({value}), {{h}})"
    return _Link(name, sure, sure.replace("{v}", f"coalesce({{v}}, {zero})").replace("{h}", _MARK))


_LINKS: Final = {
    **dict.fromkeys(("int2", "int4", "int8"), _INTEGER),
    **dict.fromkeys(TEXTS, _TEXT),
    **dict.fromkeys(("float4", "float8"), _FLOAT),
    "numeric": _ANY_DECIMAL,
    "bool": _Link("boolean", _BOOLEAN, _BOOLEAN),
    "date": _Link("date", _DATE, _DATE),
    "timestamp": _Link("wall clock", _WALL, _WALL),
    "timestamptz": _Link("instant", _INSTANT, _INSTANT),
    "time": _by_record("time", "time_send({v})", "'00:00'"),
    "uuid": _UUID,
    "bytea": _by_record("bytes", "{v}", "''"),
}
# Values of each type, to prove that two servers hash alike.
_SAMPLES: Final = {
    "int2": ("7",), "int8": ("-9007199254740993",), "text": ("repeat('ä', 40)", "''"),
    "numeric": ("-123456.7890", "0", "'nan'"), "float4": ("-0.1",), "float8": ("'nan'", "1e300"), "bool": ("true",),
    "date": ("'2024-02-29'", "'-infinity'"), "time": ("'23:59:59.999999'",),
    "timestamp": ("'1969-07-20 20:17:40.5'", "'2038-01-19 03:14:08.000001'"),
    "timestamptz": ("'2024-02-29 12:00:00+00'",), "uuid": ("'6f9619ff-8b86-d011-b42d-00cf4fc964ff'",),
    "bytea": ("'\\x00ff'",),
}  # fmt: skip


def chained(of: Selection, columns: Sequence[Covered], *, trusted: bool) -> tuple[str, list[Any]]:
    """SQL for the hash of these columns, and all that decides what it is.

    trusted: whether a column that is declared so has no null.
    """
    made, told = "0::int8", []
    for field, known in columns:
        link = _LINKS.get(known.stored.base) if alike(field, known) else None
        if link is _FLOAT and known.stored.kind.bits != field.kind.bits:
            link = None
        value = of.dialect.quoted(field.source)
        nullable = known.stored.nullable or not trusted
        if link is None:
            # Any other type by what the reader reads: equal texts become equal canonical values.
            link, value, nullable = _TEXT, f"({of.dialect.reading(known.stored, field.kind).sql})", True
            told.append(read_as(field, known))
        else:
            told.append([link.name, field.kind.name])
        if link is _ANY_DECIMAL and known.stored.kind.scale is not None:
            link = _DECIMAL
        first = _FIRST if link is _INTEGER and len(told) == 1 else link.sure
        made = (link.other if nullable else first).format(v=value, h=made)
    return made, told


def sample() -> str:
    """SQL for a hash that takes in samples of all types; servers that answer alike hash alike."""
    made = "0::int8"
    for base, values in _SAMPLES.items():
        for value in (*values, "NULL"):
            made = _LINKS[base].other.format(v=f"{value}::{base}", h=made)
    return made
