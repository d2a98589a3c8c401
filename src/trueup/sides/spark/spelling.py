"""Values as texts, spelled by Spark: the judged canonical text where Spark can, else a mark and the value itself.

Of two values with equal texts the judged canonical texts are equal too. The reverse holds only where both are spelled
canonically, so what Spark finds unequal is still judged by the reference. No canonical text begins like a marked one.

Each function takes a column of the family that it is named for, and gives null for null.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from pyspark.sql import functions as F  # noqa: N812  what everybody calls it

from trueup.model.kinds import Kind
from trueup.model.record import Field, Rule
from trueup.sides.spark.types import NUMBERS, family, kind_of

Column: TypeAlias = Any
_TEXTUAL: Final = ("text", "enum")
# Digits that every decimal text keeps on its way through a float and back: if one with no more of them reads as the
# float, it is its shortest text (C11 §5.2.4.2.2, DBL_DIG and FLT_DIG).
_DIGITS: Final = {64: 15, 32: 6}
_PLACES: Final = 15
_DIGITS_MAX: Final = 38
# str.strip() on ASCII text; the control characters FS, GS, RS and US are white space to Python.
_BLANK: Final = " \t\n\r\v\f\x1c\x1d\x1e\x1f"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{0,5}[1-9])?"
# What a text has to look like to be its own canonical text.
_CANONICAL: Final = {
    "boolean": r"\A(true|false)\z",
    "integer": r"\A(0|-?[1-9]\d*)\z",
    "decimal": r"\A(0|-?(0|[1-9]\d*)\.\d*[1-9]|-?[1-9]\d*)\z",
    "float": r"\A(0|-?0\.0{0,2}[1-9]\d{0,11}|-?[1-9]\d{0,6}(\.\d{0,7}[1-9])?)\z",
    "bytes": r"\A([0-9a-f]{2})*\z",
    "uuid": r"\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z",
    "date": r"\A\d{4}-\d\d-\d\d\z",
    "time": rf"\A{_CLOCK}\z",
    "timestamp": rf"\A\d{{4}}-\d\d-\d\dT{_CLOCK}\z",
    "instant": rf"\A\d{{4}}-\d\d-\d\dT{_CLOCK}Z\z",
}  # fmt: skip
# Within these, Spark and Python write a float without an exponent.
_PLAIN: Final = (1e-3, 1e15)
_PLAIN_NUMBER: Final = r"\A-?(0|[1-9]\d{0,18})(\.\d{1,15})?\z"


def judged(column: Column, type_: Any, field: Field) -> Column:
    """The text of a value under the kind and the rule of its field. type_: of the column."""
    known, kind, rule = family(type_), field.kind, field.rule
    if kind.name in ("decimal", "integer") and known in NUMBERS | {"text"}:
        return _number(column, type_, kind, rule)
    text = _spelled(column, type_, kind)
    return _folded(text, rule) if kind.name in _TEXTUAL else text


def itself(column: Column, type_: Any, other: Any, field: Field) -> Column | None:
    """The value as it is, which is cheaper than its text; None where types or a rule do not allow it.

    type_, other: of this column and of the one that it is compared with. Of two values of one type, equal ones are
    judged equal under any kind.
    """
    rule, known = field.rule, family(type_)
    if rule.places is not None or rule.trim or rule.casefold or rule.nfc or known != family(other):
        return None
    match known:
        case "whole":
            return column.cast("bigint")
        case "text":
            return F.collate(column.cast("string"), "UTF8_BINARY")
        case "decimal" | "float" if type_ == other:
            return column
        case "boolean" | "bytes" | "date" | "instant" | "wall":
            return column
    return None


def framed(text: Column) -> Column:
    """A text as it goes into a digest (`trueup.model.digest`)."""
    return F.coalesce(F.concat(F.octet_length(text).cast("string"), F.lit(":"), text), F.lit("~"))


def near(column: Column, type_: Any, field: Field) -> Column:
    """A double near a value (of a time, its microseconds), for tolerances; null for what is no finite number."""
    match family(type_), field.kind.name:
        case "instant", "timestamp":
            number = F.unix_micros(column).cast("double")
        case "wall", "timestamp":
            number = F.timestamp_diff("MICROSECOND", _epoch(), column).cast("double")
        case (("whole" | "decimal" | "float"), "integer" | "decimal" | "float"):
            number = _near(column, type_, field)
        case "text", "integer" | "decimal" | "float":
            number = _near(F.when(F.rlike(column, F.lit(_PLAIN_NUMBER)), column), type_, field)
        case _:
            number = F.lit(None).cast("double")
    return F.when((F.abs(number) < F.lit(float("inf"))) & ~F.isnan(number), number)


def _near(column: Column, type_: Any, field: Field) -> Column:
    if field.rule.places is None:
        return column.try_cast("double")
    return _rounded(*_exact(column, type_, field.kind), field.rule.places).cast("double")


def _marked(column: Column) -> Column:
    return F.concat(F.lit("?"), column.cast("string"))


def _spelled(column: Column, type_: Any, kind: Kind) -> Column:
    """Everything but numbers under rules."""
    known = family(type_)
    own = kind_of(type_)
    match known, kind.name:
        case "void", _:
            return F.lit(None).cast("string")
        case "text", "text" | "enum":
            return F.collate(column.cast("string"), "UTF8_BINARY")
        case "text", _:
            return _text(column.cast("string"), kind)
        case (("whole" | "decimal"), "boolean"):
            return F.when(column == 1, "true").when(column == 0, "false").otherwise(_marked(column))
        case (("whole" | "decimal"), "text" | "enum"):
            return _stripped(column.cast("string"))
        case "float", "float" | "text" | "enum":
            return _float(column, kind)
        case "date", "timestamp" if not kind.aware:
            return F.concat(column.cast("string"), F.lit("T00:00:00"))
        case (("boolean" | "bytes" | "date" | "time" | "days" | "months" | "nested"), _):
            return _by_family(column, type_, kind)
        case (("instant" | "wall"), "timestamp" | "text" | "enum"):
            moment = _timestamp(column, known)
            return moment if kind.name != "timestamp" or kind.aware == own.aware else _marked(moment)
    return _marked(column)


def _by_family(column: Column, type_: Any, kind: Kind) -> Column:
    match family(type_), kind.name:
        case ("boolean", "boolean" | "text" | "enum") | ("date", "date" | "text" | "enum"):
            return column.cast("string")
        case "time", "time" | "text" | "enum":
            return column.cast("string")
        case "bytes", "bytes" | "text" | "enum":
            return F.lower(F.hex(column))
        case "bytes", "uuid":
            grouped = F.regexp_replace(F.lower(F.hex(column)), "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
            return F.when(F.octet_length(column) == 16, grouped).otherwise(_marked(F.hex(column)))
        case "bytes", _:
            return _marked(F.hex(column))
        case "days", _:
            return _marked(column.cast("interval day to second"))
        case "months", _:
            return _marked(column.cast("interval month"))
        case "nested", _:
            return _marked(_nested(column, type_))
    return _marked(column)


def _text(column: Column, kind: Kind) -> Column:
    """Text that is met as another kind."""
    name = "instant" if kind.name == "timestamp" and kind.aware else kind.name
    pattern = _CANONICAL.get(name)
    if pattern is None or (name == "float" and kind.bits == 32):
        return _marked(column)
    fits = F.rlike(column, F.lit(pattern))
    if name in ("date", "timestamp", "instant"):
        fits &= F.substring(column, 1, 10).try_cast("date").isNotNull()
    return F.when(fits, column).otherwise(_marked(column))


def _folded(text: Column, rule: Rule) -> Column:
    if not (rule.trim or rule.casefold or rule.nfc):
        return text
    answer = F.btrim(text, F.lit(_BLANK)) if rule.trim else text
    answer = F.lower(answer) if rule.casefold else answer
    return F.when(F.rlike(text, F.lit(r"\A[\x00-\x7f]*\z")), answer).otherwise(_marked(text))


def _number(column: Column, type_: Any, kind: Kind, rule: Rule) -> Column:
    """Under kind decimal or integer."""
    known = family(type_)
    if known == "whole" and (rule.places is None or rule.places >= 0):
        return column.cast("string")
    if known == "text" and rule.places is None:
        return _text(column.cast("string"), kind)
    exact, digits, scale = _exact(column, type_, kind)
    if kind.name == "integer":
        exact = F.when(~F.contains(_stripped(exact.cast("string")), F.lit(".")), exact)
    text = _stripped(_rounded(exact, digits, scale, rule.places).cast("string"))
    return F.when(column.isNotNull(), F.coalesce(text, _marked(column)))


def _exact(column: Column, type_: Any, kind: Kind) -> tuple[Column, int, int]:
    """The number as a decimal, null where Spark can't tell it exactly; its digits and those after the point."""
    match family(type_):
        case "decimal":
            return column, type_.precision, type_.scale
        case "whole":
            return column.cast("decimal(20,0)"), 20, 0
        case "text":
            plain = F.when(F.rlike(column, F.lit(_PLAIN_NUMBER)), column)
            return plain.try_cast(f"decimal({_DIGITS_MAX},{_PLACES})"), _DIGITS_MAX, _PLACES
        case _:
            value = column.cast("float" if kind.bits == 32 else "double")
            return _shortest(value, kind.bits), _DIGITS_MAX, _PLACES


