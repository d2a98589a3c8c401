"""Comparisons while both sides are written all the time: what differs only for a moment is no drift.

    python bench/live.py [--rows 200000] [--rate 500] [--compares 100] [--postgres]

A process writes the authority and, a moment later, the replica, as an event path does. Meanwhile real differences are
made, and comparisons must find these and nothing else. See bench/README.md.
"""

from __future__ import annotations

import argparse
import heapq
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

BENCH: Final = Path(__file__).parent
sys.path.append(str(BENCH))

from month.databases import Database, connected  # noqa: E402  found beside this file
from trueup.model.record import key_parts  # noqa: E402
from trueup.project import Project  # noqa: E402
from trueup.sides.sql import Sql  # noqa: E402

RESULTS: Final = BENCH / "results"
PAIR: Final = "live"
TICK_S: Final = 0.02
HOT: Final = 0.2  # share of the writes that meet one of a few records
# Records with these last digits are nobody's but for the differences that are made here.
RESERVED: Final = 97


@dataclass(frozen=True, slots=True)
class Plan:
    """How much happens.

    rate: writes a second. lag_s: how long the replica is behind. settle_s: declared of the pair. born: share of the
    writes that make a record.
    """

    rows: int = 200_000
    rate: int = 500
    compares: int = 100
    differences: int = 20
    lag_s: tuple[float, float] = (0.01, 0.2)
    settle_s: float = 2.0
    born: float = 0.05
    seed: int = 20130101


@dataclass(frozen=True, slots=True)
class Urls:
    """Where both sides and the state store are."""

    authority: str
    replica: str
    state: str


# The writer, in a process of its own.


def write(urls: Urls, plan: Plan, stopped: Any, told: Any) -> None:
    """Writes until it is stopped; tells how many writes there were."""
    authority, replica = connected(urls.authority), connected(urls.replica)
    chance = random.Random(plan.seed)
    waiting: list[tuple[float, int, int]] = []  # (due, record, cents): cents grow, so that a late one changes nothing
    newest, cents = plan.rows, 1_000_000
    began, written = time.monotonic(), 0
    while not stopped.is_set() or waiting:
        now = time.monotonic()
        changes = []
        due = 0 if stopped.is_set() else int((now - began) * plan.rate) - written
        for _ in range(due):
            cents += 1
            if chance.random() < plan.born:
                newest += 1
                changes.append((newest, cents))
            else:
                changes.append((_any(chance, plan), cents))
        changes = [(record, cents) for record, cents in changes if record % 100 != RESERVED]
        _put(authority, "authority", changes)
        committed = time.monotonic()
        for record, value in changes:
            heapq.heappush(waiting, (committed + chance.uniform(*plan.lag_s), record, value))
        written += due
        arriving = [heapq.heappop(waiting) for _ in range(len(waiting)) if waiting[0][0] <= committed]
        _put(replica, "replica", [(record, value) for _, record, value in arriving])
        told.value = written
        time.sleep(TICK_S)
    told.value = written


def _any(chance: random.Random, plan: Plan) -> int:
    return chance.randrange(1, 50) if chance.random() < HOT else chance.randrange(1, plan.rows)


def _put(database: Database, table: str, changes: list[tuple[int, int]]) -> None:
    if not changes:
        return
    at = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds")
    with database.transaction():
        database.many(
            f"INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET cents = excluded.cents, "
            f"updated_at = excluded.updated_at WHERE {table}.cents < excluded.cents",
            [(record, cents, at) for record, cents in changes],
        )


# What is measured.


