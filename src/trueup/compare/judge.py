"""Rules on whole columns: the vectorised twin of `Rule.judged` and `Rule.same`.

What can't be told exactly on columns is asked of the reference, value by value.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from trueup.model.columns import text_array
from trueup.model.record import Field

Array: TypeAlias = "pa.Array[Any]"
# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute

_TEXTUAL: Final = ("text", "enum")
_NUMERIC: Final = ("integer", "decimal", "float")
# str.strip() on ASCII text; the control characters FS, GS, RS and US are white space to Python.
_ASCII_BLANK: Final = " \t\n\r\v\f\x1c\x1d\x1e\x1f"
_NUMBER: Final = r"^-?\d+(?:\.\d+)?(?:e[+-]\d+)?$"
_INSTANT: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z?$"
# Far above what reading a decimal text into a double and one subtraction can be off, relatively.
_DOUBT: Final = 1e-14


def judged(array: Array, field: Field) -> Array:
    """The values that are compared and digested: native, or canonical texts, as the column came."""
    rule, kind = field.rule, field.kind
    if kind.name in _TEXTUAL and (rule.trim or rule.casefold or rule.nfc):
        return _folded(array, field)
    if rule.places is not None and kind.name in ("decimal", "integer"):
        return _rounded(array, field, rule.places)
    return array


def same(left: Array, right: Array, field: Field) -> Array:
    """Whether the rule judges each pair of values equal; `left` is the authority's. Booleans without null.

    left, right: delivered columns of equal length.
    """
    a, b = judged(left, field), judged(right, field)
    equal = _equal(a, b)
    if field.rule.fill:
        filled: Array = pc.or_(equal, b.is_valid())
        return filled
    if not field.rule.tolerant:
        return equal
    open_ = pc.and_(pc.invert(equal), pc.and_(a.is_valid(), b.is_valid()))
    if not pc.any(open_, min_count=0).as_py():
        return equal
    answer: Array = pc.replace_with_mask(equal, open_, _within(a.filter(open_), b.filter(open_), field))
    return answer


def _equal(a: Array, b: Array) -> Array:
    alike = pc.fill_null(pc.equal(a, b), fill_value=False)
    alike = pc.or_(alike, pc.and_(a.is_null(), b.is_null()))
    if pa.types.is_floating(a.type):
        alike = pc.or_(alike, pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), fill_value=False))
    answer: Array = alike
    return answer


def _folded(array: Array, field: Field) -> Array:
    rule = field.rule
    if not pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        return _by_reference(array, field)
    trimmed: Array = pc.utf8_trim(array, _ASCII_BLANK) if rule.trim else array
    answer: Array = pc.ascii_lower(trimmed) if rule.casefold else trimmed
    return answer


def _rounded(array: Array, field: Field, places: int) -> Array:
    if pa.types.is_decimal(array.type):
        if places >= array.type.scale:
            return array
        # Ties away from zero, as the reference. Rounding up may need one digit more than the type has.
        whole = array.type.precision - array.type.scale + 1
        wide = pa.decimal256(array.type.precision + 1, array.type.scale)
        rounded = pc.round(array.cast(wide), ndigits=places, round_mode="half_towards_infinity")
        answer: Array = rounded.cast(pa.decimal128(whole + max(places, 0), max(places, 0)))
        return answer
    if places >= 0 and pa.types.is_integer(array.type):
        return array
    return _by_reference(text_array(array, field), field)


def _by_reference(texts: Array, field: Field) -> Array:
    encoded = texts.dictionary_encode()
    distinct = [field.rule.judged(text, field.kind) for text in encoded.dictionary.to_pylist()]
    return pa.array(distinct, pa.string()).take(encoded.indices)


def _within(a: Array, b: Array, field: Field) -> Array:
    """Whether unequal values lie within the tolerance. Doubles decide where they can; the rest is exact."""
    x, y = _numbers(a, field), _numbers(b, field)
    finite = pc.fill_null(pc.and_(pc.is_finite(x), pc.is_finite(y)), fill_value=False)
    gap = pc.abs(pc.subtract(x, y))
    size = pc.add(pc.abs(x), pc.abs(y))
    limit = _limit(field, x)
    doubt = pc.multiply(pc.add(size, limit), _DOUBT)
    surely = pc.and_(finite, pc.fill_null(pc.less_equal(pc.add(gap, doubt), limit), fill_value=False))
    surely_not = pc.and_(finite, pc.fill_null(pc.greater(pc.subtract(gap, doubt), limit), fill_value=False))
    open_ = pc.invert(pc.or_(surely, surely_not))
    pairs = zip(*(text_array(each.filter(open_), field).to_pylist() for each in (a, b)), strict=True)
    exact = pa.array([field.rule.same(left, right, field.kind) for left, right in pairs], pa.bool_())
    answer: Array = pc.replace_with_mask(surely, open_, exact)
    return answer


def _limit(field: Field, x: Array) -> Array:
    rule = field.rule
    numeric = field.kind.name in _NUMERIC
    least = _double(rule.absolute) if numeric else _double(rule.seconds) * 1e6
    relative = pc.multiply(pc.abs(x), _double(rule.relative) if numeric else 0.0)
    answer: Array = pc.max_element_wise(relative, least, skip_nulls=False)
    return answer


def _double(bound: Decimal | None) -> float:
    return 0.0 if bound is None else float(bound)


def _numbers(array: Array, field: Field) -> Array:
    """Doubles near the values (microseconds for times); null for what is no finite number."""
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64()).cast(pa.float64(), safe=False)
    if not pa.types.is_string(array.type):
        return array.cast(pa.float64(), safe=False)
    numeric = field.kind.name in _NUMERIC
    fits = pc.match_substring_regex(array, _NUMBER if numeric else _INSTANT)
    known = pc.if_else(fits, array, pa.scalar(None, pa.string()))
    if numeric:
        doubles: Array = known.cast(pa.float64())
        return doubles
    try:
        times = pc.utf8_rtrim(known, "Z").cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pa.nulls(len(array), pa.float64())
    answer: Array = times.cast(pa.int64()).cast(pa.float64(), safe=False)
    return answer