def _shortest(column: Column, bits: int) -> Column:
    """The shortest decimal that reads as this float; null where it may have more digits than are surely kept."""
    decimal = column.cast("string").try_cast(f"decimal(38,{_PLACES})")
    digits = F.regexp_replace(_stripped(decimal.cast("string")), r"^-?0*\.?0*|[.]", "")
    sure = (F.length(digits) <= _DIGITS[bits]) & (decimal.cast("float" if bits == 32 else "double") == column)
    return F.when(sure, decimal)


def _rounded(decimal: Column, digits: int, scale: int, places: int | None) -> Column:
    """Null where the result may need more digits than Spark has."""
    if places is None or places >= max(scale, 0):
        return decimal
    if digits - scale + 1 + max(places, 0) > _DIGITS_MAX:
        return F.lit(None).cast("decimal(1,0)")
    # Half up of Spark is away from zero, as the reference has it.
    return F.round(decimal, places)


def _stripped(text: Column) -> Column:
    """`1.50` → `1.5`, `2.00` → `2`; integers stay. What has an exponent is marked."""
    plain = F.when(F.contains(text, F.lit(".")), F.regexp_replace(text, r"\.?0+$", "")).otherwise(text)
    return F.when(F.contains(text, F.lit("E")), _marked(text)).otherwise(plain)


