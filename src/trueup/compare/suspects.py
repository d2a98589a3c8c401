"""Keys that hashes do not prove equal: kept on disk, then read in full on both sides and judged like any record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from trueup.compare.findings import RowFindings
from trueup.compare.plan import Plan
from trueup.compare.result import Counts
from trueup.compare.rows import Batches, Fill, Going, judge_records, read_both
from trueup.compare.stage import Shape
from trueup.compare.workspace import Workspace
from trueup.model.columns import key_texts
from trueup.model.record import Projection
from trueup.ports import Snapshot

pc: Any = pyarrow.compute
# Tells a right record's hash from a left one's, so that two equal records of one side are no pair.
_SALT: Final = 0x1E3779B97F4A7C15
# A record without a hash is a suspect, whatever the other side has.
_NO_HASH: Final = {"left": "coalesce(h, 1)", "right": f"coalesce(xor(h, {_SALT}), 2)"}
_KEYS_AT_ONCE: Final = 8_192
# Keys and hashes are small, and what does not fit goes to disk. To sort and to join records in doubt takes as much
# again for each so many of them.
_HASHES_MB: Final = 32
_SUSPECTS_A_PART: Final = 250_000
# Keys and hashes of both sides that are matched at once.
_BYTES_AT_ONCE: Final = 64 << 20


def memory_for(records: int, memory_mb: int) -> int:
    """How much of the memory in MB is allowed where so many records of both sides are in doubt."""
    return min(memory_mb, _HASHES_MB * (1 + records // _SUSPECTS_A_PART))


@dataclass(frozen=True, slots=True)
class Told:
    """What hashes told: records seen on each side, and keys that are surely the same."""

    left: int = 0
    right: int = 0
    same: int = 0

    @property
    def counts(self) -> Counts:
        """Where nothing else is to be told."""
        return Counts(left=self.left, right=self.right, same=self.same)

    def judged(self, rest: Counts) -> Counts:
        """With what was told of all other records by reading them."""
        same = self.same
        return replace(rest, left=same + rest.left, right=same + rest.right, same=same + rest.same)


class Suspects:
    """The table `suspects`: k0…, n (records with the key, of both sides)."""

    def __init__(self, workspace: Workspace, plan: Plan) -> None:
        self.workspace, self._plan = workspace, plan
        self._shape = Shape(plan.left)
        self.names = self._shape.keys
        self._listed = ", ".join(self.names)
        types = [self._shape.schema.field(name).type for name in self.names]
        schema = pa.schema(list(zip([*self.names, "h"], [*types, pa.int64()], strict=True)))
        self._empty = schema.empty_table()
        workspace.insert(f"CREATE TABLE suspects AS SELECT {self._listed}, 1::BIGINT AS n FROM chunk", self._empty)
        self._waiting: list[pa.Table] = []

    def add(self, keys: pa.Array[Any], records: int = 2) -> None:
        """Keys of one column that are not surely the same, each with so many records on both sides together."""
        if len(keys):
            self._waiting.append(pa.table({"k0": keys, "n": pa.repeat(pa.scalar(records, pa.int64()), len(keys))}))
        if sum(each.num_rows for each in self._waiting) >= _KEYS_AT_ONCE:
            self._put()

    def add_hashed(self, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        """Of all hashes of both sides in one range of keys, those without an equal partner."""
        salted = pc.bit_wise_xor(right.column("h"), _SALT)
        sides = [
            pa.table([*(batch.column(name) for name in self.names), pc.fill_null(hashes, none)], [*self.names, "h"])
            for batch, hashes, none in ((left, left.column("h"), 1), (right, salted, 2))
        ]
        self.workspace.insert(f"INSERT INTO suspects {self._odd('chunk')}", pa.concat_tables(sides))

    def add_staged(self, left: Snapshot, right: Snapshot, function: str) -> Told:
        """Of all hashes of both sides, in any order and spilled to disk, those without an equal partner.

        They are matched a part of the keys at a time: what one grouping of all of them needs would grow with them.
        """
        tables = {"left": left, "right": right}
        read_bytes = dict.fromkeys(tables, 0)
        for name in tables:
            self.workspace.insert(f"CREATE TABLE {name}_hashes AS SELECT {self._listed}, h FROM chunk", self._empty)

        def fill(name: str) -> Fill:
            def insert(batches: Batches, going: Going) -> None:
                sql = f"INSERT INTO {name}_hashes SELECT {self._listed}, {_NO_HASH[name]} FROM chunk"
                with self.workspace.inserts(sql) as put:
                    for batch in batches:
                        put(batch)
                        read_bytes[name] += batch.nbytes
                        going()

            return insert

        a, b = ((snapshot.hashes(function), fill(name)) for name, snapshot in tables.items())
        read_both(a, b, lambda: _close(left, right))
        counts = [self.workspace.number(f"SELECT count(*) FROM {name}_hashes") for name in tables]
        parts = -(-sum(read_bytes.values()) // _BYTES_AT_ONCE)
        for part in range(parts):
            some = f"WHERE hash({self._listed}) % {parts} = {part}"
            both = " UNION ALL ".join(f"SELECT {self._listed}, h FROM {name}_hashes {some}" for name in tables)
            self.workspace.run(f"INSERT INTO suspects {self._odd(f'({both})')}")
        for name in tables:
            self.workspace.run(f"DROP TABLE {name}_hashes")
        return Told(counts[0], counts[1], (sum(counts) - self.records()) // 2)

    def records(self) -> int:
        """How many records the suspects have on both sides."""
        self._put()
        return self.workspace.number("SELECT sum(n) FROM suspects")

    def settle(self, left: Snapshot, right: Snapshot, told: Told) -> tuple[Counts, dict[str, int], RowFindings]:
        """Reads the suspects on both sides and tells every key's state; the findings take over the workspace.

        Where a side would sooner read all its records, both do, and all are judged.
        """
        self._put()
        keys = self.workspace.number("SELECT count(*) FROM suspects")
        seeking = left.seeks(keys, told.left) and right.seeks(keys, told.right)
        if seeking:
            # Sorted once: each side would hold an order of its own in memory for as long as it reads.
            self.workspace.run(f"CREATE TABLE ordered AS SELECT {self._listed} FROM suspects ORDER BY ALL")
        a, b = (
            self._read(side, asked) if seeking else side.everything()
            for side, asked in ((left, self._plan.left), (right, self._plan.right))
        )
        counts, differing, findings = judge_records(self.workspace, a, b, self._plan, lambda: _close(left, right))
        if not seeking:
            return counts, differing, findings
        return told.judged(counts), differing, findings

    def _put(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.workspace.insert("INSERT INTO suspects SELECT k0, n FROM chunk", pa.concat_tables(waiting))

    def _odd(self, source: str) -> str:
        return (
            f"SELECT {self._listed}, count(*) FROM {source} GROUP BY {self._listed} "
            f"HAVING NOT (count(*) = 2 AND bit_xor(h) = {_SALT})"
        )

    def _read(self, side: Snapshot, asked: Projection) -> Iterator[pa.RecordBatch]:
        for batch in self.workspace.batches(f"SELECT {self._listed} FROM ordered", _KEYS_AT_ONCE):
            keys = pa.table(self._keys(batch), self.names)
            for records in side.records(keys):
                yield records.filter(_among(records, keys, asked))
        for records in side.unusual():
            yield self._suspected(records)

    def _suspected(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Of any records, those that have the key of a suspect."""
        keys = pa.table([*self._keys(records), pa.array(range(records.num_rows), pa.int64())], [*self.names, "n"])
        match = " AND ".join(f"chunk.{name} IS NOT DISTINCT FROM suspects.{name}" for name in self.names)
        found = self.workspace.select(f"SELECT n FROM chunk SEMI JOIN suspects ON {match} ORDER BY n", keys)
        return records.take(found.column("n").combine_chunks())

    def _keys(self, batch: pa.RecordBatch) -> list[pa.Array[Any]]:
        """The key's columns, which come first."""
        return [batch.column(at).cast(self._shape.schema.field(name).type) for at, name in enumerate(self.names)]


def _close(*sides: Snapshot) -> None:
    for side in sides:
        side.close()


def _among(records: pa.RecordBatch, keys: pa.Table, asked: Projection) -> pa.Array[Any]:
    """Which records have one of the keys, and not just one that the engine holds for equal."""
    found = [records.column(at).cast(column.type) for at, column in enumerate(keys.columns)]
    plain = pa.types.is_integer(found[0].type) or pa.types.is_string(found[0].type)
    if len(found) == 1 and plain and not found[0].null_count:
        answer: pa.Array[Any] = pc.is_in(found[0], value_set=keys.column(0).combine_chunks())
        return answer
    wanted = set(key_texts([column.combine_chunks() for column in keys.columns], asked.key))
    return pa.array([key in wanted for key in key_texts(found, asked.key)], pa.bool_())
