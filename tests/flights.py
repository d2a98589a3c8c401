"""The flights of the demo in six systems, and a copy of each with 300 known differences."""

from __future__ import annotations

import datetime as dt
import json
import random
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from trueup.demo.flights import KEY, data_file
from trueup.model.record import key_text

Record = dict[str, Any]
TEXTS = ("carrier", "tailnum", "origin", "dest")
TIME = "time_hour"
TABLES = ("flights", "flights_injected")
TIMES = {"postgresql": "timestamptz", "mariadb": "datetime", "sqlite": "timestamp"}


def flights() -> pa.Table:
    """All flights: text, integers of 64 bits, and the hour as an instant; `NA` is null."""
    with zipfile.ZipFile(data_file()) as archive, archive.open("flights.csv") as packed:
        names = packed.readline().decode().rstrip("\n").replace('"', "").split(",")
        types = {name: pa.string() if name in (*TEXTS, TIME) else pa.int64() for name in names}
        read = pyarrow.csv.read_csv(
            packed,
            pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types, null_values=["NA"], strings_can_be_null=True
            ),
        )
    assert set(pc.unique(pc.utf8_slice_codeunits(read[TIME], -1)).to_pylist()) == {"Z"}
    times = pc.utf8_rtrim(read[TIME], "Z").cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return read.set_column(names.index(TIME), TIME, times).combine_chunks()


# What is injected.


@dataclass
class Injected:
    """What was done to a copy. found: kind of difference and fields that differ by key text."""

    found: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)

    def add(self, kind: str, record: Record, *fields: str) -> None:
        """Notes one difference; a key gets only one."""
        key = key_text([f"{record[TIME]:%Y-%m-%dT%H:%M:%SZ}", record["carrier"], str(record["flight"])])
        assert key not in self.found
        self.found[key] = (kind, frozenset(fields))

    def counts(self) -> Counter[str]:
        """How many there are of each kind."""
        return Counter(kind for kind, _ in self.found.values())


def inject(table: pa.Table, seed: int) -> tuple[pa.Table, Injected]:
    """A copy with 300 differences: 60 missing, 60 extra, 136 differ in every column, 44 keys twice."""
    return _Injector(table, random.Random(seed)).injected()


class _Injector:
    def __init__(self, table: pa.Table, chance: random.Random) -> None:
        self._table, self._chance = table, chance
        self._fields = [name for name in table.column_names if name not in KEY]
        self._places = iter(chance.sample(range(table.num_rows), 5_000))
        self._gone: list[int] = []
        self._new: list[Record] = []
        self._done = Injected()

    def injected(self) -> tuple[pa.Table, Injected]:
        self._missing(60)
        self._extra(15)
        for name in self._fields:
            self._differ(name)
        self._twice(22)
        kept = pc.invert(pc.is_in(pa.array(range(self._table.num_rows)), value_set=pa.array(self._gone)))
        new = pa.Table.from_pylist(self._new, self._table.schema)
        first = new.num_rows // 2
        parts = [new.slice(0, first), self._table.filter(kept), new.slice(first)]
        return pa.concat_tables(parts).combine_chunks(), self._done

    def _take(self, column: str | None = None) -> tuple[int, Record]:
        """A record that nothing was done to, with a value in this column."""
        for place in self._places:
            record = self._table.slice(place, 1).to_pylist()[0]
            if column is None or record[column] is not None:
                return place, record
        raise AssertionError("there are no more records")

    def _missing(self, number: int) -> None:
        for _ in range(number):
            place, record = self._take()
            self._gone.append(place)
            self._done.add("missing", record)

    def _extra(self, number: int) -> None:
        """Records that differ from one that is there in one part of the key, or in the case of its letters."""
        parts: list[Callable[[Record], Record]] = [
            lambda old: {"flight": old["flight"] + 90_000},
            lambda old: {TIME: old[TIME] + dt.timedelta(days=3650)},
            lambda old: {"carrier": old["carrier"].lower()},
            lambda old: {"carrier": "é\N{GREEK SMALL LETTER ALPHA}", "flight": old["flight"] + 70_000},
        ]
        for part in parts:
            for _ in range(number):
                _, record = self._take()
                self._new.append({**record, **part(record)})
                self._done.add("extra", self._new[-1])

    def _differ(self, name: str) -> None:
        for how in range(5):
            place, record = self._take(name)
            self._change(place, record, name, _other(record[name], how))
        for _ in range(2):
            self._change(*self._take(name), name, None)
        empty = pc.indices_nonzero(self._table[name].is_null()).to_pylist()
        for place in self._chance.sample(empty, 4) if empty else ():
            self._change(place, self._table.slice(place, 1).to_pylist()[0], name, "N0" if name in TEXTS else 0)

    def _change(self, place: int, record: Record, name: str, value: object) -> None:
        self._gone.append(place)
        self._new.append({**record, name: value})
        self._done.add("differ", record, name)

    def _twice(self, number: int) -> None:
        """Some copies are equal, some are not."""
        for _ in range(number):
            _, record = self._take()
            self._new.append(record)
            self._done.add("duplicate", record)
        for _ in range(number):
            _, record = self._take()
            self._new.append({**record, "distance": record["distance"] + 1})
            self._done.add("duplicate", record)


