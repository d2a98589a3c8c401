"""Hashes without keys: matched in parts, and only believed where the counts bear them out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare import placed
from trueup.compare.keyhash import Hashed
from trueup.compare.placed import compare_placed, placed_hashes
from trueup.compare.plan import plan
from trueup.compare.result import Counts
from trueup.compare.workspace import BATCH_ROWS, Parts, Workspace
from trueup.ports import Snapshot
from trueup.sides.memory import Memory

HASHES = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-4, 40), max_size=30)


class Placed:
    """A snapshot of records `key: (value, hash)`, each of which lies where its number says."""

    def __init__(self, records: dict[str, tuple[str, int]], *, places: bool = True) -> None:
        self._records, self._places = records, places
        self.read: list[int] = []
        self.asked: list[int] = []

    def placed(self, function: str) -> Iterator[pa.RecordBatch] | None:
        """In batches of two."""
        return self._batches() if self._places else None

    def placed_records(self, places: Any) -> Iterator[pa.RecordBatch]:
        """All in one."""
        asked = [int.from_bytes(each) for each in places.to_pylist()]
        self.read += asked
        self.asked.append(len(asked))
        records = list(self._records.items())
        rows = [records[at] for at in asked]
        yield pa.record_batch(
            {
                "id": pa.array([key for key, _ in rows], pa.string()),
                "v": pa.array([row[0] for _, row in rows], pa.string()),
            }
        )

    def close(self) -> None:
        """Nothing to end."""

    def _batches(self) -> Iterator[pa.RecordBatch]:
        hashes = [hashed for _, hashed in self._records.values()]
        for start in range(0, max(len(hashes), 1), 2):
            few = hashes[start : start + 2]
            places = [(start + at).to_bytes(6) for at in range(len(few))]
            yield pa.record_batch({"h": pa.array(few, pa.int64()), "p": pa.array(places, pa.binary(6))})


def answered(left: Placed, right: Placed) -> Counts | None:
    described = Memory([{"id": "a", "v": "1"}], key=["id"]).describe()
    asked = plan(described, described, key=["id"])
    sides = Hashed(cast(Snapshot, left), cast(Snapshot, right), "any")
    hashes = placed_hashes(sides)
    if hashes is None:
        return None
    workspace = Workspace(64)
    try:
        found = compare_placed(sides, hashes, workspace, asked, rows=10, memory_mb=64)
        return None if found is None else found[0]
    finally:
        workspace.close()


def test_what_has_no_equal_is_read_and_judged_and_nothing_else() -> None:
    """Given a record that each side lacks, one that differs and one that is the same, I expect that one unread."""
    left = Placed({"a": ("1", 10), "b": ("2", 20), "c": ("3", 30)})
    right = Placed({"b": ("2", 20), "c": ("4", 31), "d": ("5", 40)})
    assert answered(left, right) == Counts(left=3, right=3, same=1, missing=1, extra=1, differ=1)
    assert (left.read, right.read) == ([0, 2], [1, 2])


def test_records_that_are_spelled_differently_may_be_the_same() -> None:
    """Given equal records whose hashes differ, I expect them to be counted as the same."""
    assert answered(Placed({"a": ("1", 10)}), Placed({"a": ("1", 11)})) == Counts(left=1, right=1, same=1)


@pytest.mark.parametrize("other", ["left", "right"])
def test_a_record_that_has_the_hash_of_another_one_is_not_overlooked(other: str) -> None:
    """Given a record that differs and has the hash of one that is the same, I expect hashes not to be believed."""
    one, two = Placed({"a": ("1", 10), "b": ("2", 10)}), Placed({"a": ("9", 11), "b": ("2", 10)})
    assert answered(*((one, two) if other == "left" else (two, one))) is None


def test_however_many_differ_only_a_few_places_are_in_memory() -> None:
    """Given many records on one side alone, I expect them to be asked for in small numbers, as they lie."""
    count = 3 * BATCH_ROWS
    left = Placed({str(at): ("v", at * 7919 % count) for at in range(count)})
    assert answered(left, Placed({})) == Counts(left=count, right=0, missing=count)
    assert left.read == list(range(count))
    assert max(left.asked) <= BATCH_ROWS


def test_one_side_without_places_is_enough_to_send_keys() -> None:
    assert answered(Placed({"a": ("1", 10)}), Placed({"a": ("1", 10)}, places=False)) is None


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 3), (3, 0)])
def test_a_side_may_have_no_records(left: int, right: int) -> None:
    sides = [Placed({str(at): ("v", at) for at in range(count)}) for count in (left, right)]
    assert answered(sides[0], sides[1]) == Counts(left=left, right=right, missing=left, extra=right)


@settings(deadline=None)  # each example writes files
@given(left=HASHES, right=HASHES, parts=st.sampled_from((1, 2, 8)), size=st.integers(1, 7))
def test_parts_together_tell_what_one_side_lacks(left: list[int], right: list[int], parts: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        a, b = (_kept(Path(folder), *each, parts, size) for each in (("left", left), ("right", right)))
        with closing(Workspace(64)) as workspace:
            counts = placed._keep_unmatched(workspace, a, b, parts)
            told = [
                [int.from_bytes(each["p"]) for batch in workspace.batches(sql, 8192) for each in batch.to_pylist()]
                for sql in ("SELECT p FROM left_places ORDER BY p", "SELECT p FROM right_places ORDER BY p")
            ]
    for mine, other, places, count in ((left, right, told[0], counts[0]), (right, left, told[1], counts[1])):
        assert places == [at for at, hashed in enumerate(mine) if hashed not in other]
        assert count == len(places)


def _kept(folder: Path, name: str, hashes: Sequence[int], parts: int, size: int) -> Parts:
    kept = Parts(folder, name, parts)
    for start in range(0, max(len(hashes), 1), size):
        few = hashes[start : start + size]
        places = [(start + at).to_bytes(6) for at in range(len(few))]
        kept.append([pa.record_batch({"h": pa.array(few, pa.int64()), "p": pa.array(places, pa.binary(6))})])
    kept.close()
    assert kept.rows == len(hashes)
    return kept
