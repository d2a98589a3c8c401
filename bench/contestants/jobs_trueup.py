"""trueup: the real Worker through Project, all guarantees on. See jobs_roles for the roles, and two more here.

    ledger      offers COUNT records, works them, offers older and mixed ones; sizes before and after
    together    like `one`, from 16 threads

VARIANT: `handler` is called for each record, `batch` for up to 500, `writer` is the built-in writer on a replica in
memory. The first two are declared on a pair without replica. With `,off` behind it nothing is counted for `/metrics`.
"""

# ruff: noqa: D102  the methods are explained in jobs_roles

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

import psycopg
from jobs_roles import BATCH, Engine, Entered, main, record

import trueup
from trueup.bound import BoundPair
from trueup.cli.collector import collect_seldom
from trueup.model.change import Change, Origin
from trueup.model.record import Projection
from trueup.ports import Write, Written
from trueup.stores.sql.sqlite import SqliteFile

THREADS = 16
_COMMITS: Counter[str] = Counter()


class _Replica(trueup.Memory):
    """A replica that says when a record is written."""

    entered: Entered | None = None

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        if self.entered is not None:
            self.entered(2, len(writes))
        return super().apply(projection, writes)


class Trueup(Engine):
    """A project with one pair, whose baseline is complete."""

    def _project(self) -> tuple[trueup.Project, BoundPair]:
        variant, _, metrics = self.variant.partition(",")
        project = trueup.Project(self.url, metrics=metrics or "pairs")
        seed = [record(-2, 0)]
        replica = {"replica": _Replica(seed, key="id")} if variant == "writer" else {}
        pair = project.pair("jobs", authority=trueup.Memory(seed, key="id", version="v"), **replica)
        return project, pair

    def prepare(self) -> None:
        project, _ = self._project()
        project.ledger.settle("jobs")

    def produce(self) -> None:
        self.project, self.pair = self._project()

    def one(self, record: dict[str, Any], *, urgent: bool) -> None:
        self.pair.offer(record)

    def many(self, records: list[dict[str, Any]], *, low: bool) -> None:
        if low:
            change = self.pair.records.change_of
            self.project.ledger.offer([change(row, deleted=False, origin=Origin.BACKFILL) for row in records])
        else:
            self.pair.offer(records)

    def work(self, entered: Entered) -> None:
        project, pair = self._project()
        if self.variant == "writer":
            assert isinstance(pair.pair.replica, _Replica)
            pair.pair.replica.entered = entered
        elif self.variant == "batch":

            @pair.on("upsert", batch=500)
            def all_of(changes: list[Change]) -> None:
                entered(changes[0].version or 0, len(changes))

        else:

            @pair.on_change
            def each(change: Change) -> None:
                entered(change.version or 0, 1)

        project.worker().serve(threading.Event())

    def counters(self) -> dict[str, int]:
        return dict(_COMMITS)


def _count_commits() -> None:
    """SQLite has no counter of its own, so each write transaction is counted on its way."""
    writing = SqliteFile.writing

    @contextmanager
    def counted(file: SqliteFile, **options: Any) -> Iterator[sqlite3.Connection]:
        with writing(file, **options) as connection:
            yield connection
        _COMMITS["commits"] += 1

    setattr(SqliteFile, "writing", counted)  # noqa: B010


