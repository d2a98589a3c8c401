"""Keys as Spark groups and joins by them: equal exactly where their canonical texts are."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F  # noqa: N812  what everybody calls it

from trueup.errors import SchemaError
from trueup.model.kinds import Kind
from trueup.model.record import Field
from trueup.sides.spark.spelling import Column, judged
from trueup.sides.spark.types import family, kind_of

_DIGITS_MAX = 38
_TEXTUAL = ("text", "enum")


def key_columns(left: tuple[Column, Any], right: tuple[Column, Any], field: Field) -> tuple[Column, Column]:
    """One key column of each side, brought to one type. left, right: column and its Spark type.

    Raises SchemaError where Spark can't tell exactly which of their values are equal.
    """
    cast = _common(left[1], right[1], field.kind)
    if cast is None:
        a, b = (each[1].simpleString() for each in (left, right))
        raise SchemaError(
            f"key column {field.name}: Spark can't match {a} with {b} as {field.kind}.",
            hint="Cast one of them to the type of the other, or compare without Spark.",
        )
    if cast == "":
        return judged(*left, field), judged(*right, field)
    if cast == "string":
        # A collation may hold different texts for equal.
        return F.collate(left[0].cast(cast), "UTF8_BINARY"), F.collate(right[0].cast(cast), "UTF8_BINARY")
    return left[0].cast(cast), right[0].cast(cast)


def _common(left: Any, right: Any, kind: Kind) -> str | None:
    """The Spark type in which both are equal exactly where they are canonically; "" for the canonical text."""
    a, b = family(left), family(right)
    if {a, b} == {"whole", "decimal"} and kind.name == "decimal":
        return ""
    if a != b or (kind_of(left).name != kind.name and not (a == "text" and kind.name in _TEXTUAL)):
        return None
    match a:
        case "decimal":
            scale = max(left.scale, right.scale)
            digits = scale + max(left.precision - left.scale, right.precision - right.scale)
            return f"decimal({digits},{scale})" if digits <= _DIGITS_MAX else ""
        case "float":
            return left.simpleString() if left == right else None
        case "instant" | "wall":
            return left.simpleString() if kind.aware == (a == "instant") else None
        case "time":
            return f"time({max(left.precision, right.precision)})"
        case "nested" | "void" | "other":
            return None
    return {"whole": "bigint", "text": "string", "bytes": "binary", "days": "interval day to second",
            "months": "interval month"}.get(a, a)  # fmt: skip
