"""What differs between SQL engines, and nothing else: one small file for each engine.

A dialect knows how the engine describes its columns, how each type is read and written exactly, and how its
errors are told apart. A new engine is one more file here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from trueup.errors import ConfigError
from trueup.model.kinds import INSTANT, Kind
from trueup.model.times import timestamp_text
from trueup.sides.sql.spelling import TEXTUAL

if TYPE_CHECKING:
    import pyarrow as pa

    from trueup.sides.sql.hashing import Hasher
    from trueup.sides.sql.scripting import Scribe

Shape = Literal["integer", "boolean", "float", "float32", "decimal", "text", "hex", "any"]
Trouble = Literal[
    "unreachable", "login", "permission", "schema", "constraint", "value", "retry", "busy", "timeout", "other"
]
# Wall-clock times run back once a year, by an hour in most zones and never by more than a few.
_EARLIER_US = 4 * 3_600_000_000
# The years 1 to 9999, which every engine can compare with.
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
Raw: TypeAlias = "pa.Array[Any] | Sequence[Any]"


@dataclass(frozen=True, slots=True)
class Stored:
    """A column as the engine holds it.

    base: the engine's name of the type without length. kind: what its values are.
    native: every value surely fits `kind.arrow()`.
    generated: the engine computes it, so it is never written. identity: written only when overridden.
    unzoned: an instant that the engine gives in UTC without saying so.
    bytes_max: most bytes of one value, where the engine bounds them. collation: of text, where the engine names it.
    """

    name: str
    declared: str
    base: str
    kind: Kind
    native: bool = False
    nullable: bool = True
    generated: bool = False
    identity: bool = False
    unzoned: bool = False
    bytes_max: int | None = None
    collation: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """An index without condition: its columns in order."""

    columns: tuple[str, ...]
    unique: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as the engine describes it; rows is an estimate."""

    schema: str | None
    name: str
    columns: tuple[Stored, ...]
    key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How one column is selected, and in which shape its values arrive.

    Shapes: `integer`, `boolean`, `float`, `float32`, `decimal` arrive as such or as their exact text; `hex` as
    hexadecimal digits of bytes; `any` as whatever the value is. kind: the column's own.
    """

    sql: str
    shape: Shape
    kind: Kind


VERSION = Kind("integer")


class Dialect(ABC):
    """One engine. SQL made here is ready for the driver: percent signs are doubled where it formats with %."""

    name: ClassVar[str]
    mark: ClassVar[str] = "%s"
    lock: ClassVar[str] = " FOR UPDATE"
    clock: ClassVar[str]
    # A statement that answers when the oldest running transaction began; None where the engine does not show that.
    oldest_running: ClassVar[str | None] = None
    # The engine's own text for which transactions are visible now.
    visible: ClassVar[str | None] = None
    # Types whose values may be dates that do not exist, such as 2023-00-10.
    zero_dates: ClassVar[frozenset[str]] = frozenset()

    # Connecting.

    @abstractmethod
    def engine(self, url: sa.URL) -> sa.Engine:
        """A pool of connections whose sessions are set to read and write exactly."""

    def limit(self, driver: Any, timeout_ms: int) -> None:
        """Has a new connection end every statement that takes longer; ConfigError where the engine can't."""
        raise ConfigError(f"{self.name} can't end a statement after a time.", hint="Leave out timeout_s.")

    @abstractmethod
    def trouble(self, error: BaseException) -> tuple[Trouble, str]:
        """What an error of the driver is about, and words for it that hold no value of a record."""

    @abstractmethod
    def system(self, connection: sa.Connection) -> str:
        """Such as "PostgreSQL 15.4"."""

    # Describing.

    @abstractmethod
    def table(self, connection: sa.Connection, schema: str | None, name: str) -> Table | None:
        """The table or view of exactly this name, or None."""

    def names(self, connection: sa.Connection, schema: str | None) -> list[str]:
        """Names of the tables and views that are there."""
        inspector = sa.inspect(connection)
        if schema is not None and schema not in inspector.get_schema_names():
            return []
        return [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]

    # Reading.

    @abstractmethod
    def reading(self, column: Stored, kind: Kind) -> Reading:
        """How this column is read exactly when it is asked for as `kind`."""

    def versioned(self, column: Stored, kind: Kind) -> bool:
        """Whether the column can be a version: the server compares its values as numbers or times."""
        return column.kind.name in ("integer", "date", "timestamp") and kind.name == column.kind.name

    @abstractmethod
    def version(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str | None:
        """SQL for the version as a 64-bit integer (UTC microseconds for times); None where only Python can tell."""

    def since(self, column: Stored, kind: Kind, zone: ZoneInfo | None, version: int) -> tuple[str, list[Any]]:
        """A condition on the bare column that lets pass every version >= this, and as little else as it can."""
        condition = f"{self.quoted(column.name)} >= {self.mark}"
        if kind.name == "integer":
            return condition, [version]
        earlier = version - _EARLIER_US if kind.aware and not column.kind.aware else version
        return condition, [self._moment(column, kind, zone, earlier)]

    def until(self, column: Stored, kind: Kind, zone: ZoneInfo | None, time_us: int) -> tuple[str, list[Any]]:
        """A condition on the bare column that lets pass every time < this, and as little else as it can."""
        later = time_us + _EARLIER_US if kind.aware and not column.kind.aware else time_us
        return f"{self.quoted(column.name)} < {self.mark}", [self._moment(column, kind, zone, later)]

    def _moment(self, column: Stored, kind: Kind, zone: ZoneInfo | None, us: int) -> Any:
        text = timestamp_text(min(max(us, _FIRST_US), _LAST_US), aware=True)
        return text[:10] if kind.name == "date" else self.value(column, text, INSTANT, zone)

    def ordered(self, column: Stored, kind: Kind, zone: ZoneInfo | None) -> str:
        """What orders rows by version: the bare column, so that an index serves."""
        return self.quoted(column.name)

    @abstractmethod
    def scan(
        self, connection: sa.Connection, columns: Sequence[tuple[Stored | None, Reading]], rest: str, values: list[Any]
    ) -> Iterator[Sequence[Raw]]:
        """Streams `SELECT columns rest` as the raw columns of one batch after the other. No column: a computed integer.

        A raw column is an Arrow array; or, where its values have several types, the values.
        """

    # Finding rows by key.

    def key(self, column: Stored) -> str:
        """What a key's text is compared with, so that an index on the column serves."""
        return self.quoted(column.name)

    def key_mark(self, column: Stored) -> str:
        """What a bound value stands in to be compared with `key`; it may find more than equals the value."""
        return self.mark

    @abstractmethod
    def candidates(self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None) -> Sequence[Any]:
        """Values to bind that a row with this key text may hold. None of them: no row can hold it."""

    def loose(self, column: Stored, kind: Kind) -> bool:
        """Whether a row may hold the key in other spellings than `candidates` lists."""
        return column.kind.name in TEXTUAL and kind.name not in TEXTUAL

    def loosely(
        self, column: Stored, text: str, kind: Kind, zone: ZoneInfo | None
    ) -> Sequence[tuple[str, tuple[Any, ...]]]:
        """Conditions of which each row that spells the key text otherwise meets one, each served by an index.

        An empty one is met by every row. They may let other rows pass.
        """
        others = self.unusual(column, kind)
        return [("" if others in (None, "true") else others, ())]

    def unusual(self, column: Stored, kind: Kind) -> str | None:
        """A condition for all rows that are not to be looked for by `candidates` alone; None where there can be none.

        "true" where no row can be told. What it selects is read, so it had better be little.
        """
        if not self.loose(column, kind):
            return None
        told = self.canonically(column, kind)
        return "true" if told is None else f"NOT ({told})"

    def canonically(self, column: Stored, kind: Kind) -> str | None:
        """A condition for all rows whose text is the canonical one of a value of this kind; None where SQL has none."""
        return None

    def zero_date(self, column: Stored) -> str | None:
        """A condition for all rows whose date in this column does not exist; None where there can be none."""
        return None

    def rebind(self, value: Any, reading: Reading) -> Any:
        """A raw value of a key column as what to bind to find the same row again."""
        match reading.shape:
            case "integer":
                return int(value)
            case "decimal":
                return Decimal(value)
            case "float" | "float32":
                return float(value)
            case "hex":
                return bytes.fromhex(value)
            case _:
                return value

    def exactly(self, column: Stored) -> tuple[str, int]:
        """A condition that a key column is this raw value and none that merely counts as equal; and its marks."""
        return f"{self.key(column)} = {self.mark}", 1

    # Hashing.

    @abstractmethod
    def hasher(self) -> Hasher:
        """How the engine hashes rows."""

    # Statements for people.

    @abstractmethod
    def scribe(self) -> Scribe:
        """How the engine reads statements from a file."""

    # Writing.

    @abstractmethod
    def value(self, column: Stored, text: str | None, kind: Kind, zone: ZoneInfo | None) -> Any:
        """What to bind so that the column holds this canonical text."""

    def begin(self, engine: sa.Engine) -> sa.Connection:
        """A connection whose transaction may lock and write."""
        return engine.connect()

    def inserting(self, table: Table, columns: Sequence[Stored], key: Sequence[str]) -> str:
        """An INSERT of one row; a row whose key is there already is left out or refused, never replaced."""
        names = ", ".join(self.quoted(column.name) for column in columns)
        marks = ", ".join(self.mark for _ in columns)
        return f"INSERT INTO {self.named(table)} ({names}) VALUES ({marks})"

    @abstractmethod
    def duplicate(self, error: BaseException | None) -> bool:
        """Whether an error says that another row already has a unique value."""

    # Names.

    def quoted(self, name: str) -> str:
        """A name in the engine's quotes, always."""
        return '"' + name.replace('"', '""').replace("%", "%%") + '"'

    def verbatim(self, sql: str) -> str:
        """A condition of the user's, ready for the driver. The line break ends a trailing comment."""
        return sql.replace("%", "%%") + "\n"

    def named(self, table: Table) -> str:
        """The table's full name."""
        return ".".join(self.quoted(part) for part in (table.schema, table.name) if part is not None)


def integer_value(text: str) -> int | None:
    """The integer that a canonical text says, or None."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 4_000 else None
