"""The canonical kinds of value, and which kind two columns are compared as."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trueup.errors import ConfigError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

KindName = Literal[
    "boolean", "integer", "decimal", "float", "text", "bytes", "uuid", "date", "time",
    "timestamp", "interval", "json", "array", "enum",
]  # fmt: skip
KIND_NAMES: tuple[KindName, ...] = KindName.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Kind:
    """One canonical kind.

    scale: decimal only, digits after the point a column holds; None where it is not bounded.
    precision: decimal only, digits in all; None where it is not bounded.
    bits: 32 or 64, of a float, or of the float that is met as a decimal.
    aware: timestamp only; True for instants (UTC), False for wall-clock times without a zone.
    item: array only, the kind of the elements.
    """

    name: KindName
    scale: int | None = None
    precision: int | None = None
    bits: int = 64
    aware: bool = False
    item: Kind | None = None

    @property
    def element(self) -> Kind:
        """The kind of an array's innermost elements: engines differ in whether dimensions are part of a type."""
        kind = self.item or TEXT
        return kind.element if kind.name == "array" else kind

    def __str__(self) -> str:
        match self.name:
            case "decimal" if self.scale is not None:
                return f"decimal({self.precision or 'any'},{self.scale})"
            case "float" if self.bits == 32:
                return "float32"
            case "timestamp":
                return "timestamp with zone" if self.aware else "timestamp without zone"
            case "array":
                return f"array of {self.item or TEXT}"
            case name:
                return name

    def arrow(self) -> pa.DataType | None:
        """The Arrow type that holds this kind natively, or None where only canonical text does."""
        import pyarrow as pa  # noqa: PLC0415  a third of a second that `trueup --help` should not pay

        match self.name:
            case "boolean":
                return pa.bool_()
            case "integer":
                return pa.int64()
            case "float":
                return pa.float32() if self.bits == 32 else pa.float64()
            case "text" | "enum":
                return pa.string()
            case "bytes":
                return pa.binary()
            case "date":
                return pa.date32()
            case "timestamp":
                return pa.timestamp("us", tz="UTC" if self.aware else None)
            case "decimal" if self.scale is not None and self.precision is not None and self.precision <= 38:
                return pa.decimal128(self.precision, self.scale)
            case _:
                return None


BOOLEAN = Kind("boolean")
INTEGER = Kind("integer")
DECIMAL = Kind("decimal")
FLOAT = Kind("float")
TEXT = Kind("text")
BYTES = Kind("bytes")
UUID = Kind("uuid")
# Its canonical text, as a pattern for every engine. In some of them a line break may follow where it ends.
UUID_TEXT = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
UUID_LENGTH = 36
DATE = Kind("date")
TIME = Kind("time")
TIMESTAMP = Kind("timestamp")
INSTANT = Kind("timestamp", aware=True)
INTERVAL = Kind("interval")
JSON = Kind("json")
ENUM = Kind("enum")

_SPELLED = {
    "float32": Kind("float", bits=32),
    "instant": INSTANT,
    "timestamp with zone": INSTANT,
    "timestamp without zone": TIMESTAMP,
}
_DECIMAL_SPELLED = re.compile(r"decimal\((any|\d+),\s*(\d+)\)", re.ASCII)


