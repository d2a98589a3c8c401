"""Arrow columns to canonical form: the vectorised twin of `canonical_text`.

Every fast path gives exactly what the reference gives, value for value, or leaves the value to it. Values that
no fast path takes are looked up one by one, each distinct value once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute

from trueup.model.canonical import canonical_text
from trueup.model.kinds import UUID_LENGTH, UUID_TEXT, Kind
from trueup.model.record import Field, key_text, version_of
from trueup.model.times import US_PER_DAY, date_text, parse_us, time_text, timestamp_text

Array: TypeAlias = "pa.Array[Any]"
# The kernels take Python values where their type stubs only know Arrow scalars.
pc: Any = pyarrow.compute
# Arrow prints years outside 1..9999 in its own way.
_DAYS: Final = (-719_162, 2_932_896)
_US: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_INTEGER: Final = r"^-?(?:0|[1-9]\d{0,99})$"
_VERSION: Final = r"^(?:0|-?[1-9]\d{0,17})$"
_PLAIN_DECIMAL: Final = r"^-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?$"
# At most 15 significant digits, at least 0.001: the shortest text of the nearest double is this text itself.
_SHORT_FLOAT: Final = r"^-?(?:0|[1-9]\d{0,6})(?:\.\d{0,7}[1-9])?$"
_TINY: Final = r"^-?0\.00"
_TIMESTAMP: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?$"
_UUID_BYTES: Final = 16
_UUID_DIGITS: Final = [at for at in range(UUID_LENGTH) if at not in (8, 13, 18, 23)]
_TEXTUAL: Final = ("text", "enum")


def delivered(array: Array, source: Kind, field: Field, zone: ZoneInfo | None = None) -> Array:
    """A raw column as a scan must deliver it: `field.kind.arrow()` where native, else canonical texts.

    array: as the reader gave it. source: the kind of the column as the side describes it. zone: the side's
    declared zone for wall-clock times.
    """
    native = field.kind.arrow() if field.native else None
    if native is not None:
        array = _in_microseconds(array)
        return array if array.type == native else array.cast(native)
    return canonical_array(array, field.kind, zone)


def texts(array: Array, field: Field) -> list[str | None]:
    """The canonical texts of a delivered column."""
    return text_array(array, field).to_pylist()


def text_array(array: Array, field: Field) -> Array:
    """The canonical texts of a delivered column, as an Arrow string array."""
    if not field.native or array.type == pa.string():
        return array
    return canonical_array(array, field.kind)


def native_array(texts: Array, kind: Kind) -> Array:
    """Canonical texts as `kind.arrow()`: the inverse of `text_array` where the field is native."""
    wanted = kind.arrow()
    if kind.name == "bytes":
        return pa.array([None if each is None else bytes.fromhex(each) for each in texts.to_pylist()], pa.binary())
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        # Years of five digits, which Arrow does not read.
        us = [None if each is None else parse_us(each, kind.aware, None) for each in texts.to_pylist()]
        if kind.name == "date":
            return pa.array([None if each is None else each // US_PER_DAY for each in us], pa.int32()).cast(wanted)
        return pa.array(us, pa.int64()).cast(wanted)


def key_texts(columns: Sequence[Array], fields: Sequence[Field]) -> list[str]:
    """The key texts of delivered key columns."""
    return list(key_text_array(columns, fields).to_pylist())


def key_text_array(columns: Sequence[Array], fields: Sequence[Field]) -> Any:
    """The same, as an array of text."""
    parts = [text_array(column, field) for column, field in zip(columns, fields, strict=True)]
    if any(part.null_count or pc.any(pc.match_substring_regex(part, r'["\\\x00-\x1f\x7f]')).as_py() for part in parts):
        return pa.array(list(map(key_text, zip(*(part.to_pylist() for part in parts), strict=True))), pa.string())
    joined = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _literal('","'))
    return pc.binary_join_element_wise(_literal('["'), joined, _literal('"]'), _literal(""))


def _literal(text: str) -> Any:
    """A scalar. Made by Arrow, it would import pandas where that is installed, which takes longer than many keys."""
    letters = text.encode()
    ends = struct.pack("=2i", 0, len(letters))
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(letters)])[0]


def versions(texts: Array, kind: Kind) -> Array:
    """Canonical texts as versions, int64; the vectorised twin of `version_of`."""
    known = _plain_versions(texts, kind)
    missed = pc.and_(texts.is_valid(), known.is_null())
    if not pc.any(missed, min_count=0).as_py():
        return known
    rest = [version_of(text, kind) for text in texts.filter(missed).to_pylist()]
    answer: Array = pc.replace_with_mask(known, missed, pa.array(rest, pa.int64()))
    return answer


def _plain_versions(texts: Array, kind: Kind) -> Array:
    """Null for what is left to the reference."""
    try:
        if kind.name == "integer":
            return _where(_matching(texts, _VERSION), texts).cast(pa.int64())
        if kind.name == "timestamp":
            bare = pc.utf8_rtrim(texts, "Z")
            fits = pc.and_(_matching(bare, _TIMESTAMP), pc.equal(pc.ends_with(texts, "Z"), pa.scalar(kind.aware)))
            return _where(fits, bare).cast(pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid:
        pass
    return pa.nulls(len(texts), pa.int64())


def canonical_array(array: Array, kind: Kind, zone: ZoneInfo | None = None) -> Array:
    """The canonical texts of a raw column under `kind`, as an Arrow string array.

    array: of any Arrow type. zone: as in `canonical_text`.
    """
    if isinstance(array, pa.DictionaryArray):
        return canonical_array(array.dictionary, kind, zone).take(array.indices)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    array = _in_microseconds(array)
    fast = _fast_path(array.type, kind)
    answer = pa.nulls(len(array), pa.string()) if fast is None else fast(array, kind)
    missed = pc.and_(array.is_valid(), answer.is_null())
    if not pc.any(missed, min_count=0).as_py():
        return answer
    rest = array if fast is None else array.filter(missed)
    found = _one_by_one(rest, kind, zone)
    return found if fast is None else pc.replace_with_mask(answer, missed, found)


# A fast path answers canonical texts, and null for what it leaves to the reference.
_Fast = Callable[[Array, Kind], Array]


def _fast_path(given: pa.DataType, kind: Kind) -> _Fast | None:
    types = pa.types
    name = kind.name
    if types.is_string(given):
        return _FROM_TEXT.get(name)
    if types.is_integer(given):
        if name in ("integer", "decimal", *_TEXTUAL):
            return lambda array, _: array.cast(pa.string())
        return _whole_number if name == "float" else None
    if types.is_boolean(given) and name in ("boolean", *_TEXTUAL):
        return lambda array, _: array.cast(pa.string())
    if types.is_floating(given) and name in ("float", "decimal", "integer", *_TEXTUAL):
        doubles = types.is_float64(given) and kind.bits == 64
        return _plain_float if doubles and name != "integer" else _whole_float
    if types.is_decimal(given) and given.scale >= 0 and name in ("decimal", *_TEXTUAL):
        return _decimal
    if types.is_date32(given) and name in ("date", *_TEXTUAL):
        return _date
    if types.is_timestamp(given) and given.unit == "us":
        aware = given.tz is not None
        if (name == "timestamp" and kind.aware == aware) or name in _TEXTUAL:
            return _timestamp
    if isinstance(given, pa.UuidType) and name in ("uuid", *_TEXTUAL):
        return _stored_uuid
    if types.is_fixed_size_binary(given) and given.byte_width == _UUID_BYTES and name == "uuid":
        return _hyphened
    if (types.is_binary(given) or types.is_fixed_size_binary(given)) and name == "bytes":
        return _hex
    return None


def _where(mask: Array, then: Array) -> Array:
    answer: Array = pc.if_else(mask, then, pa.scalar(None, pa.string()))
    return answer


def _matching(array: Array, pattern: str) -> Array:
    answer: Array = pc.match_substring_regex(array, pattern)
    return answer


def _without_zeros(array: Array) -> Array:
    """`1.50` → `1.5`, `2.00` → `2`, `0.0` and `-0.0` → `0`; integers stay."""
    has_point = pc.match_substring(array, ".")
    short = pc.utf8_rtrim(pc.utf8_rtrim(array, "0"), ".")
    whole = pc.if_else(has_point, short, array)
    answer: Array = pc.if_else(pc.equal(whole, "-0"), "0", whole)
    return answer


def _text_to_integer(array: Array, _: Kind) -> Array:
    return _where(_matching(array, _INTEGER), pc.if_else(pc.equal(array, "-0"), "0", array))


def _text_to_decimal(array: Array, _: Kind) -> Array:
    return _where(_matching(array, _PLAIN_DECIMAL), _without_zeros(array))


def _text_to_float(array: Array, kind: Kind) -> Array:
    short = _without_zeros(array)
    plain = pc.and_(_matching(array, _PLAIN_DECIMAL), _matching(short, _SHORT_FLOAT))
    sure = pc.and_(plain, pc.invert(_matching(short, _TINY)))
    return _where(pc.and_(sure, pa.scalar(kind.bits == 64)), short)


def _text_to_timestamp(array: Array, kind: Kind) -> Array:
    bare = pc.replace_substring_regex(array, r"(?:Z|\+00(?::?00)?)$", "") if kind.aware else array
    fits = _matching(bare, _TIMESTAMP)
    if kind.aware:
        fits = pc.and_(fits, pc.not_equal(bare, array))
    try:
        times = _where(fits, bare).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        # A day or an hour that does not exist: which of them, the reference will say.
        return pa.nulls(len(array), pa.string())
    return _timestamp(times, kind)


def _whole_number(array: Array, kind: Kind) -> Array:
    small = pc.less(pc.abs(array.cast(pa.float64(), safe=False)), _whole_max(kind))
    return _where(small, array.cast(pa.string()))


def _whole_float(array: Array, kind: Kind) -> Array:
    wide = array.cast(pa.float64())
    whole = pc.and_(pc.equal(wide, pc.trunc(wide)), pc.less(pc.abs(wide), _whole_max(kind)))
    kept = pc.if_else(whole, wide, pa.scalar(None, pa.float64()))
    answer: Array = kept.cast(pa.int64()).cast(pa.string())
    return answer


def _plain_float(array: Array, kind: Kind) -> Array:
    """Whole numbers, and fractions that are short: Arrow's text of one reads back as it, and no other as short does."""
    shown = array.cast(pa.string())
    plain = pc.and_(_matching(shown, _SHORT_FLOAT), pc.invert(_matching(shown, _TINY)))
    answer: Array = pc.coalesce(_whole_float(array, kind), _where(plain, shown))
    return answer


