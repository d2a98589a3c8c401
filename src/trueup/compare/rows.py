"""Strategy *rows*: every record of both sides, joined by key in a private database on disk.

Only keys and hashes take part in the join. Most keys then prove equal; the records of the others ("odd" keys)
are fetched from where they were kept, judged field by field, and told apart. Memory is bounded: tables spill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.compare.findings import RowFindings
from trueup.compare.judge import Array, same
from trueup.compare.plan import Plan
from trueup.compare.result import COPIES_SHOWN, Counts
from trueup.compare.stage import GONE, Stage, gone
from trueup.compare.watched import Traffic
from trueup.compare.workspace import BATCH_ROWS, RANGE, Spool, Workspace, in_ranges
from trueup.model.duck import SALT
from trueup.ports import Side, StoppableScan

pc: Any = pyarrow.compute
# How often a side is told to stop: what is about to be asked of it can't be stopped yet.
_STOPPING_S: Final = 0.2
Batches: TypeAlias = Iterator[pa.RecordBatch]
# Raises where the other side has failed.
Going: TypeAlias = Callable[[], None]
# Reads batches to their end; asks after each whether to go on.
Fill: TypeAlias = Callable[[Batches, Going], None]


def compare_rows(
    left: Side, right: Side, plan: Plan, *, memory_mb: int, traffic: tuple[Traffic, Traffic]
) -> tuple[Counts, dict[str, int], RowFindings]:
    """Reads both sides to their end and tells every key's state; counts are exact. The caller closes the findings."""
    workspace = Workspace(memory_mb)
    scans = [left.scan(plan.left), right.scan(plan.right)]
    a, b = (watch.records(scan) for watch, scan in zip(traffic, scans, strict=True))

    def stop() -> None:
        for scan in scans:
            if isinstance(scan, StoppableScan):
                scan.stop()

    try:
        return judge_records(workspace, a, b, plan, stop)
    except BaseException:
        workspace.close()
        raise


def judge_records(
    workspace: Workspace, left: Batches, right: Batches, plan: Plan, stop: Callable[[], None]
) -> tuple[Counts, dict[str, int], RowFindings]:
    """Tells the state of every key of these records; the findings take over the workspace.

    stop: as of `read_both`.
    """
    a = Stage(workspace, "left", plan.left, plan.absent_when)
    b = Stage(workspace, "right", plan.right)
    read_both((left, a.fill), (right, b.fill), stop)
    rows = _Rows(workspace, a, b, plan)
    counts = rows.count()
    return counts, rows.differing, RowFindings(workspace, a, b, plan, rows.lines)


class _Stopped(Exception):
    """The other side failed; its error is the one to tell."""


