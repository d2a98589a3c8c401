"""Runs over big tables: one that is killed, one that finds nothing changed, and a first one that learns everything.

    python bench/runs.py [--postgres] [--killed 5000000] [--changed 1000000] [--baseline 10000000]

See bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from _common import load, machine
from _servers import empty_store

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results" / "runs.json"
KILLED_AT: Final = 0.9
DIFFERENCES: Final = 10
YEAR_S: Final = 365 * 86_400
POLL_S: Final = 0.02
_COLUMNS: Final = "id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, status TEXT, updated_at TIMESTAMPTZ"
_VALUES: Final = "i, 'c' || (i * 7919 % 100000), i * 104729 % 100000, CASE i % 3 WHEN 0 THEN 'new' ELSE 'sent' END"


@dataclass(frozen=True)
class Tables:
    """Where two tables of the same records are, and the state store. rows: of each."""

    state: str
    authority: str
    replica: str
    rows: int
    folder: Path

    def state_bytes(self) -> int:
        """What the state store takes."""
        if self.state.startswith("sqlite"):
            path = self.folder / "state.db"
            return sum(each.stat().st_size for each in path.parent.glob("state.db*"))
        with psycopg.connect(self.state) as connection:
            [row] = connection.execute(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                " WHERE relkind = 'r' AND relname NOT IN ('authority', 'replica')"
                " AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
            ).fetchall()
        return int(row[0])


def main() -> None:
    """Measures what is asked for, prints a table, writes the figures."""
    options = _options()
    found: dict[str, Any] = {
        "what": "runs over big tables", "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine("trueup", "duckdb", "sqlalchemy"), "runs": [],
    }  # fmt: skip
    measures = (("killed", killed, options.killed), ("changed", changed, options.changed),
                ("baseline", baseline, options.baseline))  # fmt: skip
    for name, measured, rows in measures:
        if rows:
            before = load()
            with tables("postgres" if options.postgres else "sqlite", rows, options.folder) as made:
                told = {"name": name, "on": "PostgreSQL" if options.postgres else "SQLite", "rows": rows}
                told |= measured(made) | {"load_before": before}
            found["runs"].append(told)
            print(", ".join(f"{key} {_shown(value)}" for key, value in told.items()), flush=True)
    if options.output is not None:
        _add(options.output, found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--killed", type=int, default=5_000_000, help="rows a side; 0 leaves it out")
    parser.add_argument("--changed", type=int, default=1_000_000, help="rows a side; 0 leaves it out")
    parser.add_argument("--baseline", type=int, default=10_000_000, help="rows a side; 0 leaves it out")
    parser.add_argument("--postgres", action="store_true", help="state and sides in PostgreSQL instead of SQLite")
    parser.add_argument("--folder", type=Path, help="where files are made")
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args()


# Measures.


def killed(made: Tables) -> dict[str, Any]:
    """A run that dies when it has read nine tenths, and the next one, which may begin when its lease is over."""
    counter = made.folder / "counter"
    counter.unlink(missing_ok=True)
    began = time.monotonic()
    process = subprocess.Popen(_command("adopt", made), stdout=subprocess.DEVNULL)
    while process.poll() is None and _read(counter) < KILLED_AT * 2 * made.rows:
        time.sleep(POLL_S)
    process.send_signal(signal.SIGKILL)
    process.wait()
    died, first = time.monotonic(), _read(counter)
    second: dict[str, Any] | None = None
    while second is None:
        counter.unlink(missing_ok=True)
        started = time.monotonic()
        second = _run("adopt", made)
    again = first + second["rows_read"] - 2 * made.rows
    return {
        "read_before_it_died": first,
        "seconds_before_it_died": round(died - began, 1),
        "seconds_until_the_lease_was_over": round(started - died, 1),
        "read_after": second["rows_read"],
        "seconds_after": second["seconds"],
        "read_again": again,
        "share_read_again": round(again / (2 * made.rows), 4),
        "resumed": second["resumed"],
        "known": second["known"],
        "differences_found": second["counts"].get("drift_unknown", 0),
        "peak_mib": second["peak_mib"],
    }


def changed(made: Tables) -> dict[str, Any]:
    """Everything was compared once; then nothing changes, and what is new is asked for."""
    first, then = _run("adopt", made), _run("changed", made)
    assert first is not None
    assert then is not None
    return {
        "rows_read": then["rows_read"],
        "share_read": round(then["rows_read"] / (2 * made.rows), 6),
        "seconds": then["seconds"],
        "rows_of_the_full_one": first["rows_read"],
        "seconds_of_the_full_one": first["seconds"],
    }


def baseline(made: Tables) -> dict[str, Any]:
    """A first comparison that stores what agrees."""
    told = _run("adopt", made)
    assert told is not None
    size = made.state_bytes()
    return {
        "seconds": told["seconds"],
        "records_a_second": round(made.rows / told["seconds"]),
        "known": told["known"],
        "state_mib": size // 2**20,
        "bytes_a_record": round(size / told["known"], 1),
        "peak_mib": told["peak_mib"],
    }


def _run(what: str, made: Tables) -> dict[str, Any] | None:
    """What a run told; None where it could not begin because another one seems to be under way."""
    done = subprocess.run(_command(what, made), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        told: dict[str, Any] = json.loads(done.stdout)
        return told
    if "RunUnderWay" not in done.stderr:
        raise RuntimeError(done.stderr)
    return None


def _command(what: str, made: Tables) -> list[str]:
    program = str(HERE / "contestants" / "reconcile.py")
    return [sys.executable, program, what, made.state, made.authority, made.replica, str(made.folder / "counter")]


def _read(counter: Path) -> int:
    return int(counter.read_text() or 0) if counter.exists() else 0


# Tables.


@contextmanager
def tables(kind: str, rows: int, folder: Path | None) -> Iterator[Tables]:
    """Two tables with the same records, changed over the last year, but for ten that differ."""
    with tempfile.TemporaryDirectory(prefix="trueup-runs-", dir=folder) as name:
        path = Path(name)
        if kind == "sqlite":
            authority, replica = path / "authority.db", path / "replica.db"
            _fill_sqlite(authority, rows)
            shutil.copy(authority, replica)
            _rename_sqlite(replica, rows)
            yield Tables(f"sqlite:///{path}/state.db", f"sqlite:///{authority}", f"sqlite:///{replica}", rows, path)
            return
        with empty_store(kind) as url:
            _fill_postgres(url, rows)
            yield Tables(url, url, url, rows, path)


def _fill_sqlite(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(f"CREATE TABLE authority ({_COLUMNS})")
        at = f"{time.time() - YEAR_S} + i * ({YEAR_S}.0 / {rows})"
        database.execute(f"""
            INSERT INTO authority WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows})
            SELECT {_VALUES}, strftime('%Y-%m-%d %H:%M:%S', {at}, 'unixepoch') || '+00:00' FROM r""")
        database.execute("CREATE INDEX changed ON authority (updated_at)")
    database.close()


def _rename_sqlite(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE authority RENAME TO replica")
        database.execute(f"UPDATE replica SET cents = cents + 1 WHERE id % {rows // DIFFERENCES} = 1")
    database.close()


def _fill_postgres(url: str, rows: int) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        for table in ("authority", "replica"):
            database.execute(f"CREATE TABLE {table} ({_COLUMNS})".encode())
            database.execute(
                f"""
                INSERT INTO {table} SELECT {_VALUES}, now() - interval '{YEAR_S} s' + i * interval '{YEAR_S / rows} s'
                FROM generate_series(1, {rows}::bigint) AS r(i)""".encode()
            )
            database.execute(f"CREATE INDEX {table}_changed ON {table} (updated_at)".encode())
        database.execute(f"UPDATE replica SET cents = cents + 1 WHERE id % {rows // DIFFERENCES} = 1".encode())
        database.execute(b"VACUUM ANALYZE")


# Telling.


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _add(path: Path, found: dict[str, Any]) -> None:
    """Figures of other measures, sizes and databases stay."""
    if path.exists():
        known = [(each["name"], each["on"], each["rows"]) for each in found["runs"]]
        before = json.loads(path.read_text())["runs"]
        found["runs"] = [each for each in before if (each["name"], each["on"], each["rows"]) not in known] + found[
            "runs"
        ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