def _whole_max(kind: Kind) -> float:
    """Below this, a float without a fraction is exact and prints as its integer."""
    return 2.0**24 if kind.bits == 32 else 2.0**53


def _decimal(array: Array, _: Kind) -> Array:
    spelled = array.cast(pa.string())
    plain = spelled if array.type.scale == 0 else _without_zeros(spelled)
    # Arrow writes small numbers as 1E-7.
    return _where(pc.invert(pc.match_substring(spelled, "E")), plain)


def _date(array: Array, _: Kind) -> Array:
    days = array.cast(pa.int32())
    usual = pc.and_(pc.greater_equal(days, _DAYS[0]), pc.less_equal(days, _DAYS[1]))
    answer: Array = pc.if_else(usual, array, pa.scalar(None, array.type)).cast(pa.string())
    return answer


def _timestamp(array: Array, kind: Kind) -> Array:
    aware = kind.aware or array.type.tz is not None
    us = array.cast(pa.int64())
    usual = pc.and_(pc.greater_equal(us, _US[0]), pc.less_equal(us, _US[1]))
    bare = pc.if_else(usual, us, pa.scalar(None, pa.int64())).cast(pa.timestamp("us")).cast(pa.string())
    shown = pc.utf8_rtrim(pc.utf8_rtrim(pc.replace_substring(bare, " ", "T"), "0"), ".")
    answer: Array = pc.binary_join_element_wise(shown, "Z", "") if aware else shown
    return answer


