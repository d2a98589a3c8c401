"""PostgreSQL, by psycopg.

Whatever Python or Arrow can't hold (infinite and far dates, BC, NaN in numeric, months in intervals) crosses
as text that the server writes, and goes back as text that the server reads. Scans use COPY: in its CSV form a
null is nothing and an empty text is `""`, which Arrow's parser tells apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from trueup.errors import ConfigError
from trueup.model import kinds
from trueup.model.canonical import is_odd
from trueup.model.kinds import Kind
from trueup.sides.sql.dialects import Dialect, Index, Raw, Reading, Stored, Table, Trouble
from trueup.sides.sql.dialects.postgresql_literals import literal, sendable, sought, sought_array
from trueup.sides.sql.lines import arrays_from_lines, batches_of_lines
from trueup.sides.sql.spelling import TEXTUAL, as_stored, spellings

if TYPE_CHECKING:
    from trueup.sides.sql.hashing import Hasher
    from trueup.sides.sql.scripting import Scribe

# A snapshot is idle while the other side is read, and may be so for longer than a server allows.
_SESSION = (
    "SET idle_in_transaction_session_timeout = 0; "
    "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'hex'; "
    "SET extra_float_digits = 1; SET client_min_messages = 'warning'"
)
_KINDS: dict[str, Kind] = {
    "bool": kinds.BOOLEAN, "int2": kinds.INTEGER, "int4": kinds.INTEGER, "int8": kinds.INTEGER, "oid": kinds.INTEGER,
    "float4": Kind("float", bits=32), "float8": kinds.FLOAT, "money": kinds.DECIMAL, "bytea": kinds.BYTES,
    "uuid": kinds.UUID, "date": kinds.DATE, "time": kinds.TIME, "timetz": kinds.TIME, "timestamp": kinds.TIMESTAMP,
    "timestamptz": kinds.INSTANT, "interval": kinds.INTERVAL, "json": kinds.JSON, "jsonb": kinds.JSON,
}  # fmt: skip
_NATIVE = frozenset(("bool", "int2", "int4", "int8", "float4", "float8", "bytea"))
# Types that can be compared with any text; every other type that is read as text refuses foreign spellings.
_PLAIN_TEXT = frozenset(("text", "varchar", "bpchar", "name"))
# How money is spelled depends on the server's locale, and so does how much of it fits.
_COMPARED_AS = {"money": "numeric", "_money": "numeric[]"}
_SHAPES: dict[str, Any] = {
    "bool": "boolean", "int2": "integer", "int4": "integer", "int8": "integer", "float4": "float32", "float8": "float",
}  # fmt: skip
# A domain is read as the type under it; elem is the element type of a true array. Since PostgreSQL 18 a column that is
# declared NOT NULL may still hold nulls, where that constraint is not valid; earlier versions list no such constraint.
_COLUMNS = """
WITH RECURSIVE c AS (
  SELECT a.attnum, a.attname, a.attgenerated, a.attidentity, a.atttypid AS typ, a.atttypmod AS mod,
         a.attcollation AS collation, format_type(a.atttypid, a.atttypmod) AS declared,
         a.attnotnull AND NOT EXISTS (
           SELECT FROM pg_constraint n WHERE n.conrelid = a.attrelid AND n.conkey = ARRAY[a.attnum]
           AND n.contype = 'n' AND NOT n.convalidated) AS required
  FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
), base AS (
  SELECT c.attnum, c.typ, c.mod FROM c
  UNION ALL
  SELECT b.attnum, t.typbasetype, CASE WHEN t.typtypmod = -1 THEN b.mod ELSE t.typtypmod END
  FROM base b JOIN pg_type t ON t.oid = b.typ WHERE t.typtype = 'd'
)
SELECT c.attname, c.declared, c.required, c.attgenerated::text, c.attidentity::text, t.typname, t.typtype::text,
       b.mod, CASE WHEN t.typcategory = 'A' THEN e.typname END AS elem, e.typtype::text AS elem_type,
       coalesce(CASE o.collname WHEN 'default' THEN d.datcollate ELSE o.collname END, '')
