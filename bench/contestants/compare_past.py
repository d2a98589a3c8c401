"""trueup past the cursor, against what a pair is known to agree on.

Options: `state`, the store; `adopt` fills it first. A dry run: nothing is written, so that the next one finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg  # noqa: F401  loaded now, as all libraries are before the clock runs
from _job import Job

import trueup
import trueup.bound
import trueup.compare.hashed
import trueup.engine.alike
import trueup.sides.sql.digesting
import trueup.stores.sql
from trueup.model.record import key_parts
from trueup.sides.sql import Sql


def main() -> None:
    """Writes what the run would act on or ask about: key, kind, the fields that differ and both their values."""
    job = Job()
    with trueup.Project(job.options["state"], threads=1, memory_mb=job.memory_mb) as project:
        left, right = (Sql(side["url"], job.table, key=job.key, version="updated_at", zone="UTC") for side in job.sides)
        pair = project.pair("orders", authority=left, replica=right, fields=job.fields, settle=0)
        if job.options.get("adopt"):
            job.done(known=pair.adopt().counts["baseline"])
            return
        report: Any = pair.run("changed", dry_run=True)
        job.write(("key", "kind", "field", "left_value", "right_value"), map(_row, report.plan))
        job.done(read=[report.counts["left"], report.counts["right"]], phases=report.seconds)


def _row(item: Any) -> Sequence[Any]:
    kind = "extra" if item.authority is None else "missing" if item.replica is None else "differ"
    texts = item.texts() if kind == "differ" else {}
    values = ["+".join(str(both[at]) for both in texts.values()) for at in (0, 1)]
    return ("|".join(map(str, key_parts(item.key))), kind, "+".join(texts), *values)


main()
