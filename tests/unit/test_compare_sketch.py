"""The sketch: what differs is decoded from cells, whatever it is; what does not decode is never guessed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from trueup.compare.keyhash import Hashed
from trueup.compare.sketch import decoded, sizes_for
from trueup.model.digest import CHECK_MODULUS

_MASK = 2**62 - 1


class Side:
    """Cells as a database makes them, from records by key."""

    def __init__(self, records: dict[int, int], *, hashes: bool = True) -> None:
        self._records, self._hashes = records, hashes

    def cells(self, function: str, sizes: Sequence[int]) -> pa.Table | None:
        cells: dict[tuple[int, int], list[int]] = {}
        for key, hashed in self._records.items():
            for which, size in enumerate(sizes):
                cell = cells.setdefault((which, (hashed & _MASK) % size), [0, 0, 0, 0])
                cell[0] += 1
                cell[1] ^= key
                cell[2] ^= hashed
                cell[3] ^= (hashed & _MASK) % CHECK_MODULUS
        rows = [(*place, *cell) for place, cell in cells.items()]
        columns = list(zip(*rows, strict=True)) or [()] * 6
        return pa.table(dict(zip(("t", "c", "n", "k", "h", "q"), columns, strict=True))) if self._hashes else None

    def close(self) -> None:
        pass


def sides(left: dict[int, int], right: dict[int, int], **how: Any) -> Hashed:
    return Hashed(Side(left), Side(right, **how), "f")  # type: ignore[arg-type]


def hashes(chance: random.Random, keys: Sequence[int]) -> dict[int, int]:
    return {key: chance.randrange(-(2**63), 2**63) for key in keys}


@pytest.mark.parametrize("seed", range(20))
def test_what_differs_is_decoded(seed: int) -> None:
    chance = random.Random(seed)
    left = hashes(chance, range(-500, 1500))
    right = dict(left)
    changed = chance.sample(sorted(left), 60)
    for key in changed[:20]:
        del right[key]
    right.update(hashes(chance, changed[20:]))
    extra = hashes(chance, range(2**62, 2**62 + 15))
    right.update(extra)

    found = decoded(sides(left, right), sizes_for(115))

    assert found is not None
    told, keys = found
    assert keys.to_pylist() == sorted([*changed, *extra])
    assert (told.left, told.right, told.same) == (2000, 1995, 1940)


def test_equal_and_empty_sides_decode_to_nothing() -> None:
    same = hashes(random.Random(1), range(100))
    for left, right in ((same, same), ({}, {})):
        found = decoded(sides(left, right), sizes_for(0))
        assert found is not None
        assert len(found[1]) == 0
        assert found[0].same == len(left)


@pytest.mark.parametrize("seed", range(20))
def test_too_many_differences_do_not_decode(seed: int) -> None:
    chance = random.Random(seed)
    left, right = hashes(chance, range(1000)), hashes(chance, range(1000))
    assert decoded(sides(left, right), sizes_for(50)) is None


def test_a_side_that_can_not_hash_a_record_makes_no_sketch() -> None:
    assert decoded(sides({1: 1}, {1: 1}, hashes=False), sizes_for(10)) is None


def test_sizes_are_odd_and_differ() -> None:
    """Given sizes that are powers of two, cells were linear in XOR, and three records could pass for one."""
    for differing in (0, 1, 1000, 10**6):
        sizes = sizes_for(differing)
        assert len(set(sizes)) == 3
        assert all(size % 2 for size in sizes)
        assert sum(sizes) >= 1.3 * differing
