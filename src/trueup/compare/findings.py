"""What strategy *rows* found, streamed from its tables: differences in key order, agreements by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, compress, groupby, islice, repeat
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.compare.judge import Array, judged
from trueup.compare.plan import Plan
from trueup.compare.result import Agreement, Difference, DifferenceKind, Values
from trueup.compare.stage import Shape, Stage, gone
from trueup.compare.workspace import BATCH_ROWS, Spool, Workspace
from trueup.model.change import UPSERT
from trueup.model.columns import key_texts, text_array
from trueup.model.digest_columns import digests
from trueup.model.record import Projection

pc: Any = pyarrow.compute
# Records next to each other lie on one page of a file.
_RUN: Final = 16
# Texts of some rows, by the name of what they are.
_Columns: TypeAlias = dict[str, list[str | None]]


class RowFindings:
    """Reads the lines and the tables that `rows` left in the workspace (described there)."""

    def __init__(self, workspace: Workspace, left: Stage, right: Stage, plan: Plan, lines: Spool) -> None:
        self._workspace, self._left, self._right, self._plan, self._lines = workspace, left, right, plan, lines
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
        batches = (_apart(batch, every) for _, batch in self._lines.batches())
        # Copies of one key may come in several batches, all of which then have keys with copies.
        for copied, some in groupby(batches, key=_copied):
            columns = map(self._columns, some)
            if copied:
                lines = chain.from_iterable(map(_Line._make, zip(*each, strict=True)) for each in columns)
                yield from (self._duplicate(list(group)) for _, group in groupby(lines, key=lambda line: line.place))
            else:
                yield from chain.from_iterable(map(self._alone, columns))

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

    def _columns(self, batch: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """What its lines are made of."""
        keys, names = _keys(batch, self._left.shape)
        left, right = (
            _records(batch, stage.shape, side, names) for stage, side in ((self._left, "l"), (self._right, "r"))
        )
        unequal = zip(*(batch.column(f"u{at}").to_pylist() for at in range(len(self._names))), strict=True)
        fields = [tuple(compress(self._names, row)) for row in unequal] or [()] * batch.num_rows
        told = [batch.column(name).to_pylist() for name in ("o", "cl", "cr")]
        return *told, keys, fields, left, right

    def _alone(self, columns: Sequence[Sequence[Any]]) -> Iterator[Difference]:
        """Of keys that no side has twice. All are made at once: there are many."""
        _, left_copies, right_copies, keys, fields, left, right = columns
        kinds: list[DifferenceKind] = [
            "missing" if b is None else "extra" if a is None else "differ" for a, b in zip(left, right, strict=True)
        ]
        if self._plan.absent_when:
            fields = list(map(self._with_states, kinds, fields, left))
        return map(Difference, kinds, keys, left, right, fields, left_copies, right_copies)

    def _with_states(self, kind: DifferenceKind, fields: tuple[str, ...], left: Values | None) -> tuple[str, ...]:
        """A record that should not be there differs, if in nothing else, in the state that says so."""
        if kind != "differ" or left is None:
            return fields
        states = (self._plan.absent_when or {}).items()
        return fields + tuple(name for name, gone in states if name not in fields and left.get(name) in gone)

    def _duplicate(self, lines: list[_Line]) -> Difference:
        first = lines[0]
        if first.left_copies <= 1 and first.right_copies <= 1:
            return next(self._alone([[value] for value in first]))
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
        for _, lines in self._lines.batches():
            batch = lines.filter(lines.column("agreed"))
            if not batch.num_rows:
                continue
            columns = [batch.column(name if name in a.keys else f"l{name}") for name in a.names]
            mine = a.record(pa.RecordBatch.from_arrays(columns, names=a.names))
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


def _apart(lines: pa.RecordBatch, every: int) -> pa.RecordBatch:
    """The lines of keys that differ; of these keys one in `every`."""
    place = lines.column("o")
    chosen = pc.equal(pc.multiply(pc.divide(place, every), every), place)
    return lines.filter(pc.and_not(chosen, lines.column("agreed")))


def _copied(batch: pa.RecordBatch) -> bool:
    """Whether a side has one of the keys more than once."""
    return any((pc.max(batch.column(name)).as_py() or 0) > 1 for name in ("cl", "cr"))


# A tuple: there are many, and it is made at once.
class _Line(NamedTuple):
    """One record, or a pair of records, of an odd key."""

    place: int
    left_copies: int
    right_copies: int
    key: str
    fields: tuple[str, ...]
    left: Values | None
    right: Values | None


def _keys(batch: pa.RecordBatch, shape: Shape) -> tuple[list[str], _Columns]:
    """Key texts of all rows, and the columns of the key."""
    fields = shape.projection.key
    columns = [batch.column(name).cast(shape.schema.field(name).type) for name in shape.keys]
    texts = {each.name: text_array(column, each).to_pylist() for column, each in zip(columns, fields, strict=True)}
    return key_texts(columns, fields), texts


def _records(batch: pa.RecordBatch, shape: Shape, side: str, keys: _Columns) -> list[Values | None]:
    """All values of each line's record of a side; None where it has none."""
    there = batch.column(f"n{side}").is_valid().to_pylist()
    return [each if here else None for each, here in zip(_values(batch, shape, side, keys), there, strict=True)]


def _values(batch: pa.RecordBatch, shape: Shape, prefix: str, keys: _Columns) -> Iterator[Values]:
    """All values of each row by name, the key's included."""
    columns = dict(keys)
    for name, each in shape.values():
        found = batch.column(prefix + name).cast(shape.schema.field(name).type)
        columns[each.name] = text_array(found, each).to_pylist()
    return map(dict, map(zip, repeat(list(columns)), zip(*columns.values(), strict=True)))


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
