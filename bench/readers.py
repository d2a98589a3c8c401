"""Ways to read a table, for exactness first and then for speed.

    python bench/readers.py [--rows 1000000] [--runs 1] [--only NAME …] [--engines postgres mariadb sqlite]

Each reader runs in a process of its own. See bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import psycopg
import pymysql  # type: ignore[import-untyped, unused-ignore]
import sqlalchemy as sa

from _common import environment, load, machine, measure, median, releases
from _nasty import ENGINES, Nasty
from _servers import services
from trueup.model.canonical import canonical_text
from trueup.model.kinds import Kind
from trueup.model.times import date_text, interval_text, time_text, timestamp_text

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results"
SECONDS_MAX: Final = 600
# What a comparison by hashes reads, and what one by records reads.
SHAPES: Final[Mapping[str, Sequence[str]]] = {
    "key and hash": ("id", "h"),
    "records": ("id", "customer", "status", "amount", "quantity", "reference", "created_at"),
}
_UTC: Final = ZoneInfo("UTC")
# What is not read by a reader, rather than read wrongly.
_ELSEWHERE: Final = ("not offered", "?left")
_EMPTY: Final = {"rows": 0, "total": 0, "seconds": 0}


@dataclass(frozen=True)
class Reader:
    """A way to read. script, name: in contestants/. engines: those that it can read."""

    name: str
    script: str
    engines: Sequence[str]
    python: str


@dataclass(frozen=True)
class Place:
    """A database of its own. url: for SQLAlchemy and trueup; readers take it as theirs."""

    engine: str
    url: str
    execute: Callable[[str], Any]


def main() -> None:
    """Runs all readers, prints two tables for each engine, writes the figures."""
    options = _options()
    readers = [each for each in _readers() if not options.only or each.name in options.only]
    results: dict[str, Any] = {
        "benchmark": "readers", "day": f"{datetime.now(UTC):%Y-%m-%d}", "rows": options.rows,
        "machine": machine("trueup", "psycopg", "PyMySQL", "pyarrow"), "peers": _releases(readers), "engines": {},
    }  # fmt: skip
    for engine in options.engines:
        mine = [each for each in readers if engine in each.engines]
        with _place(engine) as place:
            values = _exactness(place, mine)
            speed = _speed(place, mine, options)
        results["engines"][engine] = {"values": values, "speed": speed}
        _print(engine, results["engines"][engine], options.rows)
    if not options.only:
        path = RESULTS / "readers.json"
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            kept = json.loads(path.read_text())["engines"]
            results["engines"] = {**kept, **results["engines"]}
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        print(f"\nWritten to bench/results/{path.name}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="records of the table that is read for speed")
    parser.add_argument("--runs", type=int, default=1, help="runs of each reader, in rotating order; medians are told")
    parser.add_argument("--engines", nargs="*", choices=[*ENGINES], default=[*ENGINES])
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these readers; nothing is written")
    return parser.parse_args()


def _readers() -> list[Reader]:
    own = sys.executable
    found = [
        Reader("trueup, lines", "trueup", ("postgres", "mariadb", "sqlite"), own),
        Reader("trueup, packed", "trueup", ("postgres", "mariadb"), own),
        Reader("copy binary", "drivers", ("postgres",), own),
        Reader("copy unpacked", "drivers", ("postgres",), own),
        Reader("psycopg", "drivers", ("postgres",), own),
        Reader("PyMySQL", "drivers", ("mariadb",), own),
        Reader("sqlite3", "drivers", ("sqlite",), own),
    ]
    if (
        python := environment("adbc-driver-manager", "adbc-driver-postgresql", "adbc-driver-sqlite", "pyarrow")
    ) is not None:
        found.append(Reader("ADBC PostgreSQL", "arrow", ("postgres",), python))
        found.append(Reader("ADBC SQLite", "arrow", ("sqlite",), python))
    if (python := environment("connectorx", "pyarrow")) is not None:
        found.append(Reader("connectorx", "arrow", ("postgres", "mariadb", "sqlite"), python))
    return found


def _releases(readers: Sequence[Reader]) -> dict[str, str]:
    pythons = {each.python for each in readers if each.script == "arrow"}
    named = ("adbc-driver-postgresql", "adbc-driver-sqlite", "connectorx", "pyarrow")
    return {name: version for python in pythons for name, version in releases(python, *named).items()}


def _command(reader: Reader, role: str) -> list[str]:
    return [reader.python, str(HERE / "contestants" / f"readers_{reader.script}.py"), reader.name, role]


# Places.


@contextmanager
def _place(engine: str) -> Iterator[Place]:
    name = f"bench_{uuid.uuid4().hex[:12]}"
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=services().home().parent) as folder:
            path = Path(folder) / "readers.db"
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                yield Place(engine, f"sqlite:///{path}", connection.execute)
        return
    server = sa.make_url(str(services().lease(engine)))
    at = server.set(database=name).render_as_string(hide_password=False)
    if engine == "postgres":
        with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}".encode())
            try:
                with psycopg.connect(at, autocommit=True) as connection:
                    yield Place(engine, at, lambda sql: connection.execute(sql.encode()))
            finally:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        return
    login: dict[str, Any] = {"host": server.host, "port": server.port, "user": server.username}
    with pymysql.connect(**login, password=server.password or "", autocommit=True) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {name}")
        # Zero dates can't be written otherwise.
        cursor.execute("SET SESSION sql_mode = '', time_zone = '+00:00'")
        try:
            yield Place(engine, at, cursor.execute)
        finally:
            cursor.execute(f"DROP DATABASE {name}")


# Exactness.


def _exactness(place: Place, readers: Sequence[Reader]) -> dict[str, dict[str, dict[str, str]]]:
    """By reader and type: what became of each value that is not right, by its canonical text."""
    types = ENGINES[place.engine]
    tables: dict[str, list[int]] = {}
    for at, each in enumerate(types):
        table = f"t{at}"
        place.execute(f"CREATE TABLE {table} (id bigint NOT NULL PRIMARY KEY, v {each.declared})")
        for number, (literal, _) in enumerate(each.values, 1):
            place.execute(f"INSERT INTO {table} VALUES ({number}, {literal})")
        tables[table] = list(range(1, len(each.values) + 1))
    found = {}
    for reader in readers:
        told = _ask(reader, "values", {"url": place.url, "tables": tables})
        found[reader.name] = {each.name: _judged(each, told.get(f"t{at}")) for at, each in enumerate(types)}
    return found


def _ask(reader: Reader, role: str, question: dict[str, Any]) -> dict[str, Any]:
    ran = subprocess.run(
        _command(reader, role),
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    if ran.returncode:
        print(f"{reader.name}: {(ran.stderr.strip().splitlines() or ['failed'])[-1][:300]}", file=sys.stderr)
        return {}
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _judged(nasty: Nasty, told: Mapping[str, Any] | None) -> dict[str, str]:
    """What is not right, by the truth."""
    if told is None:
        return {"all": "the process died"}
    if not told:
        return {"all": "not offered"}
    found: dict[str, str] = {}
    for number, (_, truth) in enumerate(nasty.values, 1):
        cell = told.get(str(number), "is lost")
        said = cell if isinstance(cell, str) else _text(cell, nasty.kind)
        if said != truth:
            found[_short(truth)] = _short(said) if not isinstance(cell, str) else f"fails: {cell}"
    return found


def _short(text: str | None) -> str:
    return "null" if text is None else text if len(text) <= 60 else f"{text[:28]}…{text[-28:]}"


def _text(cell: Sequence[str] | None, kind: Kind) -> str | None:
    """The canonical text of what a reader gave."""
    if cell is None:
        return None
    what, text = cell
    match what:
        case "canonical":
            return text
        case "integer":
            return canonical_text(int(text), kind, _UTC)
        case "float":
            return canonical_text(float.fromhex(text), kind, _UTC)
        case "bytes":
            return canonical_text(bytes.fromhex(text), kind, _UTC)
        case "datetime":
            return canonical_text(datetime.fromisoformat(text), kind, _UTC)
        case "timestamp":
            return timestamp_text(int(text.rstrip("Z")), kind.aware)
        case "days":
            return date_text(int(text))
        case "us":
            return time_text(int(text)) if kind.name == "time" else interval_text(0, int(text))
        case "interval":
            months, us = map(int, text.split())
            return interval_text(months, us)
        case "list":
            items = [None if each is None else _text(each, kind.element) for each in json.loads(text)]
            return json.dumps(items, separators=(",", ":"), ensure_ascii=False)
    return canonical_text(text, kind, _UTC)


# Speed.


def _speed(place: Place, readers: Sequence[Reader], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """By shape and reader: medians."""
    _fill(place, options.rows)
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {shape: {} for shape in SHAPES}
    for at in range(options.runs):
        for shape, columns in SHAPES.items():
            for reader in readers[at % len(readers) :] + readers[: at % len(readers)]:  # type: ignore[operator]
                ran = _timed(reader, place, columns, options.rows)
                if ran is not None:
                    runs[shape].setdefault(reader.name, []).append(ran)
    return {
        shape: {
            name: {figure: median([run[figure] for run in several]) for figure in several[0] if figure != "answer"}
            | {"answer": "; ".join(sorted({run["answer"] for run in several}))}
            for name, several in by_name.items()
        }
        for shape, by_name in runs.items()
    }


def _timed(reader: Reader, place: Place, columns: Sequence[str], rows: int) -> dict[str, Any] | None:
    question = json.dumps({"url": place.url, "table": "records", "columns": columns})
    with tempfile.TemporaryDirectory() as folder:
        asked, output, log = (Path(folder) / name for name in ("question", "output", "log"))
        asked.write_text(question)
        # A shell hands over the question; it becomes the reader.
        command = ["sh", "-c", 'exec "$@" < "$0"', str(asked), *_command(reader, "speed")]
        before = load()
        with output.open("wb") as to, log.open("wb") as complaints:
            ran = measure(command, seconds_max=SECONDS_MAX, output=to, log=complaints)
        if ran.code:
            last = (log.read_text(errors="replace").strip().splitlines() or ["failed"])[-1]
            if "NotOffered" in last:
                return None
            print(f"{reader.name}: {last[:300]}", file=sys.stderr)
        told = json.loads(output.read_text() or "null") or _EMPTY if ran.code == 0 else _EMPTY
    right = (told["rows"], told["total"]) == (rows, rows * (rows + 1) // 2)
    return {
        "rows_a_second": round(told["rows"] / told["seconds"]) if told["seconds"] else 0,
        "seconds": round(ran.seconds, 2), "cpu_seconds": round(ran.cpu_seconds, 2),
        "peak_mib": round(ran.peak_bytes / 2**20),
        "load_before": before, "answer": "right" if right else "wrong or failed",
    }  # fmt: skip


def _fill(place: Place, rows: int) -> None:
    """A table of about 100 bytes a record, of which every reader is exact."""
    timestamp = {"postgres": "timestamp", "mariadb": "datetime(6)", "sqlite": "text"}[place.engine]
    place.execute(
        "CREATE TABLE records (id bigint NOT NULL PRIMARY KEY, h bigint NOT NULL, customer int NOT NULL, "
        "status varchar(20) NOT NULL, amount decimal(12,2) NOT NULL, quantity int, reference varchar(36) NOT NULL, "
        f"created_at {timestamp} NOT NULL)"
    )
    status = "CASE n % 3 WHEN 0 THEN 'open' WHEN 1 THEN 'shipped' ELSE 'returned' END"
    rest = f"n % 99991, {status}, (n % 100000) / 100.0, CASE n % 7 WHEN 0 THEN NULL ELSE n % 11 END"
    if place.engine == "postgres":
        numbers, text = f"generate_series(1, {rows}) AS n", "md5(n::text)"
        when, hashed = "timestamp '2024-01-01' + n * interval '1.000001 s'", "hashint8extended(n, 0)"
    elif place.engine == "mariadb":
        numbers, text = f"(SELECT seq AS n FROM seq_1_to_{rows}) AS numbers", "md5(n)"
        when, hashed = (
            "TIMESTAMP('2024-01-01') + INTERVAL n * 1000001 MICROSECOND",
            "CAST(CONV(LEFT(MD5(n), 15), 16, 10) AS SIGNED)",
        )
    else:
        numbers = f"(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {rows}) SELECT n FROM r)"
        text, when, hashed = "hex(randomblob(16))", "datetime('2024-01-01', n || ' seconds')", "random()"
    place.execute(f"INSERT INTO records SELECT n, {hashed}, {rest}, {text}, {when} FROM {numbers}")
    if place.engine == "postgres":
        place.execute("VACUUM ANALYZE records")


# Telling.


def _print(engine: str, results: dict[str, Any], rows: int) -> None:
    print(f"\n{engine}: values that are not right, of {sum(len(each.values) for each in ENGINES[engine])}")
    for name, types in results["values"].items():
        wrong = {
            kind: {truth: said for truth, said in each.items() if said not in _ELSEWHERE}
            for kind, each in types.items()
        }
        left = [kind for kind, each in types.items() if "not offered" in each.values()]
        some = sum(said == "?left" for each in types.values() for said in each.values())
        print(
            f"  {name}: {sum(map(len, wrong.values())) or 'none'}"
            + (f"; left to lines: {some}" if some else "")
            + (f"; not offered: {', '.join(left) if len(left) < len(types) else 'all'}" if left else "")
        )
        for kind, each in wrong.items():
            shown = "; ".join(f"{truth} → {said}" for truth, said in list(each.items())[:4])
            more = f" and {len(each) - 4} more" if len(each) > 4 else ""
            if each:
                print(f"      {kind}: {shown}{more}")
    for shape, readers in results["speed"].items():
        print(
            f"\n{engine}: {rows:,} rows of {shape}\n{'':18} {'rows/s':>10} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}"
        )
        for name, each in readers.items():
            print(
                f"{name:18} {each['rows_a_second']:10,.0f} {each['seconds']:7.2f} {each['cpu_seconds']:7.2f} "
                f"{each['peak_mib']:9.0f}  {each['answer']}"
            )


if __name__ == "__main__":
    main()
