"""A comparison by hashes that keeps little in memory: many small parts give the answer of one large one."""

from __future__ import annotations

from contextlib import closing

import pytest

from sql_tables import Tables
from trueup.compare import hashed, rows, stage, suspects
from trueup.compare.choose import compare
from trueup.compare.plan import plan

ROWS = 4_000


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