def _float(column: Column, kind: Kind) -> Column:
    bits = kind.bits
    value = column.cast("float" if bits == 32 else "double")
    size = F.abs(value)
    plain = _stripped(_shortest(value, bits).cast("string"))
    # What no float of 32 bits can hold is not infinity.
    wide = (size == F.lit(float("inf"))) & (F.abs(column) != F.lit(float("inf")))
    return (
        F.when(F.isnan(value), "nan")
        .when(value == 0, "0")
        .when(wide, F.concat(F.lit("?wide "), column.cast("string")))
        .when(size == F.lit(float("inf")), F.when(value > 0, "infinity").otherwise("-infinity"))
        .when((size >= _PLAIN[0]) & (size < _PLAIN[1]) & plain.isNotNull(), plain)
        .otherwise(_marked(value))
    )


def _epoch() -> Column:
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")


def _timestamp(column: Column, known: str) -> Column:
    # An instant goes by its microseconds: its own text would be that of the session's time zone.
    wall = F.timestamp_add("MICROSECOND", F.unix_micros(column), _epoch()) if known == "instant" else column
    text = F.replace(wall.cast("string"), F.lit(" "), F.lit("T"))
    return F.concat(text, F.lit("Z")) if known == "instant" else text


def _nested(column: Column, type_: Any) -> Column:
    """A text of arrays, structs and maps that is equal only for equal values; framed, so that parts can't flow over."""
    match type_.typeName():
        case "array":
            parts = F.transform(column, lambda each: framed(_part(each, type_.elementType)))
            return F.concat(F.size(column).cast("string"), F.lit("["), F.array_join(parts, ""))
        case "map":
            entries = F.transform(
                F.map_entries(column),
                lambda each: F.concat(
                    framed(_part(each["key"], type_.keyType)), framed(_part(each["value"], type_.valueType))
                ),
            )
            return F.concat(F.size(column).cast("string"), F.lit("{"), F.array_join(F.array_sort(entries), ""))
        case _:
            parts = [framed(_part(column.getField(each.name), each.dataType)) for each in type_.fields]
            return F.when(column.isNotNull(), F.concat(F.lit("("), *parts))


def _part(column: Column, type_: Any) -> Column:
    if family(type_) == "float":
        # Among others, -0 and 0 are not always one and the same to the reference.
        return column.cast("string")
    return judged(column, type_, Field("", "", kind_of(type_)))
