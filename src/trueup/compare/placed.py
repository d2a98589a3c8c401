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
from trueup.compare.suspects import Told, memory_for
from trueup.compare.workspace import BATCH_ROWS, CHUNK_ROWS, Parts, Workspace
from trueup.ports import Snapshot

pc: Any = pyarrow.compute
# Of each side, about so many hashes are matched at once: the table of them all would be several times as large as they.
_ROWS_AT_ONCE: Final = 65_536
_PARTS_MAX: Final = 128
_NO_PLACES: Final = pa.table({"p": pa.array([], pa.binary())})


def placed_hashes(sides: Hashed) -> tuple[Batches, Batches] | None:
    """Every record's hash and place on each side; None where one can't read records by where they lie."""
    left, right = at_once(sides, lambda side: side.placed(sides.function))
    return None if left is None or right is None else (left, right)


def compare_placed(
    sides: Hashed, hashes: tuple[Batches, Batches], workspace: Workspace, plan: Plan, *, rows: int, memory_mb: int
) -> tuple[Counts, dict[str, int], RowFindings] | None:
    """Tells every key's state, where no key repeats on either side; the findings take over the workspace.

    None where different records have one hash. hashes: as of `placed_hashes`. rows: about so many on a side.
    memory_mb: for many records that differ.
    """
    parts = 1
    while parts * _ROWS_AT_ONCE < rows and parts < _PARTS_MAX:
        parts *= 2
    left, right = (Parts(workspace.path, f"{name}-hashes", parts) for name in ("left", "right"))
    read_both((hashes[0], _kept(left)), (hashes[1], _kept(right)), sides.close)
    alone = _keep_unmatched(workspace, left, right, parts)
    same = left.rows - alone[0]
    if same != right.rows - alone[1]:
        return None
    workspace.allow(memory_for(sum(alone), memory_mb))
    read = _records(workspace, "left", sides.left), _records(workspace, "right", sides.right)
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


def _keep_unmatched(workspace: Workspace, left: Parts, right: Parts, parts: int) -> list[int]:
    """Keeps the places of the records of each side whose hash the other one lacks; answers how many these are."""
    for name in ("left", "right"):
        workspace.insert(f"CREATE TABLE {name}_places AS FROM chunk", _NO_PLACES)
    alone = [0, 0]
    with (
        ThreadPoolExecutor(2, thread_name_prefix="trueup-match") as pool,
        workspace.inserts("INSERT INTO left_places FROM chunk") as in_left,
        workspace.inserts("INSERT INTO right_places FROM chunk") as in_right,
    ):
        for part in range(parts):
            some = left.part(part), right.part(part)
            for at, found in enumerate(pool.map(_alone, some, reversed(some))):
                (in_left, in_right)[at](pa.table({"p": found}))
                alone[at] += len(found)
    return alone


def _records(workspace: Workspace, name: str, side: Snapshot) -> Batches:
    """As they lie in the file, which is then passed through once."""
    for few in workspace.batches(f"SELECT p FROM {name}_places ORDER BY p", BATCH_ROWS):
        yield from side.placed_records(few.column("p"))


def _alone(mine: pa.Table, other: pa.Table) -> Array:
    lacking = pc.invert(pc.is_in(mine.column("h"), value_set=other.column("h")))
    places: Array = mine.column("p").filter(lacking).combine_chunks()
    return places
