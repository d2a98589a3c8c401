"""A small number and most of a hash in one 64-bit integer: half of what a server packs, and sends.

Records that differ have equal hashes of 48 bits once in 280 million million times. Only of a function whose bits are
all alike good, and on both sides or neither: whether it is done follows from the function and from what is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.sides.sql.hashing import Function, Packed

pc: Any = pyarrow.compute
_NUMBERS: Final = 2**16
_HASH_BITS: Final = 48
# Made once: a number of Python's takes longer to become one of Arrow's than thousands of these to be added.
_SHIFT, _NUMBER, _HASH = (pa.scalar(each, pa.int64()) for each in (_HASH_BITS, _NUMBERS - 1, 2**_HASH_BITS - 1))


def abridges(function: Function, first: int, last: int) -> bool:
    """Whether it is done for numbers from `first` to `last`."""
    return function.abridged and last - first < _NUMBERS


def abridged(function: Function) -> Function:
    """What is left of it."""
    return replace(function, row=f"({function.row} & {2**_HASH_BITS - 1})")


def joined(number: str, function: Function) -> Packed:
    """The last bits of a number, and the hash of a row. number: SQL for it."""
    return Packed(f"({number}::int8 << {_HASH_BITS}) | {abridged(function).row}", "integer", nullable=False)


def parted(found: pa.Array[Any], first: int) -> list[pa.Array[Any]]:
    """Numbers, of which `first` is the least, and hashes."""
    origin = pa.scalar(first, pa.int64())
    after = pc.bit_wise_and(pc.subtract(pc.shift_right(found, _SHIFT), origin), _NUMBER)
    return [pc.add(after, origin), pc.bit_wise_and(found, _HASH)]