def ledger(url: str, count: int, seconds: float) -> dict[str, Any]:
    """Offers of every kind, and what the ledger takes for it."""
    engine = Trueup(url, "batch")
    engine.prepare()
    engine.produce()
    figures: dict[str, Any] = {"offers_per_second": {}, "outcomes": {}, "bytes": {}}

    def offers(
        what: str, rows: Iterator[Any], give: Callable[[list[Any]], Iterable[str]], at_once: int = BATCH
    ) -> None:
        outcomes: Counter[str] = Counter()
        done, began = 0, time.perf_counter()
        while (batch := list(islice(rows, at_once))) and time.perf_counter() < began + seconds:
            outcomes.update(give(batch))
            done += len(batch)
        figures["offers_per_second"][what] = round(done / (time.perf_counter() - began))
        figures["outcomes"][what] = dict(outcomes)

    offers("new", (record(number, 2) for number in range(count)), engine.pair.offer)
    figures["bytes"]["pending"] = sizes(engine, count)
    _work_all(engine, seconds)
    figures["bytes"]["done"] = sizes(engine, count)
    offers("stale", (record(number, 1) for number in range(count)), engine.pair.offer)
    # A third each: unknown records, newer ones, older ones.
    of_kind = [(count, 2), (0, 3), (0, 1)]
    mixed = (record(number + of_kind[number % 3][0], of_kind[number % 3][1]) for number in range(count))
    offers("mixed", mixed, engine.pair.offer)
    # As a job engine is measured, whose arguments are ready: no record is made canonical in the time that counts.
    ready = [
        engine.pair.records.change_of(record(2 * count + number, 2), deleted=False, origin=Origin.EVENT)
        for number in range(count)
    ]
    offers("new, ready, in one call", iter(ready), engine.project.ledger.offer, at_once=count)
    return figures


def _work_all(engine: Trueup, seconds: float) -> None:
    """Works until nothing is pending; raises what the worker raises, and SystemExit where it takes too long."""
    engine.pair.on("upsert", batch=500)(lambda _changes: None)
    stop, deadline = threading.Event(), time.monotonic() + seconds
    with ThreadPoolExecutor(1) as pool:
        worked = pool.submit(engine.project.worker().serve, stop)
        while (left := engine.project.ledger.counts("jobs")["pending"]) and not worked.done():
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        stop.set()
    worked.result()
    if left:
        raise SystemExit(f"{left} records were not worked within {seconds:.0f} s")


def together(url: str, count: int, seconds: float) -> dict[str, Any]:
    """One record an offer, from many threads; commits are shared."""
    engine = Trueup(url, "handler")
    engine.produce()
    engine.one(record(-1, 1), urgent=False)
    began = time.perf_counter()

    def some(first: int) -> int:
        done = 0
        for number in range(first, count, THREADS):
            if time.perf_counter() > began + seconds:
                break
            engine.one(record(3_000_000_000 + number, 2), urgent=False)
            done += 1
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        done = sum(pool.map(some, range(THREADS)))
    return {"count": done, "seconds": time.perf_counter() - began, **engine.counters()}


def sizes(engine: Trueup, rows: int) -> dict[str, float]:
    """Bytes a record in the store: in all, and the records' rows, their indexes, and the history with its own."""
    if engine.url.startswith("sqlite:"):
        with closing(sqlite3.connect(engine.url.removeprefix("sqlite:///"))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            parts = db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
            [(whole,)] = db.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
    else:
        of_schema = "FROM pg_class WHERE relnamespace = 'trueup'::regnamespace AND relkind"
        with psycopg.connect(engine.url) as connection:
            parts = connection.execute(
                f"SELECT relname, pg_relation_size(oid) {of_schema} IN ('r', 'i')".encode()
            ).fetchall()
            [(whole,)] = connection.execute(f"SELECT sum(pg_total_relation_size(oid)) {of_schema} = 'r'".encode())
    split: Counter[str] = Counter()
    for name, size in parts:
        split[_part(name)] += size
    return {"in all": round(whole / rows), **{part: round(split[part] / rows) for part in ("row", "index", "history")}}


def _part(name: str) -> str:
    if name == "trueup_row":
        return "row"
    return "history" if "trueup_history" in name else "index" if "trueup_row" in name else "other"


if __name__ == "__main__":
    _count_commits()
    collect_seldom()  # as every process of trueup's own does
    if sys.argv[1] in ("ledger", "together"):
        play = {"ledger": ledger, "together": together}[sys.argv[1]]
        print(json.dumps(play(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
    else:
        main(Trueup)
