"""The SQL side: one table or view of SQLite, DuckDB, PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa

from trueup.environment import expand
from trueup.errors import ConfigError, SideError
from trueup.model.digest import CANONICAL, HashSum
from trueup.model.inputs import Inputs
from trueup.model.kinds import Kind, kind_named
from trueup.model.record import Found, Projection
from trueup.model.window import Span
from trueup.ports import EVERYTHING, Capabilities, Description, Examined, Repair, Scope, Scripted, Write, Written
from trueup.sides.sql import examine as examining
from trueup.sides.sql import find as finding
from trueup.sides.sql import ranges, windows
from trueup.sides.sql import read as reading
from trueup.sides.sql import write as writing
from trueup.sides.sql.dialects import Dialect
from trueup.sides.sql.inspect import Declared, Inspected, inspect
from trueup.sides.sql.limits import CONNECTIONS, Limits
from trueup.sides.sql.scan import Ahead, Running, Scan
from trueup.sides.sql.trouble import in_our_words, unrepeated

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.sides.sql.snapshot import SqlSnapshot

_Batches: TypeAlias = Generator["pa.RecordBatch", None, None]
# Begins to read, on a connection of its own; counts oddities into the last.
_Start: TypeAlias = Callable[[sa.Connection, reading.Selection, dict[str, int]], _Batches]
_SCHEMES = ("postgresql", "postgres", "mysql", "mariadb", "sqlite", "duckdb")
_FILES = ("sqlite", "duckdb")


class Sql:
    """A table or view as a side: readable, writable, markable.

    url: `postgresql://…`, `mysql://…`, `mariadb://…`, `sqlite:///path` or `duckdb:///path`; `${NAME}` in it is a
    variable of the environment. table: `name` or `schema.name`, in exact case; on DuckDB also a query in
    parentheses. key: defaults to the primary key. version: a column of integers or timestamps that grows with
    every change. where: a condition in SQL that every record of this side meets. columns: kinds by column
    where they differ from the engine's (`{"payload": "json"}`). zone: of wall-clock timestamps, which become
    instants. zero_date: MySQL's 0000-00-00 and the like become null and are counted in `warnings`, or
    (`strict`) stay oddities that equal nothing but themselves. connections: statements of one comparison at a
    time, where several can see one instant (PostgreSQL). timeout_s: after so many seconds the server ends a
    statement. throttle: the share of the time in which a connection may work for a scan or a comparison, such as
    0.25; the remainder it rests.

    A scan is one statement and so sees one instant. Safe to share between threads. Raises ConfigError for a
    declaration that can't be meant, Unreachable, and SchemaError where table or columns are not there.
    """

    def __init__(
        self,
        url: str,
        table: str,
        key: str | Sequence[str] = (),
        version: str | None = None,
        where: str | None = None,
        columns: Mapping[str, str | Kind] | None = None,
        zone: str | None = None,
        zero_date: Literal["null", "strict"] = "null",
        connections: int = CONNECTIONS,
        timeout_s: float | None = None,
        throttle: float | None = None,
    ) -> None:
        self._url = _parsed(expand(url, "the database URL"))
        self._dialect = _dialect(self._url)
        self._where = where
        if zero_date not in ("null", "strict"):
            raise ConfigError(f"zero_date can't be {zero_date!r}.", hint="It is null or strict.")
        self._zero_null = zero_date == "null"
        self._limits = Limits(connections, timeout_s, throttle)
        kinds = {name: kind_named(kind) for name, kind in (columns or {}).items()}
        key = (key,) if isinstance(key, str) else tuple(key)
        self._declared = Declared(table, table, key, version, kinds, _zone(zone))
        self._lock = threading.RLock()
        self._engine: sa.Engine | None = None
        self._inspected: Inspected | None = None
        # Counts of what the latest scan read in a lenient way, such as {"zero dates read as null": 3}.
        self.warnings: dict[str, int] = {}

    @property
    def label(self) -> str:
        """The table's name as declared."""
        return self._declared.label

    @property
    def key(self) -> tuple[str, ...]:
        """The declared key; empty where the primary key is to serve."""
        return self._declared.key

    @property
    def version(self) -> str | None:
        """The declared version column."""
        return self._declared.version

    @property
    def place(self) -> str:
        """Host or file, for messages; never a password."""
        return self._url.host or self._url.database or "localhost"

    @property
    def capabilities(self) -> Capabilities:
        """What the table's indexes allow."""
        inspected = self._inspect()
        return Capabilities(
            engine=inspected.description.system.split()[0].lower(),
            reads_by_key=inspected.key_index,
            version_index=inspected.version_index,
            snapshot=True,
        )

    def describe(self) -> Description:
        """The table as it was when first asked."""
        return self._inspect().description

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> _Batches:
        """Every record in scope, streamed."""
        return self._streamed(lambda connection, of, told: reading.scan(connection, of, scope, told), projection)

    def digests(self, projection: Projection, since: int) -> Ahead | None:
        """In one statement, where the engine can say for these columns what Python would say."""
        from trueup.sides.sql import digesting  # noqa: PLC0415  only a comparison needs it

        of, hasher = self._selection(projection), self._dialect.hasher()
        with self._connection() as connection:
            found = digesting.digest(connection, of, hasher)
        if found is None:
            return None

        def start(connection: sa.Connection, of: reading.Selection, _: dict[str, int]) -> _Batches:
            return digesting.digests(connection, of, hasher, found, since)

        return Ahead(self._streamed(start, projection))

    def hashes(self, projection: Projection, since: int, rows_max: int) -> dict[str, Callable[[], Ahead]]:
        """In one statement, by what the engine does fastest."""
        from trueup.sides.sql import digesting  # noqa: PLC0415  only a comparison needs it

        of, hasher = self._selection(projection), self._dialect.hasher()
        with self._connection() as connection:
            names = digesting.functions(connection, of, hasher)

        def begin(name: str) -> Ahead:
            def start(connection: sa.Connection, of: reading.Selection, _: dict[str, int]) -> _Batches:
                return digesting.hashes(connection, of, hasher, name, since, rows_max)

            return Ahead(self._streamed(start, projection))

        return {name: partial(begin, name) for name in names}

    def _streamed(self, start: _Start, projection: Projection) -> Scan:
        running = Running(self.label, lambda connection: self._dialect.hasher().cancel(connection))
        return Scan(self._batches(start, projection, running), running)

    def _batches(self, start: _Start, projection: Projection, running: Running) -> _Batches:
        of = self._selection(projection)
        warnings: dict[str, int] = {}
        started = False
        with self._connection() as connection, running.on(connection):
            batches = start(connection, of, warnings)
            try:
                while True:
                    with (
                        self._limits.working(running.rest),
                        in_our_words(self._dialect, self.label, self.place, scanning=started),
                    ):
                        batch = next(batches, None)
                    running.going()
                    if batch is None:
                        break
                    started = True
                    yield batch
            finally:
                batches.close()
        self.warnings = warnings

    def snapshot(self, projection: Projection) -> SqlSnapshot:
        """The table as it is now, to be hashed where it is. The caller closes it."""
        from trueup.sides.sql.snapshot import SqlSnapshot  # noqa: PLC0415  only a comparison needs it

        of = self._selection(projection)
        return SqlSnapshot(self._connected().connect, self._dialect.hasher(), of, self.place, self._limits)

    def cut(self, projection: Projection, pieces: int) -> list[str]:
        """Where to divide the table, by walking the index of its key."""
        of = self._selection(projection)
        with self._connection() as connection:
            return ranges.cut(connection, of, pieces)

    def window_kind(self, column: str) -> Kind:
        """The kind of a column of dates or times."""
        return windows.kind_of(self._inspect(), column)

    def window_sum(self, projection: Projection, span: Span) -> HashSum | None:
        """In one statement, where the engine can say for these columns what Python would say."""
        from trueup.sides.sql.snapshot import SqlSnapshot  # noqa: PLC0415

        of = windows.narrowed(self._selection(projection), span)
        if of is None:
            return None
        limits = replace(self._limits, connections=1)
        connect, hasher = self._connected().connect, self._dialect.hasher()
        with closing(SqlSnapshot(connect, hasher, of, self.place, limits)) as snapshot:
            return snapshot.total(CANONICAL) if CANONICAL in snapshot.functions else None

    def oldest_running_us(self) -> int | None:
        """When the oldest transaction began that still runs in this database and that we may see; else now."""
        sql = self._dialect.oldest_running
        if sql is None:
            return None
        with self._connection() as connection:
            found = connection.exec_driver_sql(sql).scalar()
        return None if found is None else int(found)

    def newest_version(self, projection: Projection) -> int | None:
        """By the index of the version, where there is one. Only for versions that are integers."""
        of = self._selection(projection)
        assert projection.version is not None
        column = self._dialect.quoted(projection.version.source)
        with self._connection() as connection:
            found = connection.exec_driver_sql(f"SELECT max({column}) {of.from_where()}").scalar()
        return None if found is None else int(found)

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """The records with these key texts."""
        of = self._selection(projection)
        with self._connection() as connection:
            return finding.read(connection, of, keys)

    def selects(self, projection: Projection, keys: Sequence[str], condition: str) -> set[str]:
        """Which of these records the SQL condition selects now."""
        of = self._selection(projection)
        with self._connection() as connection:
            return set(finding.find(connection, of, keys, condition=condition))

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Applies the writes in order, each under its precondition, in bulk."""
        return writing.apply(self._connected(), self._selection(projection), writes, self.place)

    def script(self, projection: Projection, repairs: Iterable[Repair]) -> Iterator[Scripted]:
        """One statement for each repair; the rows are read again, a few hundred at a time."""
        from trueup.sides.sql.scripting import scripted  # noqa: PLC0415  only who asks for it needs it

        of, scribe = self._selection(projection), self._dialect.scribe()
        waiting = iter(repairs)
        while some := list(islice(waiting, finding.KEYS_MAX)):
            with self._connection() as connection:
                rows = finding.find(connection, of, [each.key for each in some])
            yield from scripted(of, scribe, some, rows)

    def script_frame(self) -> tuple[Sequence[str], Sequence[str]]:
        """Session settings and the begin of a transaction; its end."""
        from trueup.sides.sql.scripting import CLOSING  # noqa: PLC0415

        return self._dialect.scribe().opening, CLOSING

    def mark(self, projection: Projection, key: str, version: int | None, assignments: str) -> tuple[bool, int | None]:
        """Runs `UPDATE … SET assignments` on the record if it still has this version."""
        return writing.mark(self._connected(), self._selection(projection), key, version, assignments, self.place)

    def now_us(self) -> int:
        """The server's clock."""
        with self._connection() as connection:
            return int(connection.exec_driver_sql(self._dialect.verbatim(self._dialect.clock)).scalar() or 0)

    def declared(self) -> dict[str, str]:
        """Place, table, condition and zone; never who logs in."""
        known = self._declared
        told = {
            "system": self._url.get_backend_name(), "place": self.place, "database": self._url.database or "",
            "table": known.table, "where": self._where or "", "zone": "" if known.zone is None else known.zone.key,
            "columns": ", ".join(f"{name} {kind}" for name, kind in sorted(known.kinds.items())),
        }  # fmt: skip
        return {name: text for name, text in told.items() if text}

    def inputs(self) -> Inputs:
        """The server's clock, and on PostgreSQL which transactions are visible."""
        snapshot = self._dialect.visible
        with self._connection() as connection:
            seen = None if snapshot is None else str(connection.exec_driver_sql(snapshot).scalar())
        return Inputs(clock_us=self.now_us(), snapshot=seen)

    def table_names(self) -> list[str]:
        """The tables and views that the database shows when no schema is named."""
        with self._connection() as connection:
            return sorted(self._dialect.names(connection, None))

    def examine(self) -> Examined:
        """Whether key and version are indexed."""
        return examining.examine(self._dialect, self._inspect())

    def refused_write(self) -> SideError | None:
        """Why records could not be written, or None where they could; changes nothing."""
        return examining.refused_write(self._dialect, self._connected(), self._inspect(), self.place)

    def close(self) -> None:
        """Gives back all connections."""
        with self._lock:
            engine, self._engine, self._inspected = self._engine, None, None
        if engine is not None:
            engine.dispose()

    def _connected(self) -> sa.Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._limited(self._dialect.engine(self._url))
            return self._engine

    def _limited(self, engine: sa.Engine) -> sa.Engine:
        if (timeout_ms := self._limits.timeout_ms) is not None:
            sa.event.listen(engine, "connect", lambda driver, record: self._dialect.limit(driver, timeout_ms))
        return engine

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        words = in_our_words(self._dialect, self.label, self.place)
        with unrepeated(), words, self._connected().connect() as connection:
            yield connection

    def _inspect(self) -> Inspected:
        with self._lock:
            if self._inspected is None:
                with self._connection() as connection:
                    self._inspected = inspect(self._dialect, connection, self._declared)
            return self._inspected

    def _selection(self, projection: Projection) -> reading.Selection:
        of = reading.Selection(self._dialect, self._inspect(), projection, self._where, self._zero_null)
        of.check()
        return of


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError("the database URL can't be read.", hint="For example postgresql://user@host/db.") from None
    if parsed.get_backend_name() not in _SCHEMES:
        hint = f"Known ones begin with {', '.join(_SCHEMES)}."
        raise ConfigError(f"{parsed.drivername!r} is no database that trueup knows.", hint=hint)
    # A path is a path: a percent sign in it may be just that.
    path = url.partition(":///")[2].partition("?")[0]
    return parsed.set(database=path) if parsed.get_backend_name() in _FILES and Path(path).exists() else parsed


def _dialect(url: sa.URL) -> Dialect:
    """Loads only the engine that is needed: each brings a driver."""
    match url.get_backend_name():
        case "sqlite":
            from trueup.sides.sql.dialects.sqlite import SQLite  # noqa: PLC0415

            return SQLite()
        case "duckdb":
            from trueup.sides.sql.dialects.duckdb import DuckDB  # noqa: PLC0415

            return DuckDB()
        case "mysql" | "mariadb":
            from trueup.sides.sql.dialects.mysql import MySQL  # noqa: PLC0415

            return MySQL()
    from trueup.sides.sql.dialects.postgresql import PostgreSQL  # noqa: PLC0415

    return PostgreSQL()


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"{name!r} is not a time zone.", hint="For example Europe/Berlin or UTC.") from None
