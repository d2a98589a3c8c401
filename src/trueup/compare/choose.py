"""Which strategy compares two sides, and why. Every strategy gives the same answer on the same data."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from trueup.compare.expected import UNKNOWN, Expected
from trueup.compare.plan import Plan
from trueup.compare.result import Comparison, Read
from trueup.compare.watched import Traffic
from trueup.errors import ConfigError
from trueup.ports import HashingSide, MatchingSide, Side

STRATEGIES: Final = ("gate", "segments", "keyhash", "sketch", "match", "rows")
MEMORY_MB: Final = 512
# Called with the records read so far and, where the sides know it, how many there will be.
Progress = Callable[[int, int | None], None]


def compare(
    left: Side,
    right: Side,
    plan: Plan,
    *,
    strategy: str | None = None,
    expected: Expected = UNKNOWN,
    memory_mb: int = MEMORY_MB,
    progress: Progress | None = None,
) -> Comparison:
    """Compares two sides; close the answer, or use it in a `with`, to remove its files.

    strategy: one of STRATEGIES, or None for the fastest that is exact here. One that can't be used on these sides is
    left for the next best, which `reason` says; `rows` always can. expected: what earlier comparisons of the same two
    sides found. memory_mb: for the join (batches in flight come on top). Raises what the sides raise; ConfigError for
    an unknown strategy.
    """
    if strategy is not None and strategy not in STRATEGIES:
        raise ConfigError(f"there is no strategy {strategy}.", hint=f"Strategies: {', '.join(STRATEGIES)}.")
    started = time.monotonic()
    traffic = _traffic(left, right, progress or (lambda done, total: None))
    found, reason = None, "asked for"
    if strategy != "rows":
        found = matched = _matched(left, right, plan, memory_mb, traffic)
        if matched is None:
            asked = None if strategy == "match" else strategy
            found, reason = _by_hashes(left, right, plan, asked, expected, memory_mb, traffic)
        if found is not None and strategy is not None and (strategy == "match") != (matched is not None):
            found = replace(found, reason=f"{strategy} can't be used here; {found.reason}")
    if found is None:
        found = replace(_by_rows(left, right, plan, memory_mb, traffic), reason=reason)
    return _told(found, traffic, started)


def compare_in_place(
    left: Side,
    right: Side,
    plan: Plan,
    *,
    expected: Expected = UNKNOWN,
    memory_mb: int = MEMORY_MB,
    progress: Progress | None = None,
) -> Comparison | None:
    """As `compare`, where hashes taken where the records are do it; None where all records would have to be read."""
    started = time.monotonic()
    traffic = _traffic(left, right, progress or (lambda done, total: None))
    found, _ = _by_hashes(left, right, plan, None, expected, memory_mb, traffic)
    return None if found is None else _told(found, traffic, started)


def _told(found: Comparison, traffic: tuple[Traffic, Traffic], started: float) -> Comparison:
    a, b = (Read(each.rows, each.bytes, each.statements) for each in traffic)
    return replace(found, read=(a, b), seconds=time.monotonic() - started)


def _traffic(left: Side, right: Side, progress: Progress) -> tuple[Traffic, Traffic]:
    estimates = [side.describe().rows for side in (left, right)]
    total = None if None in estimates else sum(each or 0 for each in estimates)
    done, lock = 0, threading.Lock()

    def seen(records: int) -> None:
        nonlocal done
        with lock:
            done += records
            progress(done, total)

    return Traffic(seen), Traffic(seen)


def _matched(
    left: Side, right: Side, plan: Plan, memory_mb: int, traffic: tuple[Traffic, Traffic]
) -> Comparison | None:
    if not isinstance(left, MatchingSide):
        return None
    from trueup.compare.matched import compare_matched  # noqa: PLC0415  loads DuckDB

    return compare_matched(left, right, plan, memory_mb=memory_mb, traffic=traffic)


def _by_hashes(
    left: Side,
    right: Side,
    plan: Plan,
    strategy: str | None,
    expected: Expected,
    memory_mb: int,
    traffic: tuple[Traffic, Traffic],
) -> tuple[Comparison | None, str]:
    if not (isinstance(left, HashingSide) or isinstance(right, HashingSide)):
        return None, "records are read: neither side can hash them in place"
    if not plan.exact:
        return None, "records are read: tolerances, folding and states that mean absence are judged here"
    from trueup.compare.hashed import compare_hashed  # noqa: PLC0415  loads DuckDB

    return compare_hashed(left, right, plan, strategy, expected, memory_mb=memory_mb, traffic=traffic)


def _by_rows(left: Side, right: Side, plan: Plan, memory_mb: int, traffic: tuple[Traffic, Traffic]) -> Comparison:
    from trueup.compare.rows import compare_rows  # noqa: PLC0415  loads DuckDB

    counts, differing, findings = compare_rows(left, right, plan, memory_mb=memory_mb, traffic=traffic)
    return Comparison(counts, plan.notes, "rows", "", differing_fields=differing, findings=findings)
