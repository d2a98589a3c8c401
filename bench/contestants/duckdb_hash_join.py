"""The leanest join that one would write by hand, key and hash only: LEFT RIGHT ANSWER MEMORY_MB."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb


def main(left: str, right: str, answer: str, memory_mb: str) -> None:
    """Writes id and kind. It can tell neither the field nor the values."""
    with duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{memory_mb}MB'")
        database.execute(f"SET temp_directory = '{Path(answer).parent}/spill'")
        database.execute("SET preserve_insertion_order = false")
        columns = [row[0] for row in database.execute(f"DESCRIBE FROM '{left}'").fetchall()]
        fields = ", ".join(name for name in columns if name != "id")
        database.execute(f"""
            COPY (
              SELECT coalesce(a.id, b.id) AS id,
                     CASE WHEN b.id IS NULL THEN 'missing' WHEN a.id IS NULL THEN 'extra' ELSE 'differ' END AS kind
              FROM (SELECT id, hash({fields}) AS h FROM '{left}') AS a
              FULL OUTER JOIN (SELECT id, hash({fields}) AS h FROM '{right}') AS b ON a.id = b.id
              WHERE a.h IS DISTINCT FROM b.h
            ) TO '{answer}' (FORMAT csv, HEADER)""")


main(*sys.argv[1:])
