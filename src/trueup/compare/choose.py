"""Which strategy compares two sides, and why. Every strategy gives the same answer on the same data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison
from trueup.errors import ConfigError
from trueup.ports import Side

STRATEGIES: Final = ("gate", "rows")
MEMORY_MB: Final = 512
# Called with the records read so far and, where the sides know it, how many there will be.
Progress = Callable[[int, int | None], None]


def compare(
    left: Side,
    right: Side,
    plan: Plan,
    *,
    strategy: str | None = None,
    memory_mb: int = MEMORY_MB,
    progress: Progress | None = None,
) -> Comparison:
    """Compares two sides; close the answer, or use it in a `with`, to remove its files.

    strategy: `rows` reads every record whatever the sides could do; `gate` or None first asks two databases of
    one engine for count and hash sum and reads the records only where these differ. memory_mb: for the join
    (batches in flight come on top). Raises what the sides raise; ConfigError for an unknown strategy.
    """
    from trueup.compare.segments import gate  # noqa: PLC0415  each strategy is loaded when it is used

    if strategy is not None and strategy not in STRATEGIES:
        raise ConfigError(f"there is no strategy {strategy}.", hint=f"Strategies: {', '.join(STRATEGIES)}.")
    started = time.monotonic()
    if strategy == "rows":
        reason = "asked for"
    else:
        passed, reason = gate(left, right, plan)
        if passed is not None:
            return replace(passed, seconds=time.monotonic() - started)
    found = _by_rows(left, right, plan, memory_mb, progress or (lambda done, total: None))
    return replace(found, reason=reason, seconds=time.monotonic() - started)


def _by_rows(left: Side, right: Side, plan: Plan, memory_mb: int, progress: Progress) -> Comparison:
    from trueup.compare.rows import compare_rows  # noqa: PLC0415  loads DuckDB

    estimates = [side.describe().rows for side in (left, right)]
    total = None if None in estimates else sum(each or 0 for each in estimates)
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, total)

    counts, differing, findings = compare_rows(left, right, plan, memory_mb=memory_mb, progress=advance)
    return Comparison(counts, plan.notes, "rows", "", differing_fields=differing, findings=findings)
