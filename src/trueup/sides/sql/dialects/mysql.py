"""MySQL and MariaDB, by PyMySQL.

PyMySQL is written in Python, so what a scan costs is the number of values it sees. Where the engine bounds the
size of a row, the server packs each row into one line that Arrow parses; else values come one by one, as text.
Dates and times are always text: Python has no zero dates and no time of 838 hours.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import ConfigError, IncompleteScan
from trueup.model import kinds
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import Kind
from trueup.sides.sql.dialects import Dialect, Index, Raw, Reading, Stored, Table, Trouble, integer_value
from trueup.sides.sql.lines import BYTES_MAX, ROWS_MAX, arrays_from_lines, arrow_shape, batches_of_lines
from trueup.sides.sql.spelling import TEXTUAL, as_stored, signed_year, spellings, sql_timestamp

if TYPE_CHECKING:
    from trueup.sides.sql.hashing import Hasher
    from trueup.sides.sql.scripting import Scribe

# Modes in which char(n) is padded, a backslash in a text is itself, or an empty text and null are confused.
_MODES = "PAD_CHAR_TO_FULL_LENGTH|NO_BACKSLASH_ESCAPES|EMPTY_STRING_IS_NULL|ORACLE"
# A snapshot is idle while the other side is read, and may be so for longer than a server allows.
_IDLE = "wait_timeout = 86400 /*M!100300 , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0 */"
# Strict, or a value that does not fit would be cut; a locked row is the newest, and an absent one leaves no gap lock.
_SESSION = (
    "SET SESSION time_zone = '+00:00'",
    f"SET SESSION sql_mode = CONCAT_WS(',', REGEXP_REPLACE(@@sql_mode, '{_MODES}', ''), 'STRICT_ALL_TABLES')",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    f"SET SESSION {_IDLE}",
)
_LINE_BYTES_MAX = 256 << 10
# Dates without a month or a day, which are no values and may be keys.
_ZERO = re.compile(r"!\d{4}-(?:00-\d\d|\d\d-00)")
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), kinds.INTEGER),
    "float": Kind("float", bits=32), "double": kinds.FLOAT,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), kinds.BYTES),
    "uuid": kinds.UUID, "date": kinds.DATE, "time": kinds.TIME, "datetime": kinds.TIMESTAMP,
    "timestamp": kinds.INSTANT, "json": kinds.JSON, "enum": kinds.ENUM,
}  # fmt: skip
_SPATIAL = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
            "geometrycollection", "geomcollection")  # fmt: skip
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
CHARS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_LONGEST = {"date": 10, "time": 18, "datetime": 26, "timestamp": 26, "uuid": 36, "inet4": 15, "inet6": 45}
_COLUMNS = """
SELECT column_name, column_type, data_type, is_nullable, extra, numeric_precision, numeric_scale,
       character_octet_length, generation_expression, collation_name