FROM c JOIN base b USING (attnum) JOIN pg_type t ON t.oid = b.typ
JOIN pg_database d ON d.datname = current_database() LEFT JOIN pg_collation o ON o.oid = c.collation
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typelem <> 0
WHERE t.typtype <> 'd' ORDER BY c.attnum
"""
# As last counted; of a table that never was, by its size at sixty rows a page. Null where neither is known.
_ROWS = """
CASE WHEN c.reltuples > 0 THEN c.reltuples::bigint
     WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) / current_setting('block_size')::bigint * 60 END
"""
# An index of a parent says nothing of the rows of its children, unless these are its partitions.
_INDEXES = """
SELECT i.indisprimary, i.indisunique AND NOT (c.relkind = 'r' AND c.relhassubclass) AS alone,
       array_agg(a.attname::text ORDER BY k.n) AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, n)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid AND k.n <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisprimary, i.indisunique, c.relkind, c.relhassubclass
"""


class PostgreSQL(Dialect):
    """PostgreSQL."""

    name = "postgresql"
    clock: ClassVar[str] = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    # now() of a transaction is when it began, whether or not it has written yet. One that was prepared runs on too.
    visible: ClassVar[str | None] = "SELECT txid_current_snapshot()::text"
    oldest_running: ClassVar[str | None] = """
        SELECT (extract(epoch FROM coalesce(min(began), clock_timestamp())) * 1000000)::bigint FROM (
            SELECT xact_start AS began FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
            UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS running
    """

    def engine(self, url: sa.URL) -> sa.Engine:
        """A pool of psycopg connections."""
        try:
            import psycopg  # noqa: F401, PLC0415  an extra
        except ImportError as missing:
            hint = "Install it with: pip install 'trueup[postgres]'"
            raise ConfigError("PostgreSQL needs the driver psycopg.", hint=hint) from missing
        options = {"client_encoding": "utf8", "application_name": "trueup"}
        if "connect_timeout" not in url.query:
            options["connect_timeout"] = "10"
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"), connect_args=options, pool_pre_ping=True, hide_parameters=True,
            use_native_hstore=False,  # it would be looked up, and is read as text
        )  # fmt: skip
        sa.event.listen(engine, "connect", _prepare)
        return engine

    def limit(self, driver: Any, timeout_ms: int) -> None:
        """By the session's setting."""
        driver.execute(f"SET statement_timeout = {timeout_ms}")
        driver.commit()

    def trouble(self, error: BaseException) -> tuple[Trouble, str]:
        """By SQLSTATE."""
        state = getattr(error, "sqlstate", None)
        diagnosis = getattr(error, "diag", None)
        words = str(getattr(diagnosis, "message_primary", None) or "").strip()
        if state is None:
            return _without_state(error)
        match state[:2]:
            case "57" if state == "57014":
                return "timeout", words
            case "08" | "57" | "53":
                return "unreachable", words
            case "28":
                return "login", "the login was refused"
            case "3D":
                return "schema", words
            case "42" if state == "42501":
                return "permission", words
            case "42" | "3F":
                return "schema", words
            case "23":
                return "constraint", f"{getattr(diagnosis, 'constraint_name', None) or 'not null'}"
            case "22":
                return "value", f"SQLSTATE {state}"
            case "40":
                return "retry", "another session wants the same rows"
            case "55" if state == "55P03":
                return "busy", "another session holds the rows"
        return "other", f"SQLSTATE {state}"

    def system(self, connection: sa.Connection) -> str:
        """The server's version."""
        driver: Any = connection.connection.driver_connection
        return f"PostgreSQL {driver.info.parameter_status('server_version').split()[0]}"

    def table(self, connection: sa.Connection, schema: str | None, name: str) -> Table | None:
        """Tables, views, materialised views, partitioned and foreign tables."""
        where = "n.nspname = %s" if schema is not None else "pg_table_is_visible(c.oid)"
        found = connection.exec_driver_sql(
            f"SELECT c.oid, {_ROWS} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relname = %s AND {where} AND c.relkind IN ('r', 'v', 'm', 'p', 'f')",
            (name, schema) if schema is not None else (name,),
        ).first()
        if found is None:
            return None
        columns = tuple(_stored(row) for row in connection.exec_driver_sql(_COLUMNS, (found[0],)))
        indexes = [
            (primary, Index(tuple(names), unique))
            for primary, unique, names in connection.exec_driver_sql(_INDEXES, (found[0],))
        ]
        key = next((index.columns for primary, index in indexes if primary), ())
        return Table(schema, name, columns, key, tuple(index for _, index in indexes), found[1])

    def reading(self, column: Stored, kind: Kind) -> Reading:
        """As it is, or as the server's own text."""
        name = self.quoted(column.name)
        if column.kind.name == "array":
            # As text first: JSON has no NaN, no infinity, and would hide what kind the elements are.
            sql = f"to_json({name})::text" if kind.name == "json" else f"to_json({name}::text[])::text"
            return Reading(sql, "text", column.kind)
        match column.base:
            case "bytea":
                return Reading(f"encode({name}, 'hex')", "hex", column.kind)
            case "inet":
                return Reading(f"abbrev({name})", "text", column.kind)
            case "money":
                return Reading(f"{name}::numeric::text", "text", column.kind)
            case base if base in _SHAPES:
                return Reading(name, _SHAPES[base], column.kind)
            case "text" | "varchar":
                return Reading(name, "text", column.kind)
        return Reading(f"{name}::text", "text", column.kind)  # of char(n) this also drops the padding

    def version(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str | None:
        """Integers as they are; times by epoch, whose numeric is exact."""
        name = self.quoted(column.name)
        if kind.name == "integer":
            return name if column.base in ("int2", "int4", "int8") else None
        if column.base in ("timestamp", "timestamptz", "date") and kind.aware == column.kind.aware:
            return f"CASE WHEN isfinite({name}) THEN (extract(epoch FROM {name}) * 1000000)::bigint END"
        return None

    def scan(
        self, connection: sa.Connection, columns: Sequence[tuple[Stored | None, Reading]], rest: str, values: list[Any]
    ) -> Iterator[Sequence[Raw]]:
        """COPY … TO STDOUT; the server sends each row as one message, so batches end at row ends."""
        readings = [reading for _, reading in columns]
        sql = f"COPY (SELECT {', '.join(reading.sql for reading in readings)} {rest}) TO STDOUT (FORMAT csv)"
        # psycopg formats with % only where there is something to put in.
        statement = (sql, values) if values else (sql.replace("%%", "%"),)
        driver: Any = connection.connection.driver_connection
        done = False
        try:
            with driver.cursor() as cursor, cursor.copy(*statement) as copy:
                for block in batches_of_lines(copy):
                    yield arrays_from_lines(block, readings)
            done = True
        finally:
            if not done:
                connection.invalidate()  # rows of an abandoned COPY are still on their way

    def key(self, column: Stored) -> str:
        """The column, or its text where the type would refuse to be compared with foreign text."""
        name = self.quoted(column.name)
        if column.base in _COMPARED_AS:
            return f"{name}::{_COMPARED_AS[column.base]}"
        if column.kind.name == "array":
            plain = column.kind.element.name not in TEXTUAL or column.base.removeprefix("_") in _PLAIN_TEXT
            return name if plain else f"{name}::text[]"
        if column.kind.name in TEXTUAL and column.base not in _PLAIN_TEXT:
            return self.reading(column, column.kind).sql
        return name

    def canonically(self, column: Stored, kind: Kind) -> str | None:
        """By a pattern."""
        if kind.name != "uuid" or column.base not in _PLAIN_TEXT:
            return None
        return f"{self.quoted(column.name)}::text COLLATE \"C\" ~ '{kinds.UUID_TEXT}'"

    def candidates(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
        """Texts whose type the server takes from the column; integers as such, since types have bounds."""
        if column.kind.name in TEXTUAL:
            spelled = (text,) if kind.name in TEXTUAL else spellings(text, kind, zone)
            return [each for each in spelled if sendable(each)]
        stored = as_stored(text, kind, column.kind, zone)
        if column.kind.name == "array" and not is_odd(stored, column.kind):
            element = column.kind.element
            asked = kind.element if kind.name == "array" else element
            found = sought_array(stored, asked, column.base.removeprefix("_"), element, zone)
        else:
            found = sought(stored, column.base, column.kind)
        return [] if found is None else [found]

    def rebind(self, value: Any, reading: Reading) -> Any:
        """A float as text: the server reads it in the column's own width."""
        return str(value) if reading.shape in ("float", "float32") else super().rebind(value, reading)

    def hasher(self) -> Hasher:
        """Loaded when it is needed."""
        from trueup.sides.sql.hashing import postgresql  # noqa: PLC0415

        return postgresql.PostgreSQL()

    def scribe(self) -> Scribe:
        """Loaded when it is needed."""
        from trueup.sides.sql.scripting import postgresql  # noqa: PLC0415

        return postgresql.PostgreSQL(self)

    def value(self, column: Stored, text: str | None, kind: Kind, zone: ZoneInfo | None) -> Any:
        """Text that the server reads by the column's type."""
        if text is None:
            return None
        return literal(as_stored(text, kind, column.kind, zone), column.kind)

    def begin(self, engine: sa.Engine) -> sa.Connection:
        """Each statement sees what is committed, so that a locked row is the newest."""
        return engine.connect().execution_options(isolation_level="READ COMMITTED")

    def inserting(self, table: Table, columns: Sequence[Stored], key: Sequence[str]) -> str:
        """Leaves out a row whose key is there, where a unique index knows."""
        sql = super().inserting(table, columns, key)
        if any(column.identity for column in columns):
            sql = sql.replace(" VALUES (", " OVERRIDING SYSTEM VALUE VALUES (", 1)
        # A parent's own key holds for what is inserted into it, whatever its children have.
        known = [table.key, *(index.columns for index in table.indexes if index.unique)]
        if any(set(columns) == set(key) for columns in known):
            sql += f" ON CONFLICT ({', '.join(map(self.quoted, key))}) DO NOTHING"
        return sql

    def duplicate(self, error: BaseException | None) -> bool:
        """A key's own duplicate raises nothing; what raises is another constraint, which has a name."""
        return False


def _prepare(connection: Any, record: Any) -> None:
    # In a transaction it would cost three round trips.
    connection.autocommit = True
    connection.execute(_SESSION)
    connection.autocommit = False


def _stored(row: Any) -> Stored:
    name, declared, required, generated, identity, base, typtype, mod, element, element_type, collation = row
    if element is not None:
        kind, native = Kind("array", item=_kind(element, element_type or "b", -1)), False
    else:
        kind = _kind(base, typtype, mod)
        native = base in _NATIVE or kind.name in TEXTUAL
    return Stored(
        name, declared, base, kind, native, nullable=not required,
        generated=bool(generated.strip()), identity=identity == "a", collation=collation,
    )  # fmt: skip


def _kind(base: str, typtype: str, mod: int) -> Kind:
    if typtype == "e":
        return kinds.ENUM
    if base == "numeric":
        # A modifier packs precision and a signed 11-bit scale (since PostgreSQL 15), offset by 4.
        if mod < 4:
            return kinds.DECIMAL
        precision, scale = ((mod - 4) >> 16) & 0xFFFF, (((mod - 4) & 0x7FF) ^ 1024) - 1024
        return Kind("decimal", scale=scale, precision=precision) if 0 <= scale <= precision else kinds.DECIMAL
    return _KINDS.get(base, kinds.TEXT)


def _without_state(error: BaseException) -> tuple[Trouble, str]:
    """Errors of the connection itself carry no SQLSTATE; libpq says them in English or the user's language."""
    text = str(error)
    if "password authentication failed" in text or "no pg_hba.conf entry" in text or "no password supplied" in text:
        return "login", "the login was refused"
    if "does not exist" in text and ("database" in text or "role" in text):
        return "login", "the database or role does not exist"
    if type(error).__name__ == "DataError":
        return "value", "it can't be sent"
    return "unreachable", "no connection"
