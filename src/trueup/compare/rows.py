"""Strategy *rows*: every record of both sides, joined by key in a private database on disk.

Only keys and hashes take part in the join. Most keys then prove equal; the records of the others ("odd" keys)
are fetched from where they were kept, judged field by field, and told apart. Memory is bounded: tables spill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.compare.findings import RowFindings
from trueup.compare.judge import Array, same
from trueup.compare.plan import Plan
from trueup.compare.result import COPIES_SHOWN, Counts
from trueup.compare.stage import GONE, Stage, gone
from trueup.compare.watched import Traffic
from trueup.compare.workspace import BATCH_ROWS, RANGE, Workspace, in_ranges
from trueup.ports import Side, StoppableScan

pc: Any = pyarrow.compute
# Tells a right record's hash from a left one's, so that two equal records of one side are no pair.
_SALT: Final = 0x9E3779B97F4A7C15
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
    return counts, rows.differing, RowFindings(workspace, a, b, plan)


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
    """What follows once both sides are staged: the tables `odd`, `tally`, `…_values`, `changed`.

    odd: o (1… in key order) and k0… of every key that is not surely the same. tally: o, cl, cr, records of the
    key on each side. odd_left, odd_right: o, h, n of those records. left_values, right_values: o, i and all
    values of the records that are shown. changed: o, fields (numbers of those that differ) and gone, for every
    key with one record on each side.
    """

    def __init__(self, workspace: Workspace, left: Stage, right: Stage, plan: Plan) -> None:
        self._workspace, self._left, self._right, self._plan = workspace, left, right, plan
        self.differing: dict[str, int] = {}

    def count(self) -> Counts:
        """Tells every key's state."""
        self._find_odd()
        kinds = self._tally()
        duplicates = kinds.get("duplicate", 0)
        self._fetch(self._left, "left", "right", duplicates)
        self._fetch(self._right, "right", "left", duplicates)
        tolerated = self._judge_pairs()
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
        surely_same = f"(count(*) = 2 AND bit_xor(h) = {_SALT}) OR (count(*) = 1 AND bit_xor(h) = {GONE})"
        self._workspace.run(
            f"""CREATE TABLE odd AS SELECT row_number() OVER (ORDER BY {in_order(keys)}) AS o, {listed} FROM (
                  SELECT {listed} FROM (
                    SELECT {listed}, h FROM "left" UNION ALL SELECT {listed}, xor(h, {_SALT}::UBIGINT) FROM "right"
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

    def _fetch(self, stage: Stage, side: str, other: str, duplicates: int) -> None:
        """Copies what will be judged or shown from the kept records into the table `…_values`."""
        if duplicates:
            self._workspace.run(_wanted_with_duplicates(side, other))
        else:
            self._workspace.run(f"CREATE TABLE {side}_wanted AS SELECT o, 1::BIGINT AS i, n FROM odd_{side}")
        place: dict[str, Array] = {"o": pa.array([], pa.int64()), "i": pa.array([], pa.int64())}
        self._workspace.insert(
            f"CREATE TABLE {side}_fetched AS FROM chunk LIMIT 0", _beside(place, stage.shape.empty())
        )
        as_read = f"SELECT o, i, n FROM {side}_wanted ORDER BY n"
        with self._workspace.inserts(f"INSERT INTO {side}_fetched FROM chunk") as insert:
            for few in self._workspace.batches(as_read, BATCH_ROWS):
                place = {"o": few.column("o"), "i": few.column("i")}
                insert(_beside(place, stage.spool.take(few.column("n"))))
        # In key order, so that those of a range of keys lie together.
        self._workspace.run(f"CREATE TABLE {side}_values AS FROM {side}_fetched ORDER BY o, i")
        self._workspace.run(f"DROP TABLE {side}_fetched")

    def _judge_pairs(self) -> int:
        """Judges keys with one record on each side, field by field; answers how many agree after all."""
        a, b, plan = self._left.shape, self._right.shape, self._plan
        self._workspace.run("CREATE TABLE changed (o BIGINT, fields SMALLINT[], gone BOOLEAN)")
        left = [f"l.{name} AS {name}" for name, _ in a.values()]
        right = [f"r.{name} AS r{name}" for name in b.fields]
        pairs = f"""SELECT {", ".join(["o", *left, *right])}
                    FROM (FROM left_values {RANGE}) AS l JOIN (FROM right_values {RANGE}) AS r USING (o)
                    JOIN (FROM tally {RANGE}) USING (o) WHERE cl = 1 AND cr = 1"""
        counted = dict.fromkeys((field.name for field in plan.left.fields), 0)
        tolerated = 0
        for batch in in_ranges(self._workspace, pairs):
            hidden = gone(batch, a, plan.absent_when or {})
            columns: list[list[Any]] = []
            for name, field in zip(a.fields, plan.left.fields, strict=True):
                kind = a.schema.field(name).type
                equal = same(batch.column(name).cast(kind), batch.column(f"r{name}").cast(kind), field)
                columns.append(equal.to_pylist())
                counted[field.name] += pc.sum(pc.invert(equal)).as_py() or 0
            lists = pa.array(_changed(columns, batch.num_rows), pa.list_(pa.int16()))
            judged = pa.table({"o": batch.column("o"), "fields": lists, "gone": hidden})
            self._workspace.insert("INSERT INTO changed FROM chunk", judged)
            tolerated += pc.sum(pc.and_(pc.equal(pc.list_value_length(lists), 0), pc.invert(hidden))).as_py() or 0
        self.differing = counted
        return tolerated


def _changed(columns: list[list[Any]], rows: int) -> list[list[int]]:
    if not columns:
        return [[]] * rows
    return [[at for at, equal in enumerate(row) if not equal] for row in zip(*columns, strict=True)]


def in_order(keys: list[str]) -> str:
    """Key order: native numbers and times by value, text by its bytes, null first."""
    return ", ".join(f"{key} NULLS FIRST" for key in keys)


def _beside(place: dict[str, Array], records: pa.RecordBatch | pa.Table) -> pa.Table:
    return pa.table({**place, **dict(zip(records.schema.names, records.columns, strict=True))})


def _wanted_with_duplicates(side: str, other: str) -> str:
    """Of a key with several records: those that have no equal on the other side, and of these the first few.

    Equal records cancel out one against one (as multisets), never many against many.
    """
    return f"""
      CREATE TABLE {side}_wanted AS SELECT o, i, n FROM (
        SELECT o, n, row_number() OVER (PARTITION BY o ORDER BY n) AS i FROM (
          SELECT mine.o, mine.n
          FROM (SELECT o, h, n, row_number() OVER (PARTITION BY o, h ORDER BY n) AS copy FROM odd_{side}) AS mine
          JOIN tally USING (o)
          LEFT JOIN (SELECT o, h, count(*) AS copies FROM odd_{other} GROUP BY o, h) AS theirs
            ON mine.o = theirs.o AND mine.h = theirs.h
          WHERE (cl <= 1 AND cr <= 1) OR copy > coalesce(copies, 0)
        )
      ) WHERE i <= {COPIES_SHOWN} ORDER BY n"""
