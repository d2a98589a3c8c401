"""Arrow columns to canonical form: the vectorised twin of `canonical_text`.

Every fast path must give exactly what the reference gives, value for value; what has no fast path goes
through the reference.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from trueup.model.canonical import canonical_text
from trueup.model.kinds import Kind
from trueup.model.record import Field


def delivered(array: pa.Array[Any], source: Kind, field: Field, zone: ZoneInfo | None = None) -> pa.Array[Any]:
    """A raw column as a scan must deliver it: `field.kind.arrow()` where native, else canonical texts.

    array: as the reader gave it. source: the kind of the column as the side describes it. zone: the side's
    declared zone for wall-clock times.
    """
    native = field.kind.arrow() if field.native else None
    if native is not None:
        return array.cast(native)
    texts = [canonical_text(value, field.kind, zone) for value in array.to_pylist()]
    return pa.array(texts, pa.string())


def texts(array: pa.Array[Any], field: Field) -> list[str | None]:
    """The canonical texts of a delivered column."""
    if not field.native:
        return array.to_pylist()
    return [canonical_text(value, field.kind) for value in array.to_pylist()]
