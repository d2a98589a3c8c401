#!/usr/bin/env python3
"""What one call pays for its budget: `take` and `health` on every store, alone and with eight threads at one system.

Prints a line for each store. PostgreSQL is measured where TRUEUP_POSTGRES_URL names a database.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from trueup.model.budget import Limit, System
from trueup.model.health import SLICES
from trueup.ports import Budgets
from trueup.stores import open_store
from trueup.testing.clock import ManualClock

# Limits that are never met, whose slices are all in use.
SYSTEM = System("api", (Limit(10**9, 60_000_000), Limit(10**9, 86_400_000_000)))
TIMES, THREADS = 1_000, 8


def stores() -> Iterator[tuple[str, str]]:
    """Name and address of each store."""
    yield "memory", "memory:"
    with tempfile.TemporaryDirectory() as folder:
        yield "SQLite, synchronous=FULL", f"sqlite:///{folder}/state.db"
    if url := os.environ.get("TRUEUP_POSTGRES_URL"):
        separator = "&" if "?" in url else "?"
        yield "PostgreSQL", f"{url}{separator}schema=b{uuid4().hex[:12]}"


def take(budgets: Budgets) -> None:
    """One call."""
    assert budgets.take(SYSTEM, 1, urgent=True, call="", call_us=1) == 0


def each_us(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median and 99th percentile of one call, in microseconds."""
    took = []
    for _ in range(times):
        began = time.perf_counter_ns()
        work()
        took.append((time.perf_counter_ns() - began) / 1_000)
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


def main() -> None:
    """Measures and prints."""
    print(f"{'store':<26}{'take p50':>10}{'p99':>8}{'8 threads':>12}{'health p50':>12}")
    for name, url in stores():
        clock = ManualClock()
        ledger, archive, budgets = open_store(url, clock)
        fill(budgets, clock)
        print(f"{name:<26}{measured(budgets)}")
        ledger.close()
        archive.close()


def measured(budgets: Budgets) -> str:
    """The figures of one store, as they are printed."""
    median_us, late_us = each_us(lambda: take(budgets), TIMES)
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: take(budgets), range(TIMES)))
    per_s = TIMES / (time.perf_counter() - began)
    health_us, _ = each_us(lambda: budgets.health("other"), TIMES)
    return f"{median_us:>7.0f} µs{late_us:>5.0f} µs{per_s:>10,.0f}/s{health_us:>9.0f} µs"


def fill(budgets: Budgets, clock: ManualClock) -> None:
    """Puts something into every slice, as after a day of work."""
    for limit in reversed(SYSTEM.limits):
        for _ in range(SLICES):
            take(budgets)
            clock.advance(limit.period_us / SLICES / 1e6)


if __name__ == "__main__":
    main()