FROM information_schema.columns WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s
ORDER BY ordinal_position
"""
_TABLE = """
SELECT table_name, table_rows FROM information_schema.tables
WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s
"""
_INDEXES = """
SELECT index_name, non_unique, column_name, sub_part FROM information_schema.statistics
WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s ORDER BY index_name, seq_in_index
"""
# MariaDB's JSON is longtext with this check.
_JSON_CHECKS = """
SELECT check_clause FROM information_schema.check_constraints
WHERE constraint_schema = COALESCE(%s, DATABASE()) AND table_name = %s AND check_clause LIKE 'json\\_valid(%%'
"""
_UNREACHABLE = frozenset((1040, 1053, 1203, 2002, 2003, 2005, 2006, 2013, 2055, 1927, 3032))
_LOGIN = frozenset((1045, 1049, 1130, 1698, 1862))
_PERMISSION = frozenset((1044, 1142, 1143, 1227, 1370, 1290, 1036))
_SCHEMA = frozenset((1054, 1064, 1109, 1146, 1176, 1305, 1267, 1288, 1583, 1630))
_CONSTRAINT = frozenset((1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 3819, 4025))
_RETRY = frozenset((1213,))
_BUSY = frozenset((1205, 3572))
_TIMEOUT = frozenset((1317, 1969, 3024))
DUPLICATE = 1062


class MySQL(Dialect):
    """MySQL or MariaDB."""

    name = "mysql"
    zero_dates: ClassVar[frozenset[str]] = frozenset(("date", "datetime", "timestamp"))
    clock: ClassVar[str] = "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"

    def engine(self, url: sa.URL) -> sa.Engine:
        """A pool of PyMySQL connections that decode nothing but text."""
        try:
            conversions = import_module("pymysql.converters").conversions  # an extra
        except ImportError as missing:
            hint = "Install it with: pip install 'trueup[mysql]'"
            raise ConfigError("MySQL and MariaDB need the driver PyMySQL.", hint=hint) from missing
        encoders = {kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)}
        engine = sa.create_engine(
            url.set(drivername="mysql+pymysql"),
            connect_args={"charset": "utf8mb4", "conv": encoders}, pool_pre_ping=True, hide_parameters=True,
        )  # fmt: skip
        sa.event.listen(engine, "connect", _prepare)
        return engine

    def limit(self, driver: Any, timeout_ms: int) -> None:
        """By the session's setting; MySQL's is for queries alone, and has another name and unit than MariaDB's."""
        mariadb = "mariadb" in str(driver.get_server_info()).lower()
        setting = f"max_statement_time = {timeout_ms / 1000}" if mariadb else f"max_execution_time = {timeout_ms}"
        with driver.cursor() as cursor:
            cursor.execute(f"SET SESSION {setting}")
        driver.commit()

    def trouble(self, error: BaseException) -> tuple[Trouble, str]:
        """By error number."""
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        words = str(error.args[1]) if len(error.args) > 1 else ""
        named: tuple[tuple[frozenset[int], Trouble, str], ...] = (
            (_UNREACHABLE, "unreachable", "no connection"),
            (_LOGIN, "login", "the database does not exist" if number == 1049 else "the login was refused"),
            (_PERMISSION, "permission", words),
            (_SCHEMA, "schema", words),
            (_RETRY, "retry", "another session wants the same rows"),
            (_BUSY, "busy", "another session holds the rows"),
            (_TIMEOUT, "timeout", words),
            (_CONSTRAINT, "constraint", f"error {number}"),
        )
        for numbers, trouble, said in named:
            if number in numbers:
                return trouble, said
        if type(error).__name__ == "DataError" or number in (1265, 1292, 1366, 1411):
            return "value", f"error {number}"
        return ("other", f"error {number}") if number else ("unreachable", "no connection")

    def system(self, connection: sa.Connection) -> str:
        """The server's version."""
        version = str(connection.exec_driver_sql("SELECT VERSION()").scalar())
        return f"{'MariaDB' if 'mariadb' in version.lower() else 'MySQL'} {version.partition('-')[0]}"

    def table(self, connection: sa.Connection, schema: str | None, name: str) -> Table | None:
        """From information_schema."""
        where = (schema, name)
        if (found := connection.exec_driver_sql(_TABLE, where).first()) is None:
            return None
        is_json = self._json_columns(connection, where)
        columns = tuple(_stored(row, is_json) for row in connection.exec_driver_sql(_COLUMNS, where))
        parts: dict[str, list[Any]] = {}
        for row in connection.exec_driver_sql(_INDEXES, where):
            parts.setdefault(row[0], []).append(row)
        indexes = {
            index: Index(tuple(row[2] for row in rows), rows[0][1] == "0")
            for index, rows in parts.items()
            if all(row[2] is not None and row[3] is None for row in rows)
        }
        key = indexes["PRIMARY"].columns if "PRIMARY" in indexes else ()
        rows = None if found[1] is None else int(found[1])
        return Table(schema, found[0], columns, key, tuple(indexes.values()), rows)

    @staticmethod
    def _json_columns(connection: sa.Connection, where: tuple[str | None, str]) -> frozenset[str]:
        with contextlib.suppress(sa.exc.DBAPIError):  # MySQL has json proper, and lists no table there
            clauses = connection.exec_driver_sql(_JSON_CHECKS, where).scalars()
            return frozenset(clause[len("json_valid(`") : -2].replace("``", "`") for clause in clauses)
        return frozenset()

    def reading(self, column: Stored, kind: Kind) -> Reading:
        """Numbers as they are; everything else as text."""
        name = self.quoted(column.name)
        match column.base:
            case "bit" | "year":
                return Reading(f"{name} + 0", "integer" if column.native else "text", column.kind)
            case "float":
                return Reading(f"{name} + 0e0", "float32", column.kind)  # a float shows only six digits of itself
            case "double":
                return Reading(name, "float", column.kind)
            case "decimal":
                return Reading(name, "decimal" if column.native else "text", column.kind)
            case base if column.kind.name == "integer":
                padded = "zerofill" in column.declared
                return Reading(f"{name} + 0" if padded else name, "integer" if column.native else "text", column.kind)
            case base if base in _BYTES:
                return Reading(f"HEX({name})", "hex", column.kind)
            case base if base in _SPATIAL:
                return Reading(f"ST_AsText({name})", "text", column.kind)
        return Reading(f"CONVERT({name} USING utf8mb4)", "text", column.kind)

    def version(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str | None:
        """Integers that fit; times by their distance from the epoch, which is null for a zero date."""
        name = self.quoted(column.name)
        if column.kind.name == "integer":
            return f"CASE WHEN {name} + 0 <= 9223372036854775807 THEN CAST({name} + 0 AS SIGNED) END"
        if column.kind.name in ("date", "timestamp") and (kind.aware == column.kind.aware):
            return f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {name})"
        return None

    def scan(
        self, connection: sa.Connection, columns: Sequence[tuple[Stored | None, Reading]], rest: str, values: list[Any]
    ) -> Iterator[Sequence[Raw]]:
        """One line a row where the engine bounds its size, else one value at a time."""
        readings = [reading for _, reading in columns]
        packed = sum(line_bytes_max(column) for column, _ in columns) <= _LINE_BYTES_MAX
        selected = f"CONCAT_WS(',', {', '.join(map(_packed, readings))})" if packed else ", ".join(
            reading.sql for reading in readings
        )  # fmt: skip
        driver: Any = connection.connection.driver_connection
        cursor = driver.cursor(import_module("pymysql.cursors").SSCursor)
        done = False
        try:
            cursor.execute(f"SELECT {selected} {rest}", tuple(values))
            if packed:
                for block in batches_of_lines(_lines(cursor)):
                    yield arrays_from_lines(block, readings)
            else:
                yield from _values(cursor, readings)
            done = True
        finally:
            if not done:
                _abandon(connection)
                with contextlib.suppress(Exception):  # the server's word that the query was killed
                    cursor.close()
            cursor.close()

    def candidates(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
        """Values in the column's own type: a string against a number would be compared as a float."""
        if column.kind.name in TEXTUAL:
            spelled = (text,) if kind.name in TEXTUAL else spellings(text, kind, zone)
            return [each for each in spelled if not any("\ud800" <= letter <= "\udfff" for letter in each)]
        stored = as_stored(text, kind, column.kind, zone)
        if is_odd(stored, column.kind):
            return [stored[1:]] if _ZERO.match(stored) and column.kind.name in ("date", "timestamp") else []
        if column.kind.name in ("date", "timestamp"):
            parts = signed_year(stored)
            return [sql_timestamp(stored)] if parts is not None and 0 <= parts[0] <= 9999 else []
        value = _bound(column, stored)
        return [] if value is None else [value]

    def key(self, column: Stored) -> str:
        """A float is compared as the double that it is exactly."""
        name = self.quoted(column.name)
        return f"({name} + 0e0)" if column.base == "float" else name

    def key_mark(self, column: Stored) -> str:
        """In the column's own character set: lists of rows are not converted to it, and other texts are refused."""
        charset = column.collation.partition("_")[0]
        return f"CONVERT(%s USING {charset})" if charset not in ("", "binary", "utf8mb4") else "%s"

    def canonically(self, column: Stored, kind: Kind) -> str | None:
        """By a pattern, whose end a line break may follow."""
        short = column.bytes_max is not None and column.bytes_max < kinds.UUID_LENGTH
        if kind.name != "uuid" or column.base not in CHARS or short:
            return None
        name = self.quoted(column.name)
        text = f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin"
        return f"CHAR_LENGTH({name}) = {kinds.UUID_LENGTH} AND {text} REGEXP '{kinds.UUID_TEXT}'"

    def zero_date(self, column: Stored) -> str | None:
        """By its parts; no comparison tells all of them."""
        name = self.quoted(column.name)
        return f"MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0" if column.base in self.zero_dates else None

    def hasher(self) -> Hasher:
        """Loaded when it is needed."""
        from trueup.sides.sql.hashing import mysql  # noqa: PLC0415

        return mysql.MySQL()

    def scribe(self) -> Scribe:
        """Loaded when it is needed."""
        from trueup.sides.sql.scripting import mysql  # noqa: PLC0415

        return mysql.MySQL(self)

    def value(self, column: Stored, text: str | None, kind: Kind, zone: ZoneInfo | None) -> Any:
        """A value in the column's own type; what none can hold goes in as text and is refused by the server."""
        if text is None:
            return None
        stored = as_stored(text, kind, column.kind, zone)
        if is_odd(stored, column.kind):
            return stored[1:]
        if column.kind.name == "timestamp":
            return sql_timestamp(stored)
        bound = _bound(column, stored)
        return stored if bound is None else bound

    def exactly(self, column: Stored) -> tuple[str, int]:
        """Byte for byte: collations take case, accents and trailing blanks for equal."""
        name = self.key(column)
        if column.kind.name not in TEXTUAL:
            return f"{name} = %s", 1
        return f"{name} = %s AND CAST(CONVERT({name} USING utf8mb4) AS BINARY) = CAST(%s AS BINARY)", 2

    def duplicate(self, error: BaseException | None) -> bool:
        """By number; INSERT IGNORE would also pass over values that were cut."""
        return error is not None and error.args[:1] == (DUPLICATE,)

    def quoted(self, name: str) -> str:
        """In backticks."""
        return "`" + name.replace("`", "``").replace("%", "%%") + "`"


def _prepare(connection: Any, record: Any) -> None:
    with connection.cursor() as cursor:
        for statement in _SESSION:
            cursor.execute(statement)
    connection.commit()


def _stored(row: Any, is_json: frozenset[str]) -> Stored:
    name, declared, base, nullable, extra, precision, scale, octets, expression, collation = row
    kind = _KINDS.get(base, kinds.TEXT)
    native = kind.name in ("integer", "float", "bytes", *TEXTUAL)
    longest = _LONGEST.get(base) or (int(octets) if octets is not None else None)
    if base == "decimal":
        kind = Kind("decimal", precision=int(precision), scale=int(scale))
        native, longest = int(precision) <= 38, int(precision) + 3
    elif kind.name == "integer":
        native = not ("unsigned" in declared and base == "bigint") and not (base == "bit" and int(precision) > 63)
    elif name in is_json and base == "longtext":
        kind, native = kinds.JSON, False
    if kind.name in ("integer", "float"):
        longest = 25
    return Stored(
        name, declared, base, kind, native, nullable=nullable == "YES",
        generated=bool(expression) or "GENERATED" in extra.replace("DEFAULT_GENERATED", ""),
        unzoned=base == "timestamp", bytes_max=longest, collation=collation or "",
    )  # fmt: skip


def line_bytes_max(column: Stored | None) -> int:
    """How long a value may be in a line, at most; None for a whole number that is computed."""
    if column is None:
        return 21
    return _LINE_BYTES_MAX + 1 if column.bytes_max is None else 2 * column.bytes_max + 3  # every quote doubled


def _packed(reading: Reading) -> str:
    if reading.shape not in ("text", "hex"):
        return f"IFNULL({reading.sql}, '')"
    # The binary collation ends disputes between columns of different ones.
    text = f"CONVERT({reading.sql} USING utf8mb4) COLLATE utf8mb4_bin"
    return f"""IFNULL(CONCAT('"', REPLACE({text}, '"', '""'), '"'), '')"""


def _lines(cursor: Any) -> Iterator[bytes]:
    while rows := cursor.fetchmany(10_000):
        for (line,) in rows:
            if line is None:
                raise IncompleteScan("a row is longer than max_allowed_packet.", hint="Raise it on the server.")
            yield (line if isinstance(line, bytes) else line.encode()) + b"\n"


def _values(cursor: Any, readings: Sequence[Reading]) -> Iterator[Sequence[Raw]]:
    rows: list[Any] = []
    size = 0
    while row := cursor.fetchone():
        rows.append(row)
        size += sum(len(value) for value in row if value is not None)
        if size >= BYTES_MAX or len(rows) >= ROWS_MAX:
            yield _arrays(rows, readings)
            rows, size = [], 0
    if rows:
        yield _arrays(rows, readings)


def _arrays(rows: list[Any], readings: Sequence[Reading]) -> Sequence[Raw]:
    return [
        pa.array(values, pa.string()).cast(arrow_shape(reading))
        for values, reading in zip(zip(*rows, strict=True), readings, strict=True)
    ]


def _abandon(connection: sa.Connection) -> None:
    """Ends a query whose rows nobody wants; else the driver would read them all."""
    driver: Any = connection.connection.driver_connection
    with contextlib.suppress(sa.exc.DBAPIError), connection.engine.connect() as other:
        other.exec_driver_sql(f"KILL QUERY {driver.thread_id()}")


def _bound(column: Stored, text: str) -> Any:
    """A canonical text of the column's own kind as what PyMySQL writes exactly; None where there is none."""
    match column.kind.name:
        case "integer":
            return integer_value(text)
        case "float":
            if text in ("nan", "infinity", "-infinity"):
                return None
            held = canonical_text(text, column.kind)
            if is_odd(held, column.kind):
                return None
            # The widest float's shortest text is a double beyond it.
            return struct.unpack("f", struct.pack("f", float(text)))[0] if column.base == "float" else float(text)
        case "bytes":
            return bytes.fromhex(text)
        case _:
            return text
