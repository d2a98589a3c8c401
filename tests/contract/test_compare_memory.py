"""A comparison by hashes that keeps little in memory: many small parts give the answer of one large one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from sql_tables import Tables
from trueup.compare import hashed, rows, stage, suspects
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.suspects import Suspects, Told, memory_for
from trueup.compare.workspace import Workspace
from trueup.model.kinds import TEXT
from trueup.sides.memory import Memory

ROWS = 4_000
MANY = 600_000


class Empty:
    """A snapshot that has none of the records that it is asked for, and counts the keys. both: are asked at once."""

    def __init__(self, both: threading.Barrier) -> None:
        self.asked, self._both = 0, both

    def seeks(self, keys: int, records: int) -> bool:
        return True

    def records(self, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        self.asked += keys.num_rows
        self._both.wait(60)
        return iter(())

    def unusual(self) -> Iterator[pa.RecordBatch]:
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.postgres
@pytest.mark.parametrize("parts", [1, 7, 100])
def test_hashes_matched_in_parts_are_all_matched(
    on_postgres: Tables, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Given hashes that are too many to be matched at once, I expect every key to be told, and told once."""
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 0)
    for module, name, value in ((suspects, "_KEYS_AT_ONCE", 50), (stage, "CHUNK_ROWS", 40), (rows, "BATCH_ROWS", 30)):
        monkeypatch.setattr(module, name, value)
    sides = []
    for value in ("n", "CASE WHEN n % 10 = 3 THEN -n ELSE n END"):
        table = on_postgres.table("code text, part int, v bigint")
        quoted = on_postgres.quoted(table)
        on_postgres.execute(
            f"INSERT INTO {quoted} SELECT 'code ' || n, n % 7, {value} FROM generate_series(1, {ROWS}) n"
        )
        sides.append(on_postgres.side(table, key=["code", "part"]))
    on_postgres.execute(f"INSERT INTO {quoted} VALUES (NULL, 1, 1), ('code 1', 1, 1), ('new', 1, 1), ('new', 1, 1)")
    left, right = sides
    asked = plan(left.describe(), right.describe(), key=["code", "part"])
    with compare(left, right, asked, strategy="rows") as found:
        expected = [(each.key, each.kind, each.fields) for each in found.differences()]
        counts = found.counts
    total = 0
    for side, projection in ((left, asked.left), (right, asked.right)):
        with closing(side.snapshot(projection)) as snapshot:
            total += sum(batch.nbytes for batch in snapshot.hashes(snapshot.functions[0]))
    monkeypatch.setattr(suspects, "_BYTES_AT_ONCE", -(-total // parts))
    with compare(left, right, asked, strategy="keyhash") as found:
        assert found.strategy == "keyhash"
        assert [(each.key, each.kind, each.fields) for each in found.differences()] == expected
        assert found.counts == counts
    assert len(expected) == ROWS // 10 + 3


def test_many_keys_are_looked_up_in_the_memory_for_hashes() -> None:
    """Given texts of which the memory for hashes does not hold two orders, I expect both sides to be asked for all."""
    side = Memory([], key="id", columns={"id": TEXT, "v": TEXT})
    workspace = Workspace(memory_for(0, 512))
    found = Suspects(workspace, plan(side.describe(), side.describe(), key=["id"]))
    workspace.run(f"INSERT INTO suspects SELECT md5(i::text) || '-abcd', 1 FROM range({MANY}) AS t(i)")
    left: Any
    right: Any
    both = threading.Barrier(2)
    left, right = Empty(both), Empty(both)
    _, _, findings = found.settle(left, right, Told())
    assert (left.asked, right.asked) == (MANY, MANY)
    findings.close()


def test_memory_grows_with_what_is_in_doubt_up_to_what_is_allowed() -> None:
    granted = [memory_for(records, 512) for records in (0, 200_000, 250_000, 1_000_000, 10**9)]
    assert granted == sorted(granted)
    assert (granted[0], granted[1], granted[-1]) == (32, 32, 512)
    assert memory_for(10**9, 20) == 20
