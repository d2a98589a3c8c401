"""DuckDB: a table, a view or a query in parentheses, read as Arrow batches.

Types are strict, so a value is bound as text and DuckDB reads it by the column's own type. A file is opened for
reading, and for writing only while something is written.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Generator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import sqlalchemy as sa

from trueup.errors import ConfigError, SideError
from trueup.model import kinds
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import Kind
from trueup.model.numbers import ODD
from trueup.model.times import parse_interval
from trueup.sides.sql.dialects import Dialect, Index, Raw, Reading, Shape, Stored, Table, Trouble, integer_value
from trueup.sides.sql.dialects.duckdb_driver import engine
from trueup.sides.sql.spelling import TEXTUAL, as_stored, signed_year, spellings

if TYPE_CHECKING:
    from trueup.sides.sql.hashing import Hasher
    from trueup.sides.sql.scripting import Scribe

_BATCH_ROWS: Final = 32_768
_WAIT_S: Final = 30.0
_WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_WIDE: Final = ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM")
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
INSTANT_TYPE: Final = "TIMESTAMP WITH TIME ZONE"
_NESTED: Final = ("STRUCT", "MAP", "UNION", "VARIANT")
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys((*_WHOLE, *_WIDE), kinds.INTEGER), "BOOLEAN": kinds.BOOLEAN,
    "FLOAT": Kind("float", bits=32), "DOUBLE": kinds.FLOAT, "BLOB": kinds.BYTES, "UUID": kinds.UUID,
    "DATE": kinds.DATE, "TIME": kinds.TIME, "TIME_NS": kinds.TIME, "TIME WITH TIME ZONE": kinds.TIME,
    **dict.fromkeys(_TIMES, kinds.TIMESTAMP), INSTANT_TYPE: kinds.INSTANT, "INTERVAL": kinds.INTERVAL,
    "JSON": kinds.JSON, "ENUM": kinds.ENUM, **dict.fromkeys(_NESTED, kinds.JSON),
}  # fmt: skip
_SHAPES: Final[dict[str, Shape]] = {
    **dict.fromkeys(_WHOLE, "integer"), "BOOLEAN": "boolean", "FLOAT": "float32", "DOUBLE": "float",
    "DECIMAL": "decimal", "VARCHAR": "text", "BLOB": "any",
}  # fmt: skip
# Years that surely fit: of dates, and of times in microseconds or less.
_YEARS: Final = {"date": (-5_870_000, 5_880_000), "timestamp": (-290_000, 294_000)}
_TRIED: Final = ("time", "interval", "json", "array")
_INT128: Final = range(-(2**127), 2**127)
_COLUMNS: Final = """
SELECT column_name, data_type, is_nullable, column_default IS NOT NULL FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = COALESCE(?, current_schema()) AND table_name = ?
ORDER BY column_index
"""
_TABLE: Final = """
SELECT sql, estimated_size FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = COALESCE(?, current_schema()) AND table_name = ?
"""
_KEYS: Final = """
SELECT constraint_type, constraint_column_names FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = COALESCE(?, current_schema()) AND table_name = ?
  AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')
