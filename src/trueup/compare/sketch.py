"""Strategy *sketch*: each side answers a small table of cells, from whose difference the differing keys are decoded.

An invertible Bloom lookup table (Goodrich and Mitzenmacher, 2011; used to reconcile sets by Eppstein et al., 2011).
Every record is counted and XORed into one cell of each of three tables, chosen by its hash. Records that are equal on
both sides cancel out. A cell with one record left shows its key and hash; taking that record out of the other tables
leaves more such cells.

The cell is the hash modulo an odd size, and another size for each table: in cells that are linear in XOR, three
records could pass for one. For the same reason a cell also holds the XOR of a remainder of each hash: a cell shows one
record only where that fits. Cells are chosen by the hash of key and fields, or else a changed record's key would cancel
out. Every decoded key is read on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.compare.keyhash import Hashed
from trueup.compare.segments import at_once
from trueup.compare.suspects import Told
from trueup.model.digest import CHECK_MODULUS

pc: Any = pyarrow.compute
# Of cells to records that differ: below 1.23 three tables do not decode, however large.
_CELLS_A_RECORD: Final = 1.4
_CELLS_MIN: Final = 64
_MASK: Final = 2**62 - 1


def sizes_for(differing: int) -> tuple[int, int, int]:
    """Odd sizes of three tables for so many differing records, those of both sides counted."""
    size = max(_CELLS_MIN, int(differing * _CELLS_A_RECORD / 3)) | 1
    return size, size + 2, size + 4


def decoded(sides: Hashed, sizes: Sequence[int]) -> tuple[Told, pa.Array[Any]] | None:
    """What the cells tell, and the keys that differ; None where they do not decode, or a side can't make any.

    Keys must be unique: two equal records of one side cancel out.
    """
    left, right = at_once(sides, lambda side: side.cells(sides.function, sizes))
    if left is None or right is None:
        return None
    found = _Cells(sizes, left, right).decode()
    if found is None:
        return None
    counts = [pc.sum(each.column("n").filter(pc.equal(each.column("t"), 0))).as_py() or 0 for each in (left, right)]
    same = [count - sum(1 for _, sign in found if sign == mine) for count, mine in zip(counts, (1, -1), strict=True)]
    if same[0] != same[1]:
        return None
    return Told(counts[0], counts[1], same[0]), pa.array(sorted({key for key, _ in found}), pa.int64())


class _Cells:
    """Of each cell: records of the left side less those of the right, XOR of keys, XOR of hashes."""

    def __init__(self, sizes: Sequence[int], left: pa.Table, right: pa.Table) -> None:
        self._sizes = tuple(sizes)
        self._count, self._key, self._hash, self._check = ([[0] * size for size in sizes] for _ in range(4))
        for cells, sign in ((left, 1), (right, -1)):
            for which, cell, count, *xors in zip(*(each.to_pylist() for each in cells.columns), strict=True):
                self._take(which, cell, -sign * count, *xors)

    def decode(self) -> set[tuple[int, int]] | None:
        """Key and sign of every record that is left, taken out one after the other; None where that ends too soon."""
        found: set[tuple[int, int]] = set()
        pure = [(which, cell) for which, size in enumerate(self._sizes) for cell in range(size)]
        while pure:
            which, cell = pure.pop()
            sign, key, hashed = self._count[which][cell], self._key[which][cell], self._hash[which][cell]
            check = (hashed & _MASK) % CHECK_MODULUS
            if sign not in (1, -1) or check != self._check[which][cell]:
                continue
            if (key, sign) in found:
                return None  # something that is no record was taken for one, and would be for ever
            found.add((key, sign))
            for other, size in enumerate(self._sizes):
                at = (hashed & _MASK) % size
                self._take(other, at, sign, key, hashed, check)
                pure.append((other, at))
        empty = all(not any(table) for tables in (self._count, self._key, self._hash, self._check) for table in tables)
        return found if empty else None

    def _take(self, which: int, cell: int, count: int, key: int, hashed: int, check: int) -> None:
        self._count[which][cell] -= count
        self._key[which][cell] ^= key
        self._hash[which][cell] ^= hashed
        self._check[which][cell] ^= check
