"""Digests of whole columns: the vectorised twins of `digest_of`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from trueup.model.columns import Array, text_array
from trueup.model.digest import CANONICAL_DIGITS, HashSum, digest_of
from trueup.model.record import Projection

pc: Any = pyarrow.compute


def digests(columns: Sequence[Array], rows: int) -> list[str]:
    """The digest of each of `rows` rows over columns of judged texts; the vectorised twin of `digest_of`."""
    if not columns:
        return [digest_of(())] * rows
    framed = [
        pc.binary_join_element_wise(
            pc.binary_length(column).cast(pa.string()), column, ":", null_handling="emit_null"
        ).fill_null("~")
        for column in columns
    ]
    joined = framed[0] if len(framed) == 1 else pc.binary_join_element_wise(*framed, "")
    md5 = hashlib.md5
    return [md5(row, usedforsecurity=False).hexdigest() for row in joined.cast(pa.binary()).to_pylist()]


def hash_sum(batches: Iterable[pa.RecordBatch], projection: Projection) -> HashSum:
    """Count and sum of the canonical hashes of the records of a scan: what databases sum up where they are."""
    count = total = 0
    keys, fields = len(projection.key), len(projection.fields)
    first = keys + (projection.version is not None)
    places = [*range(keys), *range(first, first + fields)]
    for batch in batches:
        columns = [text_array(batch.column(at), projection.columns[at]) for at in places]
        total += sum(int(each[:CANONICAL_DIGITS], 16) for each in digests(columns, batch.num_rows))
        count += batch.num_rows
    return HashSum(count, total)