def play(urls: Urls, plan: Plan) -> dict[str, Any]:
    """Compares as often as planned while everything moves; answers what was found, and what should have been."""
    authority, replica = connected(urls.authority), connected(urls.replica)
    for database, table in ((authority, "authority"), (replica, "replica")):
        _fill(database, table, plan.rows)
    made: set[int] = set()
    found: set[int] = set()
    counts: Counter[str] = Counter()
    took: list[float] = []
    with Project(urls.state, threads=1) as project:
        pair = project.pair(
            PAIR, authority=Sql(urls.authority, "authority", key="id", version="updated_at"),
            replica=Sql(urls.replica, "replica", key="id"), fields=["cents"], settle=plan.settle_s,
        )  # fmt: skip
        pair.adopt()
        with writing(urls, plan) as written:
            began, before = time.monotonic(), written()
            for at in range(plan.compares):
                # The last comparison is there to see what was too young for the one before.
                due = min(plan.differences, -(-plan.differences * (at + 1) // (plan.compares - 1)))
                for number in range(len(made), due):
                    made.add(differ(authority, replica, number))
                started = time.monotonic()
                report = pair.run("compare")
                took.append(time.monotonic() - started)
                found |= {int(key_parts(item.key)[0] or 0) for item in report.plan}
                for name in ("missing", "extra", "differ", "converged", "deferred"):
                    counts[name] += report.counts[name]
            rate = (written() - before) / (time.monotonic() - began)
    authority.close()
    replica.close()
    return {
        "rows": plan.rows, "compares": plan.compares, "writes_a_second": round(rate), "settle_s": plan.settle_s,
        "seconds_a_compare": round(sorted(took)[len(took) // 2], 2),
        "differences_at_first_sight": counts["missing"] + counts["extra"] + counts["differ"],
        "converged": counts["converged"], "deferred": counts["deferred"],
        "made": len(made), "found": len(found & made), "not_found": sorted(made - found),
        "false": sorted(found - made),
    }  # fmt: skip


@contextmanager
def writing(urls: Urls, plan: Plan) -> Iterator[Callable[[], int]]:
    """A process that writes; answers a function that says how many writes there were."""
    context = multiprocessing.get_context("spawn")
    stopped, told = context.Event(), context.Value("q", 0)
    process = context.Process(target=write, args=(urls, plan, stopped, told), daemon=True)
    process.start()
    deadline = time.monotonic() + 60
    while not told.value and time.monotonic() < deadline and process.is_alive():
        time.sleep(TICK_S)
    try:
        yield lambda: int(told.value)
    finally:
        stopped.set()
        process.join(30)
        process.kill()


def differ(authority: Database, replica: Database, number: int) -> int:
    """Makes a real difference of one of four kinds; answers the record."""
    record = (number + 1) * 100 + RESERVED
    at = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds")
    match number % 4:
        case 0:  # an event was lost
            authority.run("UPDATE authority SET cents = cents + 1, updated_at = ? WHERE id = ?", at, record)
        case 1:  # somebody edits the replica
            replica.run("UPDATE replica SET cents = cents + 1 WHERE id = ?", record)
        case 2:  # or deletes there
            replica.run("DELETE FROM replica WHERE id = ?", record)
        case _:  # or at the authority
            authority.run("DELETE FROM authority WHERE id = ?", record)
    return record


def _fill(database: Database, table: str, rows: int) -> None:
    database.run(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, cents INTEGER, updated_at TIMESTAMPTZ)")
    at = "2020-01-01 00:00:00+00:00"
    with database.transaction():
        database.many(f"INSERT INTO {table} VALUES (?, ?, ?)", [(each, each, at) for each in range(1, rows + 1)])


# The benchmark.


def main() -> None:
    """Plays, prints and writes what came of it."""
    from _common import load, machine
    from _servers import empty_store

    usual = Plan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=usual.rows)
    parser.add_argument("--rate", type=int, default=usual.rate)
    parser.add_argument("--compares", type=int, default=usual.compares)
    parser.add_argument("--postgres", action="store_true", help="state and sides in PostgreSQL instead of SQLite")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    plan, before = Plan(options.rows, options.rate, options.compares), load()
    with tempfile.TemporaryDirectory(prefix="trueup-live-") as folder:
        files = Urls(*(f"sqlite:///{folder}/{name}.db" for name in ("authority", "replica", "state")))
        if options.postgres:
            with empty_store("postgres") as url:
                figures = play(Urls(url, url, url), plan)
        else:
            figures = play(files, plan)
    found = {
        "what": "comparisons under live writes", "on": "PostgreSQL" if options.postgres else "SQLite",
        "machine": machine("trueup", "duckdb"), "load": [before, load()], **figures,
    }  # fmt: skip
    print(json.dumps(found, indent=1))
    default = RESULTS / f"live-{'postgresql' if options.postgres else 'sqlite'}.json"
    (options.output or default).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
