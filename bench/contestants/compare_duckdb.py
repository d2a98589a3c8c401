"""Joins that one would write by hand in DuckDB, for files. Option `columns`: `all`, or `hash` for key and hash only."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from _job import Job


def main() -> None:
    """Writes key and kind; of all columns also the field that differs and both its values."""
    job = Job()
    with duckdb.connect() as database:
        database.execute(f"SET memory_limit = '{job.memory_mb}MB'")
        database.execute(f"SET temp_directory = '{job.answer.parent}/spill'")
        database.execute("SET preserve_insertion_order = false")
        query = (_all if job.options["columns"] == "all" else _hash)(job)
        database.execute(f"COPY ({query}) TO '{job.answer}' (FORMAT csv, HEADER)")
    job.done()


def _key_and_kind(key: Sequence[str]) -> str:
    text = " || '|' || ".join(f"coalesce(a.{name}, b.{name})::VARCHAR" for name in key)
    left, right = f"a.{key[0]}", f"b.{key[0]}"
    return (
        f"{text} AS key, CASE WHEN {right} IS NULL THEN 'missing' WHEN {left} IS NULL THEN 'extra' ELSE 'differ'"
        " END AS kind"
    )


def _same_key(key: Sequence[str]) -> str:
    return " AND ".join(f"a.{name} = b.{name}" for name in key)


def _all(job: Job) -> str:
    unequal = {name: f"a.{name} IS DISTINCT FROM b.{name}" for name in job.fields}
    alone = f"a.{job.key[0]} IS NULL OR b.{job.key[0]} IS NULL"
    named = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in unequal.items())
    values = ", ".join(f"a.{name} AS left_{name}, b.{name} AS right_{name}" for name in job.fields)
    return f"""
        SELECT {_key_and_kind(job.key)}, CASE WHEN {alone} THEN '' {named} END AS field, {values}
        FROM '{job.left["url"]}' AS a FULL OUTER JOIN '{job.right["url"]}' AS b ON {_same_key(job.key)}
        WHERE {alone} OR {" OR ".join(unequal.values())}"""


def _hash(job: Job) -> str:
    """It can tell neither the field nor the values."""
    key, fields = ", ".join(job.key), ", ".join(job.fields)
    left, right = (f"(SELECT {key}, hash({fields}) AS h FROM '{side['url']}')" for side in job.sides)
    return f"""
        SELECT {_key_and_kind(job.key)}
        FROM {left} AS a FULL OUTER JOIN {right} AS b ON {_same_key(job.key)} WHERE a.h IS DISTINCT FROM b.h"""


main()
