"""Keys and hashes of one range, side by side."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.compare.keyhash import _unequal

HASHES = st.integers(0, 3) | st.none()
# Next to each other, so that they are looked up by place, or as far apart as keys can be.
DENSE = st.dictionaries(st.integers(-40, 40), HASHES, max_size=40)
FAR = st.dictionaries(st.integers(-(2**63), 2**63 - 1), HASHES, max_size=10)


def batch(records: dict[int, int | None]) -> pa.RecordBatch:
    keys = list(records)
    columns = [pa.array(keys, pa.int64()), pa.array([records[key] for key in keys], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["k0", "h"])


def ordered(records: dict[int, int | None]) -> dict[int, int | None]:
    return dict(sorted(records.items()))


@given(st.sampled_from([DENSE, FAR]).flatmap(lambda some: st.tuples(some, some)))
def test_what_is_unequal_is_told_with_how_many_sides_have_it(
    both: tuple[dict[int, int | None], dict[int, int | None]],
) -> None:
    """Given unique keys in order, I expect every key that one side lacks, and every one without two equal hashes."""
    left, right = map(ordered, both)
    expected = {
        key: (key in left) + (key in right)
        for key in left.keys() | right.keys()
        if (left.get(key) is None or left.get(key) != right.get(key))
    }
    found = _unequal(batch(left), batch(right))
    assert found is not None
    assert {key: records for keys, records in found for key in keys.to_pylist()} == expected


@pytest.mark.parametrize("step", [1, 2**40])
def test_keys_in_two_orders_are_not_told(step: int) -> None:
    """Given a side that sorts the keys in another way, I expect no word, even where the other lacks one of them."""
    keys = [at * step for at in range(50)]
    shuffled = random.Random(7).sample(keys, 49)
    assert _unequal(batch(dict.fromkeys(keys, 1)), batch(dict.fromkeys(shuffled, 1))) is None
