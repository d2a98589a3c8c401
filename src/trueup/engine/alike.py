"""What both sides show alike, told by hashes taken where the records are: far sooner than by their digests.

Two systems that hash alike are asked for the hashes of what was touched; a record that has one hash on both agrees. The
others are read by key, so that they have digests too. Where they are many, it is sooner to digest everything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.engine.glance import UNKNOWN
from trueup.model.change import UPSERT
from trueup.model.columns import key_text_array
from trueup.model.record import Field, Found, Projection
from trueup.model.row import Seen
from trueup.ports import NewerHashingSide, Side

pc: Any = pyarrow.compute
# Hashes of so many records of a side are matched here, in some dozen bytes each beside their keys.
SHOWN_MAX: Final = 500_000
# So many are read by key whatever is shown, or this share of what is: to read one takes as long as to digest dozens.
READ_MAX: Final = 100
READ_SHARE: Final = 1 / 32
_READ_AT_ONCE: Final = 1_000

_Begin: TypeAlias = Callable[[], Generator[pa.RecordBatch, None, None]]
_Array: TypeAlias = "pa.Array[Any]"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a side is asked for: records of the versions from `since` on, by its own clock."""

    side: Side
    projection: Projection
    since: int


@dataclass(frozen=True, slots=True)
class Shown:
    """left, right: records that each side showed. others: keys of those that are not alike, by who showed them."""

    left: int
    right: int
    others: tuple[list[str], list[str]]


def shown(left: Asked, right: Asked) -> Shown | None:
    """What both sides show of these versions; None where hashes do not tell, or leave too many records to be read.

    They do not where the sides share no function, a key is shown twice by one, or more is shown than is matched here.
    """
    begin = _shared(left, right)
    if begin is None:
        return None
    key = _matchable(left.projection).key
    # Both before either is waited for: systems that can read at the same time.
    with closing(begin[0]()) as first, closing(begin[1]()) as second:
        a, b = (_columns(list(batches), key) for batches in (first, second))
    keys = a[0], b[0]
    if any(len(each) > SHOWN_MAX or len(pc.unique(each)) < len(each) for each in keys):
        return None
    alike = _alike(a, b)
    others = [each.filter(pc.invert(pc.is_in(each, value_set=alike))) for each in keys]
    if sum(map(len, others)) > max(READ_MAX, READ_SHARE * sum(map(len, keys))):
        return None
    in_left, in_right = (_texts(each, key) for each in others)
    return Shown(len(keys[0]), len(keys[1]), (in_left, in_right))


def looked_at(left: Asked, right: Asked, others: tuple[list[str], list[str]]) -> Iterator[list[Seen]]:
    """These records as they are now, a batch at a time, without those that are alike by now.

    A side is asked for what it showed. The digest of a record that is gone, or there twice, is UNKNOWN.
    """
    by_left, by_right = map(set, others)
    keys = list(dict.fromkeys(chain(*others)))
    for at in range(0, len(keys), _READ_AT_ONCE):
        some = keys[at : at + _READ_AT_ONCE]
        a, b = _digests(left, [key for key in some if key in by_left]), _digests(right, [*by_right.intersection(some)])
        seen = ((key, UPSERT if key in a else None, a.get(key), b.get(key)) for key in some)
        yield [each for each in seen if each[2] != each[3] or each[2] == UNKNOWN]


def _digests(asked: Asked, keys: Sequence[str]) -> dict[str, str]:
    found = asked.side.read(asked.projection, keys) if keys else {}
    return {key: _digest(asked, found.get(key)) for key in keys}


def _digest(asked: Asked, found: Found | None) -> str:
    return UNKNOWN if found is None or found.copies > 1 else asked.projection.digest(found.values)


def _shared(left: Asked, right: Asked) -> tuple[_Begin, _Begin] | None:
    """How both are asked for hashes of the first function that both have."""
    if not isinstance(left.side, NewerHashingSide) or not isinstance(right.side, NewerHashingSide):
        return None
    a, b = (
        side.hashes(_matchable(asked.projection), asked.since, SHOWN_MAX + 1)
        for side, asked in ((left.side, left), (right.side, right))
    )
    return next(((a[name], b[name]) for name in a if name in b), None)


def _matchable(asked: Projection) -> Projection:
    """The same, with keys as whole numbers or canonical texts."""
    key = (field if field.kind.name == "integer" else replace(field, native=False) for field in asked.key)
    return replace(asked, key=tuple(key), extra=())


def _columns(batches: Sequence[pa.RecordBatch], key: Sequence[Field]) -> tuple[_Array, _Array]:
    """Keys, as they are or as key texts where they have several parts, and hashes."""
    if not batches:
        whole = len(key) == 1 and key[0].kind.name == "integer" and key[0].native
        return pa.nulls(0, pa.int64() if whole else pa.string()), pa.nulls(0, pa.int64())
    *keys, hashes = (column.combine_chunks() for column in pa.Table.from_batches(batches).columns)
    return keys[0] if len(keys) == 1 else key_text_array(keys, key), hashes


def _texts(keys: Any, key: Sequence[Field]) -> list[str]:
    return list((key_text_array([keys], key) if len(key) == 1 else keys).to_pylist())


def _alike(a: tuple[_Array, _Array], b: tuple[_Array, _Array]) -> _Array:
    """The keys that have one hash on both sides."""
    # Null, which a filter leaves out, where the other side lacks the key or a side can't tell a hash.
    same = pc.equal(a[1], b[1].take(pc.index_in(a[0], value_set=b[0])))
    alike: _Array = a[0].filter(same)
    return alike