def _other(value: Any, how: int) -> Any:
    """Another value, near enough that a careless comparison takes it for the same."""
    if isinstance(value, str):
        return (value + "X", value.lower(), value + " ", "", value[:-1] + "É")[how]
    return (value + 1, value - 1, -value - 1, value * 10 + 1, 2**31 - 1)[how]


# How each system holds them.


def write_csv(table: pa.Table, path: Path) -> None:
    """One header, `NA` for null, instants as 2013-01-01T10:00:00Z."""
    texts = [_instants(column) if name == TIME else column.cast(pa.string()) for name, column in _columns(table)]
    plain = pa.table([column.fill_null("NA") for column in texts], names=table.column_names)
    pyarrow.csv.write_csv(plain, path, pyarrow.csv.WriteOptions(quoting_style="none"))


def write_json_lines(table: pa.Table, path: Path) -> None:
    """Numbers as numbers, instants as text, null as null or left out."""
    names = table.column_names
    with path.open("w", encoding="utf-8") as file:
        for at, row in enumerate(_rows(table, _instants)):
            pairs = zip(names, row, strict=True)
            record = dict(pairs) if at % 2 else {name: value for name, value in pairs if value is not None}
            file.write(json.dumps(record) + "\n")


def write_parquet(table: pa.Table, path: Path) -> None:
    """Typed."""
    pq.write_table(table, path)


def write_sqlite(tables: Mapping[str, pa.Table], path: Path) -> None:
    """A wall clock in UTC without saying so, as text."""
    with closing(sqlite3.connect(path)) as database:
        for name, table in tables.items():
            database.execute(create_table(name, table.column_names, "sqlite"))
            marks = ", ".join("?" * table.num_columns)
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", _rows(table, _wall_clock))
        database.commit()


def load_postgresql(url: str, folder: Path) -> None:
    """From the CSV files, by COPY."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for name in TABLES:
            path = folder / f"{name}.csv"
            cursor.execute(create_table(name, header(path), "postgresql"))
            with (
                path.open("rb") as file,
                cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv, HEADER, NULL 'NA')") as copy,
            ):
                while block := file.read(1 << 20):
                    copy.write(block)


def load_mariadb(url: str, folder: Path) -> None:
    """From the CSV files, by LOAD DATA."""
    import pymysql
    from sqlalchemy.engine import make_url

    to = make_url(url)
    with (
        pymysql.connect(
            host=to.host, port=to.port or 3306, user=to.username, password=to.password or "",
            database=to.database or "", charset="utf8mb4", local_infile=True, autocommit=True,
        ) as connection,
        connection.cursor() as cursor,
    ):  # fmt: skip
        for name in TABLES:
            path = folder / f"{name}.csv"
            names = header(path)
            cursor.execute(create_table(name, names, "mariadb"))
            given = ", ".join(f"@{each}" for each in names)
            taken = ", ".join(f"{each} = NULLIF(@{each}, 'NA')" for each in names if each != TIME)
            wall_clock = f"{TIME} = REPLACE(REPLACE(@{TIME}, 'T', ' '), 'Z', '')"
            cursor.execute(
                f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {name} CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' "
                f"IGNORE 1 LINES ({given}) SET {taken}, {wall_clock}"
            )


def create_table(name: str, columns: Sequence[str], engine: str) -> str:
    """A table of this engine. A copy has no key, since keys are to be there twice."""
    text = "text" if engine == "postgresql" else "varchar(20)"
    types = {each: text if each in TEXTS else "integer" for each in columns} | {TIME: TIMES[engine]}
    key = f", PRIMARY KEY ({', '.join(KEY)})" if name == TABLES[0] else ""
    return f"CREATE TABLE {name} ({', '.join(f'{each} {type_}' for each, type_ in types.items())}{key})"


def header(path: Path) -> list[str]:
    """The column names of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip("\n").replace('"', "").split(",")


def _columns(table: pa.Table) -> Iterable[tuple[str, Any]]:
    return zip(table.column_names, table.columns, strict=True)


def _rows(table: pa.Table, spell: Callable[[Any], Any]) -> Iterator[tuple[Any, ...]]:
    spelled = table.set_column(table.column_names.index(TIME), TIME, spell(table[TIME]))
    for batch in spelled.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _instants(times: Any) -> Any:
    return pc.strftime(times.cast(pa.timestamp("s", "UTC")), "%Y-%m-%dT%H:%M:%SZ")


def _wall_clock(times: Any) -> Any:
    return pc.strftime(times.cast(pa.timestamp("s", "UTC")), "%Y-%m-%d %H:%M:%S")
