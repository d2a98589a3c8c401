"""The engines that hold the drawn tables: real servers, files, memory. One file says all about one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from trueup.testing.pairs.engines.csv import CSV, Csv
from trueup.testing.pairs.engines.duckdb import DUCKDB, DuckDB
from trueup.testing.pairs.engines.engine import Engine
from trueup.testing.pairs.engines.json_lines import JSON_LINES, JsonLines
from trueup.testing.pairs.engines.mariadb import MARIADB, MariaDB
from trueup.testing.pairs.engines.memory import MEMORY, InMemory
from trueup.testing.pairs.engines.parquet import PARQUET, Parquet
from trueup.testing.pairs.engines.postgresql import POSTGRESQL, PostgreSQL
from trueup.testing.pairs.engines.sqlite import SQLITE, SQLite
from trueup.testing.pairs.types import Type

TYPES: Final[dict[str, tuple[Type, ...]]] = {
    "postgresql": POSTGRESQL, "mariadb": MARIADB, "sqlite": SQLITE, "duckdb": DUCKDB, "csv": CSV,
    "json lines": JSON_LINES, "parquet": PARQUET, "memory": MEMORY,
}  # fmt: skip


def types_of(engine: str, family: str) -> tuple[Type, ...]:
    """How an engine may hold values of a kind."""
    return tuple(each for each in TYPES[engine] if each.family == family)


@contextmanager
def opened(folder: Path, postgresql: str, mariadb: str) -> Iterator[dict[str, Engine]]:
    """All engines. folder: for files. postgresql, mariadb: URLs of empty databases."""
    with ExitStack() as stack:
        engines: dict[str, Engine] = {
            "postgresql": stack.enter_context(closing(PostgreSQL(postgresql))),
            "mariadb": stack.enter_context(closing(MariaDB(mariadb))),
            "memory": InMemory(),
        }
        in_files: dict[str, Callable[[Path], Engine]] = {
            "sqlite": SQLite,
            "duckdb": DuckDB,
            "csv": Csv,
            "json lines": JsonLines,
            "parquet": Parquet,
        }
        for name, form in in_files.items():
            (folder / name).mkdir()
            engines[name] = form(folder / name)
        yield engines