def read_both(left: tuple[Batches, Fill], right: tuple[Batches, Fill], stop: Callable[[], None]) -> None:
    """Reads both sides at once: the closer their snapshots, the less has changed between them.

    stop: ends what the systems are doing for these batches. It is called, until nobody reads any more, where one
    side failed or the program is interrupted.
    """
    stopped = threading.Event()

    def going() -> None:
        if stopped.is_set():
            raise _Stopped

    def read(batches: Batches, fill: Fill) -> None:
        try:
            fill(batches, going)
        except Exception:
            if stopped.is_set():
                raise _Stopped from None  # of a side that was told to stop, no error is worth telling
            raise
        finally:
            # A scan that is not read to its end must not hold its connection until somebody collects it.
            if isinstance(batches, Generator):
                batches.close()

    with ThreadPoolExecutor(2, thread_name_prefix="trueup-read") as pool:
        futures: list[Future[None]] = [pool.submit(read, *each) for each in (left, right)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            if not all(future.done() and future.exception() is None for future in futures):
                stopped.set()
                while wait(futures, timeout=0).not_done:
                    stop()
                    wait(futures, timeout=_STOPPING_S)
    failures = [failure for future in futures if (failure := future.exception()) is not None]
    for failure in failures:
        if not isinstance(failure, _Stopped):
            raise failure


class _Rows:
    """What follows once both sides are staged: tables, and lines.

    odd: o (1… in key order) and k0… of every key that is not surely the same. tally: o, cl, cr, records of the
    key on each side. odd_left, odd_right: o, h, n of those records. left_shown, right_shown: o, i, n of the records
    that are shown, n being their number in the stage's `shown`.

    lines: of each odd key, in key order, its records side by side: o, k0…, cl, cr, nl and nr (null where a side has
    no record), agreed (a pair is judged equal after all), u0… (fields that differ), l… and r… (values).
    """

    def __init__(self, workspace: Workspace, left: Stage, right: Stage, plan: Plan) -> None:
        self._workspace, self._left, self._right, self._plan = workspace, left, right, plan
        self.lines = Spool(workspace.path, "lines")
        self.differing = dict.fromkeys((field.name for field in plan.left.fields), 0)

    def count(self) -> Counts:
        """Tells every key's state."""
        self._find_odd()
        kinds = self._tally()
        duplicates = kinds.get("duplicate", 0)
        self._show(self._left, self._right, duplicates)
        self._show(self._right, self._left, duplicates)
        tolerated = self._judge()
        read = self._left.spool.rows + self._right.spool.rows
        odd = self._workspace.number("SELECT (SELECT count(*) FROM odd_left) + (SELECT count(*) FROM odd_right)")
        absent = self._left.gone - self._workspace.number(f"SELECT count(*) FROM odd_left WHERE h = {GONE}")
        return Counts(
            left=self._left.spool.rows,
            right=self._right.spool.rows,
            same=(read - odd + absent) // 2 + tolerated,
            missing=kinds.get("missing", 0),
            extra=kinds.get("extra", 0),
            differ=kinds.get("pair", 0) - tolerated,
            duplicate=duplicates,
        )

    def _find_odd(self) -> None:
        keys = self._left.shape.keys
        listed = ", ".join(keys)
        surely_same = f"(count(*) = 2 AND bit_xor(h) = {SALT}) OR (count(*) = 1 AND bit_xor(h) = {GONE})"
        self._workspace.run(
            f"""CREATE TABLE odd AS SELECT row_number() OVER (ORDER BY {in_order(keys)}) AS o, {listed} FROM (
                  SELECT {listed} FROM (
                    SELECT {listed}, h FROM "left" UNION ALL SELECT {listed}, xor(h, {SALT}::UBIGINT) FROM "right"
                  ) GROUP BY {listed} HAVING NOT ({surely_same}))"""
        )
        match = " AND ".join(f"s.{key} IS NOT DISTINCT FROM odd.{key}" for key in keys)
        for side in ("left", "right"):
            # In reading order, so that the records of one chunk lie together.
            self._workspace.run(
                f'CREATE TABLE odd_{side} AS SELECT o, h, n FROM "{side}" AS s JOIN odd ON {match} ORDER BY n'
            )
            self._workspace.run(f'DROP TABLE "{side}"')

    def _tally(self) -> dict[str, int]:
        self._workspace.run(
            """CREATE TABLE tally AS SELECT o, sum(l)::BIGINT AS cl, sum(r)::BIGINT AS cr FROM (
                 SELECT o, 1 AS l, 0 AS r FROM odd_left UNION ALL SELECT o, 0, 1 FROM odd_right) GROUP BY o"""
        )
        kind = """CASE WHEN cl > 1 OR cr > 1 THEN 'duplicate' WHEN cr = 0 THEN 'missing'
                       WHEN cl = 0 THEN 'extra' ELSE 'pair' END"""
        return self._workspace.counts(f"SELECT {kind} AS kind, count(*) FROM tally GROUP BY kind")

    def _show(self, stage: Stage, other: Stage, duplicates: int) -> None:
        """Chooses the records that will be judged or shown. They must lie in key order."""
        if duplicates:
            self._workspace.run(_shown_with_duplicates(stage.name, other.name))
        else:
            self._workspace.run(f"CREATE TABLE {stage.name}_shown AS SELECT o, 1::BIGINT AS i, n FROM odd_{stage.name}")
        before = f"SELECT n, lag(n) OVER (ORDER BY o, i) AS before FROM {stage.name}_shown"
        if self._workspace.number(f"SELECT count(*) FROM ({before}) WHERE n < before"):
            self._bring_in_order(stage)

    def _bring_in_order(self, stage: Stage) -> None:
        """Copies the shown records, so that those of a range of keys lie together."""
        side = stage.name
        place: dict[str, Array] = {"o": pa.array([], pa.int64()), "i": pa.array([], pa.int64())}
        self._workspace.insert(f"CREATE TABLE {side}_taken AS FROM chunk LIMIT 0", _beside(place, stage.shape.empty()))
        as_read = f"SELECT o, i, n FROM {side}_shown ORDER BY n"
        with self._workspace.inserts(f"INSERT INTO {side}_taken FROM chunk") as insert:
            for few in self._workspace.batches(as_read, BATCH_ROWS):
                place = {"o": few.column("o"), "i": few.column("i")}
                insert(_beside(place, stage.spool.take(few.column("n"))))
        stage.keep_shown(
            self._workspace.batches(f"SELECT * EXCLUDE (o, i) FROM {side}_taken ORDER BY o, i", BATCH_ROWS)
        )
        self._workspace.run(f"DROP TABLE {side}_taken")
        self._workspace.run(
            f"CREATE OR REPLACE TABLE {side}_shown AS "
            f"SELECT o, i, row_number() OVER (ORDER BY o, i) - 1 AS n FROM {side}_shown"
        )

    def _judge(self) -> int:
        """Writes the lines, pairs judged field by field; answers how many pairs agree after all."""
        found = f"""SELECT o, {", ".join(self._left.shape.keys)}, cl, cr, nl, nr
                    FROM (FROM odd {RANGE}) JOIN (FROM tally {RANGE}) USING (o) LEFT JOIN (
                      SELECT coalesce(l.o, r.o) AS o, coalesce(l.i, r.i) AS i, l.n AS nl, r.n AS nr
                      FROM (FROM left_shown {RANGE}) AS l FULL JOIN (FROM right_shown {RANGE}) AS r
                      ON l.o = r.o AND l.i = r.i) USING (o) ORDER BY o, i"""
        tolerated = 0
        for batch in in_ranges(self._workspace, found):
            left, right = self._left.shown_at(batch.column("nl")), self._right.shown_at(batch.column("nr"))
            paired = pc.and_(pc.equal(batch.column("cl"), 1), pc.equal(batch.column("cr"), 1))
            unequal = self._unequal(left, right, paired)
            apart = reduce(pc.or_, unequal, gone(left, self._left.shape, self._plan.absent_when or {}))
            agreed = pc.and_not(paired, apart)
            tolerated += pc.sum(agreed).as_py() or 0
            told = {name: batch.column(name) for name in batch.schema.names}
            told |= {"agreed": agreed, **{f"u{at}": each for at, each in enumerate(unequal)}}
            for prefix, stage, records in (("l", self._left, left), ("r", self._right, right)):
                told |= {f"{prefix}{name}": records.column(name) for name in stage.shape.others}
            self.lines.append([pa.record_batch(told)])
        return tolerated

    def _unequal(self, left: pa.RecordBatch, right: pa.RecordBatch, paired: Array) -> list[Array]:
        """For each field, which pairs of records are not judged equal."""
        unequal = []
        for name, field in zip(self._left.shape.fields, self._plan.left.fields, strict=True):
            unequal.append(pc.and_not(paired, same(left.column(name), right.column(name), field)))
            self.differing[field.name] += pc.sum(unequal[-1]).as_py() or 0
        return unequal


def in_order(keys: list[str]) -> str:
    """Key order: native numbers and times by value, text by its bytes, null first."""
    return ", ".join(f"{key} NULLS FIRST" for key in keys)


def _beside(place: dict[str, Array], records: pa.RecordBatch | pa.Table) -> pa.Table:
    return pa.table({**place, **dict(zip(records.schema.names, records.columns, strict=True))})


def _shown_with_duplicates(side: str, other: str) -> str:
    """Of a key with several records: those that have no equal on the other side, and of these the first few.

    Equal records cancel out one against one (as multisets), never many against many.
    """
    return f"""
      CREATE TABLE {side}_shown AS SELECT o, i, n FROM (
        SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY n) AS i FROM (
          SELECT mine.o, mine.n
          FROM (SELECT o, h, n, row_number() OVER (PARTITION BY o, h ORDER BY n) AS copy FROM odd_{side}) AS mine
          JOIN tally USING (o)
          LEFT JOIN (SELECT o, h, count(*) AS copies FROM odd_{other} GROUP BY o, h) AS theirs
            ON mine.o = theirs.o AND mine.h = theirs.h
          WHERE (cl <= 1 AND cr <= 1) OR copy > coalesce(copies, 0)
        )
      ) WHERE i <= {COPIES_SHOWN} ORDER BY n"""
