"""What is compared: two Parquet files of orders that differ in a known way, made from a seed alone.

Tables are filled from these files. Differences never lie between a null and a value: a peer is known to lose most of
its answer there, and then its time would say nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

SEED: Final = 20_130_101
# Those in which peers take part; `tenth` is for trueup's own strategies (`chooser.py`).
SCENARIOS: Final = ("identical", "hundred", "percent", "block", "touched")
SCENARIO_TEXTS: Final = {
    "identical": "identical",
    "hundred": "100 scattered differences",
    "percent": "1% scattered differences",
    "tenth": "10% scattered differences",
    "block": "a block of 10,000 missing",
    "touched": "1% touched on both sides, 100 of it different",
}
BLOCK_ROWS: Final = 10_000
# The second in which the touched records were touched, until they are moved to another; all others are older.
TOUCHED_FROM: Final = "2026-06-01 00:00:00"
FIELDS: Final = {
    "customer": "(m % 200000)::INTEGER",
    "status": "['new', 'paid', 'packed', 'sent', 'returned'][(1 + n % 5)::BIGINT]",
    "amount": "((m >> 8) % 100000000)::DECIMAL(12, 2) / 100",
    "quantity": "CASE WHEN n % 23 > 0 THEN (n >> 8) % 1000 END::INTEGER",
    "reference": "concat_ws('-', d[:8], d[9:12], d[13:16], d[17:20], d[21:])",
    "updated_at": "make_timestamp(1700000000000000 + (n % 40000000000000)::BIGINT)",
}
_TYPES: Final = {"amount": "DECIMAL(12, 2)", "quantity": "INTEGER"}
# What a changed value becomes. A null is no value to change: the customer is changed instead.
_OTHERS: Final = {
    "customer": "customer + 1",
    "status": "upper(status)",
    "amount": "amount + 0.01",
    "quantity": "quantity + 1",
    "reference": "concat(reference[:35], chr(ascii(reference[36]) + 1))",
}


@dataclass(frozen=True)
class Keys:
    """A kind of key. columns: name and SQL for the key of record i; extra: for one that lies behind it on one side."""

    columns: dict[str, str]
    extra: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The key's columns."""
        return tuple(self.columns)


KEYS: Final = {
    "integer": Keys({"id": "(2 * i)::BIGINT"}, {"id": "(2 * i + 1)::BIGINT"}),
    "uuid": Keys({"id": "md5(concat('k/', i))::UUID"}, {"id": "md5(concat('x/', i))::UUID"}),
    "two": Keys(
        {"tenant": "(i % 100)::INTEGER", "number": "(i // 100 * 2)::BIGINT"},
        {"tenant": "(i % 100)::INTEGER", "number": "(i // 100 * 2 + 1)::BIGINT"},
    ),
    "text": Keys(
        {"code": "concat('ORD-', upper(md5(concat('k/', i))[:16]))"},
        {"code": "concat('ORD-', upper(md5(concat('x/', i))[:16]))"},
    ),
}


@dataclass(frozen=True)
class Input:
    """Two files and the truth about them: key (its parts joined by `|`), kind, field, and both values as text.

    touched: in scenario *touched*, files with the touched records alone, as they are afterwards. differences: how many.
    """

    left: Path
    right: Path
    truth: Path
    touched: tuple[Path, Path] | None
    rows: int
    keys: str
    scenario: str
    differences: int


def made(folder: Path, rows: int, keys: str, scenario: str, seed: int = SEED) -> Input:
    """The files of one cell, made if they are not in this folder yet."""
    stem = f"{rows}-{keys}-{seed}"
    ending = f"{stem}-{scenario}"
    touched = scenario == "touched"
    # Before the touch both sides are the same; the others share their left side.
    left, right = folder / f"left-{stem}.parquet", folder / f"right-{ending}.parquet"
    truth, facts = folder / f"truth-{ending}.parquet", folder / f"facts-{ending}.json"
    after = (folder / f"left-after-{ending}.parquet", folder / f"right-after-{ending}.parquet") if touched else None
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as database:
            database.execute("SET memory_limit = '2GB'")
            # Records come in the order in which they are numbered, without being sorted.
            database.execute("SET preserve_insertion_order = true")
            database.execute(f"SET temp_directory = '{folder}/spill'")
            facts.write_text(json.dumps(_make(database, left, right, truth, after, rows, keys, scenario, seed)))
    return Input(left, right, truth, after, rows, keys, scenario, **json.loads(facts.read_text()))


def _make(
    database: duckdb.DuckDBPyConnection,
    left: Path,
    right: Path,
    truth: Path,
    after: tuple[Path, Path] | None,
    rows: int,
    keys: str,
    scenario: str,
    seed: int,
) -> dict[str, Any]:
    key = ", ".join(KEYS[keys].names)
    fields = ", ".join(FIELDS)
    if not left.exists():
        _write(database, _records(rows, keys, seed), left)
    _views(database, left, rows, keys, scenario, seed)
    if after is None:
        _write(database, f"SELECT {key}, {fields} FROM changed ORDER BY i, place", right)
    else:
        _write(database, f"SELECT {key}, {fields} FROM original ORDER BY i", right)
        moved = f"* REPLACE (TIMESTAMP '{TOUCHED_FROM}' + to_microseconds((i * 977) % 1000000) AS updated_at)"
        for source, path in (("original", after[0]), ("changed", after[1])):
            touched = f"SELECT {moved} FROM {source} WHERE touched"
            _write(database, f"SELECT {key}, {fields} FROM ({touched}) ORDER BY i", path)
    _write(database, _truth(keys), truth)
    [[differences]] = database.execute(f"SELECT count(*) FROM '{truth}'").fetchall()
    return {"differences": differences}


