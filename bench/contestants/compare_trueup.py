"""trueup as a library. Options: `strategy` forces one; `confirm` reads all that differs once more, on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401  loaded now, as all libraries are before the clock runs
from _job import Job

import trueup.compare.hashed
import trueup.compare.rows
import trueup.sides.sql.snapshot  # noqa: F401
from trueup.compare.choose import compare
from trueup.compare.plan import Plan, plan
from trueup.compare.result import Difference
from trueup.model.record import Found
from trueup.ports import Side
from trueup.sides.files import File
from trueup.sides.sql import Sql

CONFIRM_KEYS = 5_000


def main() -> None:
    """Writes key, kind, the field that differs and both its values."""
    job = Job()
    with closing(_side(job, job.left)) as left, closing(_side(job, job.right)) as right:
        planned = plan(left.describe(), right.describe(), key=job.key, columns=job.fields)
        strategy = job.options.get("strategy")
        with compare(left, right, planned, strategy=strategy, memory_mb=job.memory_mb) as found:
            differences = found.differences()
            if job.options.get("confirm"):
                differences = _confirmed(left, right, planned, differences)
            rows = (_row(each, job.key) for each in differences)
            job.write(("key", "kind", "field", "left_value", "right_value"), rows)
            job.done(strategy=found.strategy, reason=found.reason)


def _side(job: Job, told: dict[str, str]) -> Side:
    if told["kind"] == "parquet":
        return File(told["url"])
    where = None if job.since is None else f"updated_at >= '{job.since}'"
    return Sql(told["url"], job.table, key=job.key, where=where)


def _row(each: Difference, key: Sequence[str]) -> Sequence[str]:
    left, right, fields = each.left, each.right, each.fields
    there = left or right or {}
    name = "|".join([str(there[part]) for part in key]) if there else each.key
    if left is None or right is None or each.kind != "differ":
        return name, each.kind, "", "", ""
    a, b = ("+".join([str(side[field]) for field in fields]) for side in (left, right))
    return name, each.kind, "+".join(fields), a, b


def _confirmed(left: Side, right: Side, planned: Plan, differences: Iterator[Difference]) -> Iterator[Difference]:
    """Those that still differ, each read by its key as the sides are now."""
    names = [field.name for field in planned.left.fields]
    with ThreadPoolExecutor(2) as both:
        while some := list(islice(differences, CONFIRM_KEYS)):
            keys = [each.key for each in some]
            asked = [both.submit(side.read, of, keys) for side, of in ((left, planned.left), (right, planned.right))]
            a, b = (each.result() for each in asked)
            yield from (each for each in some if not _same(a.get(each.key), b.get(each.key), names))


def _same(left: Found | None, right: Found | None, names: Sequence[str]) -> bool:
    if left is None or right is None:
        return left is right
    return (left.copies, right.copies) == (1, 1) and all(left.values[name] == right.values[name] for name in names)


main()
