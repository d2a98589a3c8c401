"""The full outer join that one would write by hand, all columns: LEFT RIGHT ANSWER MEMORY_MB."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb


def main(left: str, right: str, answer: str, memory_mb: str) -> None:
    """Writes id, kind, the field that differs, and both sides' values."""
    with duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{memory_mb}MB'")
        database.execute(f"SET temp_directory = '{Path(answer).parent}/spill'")
        database.execute("SET preserve_insertion_order = false")
        columns = [row[0] for row in database.execute(f"DESCRIBE FROM '{left}'").fetchall()]
        fields = [name for name in columns if name != "id"]
        unequal = {name: f"a.{name} IS DISTINCT FROM b.{name}" for name in fields}
        named = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in unequal.items())
        values = ", ".join(f"a.{name} AS left_{name}, b.{name} AS right_{name}" for name in fields)
        database.execute(f"""
            COPY (
              SELECT coalesce(a.id, b.id) AS id,
                     CASE WHEN b.id IS NULL THEN 'missing' WHEN a.id IS NULL THEN 'extra' ELSE 'differ' END AS kind,
                     CASE WHEN a.id IS NULL OR b.id IS NULL THEN '' {named} END AS field, {values}
              FROM '{left}' AS a FULL OUTER JOIN '{right}' AS b ON a.id = b.id
              WHERE a.id IS NULL OR b.id IS NULL OR {" OR ".join(unequal.values())}
            ) TO '{answer}' (FORMAT csv, HEADER)""")


main(*sys.argv[1:])
