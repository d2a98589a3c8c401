"""Kept records are found again by number, in whatever files and batches they lie."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.compare.workspace import Spool, Workspace
from trueup.errors import TrueupError

FILES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


def _kept(folder: str, files: list[list[int]]) -> tuple[Spool, int]:
    """A spool of records whose only value is their number."""
    spool, rows = Spool(Path(folder), "left"), 0
    for sizes in files:
        batches = []
        for size in sizes:
            batches.append(pa.record_batch({"x": pa.array(range(rows, rows + size), pa.int64())}))
            rows += size
        spool.append(batches)
    return spool, rows


@settings(deadline=None)  # each example writes files
@given(files=FILES, data=st.data())
def test_take_answers_the_records_with_these_numbers(files: list[list[int]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spool, rows = _kept(folder, files)
        if rows:
            numbers = sorted(data.draw(st.sets(st.integers(0, rows - 1), min_size=1)))

            taken = spool.take(pa.array(numbers, pa.int64()))

            assert taken.column("x").to_pylist() == numbers


@settings(deadline=None)  # each example writes files
@given(files=FILES)
def test_batches_are_all_the_records_with_the_number_of_each_first(files: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spool, rows = _kept(folder, files)

        found = [(start, batch.column("x").to_pylist()) for start, batch in spool.batches()]

    assert [number for _, numbers in found for number in numbers] == list(range(rows))
    assert all(numbers[0] == start for start, numbers in found if numbers)


def test_an_empty_spool_has_no_batches(tmp_path: Path) -> None:
    assert list(Spool(tmp_path, "left").batches()) == []


def test_many_chunks_are_inserted_at_once_or_not_at_all() -> None:
    workspace = Workspace(memory_mb=64)
    chunk = pa.table({"x": [1, 2, 3]})
    workspace.insert("CREATE TABLE t AS FROM chunk LIMIT 0", chunk)

    with workspace.inserts("INSERT INTO t FROM chunk") as insert:
        insert(chunk)
        insert(chunk)
    with pytest.raises(TrueupError, match="the side failed"):
        _insert_and_fail(workspace, chunk)

    assert workspace.number("SELECT count(*) FROM t") == 6
    workspace.close()


def _insert_and_fail(workspace: Workspace, chunk: pa.Table) -> None:
    with workspace.inserts("INSERT INTO t FROM chunk") as insert:
        insert(chunk)
        raise TrueupError("the side failed")
