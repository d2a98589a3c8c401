"""SQLite, by Python's sqlite3.

A declared type is a wish: any column may hold any value, and dates are text in whatever spelling a program
chose. So values are read as they are, the canonical rules judge them, and a key is looked up in every usual
spelling before the unusual ones are searched for.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import ConfigError, SideError
from trueup.model import kinds
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import Kind, kind_named
from trueup.model.record import version_of
from trueup.model.times import US_PER_DAY, timestamp_text
from trueup.sides.sql.dialects import Dialect, Index, Raw, Reading, Stored, Table, Trouble, integer_value
from trueup.sides.sql.dialects.sqlite_keys import INT64, beyond, is_utf8, usual, within_days
from trueup.sides.sql.spelling import as_stored, sql_timestamp

if TYPE_CHECKING:
    from trueup.sides.sql.hashing import Hasher
    from trueup.sides.sql.scripting import Scribe

_BATCH_ROWS = 8_000
# So few are fetched at once that Python's collector of garbage does not walk through them again and again.
_FETCHED_ROWS = 2_000
_BUSY_SECONDS_MAX = 30.0
_ROW_BYTES_MIN = 6
# Between two looks at the clock, where a statement's time is limited.
_STEPS = 10_000
# The first that is part of the declared type names the kind; SQLite itself looks at INT, CHAR, CLOB, TEXT, BLOB.
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("BOOL", kinds.BOOLEAN), ("INTERVAL", kinds.INTERVAL), ("FLOA", kinds.FLOAT), ("POINT", kinds.TEXT),
    ("INT", kinds.INTEGER),
    ("YEAR", kinds.INTEGER), ("SERIAL", kinds.INTEGER), ("UUID", kinds.UUID), ("JSON", kinds.JSON),
    ("TIMESTAMPTZ", kinds.INSTANT), ("WITH TIME ZONE", kinds.INSTANT), ("INSTANT", kinds.INSTANT),
    ("TIMESTAMP", kinds.TIMESTAMP), ("DATETIME", kinds.TIMESTAMP), ("DATE", kinds.DATE), ("TIME", kinds.TIME),
    ("CHAR", kinds.TEXT), ("CLOB", kinds.TEXT), ("TEXT", kinds.TEXT), ("STRING", kinds.TEXT), ("ENUM", kinds.ENUM),
    ("BLOB", kinds.BYTES), ("BINARY", kinds.BYTES), ("BYTEA", kinds.BYTES), ("REAL", kinds.FLOAT),
    ("DOUB", kinds.FLOAT), ("NUMERIC", kinds.DECIMAL), ("DEC", kinds.DECIMAL),
    ("MONEY", kinds.DECIMAL), ("NUMBER", kinds.DECIMAL),
)  # fmt: skip
_STRICT = {"INT": kinds.INTEGER, "INTEGER": kinds.INTEGER, "TEXT": kinds.TEXT, "BLOB": kinds.BYTES, "REAL": kinds.FLOAT}
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


class SQLite(Dialect):
    """SQLite."""

    name = "sqlite"
    mark = "?"
    lock = ""
    clock: ClassVar[str] = (
        "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000"
        " + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000"
    )

    def engine(self, url: sa.URL) -> sa.Engine:
        """A pool of connections to a file that must be there: opening one must not create it."""
        if not url.database or url.database == ":memory:":
            raise ConfigError("A SQLite side needs a file.", hint="For example sqlite:///orders.db.")
        path = Path(url.database)
        if not path.is_file():
            raise SideError(f"{path}: no such file.", hint="A SQLite database is read where it is, never created.")
        address = f"file:{quote(str(path.absolute()))}?mode=rw"

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                address, uri=True, timeout=_BUSY_SECONDS_MAX, check_same_thread=False, isolation_level=None
            )
            connection.text_factory = _text
            connection.create_function("trueup_version", 3, _version, deterministic=True)
            connection.create_function("trueup_utf8", 1, is_utf8, deterministic=True)
            connection.execute("PRAGMA foreign_keys = ON")
            return connection

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool, hide_parameters=True)
        sa.event.listen(engine, "begin", _begin)
        return engine

    def limit(self, driver: Any, timeout_ms: int) -> None:
        """By a look at the clock every some thousand steps of its machine."""
        ends = time.monotonic()

        def begun(statement: str) -> None:
            nonlocal ends
            ends = time.monotonic() + timeout_ms / 1000

        driver.set_trace_callback(begun)
        driver.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)

    def trouble(self, error: BaseException) -> tuple[Trouble, str]:
        """By the message: sqlite3 has no finer classes before Python 3.11's error names."""
        text = str(error)
        if isinstance(error, sqlite3.IntegrityError):
            return "constraint", text  # names the constraint or the columns, never values
        if "locked" in text or "busy" in text:
            return "busy", "another program holds the database"
        if text == "interrupted":
            return "timeout", "it took too long"
        if "readonly" in text:
            return "permission", "the file can't be written"
        if "unable to open" in text or "not a database" in text or "malformed" in text:
            return "unreachable", text
        if "no such" in text or "syntax error" in text or "unrecognized token" in text or "ambiguous" in text:
            return "schema", text
        if isinstance(error, sqlite3.DataError | OverflowError):
            return "value", "it does not fit"
        return "other", getattr(error, "sqlite_errorname", type(error).__name__)

    def system(self, connection: sa.Connection) -> str:
        """The library's version."""
        return f"SQLite {sqlite3.sqlite_version}"

    def table(self, connection: sa.Connection, schema: str | None, name: str) -> Table | None:
        """From the schema table and its pragmas."""
        at = self.quoted(schema or "main")
        if schema is not None and schema not in self._schemas(connection):
            return None
        found = connection.exec_driver_sql(
            f"SELECT type, sql FROM {at}.sqlite_master WHERE name = ? AND type IN ('table', 'view')", (name,)
        ).first()
        if found is None:
            return None
        quoted = self.quoted(name)
        listed = [row for row in connection.exec_driver_sql(f"PRAGMA {at}.table_xinfo({quoted})") if row[6] != 1]
        strict, rowless = (_has_option(found[1] or "", each) for each in (r"STRICT", r"WITHOUT\s+ROWID"))
        listed_indexes = connection.exec_driver_sql(f"PRAGMA {at}.index_list({quoted})").all()
        keyed = sorted((row for row in listed if row[5]), key=lambda row: int(row[5]))
        # The key is the number of the row itself where it needs no index of its own.
        own = len(keyed) == 1 and keyed[0][2].upper() == "INTEGER" and all(index[3] != "pk" for index in listed_indexes)
        alias = keyed[0][1] if own else None
        columns = tuple(
            _stored(row, strict=strict, is_rowid=row[1] == alias, keyed=bool(row[5]) and (own or strict or rowless))
            for row in listed
        )
        indexes = []
        for index in listed_indexes:
            parts = connection.exec_driver_sql(f"PRAGMA {at}.index_info({self.quoted(index[1])})").all()
            if not index[4] and all(part[2] is not None for part in parts):
                indexes.append(Index(tuple(part[2] for part in parts), bool(index[2])))
        key = tuple(row[1] for row in keyed)
        if alias is not None:
            indexes.append(Index(key, unique=True))
        rows = None
        if found[0] == "table" and not rowless:
            with contextlib.suppress(sa.exc.DBAPIError):  # a virtual table may have no numbers of rows
                rows = self._rows(connection, at, quoted, [row[1] for row in listed])
        return Table(schema, name, columns, key, tuple(indexes), rows)

    @staticmethod
    def _rows(connection: sa.Connection, at: str, quoted: str, columns: Sequence[str]) -> int | None:
        """At most so many: the highest number of a row, unless the file is too small for that."""
        taken = {name.lower() for name in columns}
        number = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
        if number is None:
            return None
        highest = connection.exec_driver_sql(f"SELECT max({number}) FROM {at}.{quoted}").scalar() or 0
        pages = connection.exec_driver_sql(f"PRAGMA {at}.page_count").scalar() or 0
        size = connection.exec_driver_sql(f"PRAGMA {at}.page_size").scalar() or 0
        return max(0, min(int(highest), int(pages) * int(size) // _ROW_BYTES_MIN))

    def _schemas(self, connection: sa.Connection) -> list[str]:
        return [row[1] for row in connection.exec_driver_sql("PRAGMA database_list")]

    def reading(self, column: Stored, kind: Kind) -> Reading:
        """As it is."""
        return Reading(self.quoted(column.name), "any", column.kind)

    def version(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str | None:
        """Integers as they are; times by a function of ours, since their spelling is free."""
        name = self.quoted(column.name)
        if kind.name == "integer":
            return f"CASE WHEN typeof({name}) = 'integer' THEN {name} END"
        spelled = str(kind).replace("'", "''")
        return f"trueup_version({name}, '{spelled}', '{zone.key if zone else ''}')"

    def versioned(self, column: Stored, kind: Kind) -> bool:
        """What is declared counts, since the type of a column does not."""
        return kind.name in ("integer", "date", "timestamp")

    def ordered(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str:
        """Spellings do not sort by time."""
        return self.quoted(column.name) if kind.name == "integer" else self.version(column, kind, zone) or "NULL"

    def since(self, column: Stored, kind: Kind, zone: ZoneInfo | None, version: int) -> tuple[str, list[Any]]:
        """Exact for integers. For times a coarse bound that an index serves, then the exact one."""
        exact = self.version(column, kind, zone) or "NULL"
        name = self.quoted(column.name)
        if kind.name == "integer":
            return f"{name} >= ? AND {exact} IS NOT NULL", [version]
        # Any zone is within a day; texts that begin with a blank or a sign sort before digits.
        day = timestamp_text(max(version - 2 * US_PER_DAY, _FIRST_US), aware=False)[:10]
        return f"({name} >= ? OR {name} < '/~') AND {exact} >= ?", [day, version]

    def until(self, column: Stored, kind: Kind, zone: ZoneInfo | None, time_us: int) -> tuple[str, list[Any]]:
        """As `since`: a coarse bound that an index serves, then the exact one."""
        day = timestamp_text(min(time_us + 2 * US_PER_DAY, _LAST_US), aware=False)[:10]
        return f"{self.quoted(column.name)} < ? AND {self.version(column, kind, zone) or 'NULL'} < ?", [day, time_us]

    def scan(
        self, connection: sa.Connection, columns: Sequence[tuple[Stored | None, Reading]], rest: str, values: list[Any]
    ) -> Iterator[Sequence[Raw]]:
        """Batches of rows, each column in the one type that its values have."""
        selected = ", ".join(reading.sql for _, reading in columns)
        driver: Any = connection.connection.driver_connection
        # Its bytes, which Arrow decodes for all rows at once: a call of ours for each text costs more than reading it.
        factory, driver.text_factory = driver.text_factory, bytearray
        try:
            with contextlib.closing(driver.cursor()) as cursor:
                cursor.execute(f"SELECT {selected} {rest}", values)
                fetches = iter(lambda: cursor.fetchmany(_FETCHED_ROWS), [])
                parts = ([_raw(each) for each in zip(*rows, strict=True)] for rows in fetches)
                while some := list(islice(parts, _BATCH_ROWS // _FETCHED_ROWS)):
                    yield [_joined(each) for each in zip(*some, strict=True)]
        finally:
            driver.text_factory = factory

    def candidates(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
        """The usual spellings, each in the types that a program may have chosen."""
        return usual(text, kind, zone)

    def loose(self, column: Stored, kind: Kind) -> bool:
        """Always: any column may hold any spelling."""
        return not column.native

    def loosely(
        self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None
    ) -> Sequence[tuple[str, tuple[Any, ...]]]:
        """Where in an index the unusual spellings are: numbers, then text, then blobs."""
        if kind.name in ("date", "timestamp"):
            return within_days(self.quoted(column.name), text)
        return [(condition, ()) for condition in beyond(self.quoted(column.name), kind)]

    def unusual(self, column: Stored, kind: Kind) -> str | None:
        """As `loosely`, whatever the text; and texts that are no UTF-8, which nothing that is bound equals."""
        name = self.quoted(column.name)
        conditions = list(beyond(name, kind)) if self.loose(column, kind) else []
        if kind.name in ("text", "enum"):
            conditions.append(f"NOT trueup_utf8(CAST({name} AS BLOB))")
        return "true" if "" in conditions else " OR ".join(conditions) or None

    def rebind(self, value: Any, reading: Reading) -> Any:
        """Values come as they are."""
        return value

    def exactly(self, column: Stored) -> tuple[str, int]:
        """Past a collation such as NOCASE."""
        name = self.quoted(column.name)
        return f"{name} = ? AND {name} = ? COLLATE BINARY", 2

    def hasher(self) -> Hasher:
        """Loaded when it is needed."""
        from trueup.sides.sql.hashing import sqlite  # noqa: PLC0415

        return sqlite.SQLite()

    def scribe(self) -> Scribe:
        """Loaded when it is needed."""
        from trueup.sides.sql.scripting import sqlite  # noqa: PLC0415

        return sqlite.SQLite(self)

    def value(self, column: Stored, text: str | None, kind: Kind, zone: ZoneInfo | None) -> Any:
        """In the type that the column's declared type suggests; text where that would lose digits."""
        if text is None:
            return None
        stored = as_stored(text, kind, column.kind, zone)
        if is_odd(stored, column.kind):
            return stored[1:]
        match column.kind.name:
            case "boolean":
                return int(stored == "true")
            case "integer":
                whole = integer_value(stored)
                return whole if whole is not None and whole in INT64 else stored
            case "float":
                return float(stored) if stored != "nan" else stored  # SQLite turns a bound nan into null
            case "bytes":
                return bytes.fromhex(stored)
            case "timestamp":
                # A column that is plain text keeps the canonical form, which names its zone.
                if column.base == "TEXT" or stored.endswith("infinity"):
                    return stored
                return sql_timestamp(stored) + ("+00:00" if column.kind.aware else "")
        return stored

    def begin(self, engine: sa.Engine) -> sa.Connection:
        """The database is locked for writers before anything is read."""
        return engine.connect().execution_options(trueup_immediate=True)

    def duplicate(self, error: BaseException | None) -> bool:
        """Nobody can have inserted since: the database is locked. What raises is another constraint."""
        return False

    def quoted(self, name: str) -> str:
        """In double quotes; this driver formats with question marks."""
        return '"' + name.replace('"', '""') + '"'

    def verbatim(self, sql: str) -> str:
        """As it is."""
        return sql + "\n"


def _begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("trueup_immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _text(raw: bytes | bytearray) -> str:
    # Not every program writes UTF-8; what is none stays visible and distinct instead of ending the scan.
    return raw.decode("utf-8", "backslashreplace")


@lru_cache(maxsize=1 << 16, typed=True)  # asked three times of a row, and of the same rows by every sweep
def _version(value: object, kind: str, zone: str) -> int | None:
    chosen = kind_named(kind)
    if isinstance(value, str) and chosen.name == "timestamp":
        return version_of(value.strip(), chosen, _zone(zone))
    return version_of(canonical_text(value, chosen, _zone(zone)), chosen)


def _zone(name: str) -> ZoneInfo | None:
    return ZoneInfo(name) if name else None


def _has_option(sql: str, option: str) -> bool:
    """Whether a table was created with an option, which stands behind its columns."""
    return re.search(rf"\)[^)]*\b{option}\b[^)]*\Z", sql, re.IGNORECASE) is not None


def _stored(row: Any, *, strict: bool, is_rowid: bool, keyed: bool) -> Stored:
    _, name, declared, required, _, _, hidden = row
    spelled = declared.upper()
    base = re.split(r"[\s(]", spelled.strip())[0]
    kind = next((kind for part, kind in _KINDS if part in spelled), kinds.TEXT)
    native = is_rowid or (strict and base in _STRICT)
    return Stored(name, declared, base, kind, native, nullable=not (required or keyed), generated=hidden in (2, 3))


def _raw(values: Sequence[Any]) -> Raw:
    """A column as Arrow where all its values have one type, else as Python's values."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        return pa.nulls(len(values))
    if types == {bytearray}:
        with contextlib.suppress(pa.ArrowInvalid):
            return pa.array(values, pa.binary()).cast(pa.string())
    elif len(types) == 1:
        return pa.array(
            values, {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}[types.pop()]
        )
    return [_text(each) if type(each) is bytearray else each for each in values]


def _joined(parts: Sequence[Raw]) -> Raw:
    arrays = [part for part in parts if isinstance(part, pa.Array)]
    types = {part.type for part in arrays} - {pa.null()}
    if len(arrays) == len(parts) and len(types) <= 1:
        wanted = types.pop() if types else pa.string()
        return pa.concat_arrays([part.cast(wanted) for part in arrays])
    return [each for part in parts for each in (part.to_pylist() if isinstance(part, pa.Array) else part)]
