"""One run of one pair of two big tables, by itself in a process: what it read, found and took.

    python reconcile.py adopt|changed STATE AUTHORITY REPLICA COUNTER

Prints JSON. COUNTER is a file that always says how many rows were read so far, whatever happens to the process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa

import trueup
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Scope
from trueup.sides.sql import Sql


class Counted(Sql):
    """A table; what is read of it is written down at once."""

    read_rows = 0
    counter = -1

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Generator[pa.RecordBatch, None, None]:
        """Counts the rows of each batch."""
        for batch in super().scan(projection, scope):
            Counted.tell(batch.num_rows)
            yield batch

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """Counts the keys."""
        Counted.tell(len(keys))
        return super().read(projection, keys)

    @classmethod
    def tell(cls, rows: int) -> None:
        """Adds to the count."""
        cls.read_rows += rows
        os.pwrite(cls.counter, f"{cls.read_rows:>20}".encode(), 0)


def main() -> None:
    """Runs, and prints what came of it."""
    what, state, authority, replica, counter = sys.argv[1:]
    Counted.counter = os.open(counter, os.O_WRONLY | os.O_CREAT)
    began = time.monotonic()
    with trueup.Project(state, threads=1) as project:
        pair = project.pair(
            "big",
            authority=Counted(authority, "authority", key="id", version="updated_at"),
            replica=Counted(replica, "replica", key="id", version="updated_at"),
            fields=["customer", "cents", "status"],
            settle=0,
        )
        report: Any = pair.adopt() if what == "adopt" else pair.run("changed")
        told = {
            "seconds": round(time.monotonic() - began, 1),
            "rows_read": Counted.read_rows,
            "resumed": report.resumed,
            "counts": {name: number for name, number in report.counts.items() if number},
            "known": sum(project.ledger.counts("big").get(state, 0) for state in ("idle", "pending", "parked")),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
