"""Two Parquet files that differ in a known way, made from a seed alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb


@dataclass(frozen=True)
class _Field:
    """SQL for the value, from the random bits m, n and the hexadecimal digits d of a record.

    other: what a changed value becomes. instead: what a null becomes.
    """

    value: str
    other: str
    instead: str


_FIELDS: Final = {
    "reference": _Field(
        "concat_ws('-', d[:8], d[9:12], d[13:16], d[17:20], d[21:])",
        "concat(reference[:35], chr(ascii(reference[36]) + 1))",
        "''",
    ),
    "quantity": _Field("CASE WHEN n % 23 > 0 THEN (m % 1000)::INTEGER END", "quantity + 1", "0"),
    "stock": _Field("CASE WHEN n % 29 > 0 THEN (m >> 20)::BIGINT END", "stock + 1", "0"),
    "price": _Field("CASE WHEN n % 31 > 0 THEN ((m >> 8) % 1000000000)::DECIMAL(12, 2) / 100 END", "price + 0.01", "0"),
    "weight": _Field("CASE WHEN n % 37 > 0 THEN (m >> 11) / 9007199254740992.0::DOUBLE END", "weight + 0.001", "0"),
    "updated_at": _Field(
        "make_timestamp(1600000000000000 + (n % 100000000000000)::BIGINT)",
        "updated_at + INTERVAL 1 microsecond",
        "TIMESTAMP '2000-01-01'",
    ),
    "due": _Field(
        "CASE WHEN n % 41 > 0 THEN DATE '2020-01-01' + (m % 3000)::INTEGER END", "due + 1", "DATE '2000-01-01'"
    ),
    "status": _Field("['new', 'paid', 'packed', 'sent', 'returned'][(1 + n % 5)::BIGINT]", "upper(status)", "''"),
    "account": _Field("CASE WHEN n % 43 > 0 THEN concat('acc-', m % 1000000) END", "upper(account)", "''"),
}
_TYPES: Final = {"price": "DECIMAL(12, 2)"}
# Of 1,000 records, 2 are missing, 2 have an extra one behind them, 6 differ in one field.
_KIND: Final = "CASE WHEN c < 2 THEN 'missing' WHEN c < 4 THEN 'extra' WHEN c < 10 THEN 'differ' END"


@dataclass(frozen=True)
class Files:
    """What was made. truth: a file with id, kind and field of every difference. bytes_a_row: in Arrow."""

    left: Path
    right: Path
    truth: Path
    rows: int
    differences: int
    bytes_a_row: float
    file_bytes: int


def files(folder: Path, rows: int, seed: int) -> Files:
    """Both files and the truth about them, made if they are not in this folder yet."""
    left, right, truth = (folder / f"{name}-{rows}-{seed}.parquet" for name in ("left", "right", "truth"))
    facts = folder / f"facts-{rows}-{seed}.json"
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        facts.write_text(json.dumps(_make(left, right, truth, rows, seed)))
    return Files(left, right, truth, **json.loads(facts.read_text()))


def _make(left: Path, right: Path, truth: Path, rows: int, seed: int) -> dict[str, Any]:
    names = list(_FIELDS)
    with duckdb.connect() as database:
        database.execute("SET memory_limit = '2GB'")
        database.execute(f"SET temp_directory = '{left.parent}/spill'")
        database.execute(f"CREATE MACRO bits(i, part) AS md5_number_lower(concat('{seed}/', part, '/', i))")
        database.execute(f"""
            CREATE VIEW drawn AS
            SELECT 2 * i AS id, bits(i, 'm') AS m, bits(i, 'n') AS n, md5(concat('{seed}/', i)) AS d,
                   bits(i, 'kind') % 1000 AS c, {_KIND} AS kind,
                   {names}[(1 + bits(i, 'field') % {len(names)})::BIGINT] AS field
            FROM range({rows}) AS r(i)""")
        values = ", ".join(f"({each.value})::{_TYPES[name]} AS {name}" if name in _TYPES else f"{each.value} AS {name}"
                           for name, each in _FIELDS.items())  # fmt: skip
        database.execute(f"CREATE VIEW original AS SELECT id, {values}, kind, field, m FROM drawn")
        _write(database, f"SELECT id, {', '.join(names)} FROM original", left)
        places = "CASE kind WHEN 'missing' THEN []::INTEGER[] WHEN 'extra' THEN [0, 1] ELSE [0] END"
        changed = ", ".join(map(_changed, names))
        _write(database, f"SELECT id + unnest({places}) AS id, {changed} FROM original", right)
        told = "id + (kind = 'extra')::INTEGER AS id, kind, CASE kind WHEN 'differ' THEN field ELSE '' END AS field"
        _write(database, f"SELECT {told} FROM original WHERE kind IS NOT NULL", truth)
        (differences,) = database.execute(f"SELECT count(*) FROM '{truth}'").fetchall()[0]
        sample = database.sql(f"FROM '{left}' LIMIT 100000").to_arrow_table()
    return {
        "rows": rows,
        "differences": differences,
        "bytes_a_row": round(sample.nbytes / sample.num_rows, 1),
        "file_bytes": left.stat().st_size + right.stat().st_size,
    }


def _changed(name: str) -> str:
    each = _FIELDS[name]
    # One in seven changes empties the field.
    other = f"CASE WHEN {name} IS NULL THEN {each.instead} WHEN m % 7 > 0 THEN {each.other} END"
    value = f"CASE WHEN kind = 'differ' AND field = '{name}' THEN {other} ELSE {name} END"
    return f"{value}::{_TYPES[name]} AS {name}" if name in _TYPES else f"{value} AS {name}"


def _write(database: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
