"""What one would write by hand: key and hash of every record of two PostgreSQL tables, sent here and joined.

Both sides at once through ADBC, which reads binary COPY. Records whose hashes differ are then read by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import duckdb
import pyarrow as pa
from _job import Job
from adbc_driver_postgresql import dbapi

KEYS_AT_ONCE = 10_000


def main() -> None:
    """Writes key, kind and the fields that differ; their values are at hand, in the server's own spelling."""
    job = Job()
    (key,) = job.key
    row = f"hash_record_extended(row({', '.join((key, *job.fields))}), 0)"
    with ThreadPoolExecutor(2) as both, duckdb.connect() as database:
        hashes = list(both.map(lambda side: _read(side, f"SELECT {key} AS k, {row} AS h FROM {job.table}"), job.sides))
        for name, table in zip(("l", "r"), hashes, strict=True):
            database.register(name, table)
        odd = "SELECT coalesce(l.k, r.k) FROM l FULL JOIN r ON l.k = r.k WHERE l.h IS DISTINCT FROM r.h ORDER BY 1"
        keys = [each for (each,) in database.execute(odd).fetchall()]
        records = list(both.map(lambda side: _records(job, side, keys), job.sides))
    job.write(("key", "kind", "field"), _answer(job, keys, *records))
    job.done()


def _read(side: dict[str, str], sql: str) -> pa.Table:
    with closing(dbapi.connect(side["url"])) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        table: pa.Table = cursor.fetch_arrow_table()
        return table


def _records(job: Job, side: dict[str, str], keys: Sequence[int]) -> dict[int, Sequence[Any]]:
    found: dict[int, Sequence[Any]] = {}
    # As text, which says the same on both sides; ADBC can't read every type.
    columns = ", ".join(f"{name}::text" for name in job.fields)
    with closing(dbapi.connect(side["url"])) as connection, connection.cursor() as cursor:
        for at in range(0, len(keys), KEYS_AT_ONCE):
            listed = ", ".join(map(str, keys[at : at + KEYS_AT_ONCE]))
            cursor.execute(f"SELECT {job.key[0]}, {columns} FROM {job.table} WHERE {job.key[0]} IN ({listed})")
            found |= {row[0]: row[1:] for row in cursor.fetchall()}
    return found


def _answer(
    job: Job, keys: Sequence[int], left: dict[int, Sequence[Any]], right: dict[int, Sequence[Any]]
) -> Iterator[Sequence[str]]:
    for key in keys:
        a, b = left.get(key), right.get(key)
        if a is None or b is None:
            yield str(key), "missing" if b is None else "extra", ""
            continue
        yield str(key), "differ", "+".join(name for name, x, y in zip(job.fields, a, b, strict=True) if x != y)


main()