def _bits(seed: int, part: str) -> str:
    return f"md5_number_lower(concat('{seed}/{part}/', i))"


def _records(rows: int, keys: str, seed: int) -> str:
    """The left side: m and n are random bits of a record, d hexadecimal digits."""
    columns = ", ".join(f"{sql} AS {name}" for name, sql in KEYS[keys].columns.items())
    values = ", ".join(f"({sql})::{_TYPES[name]} AS {name}" if name in _TYPES else f"{sql} AS {name}"
                       for name, sql in FIELDS.items())  # fmt: skip
    drawn = f"{_bits(seed, 'm')} AS m, {_bits(seed, 'n')} AS n, md5(concat('{seed}/', i)) AS d"
    return f"SELECT {columns}, {values} FROM (SELECT i, {drawn} FROM range({rows}) AS r(i))"


def _views(database: duckdb.DuckDBPyConnection, left: Path, rows: int, keys: str, scenario: str, seed: int) -> None:
    """`original`: the left side. `changed`: the right one; place is 1 for a record that only it has."""
    every = max(1, rows // 100)
    # One in each hundredth, anywhere in it: at equal distances all would fall to one tenant.
    place = f"md5_number_lower(concat('{seed}/place/', i // {every})) % {every}"
    hundred = f"i // {every} < 100 AND i % {every} = {place}"
    some = "CASE WHEN (b >> 8) % 10 < 2 THEN 'missing' WHEN (b >> 8) % 10 < 4 THEN 'extra' ELSE 'differ' END"
    first = rows // 2
    block = f"i >= {first} AND i < {first + min(BLOCK_ROWS, rows // 10)}"
    percent = "b % 100 = 0"
    kind, chosen = {
        "identical": ("NULL", "false"),
        "hundred": (some, hundred),
        "percent": (some, percent),
        "tenth": (some, "b % 10 = 0"),
        "block": ("'missing'", block),
        "touched": (f"CASE WHEN {hundred} THEN 'differ' END", f"{hundred} OR {percent}"),
    }[scenario]
    names = list(_OTHERS)
    database.execute(f"""
        CREATE TABLE chosen AS
        SELECT i, ({kind})::VARCHAR AS kind, {names}[(1 + (b >> 16) % {len(names)})::BIGINT] AS drawn
        FROM (SELECT i, {_bits(seed, "kind")} AS b FROM range({rows}) AS r(i)) WHERE {chosen}""")
    field = "CASE WHEN drawn = 'quantity' AND quantity IS NULL THEN 'customer' ELSE drawn END AS field"
    database.execute(f"""
        CREATE VIEW original AS
        SELECT records.* RENAME (file_row_number AS i), kind, {field}, chosen.i IS NOT NULL AS touched
        FROM read_parquet('{left}', file_row_number = true) AS records
        LEFT JOIN chosen ON chosen.i = file_row_number""")
    places = "CASE kind WHEN 'missing' THEN []::INTEGER[] WHEN 'extra' THEN [0, 1] ELSE [0] END"
    behind = ", ".join(f"CASE WHEN place = 1 THEN {sql} ELSE {name} END AS {name}"
                       for name, sql in KEYS[keys].extra.items())  # fmt: skip
    database.execute(f"""
        CREATE VIEW changed AS
        SELECT i, place, {behind}, {", ".join(map(_changed, FIELDS))}, kind, field, touched
        FROM (SELECT *, unnest({places}) AS place FROM original)""")


def _changed(name: str) -> str:
    if name not in _OTHERS:
        return name
    value = f"CASE WHEN kind = 'differ' AND field = '{name}' THEN {_OTHERS[name]} ELSE {name} END"
    return f"{value}::{_TYPES[name]} AS {name}" if name in _TYPES else f"{value} AS {name}"


def _truth(keys: str) -> str:
    key = " || '|' || ".join(f"{name}::VARCHAR" for name in KEYS[keys].names)
    both = ", ".join(
        f"CASE field {' '.join(f'WHEN {_quoted(name)} THEN {_text(sql, name)}' for name, sql in values)} END AS {side}"
        for side, values in (("left_value", [(name, name) for name in _OTHERS]), ("right_value", _OTHERS.items()))
    )
    return f"""
        SELECT {key} AS key, kind, CASE kind WHEN 'differ' THEN field ELSE '' END AS field,
               CASE kind WHEN 'differ' THEN left_value END AS left_value,
               CASE kind WHEN 'differ' THEN right_value END AS right_value
        FROM (SELECT *, {both} FROM original WHERE kind IS NOT NULL AND kind <> 'extra')
        UNION ALL
        SELECT {key}, 'extra', '', NULL, NULL FROM changed WHERE place = 1"""


def _quoted(name: str) -> str:
    return f"'{name}'"


def _text(sql: str, name: str) -> str:
    # A decimal is told without zeros at its end, as trueup does.
    text = f"({sql})::VARCHAR"
    return f"regexp_replace({text}, '\\.?0+$', '')" if name == "amount" else text


def _write(database: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
