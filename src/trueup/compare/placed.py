"""Keys in no order: hashes are matched alone, without any key, and what has no equal is read by where it lies.

A hash covers key and fields, so where no key repeats the hashes that one side lacks are those of the records that
differ. Beside each hash comes only the place of the record.

By chance a record that differs may have the hash of another one. If that one is the same on both sides, one side has
the hash once more than the other, which the counts tell, and keys are sent after all. What counts do not tell is
two records with one hash that both differ, one on each side: where n records of each do, the chance is n² / 2⁶⁴, or
n² / 2⁶⁰ under a hash of texts.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.compare.findings import RowFindings
from trueup.compare.judge import Array
from trueup.compare.keyhash import Hashed
from trueup.compare.plan import Plan
from trueup.compare.result import Counts
from trueup.compare.rows import Batches, Fill, Going, judge_records, read_both
from trueup.compare.segments import at_once
from trueup.compare.suspects import SUSPECTS_MAX, Told
from trueup.compare.workspace import CHUNK_ROWS, Parts, Workspace

pc: Any = pyarrow.compute
# Of each side, about so many hashes are matched at once: the table of them all would be several times as large as they.
_ROWS_AT_ONCE: Final = 65_536
_PARTS_MAX: Final = 128


def compare_placed(
    sides: Hashed, workspace: Workspace, plan: Plan, *, rows: int, memory_mb: int
) -> tuple[Counts, dict[str, int], RowFindings] | None:
    """Tells every key's state, where no key repeats on either side; the findings take over the workspace.

    None where a side can't read records by where they lie, or different records have one hash. rows: about so many on
    a side. memory_mb: for many records that differ.
    """
    hashes = at_once(sides, lambda side: side.placed(sides.function))
    if hashes[0] is None or hashes[1] is None:
        return None
    parts = 1
    while parts * _ROWS_AT_ONCE < rows and parts < _PARTS_MAX:
        parts *= 2
    left, right = (Parts(workspace.path, f"{name}-hashes", parts) for name in ("left", "right"))
    read_both((hashes[0], _kept(left)), (hashes[1], _kept(right)), sides.close)
    a, b = _unmatched(left, right, parts)
    same = left.rows - len(a)
    if same != right.rows - len(b):
        return None
    if len(a) + len(b) > SUSPECTS_MAX:
        workspace.allow(memory_mb)
    read = sides.left.placed_records(a), sides.right.placed_records(b)
    counts, differing, findings = judge_records(workspace, *read, plan, sides.close)
    return Told(left.rows, right.rows, same).judged(counts), differing, findings


def _kept(parts: Parts) -> Fill:
    def keep(batches: Batches, going: Going) -> None:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= CHUNK_ROWS:
                parts.append(waiting)
                waiting = []
            going()
        if waiting:
            parts.append(waiting)
        parts.close()

    return keep


def _unmatched(left: Parts, right: Parts, parts: int) -> tuple[Array, Array]:
    """Places of the records of each side whose hash the other one lacks."""
    alone: tuple[list[Array], list[Array]] = [], []
    with ThreadPoolExecutor(2, thread_name_prefix="trueup-match") as pool:
        for part in range(parts):
            some = left.part(part), right.part(part)
            for places, found in zip(alone, pool.map(_alone, some, reversed(some)), strict=True):
                places.append(found)
    a, b = map(pa.concat_arrays, alone)
    # As they lie in the file, which is then passed through once.
    return a.take(pc.array_sort_indices(a)), b.take(pc.array_sort_indices(b))


def _alone(mine: pa.Table, other: pa.Table) -> Array:
    lacking = pc.invert(pc.is_in(mine.column("h"), value_set=other.column("h")))
    places: Array = mine.column("p").filter(lacking).combine_chunks()
    return places
