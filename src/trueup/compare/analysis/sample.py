"""Which differences are looked at, and what they are compared with: bounded and evenly spread, whatever the size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Final

import pyarrow as pa

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison, Difference, SampledFindings, Values
from trueup.errors import TrueupError
from trueup.model.columns import texts
from trueup.model.record import Projection
from trueup.ports import HashingSide, SampledSide, Side, Snapshot

# Of differences, and of the values in them.
EXAMINED_MAX: Final = 5_000
_VALUES_MAX: Final = 400_000
# Of all records of the left side.
COMPARED_MAX: Final = 5_000
# Ranges of keys that are read where all records were not.
_RANGES: Final = 64
_RANGE_ROWS: Final = 32


def examined(comparison: Comparison, plan: Plan) -> tuple[list[Difference], int]:
    """All differences or an even sample of them, in key order, and of how many one was taken."""
    different = comparison.counts.different
    most = min(EXAMINED_MAX, _VALUES_MAX // (len(plan.left.columns) + 1))
    every = max(1, -(-different // most))
    findings = comparison.findings
    found = findings.sample(every) if isinstance(findings, SampledFindings) else findings.differences(most)
    # Each of the sample is a key; those that a tolerance made equal are left out there.
    return list(islice(found, most)), every


def compared_with(comparison: Comparison, plan: Plan, left: Side | None) -> list[Values] | None:
    """An even sample of the left side's records: of those read, else as the side gives one; None where it gives none.

    What is read now may have moved since the comparison; shares do not move much by that.
    """
    findings = comparison.findings
    if comparison.strategy == "rows" and isinstance(findings, SampledFindings):
        return list(findings.left_records(COMPARED_MAX))
    one_integer = len(plan.left.key) == 1 and plan.left.key[0].kind.name == "integer"
    try:
        if isinstance(left, SampledSide):
            return [
                each for batch in left.sample(plan.left, COMPARED_MAX) for each in _values(batch, plan.left)
            ] or None
        if not isinstance(left, HashingSide) or not one_integer or not comparison.counts.left:
            return None
        with closing(left.snapshot(plan.left)) as snapshot:
            return list(_from_ranges(snapshot, plan.left, comparison.counts.left)) or None
    except TrueupError:
        # The comparison is done; how often others lie somewhere is not worth losing it.
        return None


def _from_ranges(snapshot: Snapshot, asked: Projection, rows: int) -> Iterator[Values]:
    span = snapshot.span()
    if span is None or not snapshot.functions:
        return
    first, last = span
    width = max(1, (last - first + 1) * _RANGE_ROWS // rows)
    step = max(width, (last - first + 1) // _RANGES)
    ranges = [(at, min(at + width - 1, last)) for at in range(first, last + 1, step)[:_RANGES]]
    batches = snapshot.hashes_within_each(snapshot.functions[0], ranges, 8 * _RANGE_ROWS)
    found = [batch.select([0]) for batch in batches if batch is not None and batch.num_rows]
    if found:
        for batch in snapshot.records(pa.Table.from_batches(found)):
            yield from _values(batch, asked)


def _values(batch: pa.RecordBatch, asked: Projection) -> list[Values]:
    columns = [each for each in asked.columns if each is not asked.version]
    places = [at for at, each in enumerate(asked.columns) if each is not asked.version]
    spelled: Sequence[Sequence[str | None]] = [
        texts(batch.column(at), each) for at, each in zip(places, columns, strict=True)
    ]
    names = [each.name for each in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*spelled, strict=True)]
