"""Two tables compared by Spark: DataFrames of any origin, or paths of Parquet files.

with trueup.spark.diff(left, right, key="id") as found:
    print(found.counts)
    for difference in found.differences(100):
        print(difference.kind, difference.key, difference.fields)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trueup.compare.choose import MEMORY_MB, compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.model.record import Rule
from trueup.sides.spark import Spark

__all__ = ["Spark", "diff"]


def diff(
    left: Any,
    right: Any,
    *,
    key: str | Sequence[str],
    columns: Sequence[str] | None = None,
    ignore: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    rules: Mapping[str, Rule] | None = None,
    kinds: Mapping[str, str] | None = None,
    memory_mb: int = MEMORY_MB,
) -> Comparison:
    """Compares two tables where they are. The answer is that of any other strategy; close it, or use it in a `with`.

    left, right: DataFrames of one Spark session, paths of Parquet files, or `Spark` sides. key, columns, ignore: names
    on the left. rename: left name to right name. memory_mb: for judging what came back.

    Raises SchemaError where Spark can't tell values of two columns apart exactly, and what reading raises.
    """
    a, b = (each if isinstance(each, Spark) else Spark(each) for each in (left, right))
    names = [key] if isinstance(key, str) else list(key)
    planned = plan(
        a.describe(),
        b.describe(),
        key=names,
        key_right=[(rename or {}).get(name, name) for name in names],
        columns=columns,
        ignore=ignore,
        rename=rename,
        rules=rules,
        kinds=kinds,
    )
    return compare(a, b, planned, memory_mb=memory_mb)
