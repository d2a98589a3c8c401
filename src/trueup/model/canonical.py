"""The canonical text of a value: one rule for each kind, the same for every system.

This module is the reference. Arrow and SQL versions of a rule exist only for speed and are tested to give
these texts byte for byte. The rules are written for users in docs/concepts/canonical-values.md.

A value that its kind can't hold (2 in a boolean, a zero date, "12,5" in a decimal) is not an error and is
never bent into shape: its text is `!` and the raw text, which equals only the same oddity.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from trueup.model.kinds import TEXT, Kind
from trueup.model.numbers import (
    INT_DIGITS_MAX,
    ODD,
    WIDE,
    Unfit,
    decimal_text,
    float_text,
    int_text,
    to_decimal,
)
from trueup.model.times import (
    date_text,
    interval_text,
    parse_date,
    parse_interval,
    parse_time,
    parse_timestamp,
    time_text,
    timedelta_us,
    timestamp_text,
    timestamp_us,
)

_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)\Z", re.ASCII)
_HEX = re.compile(r"(?:\\x|0x)?((?:[0-9a-f]{2})*)\Z", re.IGNORECASE | re.ASCII)
_UUID = re.compile(r"(?:urn:uuid:)?\{?([0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12})\}?\Z", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_FALSE, _TRUE = frozenset(("0", "f", "false")), frozenset(("1", "t", "true"))


def canonical_text(value: object, kind: Kind, zone: ZoneInfo | None = None) -> str | None:
    """The canonical text of `value` under `kind`; None for null.

    value: what a driver or file gave: a Python scalar, text to be parsed, or a list or dict.
    zone: the declared zone of wall-clock times where `kind` is an instant.
    """
    if value is None:
        return None
    try:
        return _RULES[kind.name](value, kind, zone)
    except (Unfit, ValueError, ArithmeticError, RecursionError):
        return ODD + plain_text(value)


def is_odd(text: str | None, kind: Kind) -> bool:
    """Whether `text` is an oddity: a value that its kind can't hold."""
    return text is not None and kind.name not in ("text", "enum") and text.startswith(ODD)


def plain_text(value: object) -> str:
    """`value` as text without any declared kind: the rule of the kind that its Python type suggests."""
    from trueup.model.natural import kind_of  # noqa: PLC0415  natural is the inverse of this module

    if isinstance(value, str):
        return value
    kind = kind_of(value)
    if kind is not TEXT:
        try:
            return _RULES[kind.name](value, kind, None)
        except (Unfit, ValueError, ArithmeticError, RecursionError):
            pass
    return _python_text(value)


