"""Types of Spark as kinds, and which of them Spark can hold against each other."""

from __future__ import annotations

from typing import Any, Final

from trueup.model import kinds
from trueup.model.kinds import Kind

_FAMILIES: Final = {
    "boolean": "boolean",
    "byte": "whole", "short": "whole", "integer": "whole", "long": "whole",
    "decimal": "decimal", "float": "float", "double": "float",
    "string": "text", "char": "text", "varchar": "text", "void": "void",
    "binary": "bytes", "date": "date", "timestamp": "instant", "timestamp_ntz": "wall",
    "array": "nested", "struct": "nested", "map": "nested",
}  # fmt: skip
_KINDS: Final = {
    "boolean": kinds.BOOLEAN, "whole": kinds.INTEGER, "text": kinds.TEXT, "void": kinds.TEXT, "bytes": kinds.BYTES,
    "date": kinds.DATE, "instant": kinds.INSTANT, "wall": kinds.TIMESTAMP, "time": kinds.TIME,
    "days": kinds.INTERVAL, "months": kinds.INTERVAL, "nested": kinds.JSON, "other": kinds.TEXT,
}  # fmt: skip
NUMBERS: Final = frozenset(("whole", "decimal", "float"))
_SCALARS: Final = frozenset(("boolean", "bytes", "date", "instant", "wall", "time", *NUMBERS))
# What meets beyond one and the same family.
_MEETING: Final = frozenset(
    frozenset(pair)
    for pair in (
        ("whole", "decimal"), ("whole", "float"), ("decimal", "float"), ("whole", "boolean"), ("decimal", "boolean"),
        ("date", "wall"), *(("text", scalar) for scalar in _SCALARS),
    )
)  # fmt: skip


def family(type_: Any) -> str:
    """What a Spark type is as far as its values are concerned; `other` for what is not understood."""
    # Names of these carry how precise they are.
    unlike = {"TimeType": "time", "DayTimeIntervalType": "days", "YearMonthIntervalType": "months"}
    return unlike.get(type(type_).__name__) or _FAMILIES.get(type_.typeName(), "other")


def kind_of(type_: Any) -> Kind:
    """The kind that holds every value of a Spark type."""
    match family(type_):
        case "decimal":
            return Kind("decimal", scale=type_.scale, precision=type_.precision)
        case "float":
            return kinds.FLOAT if type_.typeName() == "double" else Kind("float", bits=32)
        case "nested" if type_.typeName() == "array":
            item = kind_of(type_.elementType)
            return kinds.JSON if item == kinds.JSON else Kind("array", item=item)
        case known:
            return _KINDS[known]


def readable(type_: Any) -> bool:
    """Whether values of the type can be brought here."""
    match family(type_):
        case "other":
            return False
        case "nested":
            return all(readable(each) and family(each) != "months" for each in _parts(type_))
        case _:
            return True


def meet(left: Any, right: Any) -> bool:
    """Whether Spark can tell of values of two types that they are surely equal."""
    a, b = family(left), family(right)
    if a == b == "nested":
        return bool(_shape(left) == _shape(right))
    return "void" in (a, b) or (a == b and a != "other") or frozenset((a, b)) in _MEETING


def _parts(type_: Any) -> list[Any]:
    match type_.typeName():
        case "array":
            return [type_.elementType]
        case "map":
            return [type_.keyType, type_.valueType]
        case _:
            return [each.dataType for each in type_.fields]


def _shape(type_: Any) -> Any:
    """A type without what says nothing about values: whether null may occur, comments."""
    if family(type_) != "nested":
        return type_
    names = [each.name for each in type_.fields] if type_.typeName() == "struct" else []
    return type_.typeName(), names, [_shape(each) for each in _parts(type_)]
