"""What strategy *rows* found, streamed from its tables: differences in key order, agreements by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.compare.judge import Array, judged
from trueup.compare.plan import Plan
from trueup.compare.result import Agreement, Difference, DifferenceKind, Values
from trueup.compare.stage import Shape, Stage, gone
from trueup.compare.workspace import BATCH_ROWS, RANGE, Workspace, in_ranges
from trueup.model.change import UPSERT
from trueup.model.columns import digests, key_texts, text_array
from trueup.model.record import Projection

pc: Any = pyarrow.compute
# Records next to each other lie on one page of a file.
_RUN: Final = 16
# Texts of some rows, by the name of what they are.
_Columns: TypeAlias = dict[str, list[str | None]]


class RowFindings:
    """Reads the tables that `rows` left in the workspace (described there)."""

    def __init__(self, workspace: Workspace, left: Stage, right: Stage, plan: Plan) -> None:
        self._workspace, self._left, self._right, self._plan = workspace, left, right, plan
        self._names = [each.name for each in plan.left.fields]

    def close(self) -> None:
        """Removes all files."""
        self._workspace.close()

    # ── differences ──────────────────────────────────────────────────────────────────────────────────

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """Every difference in key order, or the first `limit`."""
        if limit is not None and limit <= 0:
            return iter(())
        return islice(self.sample(1), limit)

    def sample(self, every: int) -> Iterator[Difference]:
        """One of `every` differences in key order, evenly spread over the keys that are not surely the same."""
        batches = self._shown(RANGE if every == 1 else f"{RANGE} AND o % {every} = 0")
        # Copies of one key may come in several batches, all of which then have keys with copies.
        for copied, some in groupby(batches, key=_copied):
            if copied:
                lines = (line for batch in some for line in self._lines_of(batch))
                yield from (self._duplicate(list(group)) for _, group in groupby(lines, key=lambda line: line.place))
            else:
                for batch in some:
                    yield from (self._difference(line) for line in self._lines_of(batch))

    def left_records(self, most: int) -> Iterator[Values]:
        """Values of so many records of the left spool, in evenly spread runs of a few."""
        rows, shape = self._left.spool.rows, self._left.shape
        step = max(1, -(-rows // most)) * _RUN
        starts = range(0, rows, step)
        numbers = pa.array([at for start in starts for at in range(start, min(start + _RUN, rows))], pa.int64())
        if not len(numbers):
            return
        for batch in self._left.spool.take(numbers).to_batches():
            yield from _values(batch, shape, "", _keys(batch, shape)[1])

    def _shown(self, some: str) -> Iterator[pa.RecordBatch]:
        a, b = self._left.shape, self._right.shape
        left = [f"l.{name} AS l{name}" for name, _ in a.values()]
        right = [f"r.{name} AS r{name}" for name, _ in b.values()]
        told = ["l.o IS NOT NULL AS hasl", "r.o IS NOT NULL AS hasr", *left, *right]
        shown = f"""SELECT coalesce(l.o, r.o) AS o, coalesce(l.i, r.i) AS i, {", ".join(told)}
                    FROM (FROM left_values {some}) AS l FULL JOIN (FROM right_values {some}) AS r
                    ON l.o = r.o AND l.i = r.i"""
        sql = f"""SELECT v.* EXCLUDE (o), odd.*, cl, cr, fields
                  FROM (FROM odd {some}) AS odd JOIN (FROM tally {some}) USING (o)
                  LEFT JOIN (FROM changed {some}) USING (o) LEFT JOIN ({shown}) AS v USING (o)
                  WHERE gone IS NULL OR gone OR len(fields) > 0 ORDER BY o, i"""
        return in_ranges(self._workspace, sql)

    def _lines_of(self, batch: pa.RecordBatch) -> Iterator[_Line]:
        keys, names = _keys(batch, self._left.shape)
        left = _values(batch, self._left.shape, "l", names)
        right = _values(batch, self._right.shape, "r", names)
        told = [batch.column(name).to_pylist() for name in ("o", "cl", "cr", "fields", "hasl", "hasr")]
        for key, a, b, place, cl, cr, fields, has_left, has_right in zip(keys, left, right, *told, strict=True):
            yield _Line(place, key, cl, cr, fields, a if has_left else None, b if has_right else None)

    def _difference(self, first: _Line) -> Difference:
        kind: DifferenceKind = "missing" if first.right is None else "extra" if first.left is None else "differ"
        changed = tuple([self._names[at] for at in first.fields or ()])
        # A record that should not be there differs, if in nothing else, in the state that says so.
        if kind == "differ" and self._plan.absent_when:
            changed += tuple(
                name for name, states in self._plan.absent_when.items()
                if name not in changed and (first.left or {}).get(name) in states
            )  # fmt: skip
        return Difference(kind, first.key, first.left, first.right, changed, first.left_copies, first.right_copies)

    def _duplicate(self, lines: list[_Line]) -> Difference:
        first = lines[0]
        if first.left_copies <= 1 and first.right_copies <= 1:
            return self._difference(first)
        left = [line.left for line in lines if line.left is not None]
        right = [line.right for line in lines if line.right is not None]
        left, right = _without_equals(left, right, self._plan.left)
        a, b = left[0] if left else None, right[0] if right else None
        changed = self._plan.left.changed_fields(a, b) if a is not None and b is not None else ()
        return Difference(
            "duplicate", first.key, a, b, changed, first.left_copies, first.right_copies, tuple(left), tuple(right)
        )

    # ── agreements ───────────────────────────────────────────────────────────────────────────────────

    def agreements(self) -> Iterator[list[Agreement]]:
        """Every key that agrees, in batches, in the order in which the left side was read."""
        shape = self._left.shape
        for start, chunk in self._left.spool.batches():
            odd = [
                each.column("at")
                for each in self._workspace.batches(
                    "SELECT n - $first AS at FROM odd_left WHERE n BETWEEN $first AND $last",
                    BATCH_ROWS,
                    {"first": start, "last": start + chunk.num_rows - 1},
                )
            ]
            numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), chunk.num_rows), start=-1)
            known = pa.chunked_array(odd, pa.int64()).combine_chunks()
            same = chunk.filter(pc.invert(pc.is_in(numbers, value_set=known)))
            for at in range(0, same.num_rows, BATCH_ROWS):
                few = same.slice(at, BATCH_ROWS)
                found = _digests(few, shape, self._plan.left)
                yield self._agreements(few, found, found)
        yield from self._tolerated()

    def _tolerated(self) -> Iterator[list[Agreement]]:
        """Keys whose values are not equal but judged equal."""
        a, b = self._left.shape, self._right.shape
        keys = [f"odd.{name} AS {name}" for name in a.keys]
        left = [f"l.{name} AS {name}" for name in a.names if name not in a.keys]
        right = [f"r.{name} AS r{name}" for name in b.fields]
        sql = f"""SELECT {", ".join([*keys, *left, *right])}
                  FROM (FROM changed {RANGE}) JOIN (FROM odd {RANGE}) AS odd USING (o)
                  JOIN (FROM left_values {RANGE}) AS l USING (o) JOIN (FROM right_values {RANGE}) AS r USING (o)
                  WHERE len(fields) = 0 AND NOT gone"""
        for batch in in_ranges(self._workspace, sql):
            mine = a.record(batch.select(a.names))
            theirs = pa.RecordBatch.from_arrays(
                [batch.column(f"r{name}").cast(b.schema.field(name).type) for name in b.fields], names=b.fields
            )
            found = _digests(mine, a, self._plan.left), _digests(theirs, b, self._plan.right, batch.num_rows)
            yield self._agreements(mine, *found)

    def _agreements(self, chunk: pa.RecordBatch, left: list[str], right: list[str]) -> list[Agreement]:
        shape, plan = self._left.shape, self._plan
        keys, _ = _keys(chunk, shape)
        versions = chunk.column("v").to_pylist() if plan.left.version is not None else [None] * len(keys)
        hidden = gone(chunk, shape, plan.absent_when or {}).to_pylist()
        actions: Sequence[str | None] = [None] * len(keys)
        for name, each in shape.values():
            if each.name == plan.action_field:
                actions = text_array(chunk.column(name), each).to_pylist()
        return [
            Agreement(key, a, None if absent else b, version, action or UPSERT)
            for key, a, b, version, absent, action in zip(keys, left, right, versions, hidden, actions, strict=True)
        ]


def _copied(batch: pa.RecordBatch) -> bool:
    """Whether a side has one of the keys more than once."""
    return any((pc.max(batch.column(name)).as_py() or 0) > 1 for name in ("cl", "cr"))


# Not frozen, though nobody changes it: there are many, and a frozen one takes three times as long to make.
@dataclass(slots=True)
class _Line:
    """One record, or a pair of records, of an odd key."""

    place: int
    key: str
    left_copies: int
    right_copies: int
    fields: list[int] | None
    left: Values | None = field(default=None)
    right: Values | None = field(default=None)


def _keys(batch: pa.RecordBatch, shape: Shape) -> tuple[list[str], _Columns]:
    """Key texts of all rows, and the columns of the key."""
    fields = shape.projection.key
    columns = [batch.column(name).cast(shape.schema.field(name).type) for name in shape.keys]
    texts = {each.name: text_array(column, each).to_pylist() for column, each in zip(columns, fields, strict=True)}
    return key_texts(columns, fields), texts


def _values(batch: pa.RecordBatch, shape: Shape, prefix: str, keys: _Columns) -> list[Values]:
    """All values of each row by name, the key's included."""
    columns = dict(keys)
    for name, each in shape.values():
        found = batch.column(prefix + name).cast(shape.schema.field(name).type)
        columns[each.name] = text_array(found, each).to_pylist()
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _digests(chunk: pa.RecordBatch, shape: Shape, projection: Projection, rows: int | None = None) -> list[str]:
    columns: list[Array] = []
    for name, each in zip(shape.fields, projection.fields, strict=True):
        columns.append(text_array(judged(chunk.column(name), each), each))
    return digests(columns, chunk.num_rows if rows is None else rows)


def _without_equals(
    left: list[Values], right: list[Values], projection: Projection
) -> tuple[list[Values], list[Values]]:
    """Copies that a tolerance makes equal cancel out too, each with the first that fits."""
    if not any(each.rule.tolerant or each.rule.fill for each in projection.fields):
        return left, right
    rest, unmatched = list(right), []
    for one in left:
        at = next((at for at, two in enumerate(rest) if not projection.changed_fields(one, two)), None)
        if at is None:
            unmatched.append(one)
        else:
            rest.pop(at)
    return unmatched, rest