def _hex(array: Array, _: Kind) -> Array:
    return pa.array([None if value is None else value.hex() for value in array.to_pylist()], pa.string())


def _hyphened(array: Array, _: Kind) -> Array:
    """UUIDs of sixteen bytes each, one digit after the other, of all rows at once."""
    rows, stored = len(array), array.buffers()[1]
    if not rows or stored is None:
        return pa.nulls(rows, pa.string())
    digits = stored[_UUID_BYTES * array.offset :][: _UUID_BYTES * rows].to_pybytes().hex().encode()
    spelled = bytearray(b"-" * (UUID_LENGTH * rows))
    for at, place in enumerate(_UUID_DIGITS):
        spelled[place::UUID_LENGTH] = digits[at :: 2 * _UUID_BYTES]
    ends = pc.cumulative_sum(pa.repeat(pa.scalar(UUID_LENGTH, pa.int32()), rows + 1), start=-UUID_LENGTH)
    texts = pa.Array.from_buffers(pa.string(), rows, [None, ends.buffers()[1], pa.py_buffer(spelled)])
    return _where(array.is_valid(), texts) if array.null_count else texts


def _stored_uuid(array: Any, kind: Kind) -> Array:
    return _hyphened(array.storage, kind)


def _text_to_uuid(array: Array, _: Kind) -> Array:
    return _where(_matching(array, UUID_TEXT), array)