def _python_text(value: object) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def _boolean(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    match value:
        case bool() | int() | float() | decimal.Decimal() if value in (0, 1):
            return "true" if value else "false"
        case str():
            text = value.strip().lower()
            if text in _TRUE:
                return "true"
            if text in _FALSE:
                return "false"
    raise Unfit


def _integer(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    if isinstance(value, int):
        return int_text(int(value))
    if isinstance(value, str):
        if _INTEGER.match(value):
            return "0" if value == "-0" else value
        # "007" is not 7: a key, account or postal code must not lose its zeros on the way to a number.
        if not re.match(r"-?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?\Z", value, re.ASCII):
            raise Unfit
    number = to_decimal(value)
    if not number.is_finite() or number != number.to_integral_value(context=WIDE):
        raise Unfit
    return decimal_text(number)


def _decimal(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    number = to_decimal(value, kind.bits)
    if number.is_nan():
        return "nan"
    if number.is_infinite():
        return "infinity" if number > 0 else "-infinity"
    return decimal_text(number)


def _float(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    if isinstance(value, str):
        value = to_decimal(value)
    if not isinstance(value, float | int | decimal.Decimal):
        raise Unfit
    number = float(value)
    # A finite number beyond the widest float is not infinity.
    if math.isinf(number) and value != number:
        raise Unfit
    return float_text(number, kind.bits)


def _text(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    return plain_text(value)


def _bytes(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, str) and (found := _HEX.match(value.strip())):
        return found[1].lower()
    raise Unfit


def _uuid(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return str(uuid.UUID(bytes=bytes(value)))
    # uuid.UUID alone would take signs, blanks and underscores for digits.
    if isinstance(value, str) and (found := _UUID.match(value.strip().lower())):
        return str(uuid.UUID(found[1]))
    raise Unfit


def _date(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    match value:
        case dt.datetime():
            if value.time() != dt.time(0):
                raise Unfit
            return date_text(value.toordinal() - 719163)
        case dt.date():
            return date_text(value.toordinal() - 719163)
        case str():
            return parse_date(value.strip())
    raise Unfit


def _time(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    match value:
        case dt.time():
            return parse_time(value.isoformat())
        case dt.timedelta():
            return time_text(timedelta_us(value))
        case str():
            return parse_time(value.strip())
    raise Unfit


def _timestamp(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    match value:
        case dt.datetime():
            if not kind.aware and value.tzinfo is not None:
                raise Unfit
            return timestamp_text(timestamp_us(value, kind.aware, zone), kind.aware)
        case dt.date():
            return _timestamp(dt.datetime.combine(value, dt.time(0)), kind, zone)
        case str():
            return parse_timestamp(value.strip(), kind.aware, zone)
    raise Unfit


def _interval(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    match value:
        case dt.timedelta():
            months, us = 0, timedelta_us(value)
        case dt.time():
            months, us = parse_interval(parse_time(value.isoformat()))
        case str():
            months, us = parse_interval(value.strip())
        case _:
            raise Unfit
    return interval_text(months, us)


def _json(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    parsed = parse_json(value) if isinstance(value, str | bytes) else value
    return "".join(_json_parts(parsed))


def parse_json(text: str | bytes) -> Any:
    """JSON with exact numbers; raises ValueError on invalid JSON and on a repeated key."""
    text = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
    # A short text holds no integer that int() would refuse; and a call of ours for each number would cost most.
    return (_SHORT if len(text) < INT_DIGITS_MAX else _LONG).decode(text)


def _parse_int(digits: str) -> int | decimal.Decimal:
    return int(digits) if len(digits) < INT_DIGITS_MAX else WIDE.create_decimal(digits)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("repeated key")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _decoder(parse_int: Callable[[str], int | decimal.Decimal]) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_float=WIDE.create_decimal,
        parse_int=parse_int,
        object_pairs_hook=_unique_keys,
        parse_constant=_no_constant,
    )


# Two decoders for all: json.loads would build one for every text.
_SHORT, _LONG = _decoder(int), _decoder(_parse_int)


def _json_parts(value: object) -> list[str]:
    match value:
        case None:
            return ["null"]
        case bool():
            return ["true" if value else "false"]
        case int() | float() | decimal.Decimal():
            number = to_decimal(value)
            if not number.is_finite():
                raise Unfit
            return [decimal_text(number)]
        case str():
            return [_json_string(value)]
        case Mapping():
            named = _unique_keys([(plain_text(name), each) for name, each in value.items()])
            members = [[_json_string(name), ":", *_json_parts(named[name])] for name in sorted(named)]
            return ["{", *_separated(members), "}"]
        case list() | tuple():
            return ["[", *_separated([_json_parts(each) for each in value]), "]"]
    return [_json_string(plain_text(value))]


def _separated(groups: list[list[str]]) -> list[str]:
    return [part for at, group in enumerate(groups) for part in ([",", *group] if at else group)]


def _json_string(value: str) -> str:
    # Half a surrogate pair is legal JSON when escaped, but has no UTF-8 form.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _array(value: object, kind: Kind, zone: ZoneInfo | None) -> str:
    items = parse_json(value) if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise Unfit
    return "".join(_json_parts(_array_items(items, kind.element, zone)))


def _array_items(items: Sequence[object], element: Kind, zone: ZoneInfo | None) -> list[Any]:
    # A list among JSON elements is a JSON value, not one more dimension.
    nesting = list | tuple if element.name != "json" else ()
    return [
        _array_items(each, element, zone) if isinstance(each, nesting) else canonical_text(each, element, zone)
        for each in items
    ]


def nfc(text: str) -> str:
    """Unicode normalisation form C."""
    return unicodedata.normalize("NFC", text)


_RULES = {
    "boolean": _boolean,
    "integer": _integer,
    "decimal": _decimal,
    "float": _float,
    "text": _text,
    "enum": _text,
    "bytes": _bytes,
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "interval": _interval,
    "json": _json,
    "array": _array,
}