def kind_named(spelled: str | Kind) -> Kind:
    """The kind that a declaration names: `integer`, `decimal(12,2)`, `instant`, `float32`, `array of date`.

    Understands whatever `str(kind)` prints. Raises ConfigError where it is none.
    """
    if isinstance(spelled, Kind):
        return spelled
    name = spelled.strip().lower()
    if name in _SPELLED:
        return _SPELLED[name]
    if name.startswith("array of "):
        return Kind("array", item=kind_named(name.removeprefix("array of ")))
    if found := _DECIMAL_SPELLED.fullmatch(name):
        return Kind("decimal", scale=int(found[2]), precision=None if found[1] == "any" else int(found[1]))
    if name in KIND_NAMES:
        return Kind(name)
    close = difflib.get_close_matches(name, [*KIND_NAMES, *_SPELLED], n=1)
    hint = f"Did you mean {close[0]}?" if close else f"Kinds are {', '.join((*KIND_NAMES, 'instant', 'float32'))}."
    raise ConfigError(f"{spelled!r} is not a kind of value.", hint=hint)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as a side describes it.

    native: every value surely fits `kind.arrow()`; False where some may not (an infinite timestamp, a zero
    date, an integer wider than 64 bits, text that merely looks like numbers).
    declared: the type in the system's own words, for messages. collation: of text, where the system names one.
    """

    name: str
    kind: Kind
    native: bool = False
    nullable: bool = True
    declared: str = ""
    collation: str = ""


# Kinds whose values a text column may spell: text meets them by being parsed under their rules.
_TEXT_BECOMES = frozenset(KIND_NAMES) - {"text", "enum"}

_PAIRS: dict[frozenset[str], KindName] = {
    frozenset(("integer", "boolean")): "boolean",
    frozenset(("integer", "decimal")): "decimal",
    frozenset(("integer", "float")): "decimal",
    frozenset(("decimal", "float")): "decimal",
    frozenset(("decimal", "boolean")): "boolean",
    frozenset(("date", "timestamp")): "timestamp",
    frozenset(("time", "interval")): "interval",
    frozenset(("text", "enum")): "text",
    frozenset(("array", "json")): "json",
    frozenset(("bytes", "uuid")): "uuid",
}


def common_kind(left: Column, right: Column) -> tuple[Kind, bool]:
    """The kind both columns are compared as, and whether both can deliver it natively in Arrow.

    The result never hides a difference that either side can hold, with one exception: a 32-bit float
    against a 64-bit one is compared at 32 bits, the most that both can hold.

    Raises SchemaError where no rule makes the two comparable (wall-clock time against an instant without
    a declared zone; a date against a number).
    """
    a, b = left.kind, right.kind
    if a.name == b.name:
        kind = _same_name(left, right)
    elif "text" in (a.name, b.name) or "enum" in (a.name, b.name):
        other = b if a.name in ("text", "enum") else a
        kind = other if other.name in _TEXT_BECOMES else TEXT
        kind = replace(kind, scale=None, precision=None) if kind.name == "decimal" else kind
    else:
        name = _PAIRS.get(frozenset((a.name, b.name)))
        if name is None:
            raise _incomparable(left, right)
        kind = Kind(name, bits=min(a.bits, b.bits), aware=a.aware or b.aware)
    native = left.native and right.native and kind.arrow() is not None and _no_parsing(a, b, kind)
    return kind, native


def _same_name(left: Column, right: Column) -> Kind:
    a, b = left.kind, right.kind
    match a.name:
        case "decimal":
            if None in (a.scale, b.scale, a.precision, b.precision):
                return DECIMAL
            scale = max(a.scale or 0, b.scale or 0)
            whole = max((a.precision or 0) - (a.scale or 0), (b.precision or 0) - (b.scale or 0))
            return Kind("decimal", scale=scale, precision=whole + scale)
        case "float":
            return Kind("float", bits=min(a.bits, b.bits))
        case "timestamp" if a.aware != b.aware:
            raise _incomparable(left, right)
        case "array":
            item, _ = common_kind(Column(left.name, a.element), Column(right.name, b.element))
            return Kind("array", item=item)
        case _:
            return a


def _no_parsing(a: Kind, b: Kind, kind: Kind) -> bool:
    """Whether Arrow alone brings both columns to `kind`: same name and width, or text that stays text."""
    return all((k.name == kind.name and k.bits == kind.bits) or {k.name, kind.name} <= {"text", "enum"} for k in (a, b))


def _incomparable(left: Column, right: Column) -> SchemaError:
    a, b = left.kind, right.kind
    hint = "Declare one kind for both, for example --type NAME=text."
    if {a.name, b.name} == {"timestamp"}:
        hint = "Declare the zone of the side without one, for example --zone right=Europe/Berlin."
    return SchemaError(f"column {left.name}: {a} can't be compared with {right.name}: {b}.", hint=hint)