def _same_text(array: Array, _: Kind) -> Array:
    return array


_FROM_TEXT: dict[str, _Fast] = {
    "text": _same_text,
    "enum": _same_text,
    "integer": _text_to_integer,
    "decimal": _text_to_decimal,
    "float": _text_to_float,
    "timestamp": _text_to_timestamp,
    "uuid": _text_to_uuid,
}


def _one_by_one(array: Array, kind: Kind, zone: ZoneInfo | None) -> Array:
    """The reference, asked once for each distinct value."""
    try:
        encoded = array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([canonical_text(value, kind, zone) for value in _values(array)], pa.string())
    distinct = [canonical_text(value, kind, zone) for value in _values(encoded.dictionary)]
    return pa.array(distinct, pa.string()).take(encoded.indices)


def _values(array: Array) -> list[Any]:
    """Python values, or the texts of those that Python's types can't hold."""
    types = pa.types
    if types.is_time(array.type):
        times: Array = array.cast(pa.time64("us"))
        return _within(times, times.cast(pa.int64()), (0, US_PER_DAY - 1), time_text)
    if types.is_timestamp(array.type):
        aware, us = array.type.tz is not None, array.cast(pa.int64())
        return _within(array, us, _US, lambda each: timestamp_text(each, aware))
    if types.is_date32(array.type):
        return _within(array, array.cast(pa.int32()), _DAYS, date_text)
    return array.to_pylist()


def _within(array: Array, numbers: Array, bounds: tuple[int, int], spell: Callable[[int], str]) -> list[Any]:
    low, high = bounds
    usual = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    known = pc.if_else(usual, array, pa.scalar(None, array.type)).to_pylist()
    return [
        spell(number) if value is None and number is not None else value
        for value, number in zip(known, numbers.to_pylist(), strict=True)
    ]


def _in_microseconds(array: Array) -> Array:
    """Times of other units as microseconds; further digits are rounded half up, as the reference rounds text."""
    types, given = pa.types, array.type
    if types.is_date64(given):
        return array.cast(pa.date32())
    if types.is_timestamp(given) and given.unit != "us":
        wanted: pa.DataType = pa.timestamp("us", given.tz)
    elif types.is_duration(given) and given.unit != "us":
        wanted = pa.duration("us")
    elif types.is_time(given) and given.unit != "us":
        wanted = pa.time64("us")
    else:
        return array
    if given.unit != "ns":
        return array.cast(wanted)
    ns = array.cast(pa.int64())
    cut = pc.divide(ns, 1000)
    rest = pc.subtract(ns, pc.multiply(cut, 1000))
    up = pc.greater_equal(rest, 500).cast(pa.int64())
    down = pc.less(rest, -500).cast(pa.int64())
    answer: Array = pc.subtract(pc.add(cut, up), down).cast(wanted)
    return answer