"""
_INDEXES: Final = """
SELECT is_unique, expressions FROM duckdb_indexes()
WHERE database_name = current_database() AND schema_name = COALESCE(?, current_schema()) AND table_name = ?
"""
_NAMES: Final = """
SELECT table_name FROM information_schema.tables
WHERE table_catalog = current_database() AND table_schema = COALESCE(?, current_schema())
"""


class DuckDB(Dialect):
    """DuckDB."""

    name = "duckdb"
    mark = "?"
    lock = ""
    clock: ClassVar[str] = "SELECT epoch_us(get_current_timestamp())"

    def __init__(self) -> None:
        self._writing: sa.Engine | None = None

    def engine(self, url: sa.URL) -> sa.Engine:
        """Connections to a file that must be there; those for reading leave it as it is."""
        if not url.database or url.database == ":memory:":
            raise ConfigError("A DuckDB side needs a file.", hint="For example duckdb:///orders.duckdb.")
        path = Path(url.database)
        if not path.is_file():
            raise SideError(f"{path}: no such file.", hint="A DuckDB database is read where it is, never created.")
        address = str(path.absolute())
        self._writing = engine(address, write=True, wait_s=_WAIT_S)
        return engine(address, write=False, wait_s=_WAIT_S)

    def trouble(self, error: BaseException) -> tuple[Trouble, str]:
        """By the driver's class of error; of its words, only those that name tables and columns."""
        words = str(error).partition("\n")[0].partition(": ")[2]
        match error:
            case duckdb.ConstraintException():
                null = "NOT NULL" in words
                return "constraint", words if null else "a unique or primary key, or a check"
            case duckdb.TransactionException():
                return "retry", "another session changed the same rows"
            case duckdb.ConnectionException():
                return "busy", "this program has the file open in another way"
            case duckdb.CatalogException() | duckdb.BinderException() | duckdb.ParserException():
                return "schema", words
            case duckdb.IOException() if "lock" in words:
                return "busy", "another program has the file open"
            case duckdb.IOException() if "Permission denied" in words or "read-only" in words.lower():
                return "permission", "the file can't be written"
            case duckdb.IOException():
                return "unreachable", "it is no DuckDB database, or of a newer version"
            case duckdb.InvalidInputException() if "read-only" in words:
                return "permission", "the file can't be written"
            case duckdb.InterruptException():
                return "other", "it was interrupted"
            case duckdb.OutOfMemoryException():
                return "other", "it needs more memory than it may use"
            case duckdb.DataError():
                return "value", "it does not fit"
        return "other", type(error).__name__

    def system(self, connection: sa.Connection) -> str:
        """The library's version."""
        return f"DuckDB {duckdb.__version__}"

    def table(self, connection: sa.Connection, schema: str | None, name: str) -> Table | None:
        """From its catalogue; of a query, as it describes itself."""
        if name.startswith("("):
            described = connection.exec_driver_sql(f"DESCRIBE {name}").all()
            return Table(None, name, tuple(_stored(row[0], row[1], nullable=True) for row in described))
        where = (schema, name)
        found = connection.exec_driver_sql(_COLUMNS, where).all()
        if not found:
            return None
        sql, rows = connection.exec_driver_sql(_TABLE, where).first() or ("", None)
        columns = [
            _stored(each, type_, nullable=nullable, generated=has_default and self._generated(sql, each, type_))
            for each, type_, nullable, has_default in found
        ]
        keys = {kind: tuple(names) for kind, names in connection.exec_driver_sql(_KEYS, where)}
        indexes = [Index(tuple(names), unique=True) for _, names in connection.exec_driver_sql(_KEYS, where)]
        known = {_as_listed(each.name): each.name for each in columns}
        for unique, expressions in connection.exec_driver_sql(_INDEXES, where):
            names = [known.get(part) for part in str(expressions)[1:-1].split(", ")]
            if None not in names:
                indexes.append(Index(tuple(name for name in names if name is not None), bool(unique)))
        return Table(schema, name, tuple(columns), keys.get("PRIMARY KEY", ()), tuple(indexes), rows)

    def _generated(self, sql: str, name: str, declared: str) -> bool:
        """The catalogue shows a generated column as one with a default."""
        return any(f"{each} {declared} GENERATED ALWAYS AS" in sql for each in (name, self.quoted(name)))

    def names(self, connection: sa.Connection, schema: str | None) -> list[str]:
        """From its catalogue."""
        return list(connection.exec_driver_sql(_NAMES, (schema,)).scalars())

    def reading(self, column: Stored, kind: Kind) -> Reading:
        """As it is, or as its text."""
        name = self.quoted(column.name)
        shape = _SHAPES.get(column.base)
        if shape is not None:
            return Reading(name, shape, column.kind)
        if column.kind.name == "array" and kind.name == "json":
            return Reading(f"CAST(to_json({name}) AS VARCHAR)", "text", column.kind)
        return Reading(text_of(name, column.declared), "text", column.kind)

    def version(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str | None:
        """Integers that fit; times by their distance from the epoch, which is null for an infinity."""
        name = self.quoted(column.name)
        if kind.name == "integer":
            return f"TRY_CAST({name} AS BIGINT)"
        if column.base in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", INSTANT_TYPE) and (
            kind.aware == column.kind.aware
        ):
            return f"epoch_us({name})"
        return None

    def scan(
        self, connection: sa.Connection, columns: Sequence[tuple[Stored | None, Reading]], rest: str, values: list[Any]
    ) -> Iterator[Sequence[Raw]]:
        """Arrow batches, streamed."""
        selected = ", ".join(f"{reading.sql} AS c{at}" for at, (_, reading) in enumerate(columns))
        with contextlib.closing(batches(connection, f"SELECT {selected} {rest}", values)) as found:
            for batch in found:
                yield batch.columns

    def key(self, column: Stored) -> str:
        """The column, or its text where the type would refuse to be compared with foreign text."""
        textual = column.kind.name in TEXTUAL and column.base != "VARCHAR"
        return f"CAST({self.quoted(column.name)} AS VARCHAR)" if textual else self.quoted(column.name)

    def candidates(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
        """Values that its type can hold; any other would be refused."""
        if column.kind.name in TEXTUAL:
            spelled = (text,) if kind.name in TEXTUAL else spellings(text, kind, zone)
            return [each for each in spelled if not any("\ud800" <= letter <= "\udfff" for letter in each)]
        stored = as_stored(text, kind, column.kind, zone)
        if is_odd(stored, column.kind):
            return []
        match column.kind.name:
            case "integer":
                value = integer_value(stored)
                return [value] if value is not None and value in _INT128 else []
            case "decimal":
                return [Decimal(stored)] if len(stored) <= 38 and stored[-1].isdigit() else []
            case "date" | "timestamp":
                parts = signed_year(stored)
                first, last = _YEARS[column.kind.name]
                if parts is not None and not first < parts[0] < last:
                    return []
        return [literal(stored, column.kind)]

    def key_mark(self, column: Stored) -> str:
        """Null where the type can't hold the value."""
        return f"TRY_CAST(? AS {column.declared})" if column.kind.name in _TRIED else "?"

    def rebind(self, value: Any, reading: Reading) -> Any:
        """Floats as text, which is read in the column's own width; times as DuckDB spells them."""
        if reading.shape == "float32":
            return str(value)
        if reading.shape == "text" and reading.kind.name not in TEXTUAL:
            return literal(canonical_text(value, reading.kind) or "", reading.kind)
        return super().rebind(value, reading)

    def exactly(self, column: Stored) -> tuple[str, int]:
        """Past a collation such as NOCASE, and past intervals that merely count as equal."""
        name = self.key(column)
        if column.base == "VARCHAR":
            return f"{name} = ? AND encode({name}) = encode(?)", 2
        if column.base == "INTERVAL":
            return f"{name} = ? AND CAST({name} AS VARCHAR) = CAST(CAST(? AS INTERVAL) AS VARCHAR)", 2
        return f"{name} = ?", 1

    def hasher(self) -> Hasher:
        """Loaded when it is needed."""
        from trueup.sides.sql.hashing import duckdb as hashing  # noqa: PLC0415

        return hashing.DuckDB()

    def scribe(self) -> Scribe:
        """Loaded when it is needed."""
        from trueup.sides.sql.scripting import duckdb as scripting  # noqa: PLC0415

        return scripting.DuckDB(self)

    def value(self, column: Stored, text: str | None, kind: Kind, zone: ZoneInfo | None) -> Any:
        """Text that DuckDB reads by the column's type."""
        return None if text is None else literal(as_stored(text, kind, column.kind, zone), column.kind)

    def begin(self, engine: sa.Engine) -> sa.Connection:
        """The file is opened for writing; nobody else reads it meanwhile."""
        assert self._writing is not None, "a side opens its engine first"
        return self._writing.connect()

    def duplicate(self, error: BaseException | None) -> bool:
        """What was inserted since ends the transaction, which is then repeated; what raises is another constraint."""
        return False

    def quoted(self, name: str) -> str:
        """In double quotes; this driver formats with question marks."""
        return '"' + name.replace('"', '""') + '"'

    def verbatim(self, sql: str) -> str:
        """As it is."""
        return sql + "\n"

    def named(self, table: Table) -> str:
        """The table's full name, or the query."""
        return table.name if table.name.startswith("(") else super().named(table)


def batches(connection: sa.Connection, sql: str, values: Sequence[Any]) -> Generator[pa.RecordBatch, None, None]:
    """What a query answers, streamed within the connection's transaction."""
    driver: Any = connection.connection.driver_connection
    yield from driver.batches(sql, values, _BATCH_ROWS)


def _as_listed(name: str) -> str:
    """A column's name as the catalogue lists it among the expressions of an index."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else "'\"" + name.replace('"', '""') + "\"'"


def _stored(name: str, declared: str, *, nullable: bool, generated: bool = False) -> Stored:
    kind = _kind(declared)
    base = "LIST" if kind.name == "array" else _base(declared)
    native = base in _SHAPES or kind.name in TEXTUAL
    return Stored(name, declared, base, kind, native, nullable=nullable, generated=generated)


def _base(declared: str) -> str:
    return declared if declared.startswith(("TIME WITH", "TIMESTAMP WITH")) else declared.partition("(")[0]


def _kind(declared: str) -> Kind:
    if declared.endswith("]"):
        return Kind("array", item=_kind(_item(declared)))
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", declared):
        return Kind("decimal", precision=int(found[1]), scale=int(found[2]))
    return _KINDS.get(_base(declared), kinds.TEXT)


def _item(declared: str) -> str:
    """The type of a list's items: a list is INTEGER[], an array of fixed size INTEGER[3]."""
    return declared[: declared.rindex("[")]


def text_of(name: str, declared: str) -> str:
    """SQL for a text of a value, by whose kind's rule it is the value exactly."""
    if declared.endswith("]"):
        return f"CAST(to_json({_texts_of(name, declared)}) AS VARCHAR)"
    base, text = _base(declared), f"CAST({name} AS VARCHAR)"
    match base:
        case "BLOB":
            return f"lower(hex({name}))"
        case "INTERVAL":
            return interval_text(name)
        case _ if base in _NESTED:
            return f"CAST(to_json({name}) AS VARCHAR)"
        case "DATE":
            return f"replace({text}, ' (BC)', ' BC')"
        case _ if base in _TIMES:
            return f"CASE WHEN contains({text}, ' (BC)') THEN replace({text}, ' (BC)', '') || ' BC' ELSE {text} END"
        case _ if base == INSTANT_TYPE:
            wall = f"CAST(timezone('UTC', {name}) AS VARCHAR)"
            return (
                f"CASE WHEN NOT isfinite({name}) THEN {wall} "
                f"WHEN contains({wall}, ' (BC)') THEN replace({wall}, ' (BC)', '') || '+00 BC' ELSE {wall} || '+00' END"
            )
    return text


def _texts_of(name: str, declared: str) -> str:
    """SQL for a list of texts, or of lists of them."""
    if not declared.endswith("]"):
        return text_of(name, declared)
    item = f"i{declared.count('[')}"
    return f"list_transform({name}, lambda {item}: {_texts_of(item, _item(declared))})"


def interval_text(name: str) -> str:
    """SQL for the canonical text of an interval."""
    months = f"(12 * datepart('year', {name}) + datepart('month', {name}))"
    us = (
        f"(CAST(datepart('day', {name}) AS HUGEINT) * 86400000000 + CAST(datepart('hour', {name}) AS HUGEINT) "
        f"* 3600000000 + datepart('minute', {name}) * 60000000 + datepart('microsecond', {name}))"
    )
    fraction = f"'.' || rtrim(lpad(CAST(abs({us}) % 1000000 AS VARCHAR), 6, '0'), '0')"
    seconds = (
        f"CASE WHEN {us} < 0 THEN '-' ELSE '' END || CAST(abs({us}) // 1000000 AS VARCHAR) || "
        f"CASE WHEN {us} % 1000000 = 0 THEN '' ELSE {fraction} END"
    )
    return (
        f"'P' || CASE WHEN {months} = 0 THEN '' ELSE CAST({months} AS VARCHAR) || 'M' END || "
        f"CASE WHEN {us} = 0 AND {months} <> 0 THEN '' ELSE 'T' || {seconds} || 'S' END"
    )


def literal(text: str, kind: Kind) -> Any:
    """A canonical text as what to bind: in DuckDB's spelling, bytes, or a list of such."""
    if is_odd(text, kind):
        return text.removeprefix(ODD)
    match kind.name:
        case "bytes":
            return bytes.fromhex(text)
        case "date" | "timestamp":
            return _dated(text)
        case "interval":
            months, us = parse_interval(text)
            return f"{months} months {us} microseconds"
        case "array":
            return _items(json.loads(text), kind.element)
        case _:
            return text


def _dated(text: str) -> str:
    parts = signed_year(text)
    if parts is None:
        return text
    year, day, rest = parts
    shown = f"{year:04}{day}" if year > 0 else f"{1 - year:04}{day} (BC)"
    return shown + rest.replace("T", " ").replace("Z", "+00:00")


def _items(items: Sequence[Any], element: Kind) -> list[Any]:
    return [
        None if item is None else _items(item, element) if isinstance(item, list) else literal(item, element)
        for item in items
    ]
