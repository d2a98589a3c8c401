"""Numbers as canonical text: integers and decimals of any size, floats by their shortest text."""

from __future__ import annotations

import decimal
import math
import re
import struct
from typing import Final

ODD: Final = "!"
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_SPECIAL = {
    "nan": "nan", "inf": "infinity", "+inf": "infinity", "infinity": "infinity", "+infinity": "infinity",
    "-inf": "-infinity", "-infinity": "-infinity",
}  # fmt: skip
# PostgreSQL's numeric holds 131,072 digits before the point and 16,383 after: the widest we know.
_DIGITS_MAX: Final = 150_000
# Python refuses to convert longer texts to int; Decimal has no such limit.
INT_DIGITS_MAX: Final = 4_000
WIDE = decimal.Context(prec=2 * _DIGITS_MAX, rounding=decimal.ROUND_HALF_UP)


class Unfit(Exception):
    """The value is not one of the kind that a rule is for."""


def int_text(value: int) -> str:
    """An integer of any size in decimal digits."""
    # str() of a huge int is quadratic and refused above 4,300 digits; Decimal has no such limit.
    return str(value) if value.bit_length() < 10_000 else str(WIDE.create_decimal(value))


def to_decimal(value: object, bits: int = 64) -> decimal.Decimal:
    """A number, or the text of one, exactly; bits: of a float. Raises Unfit."""
    match value:
        case decimal.Decimal():
            return value
        case bool():
            return decimal.Decimal(int(value))
        case int():
            return WIDE.create_decimal(value)
        case float():
            # Through the shortest text: the double nearest to 0.1 means 0.1, not 0.1000000000000000055….
            return decimal.Decimal(float_text(value, bits))
        case str():
            text = value.strip()
            if special := _SPECIAL.get(text.lower()):
                return decimal.Decimal(special)
            if _NUMBER.match(text):
                return WIDE.create_decimal(text)
    raise Unfit


def decimal_text(number: decimal.Decimal) -> str:
    """A finite decimal without exponent and trailing zeros; -0 is 0. Raises Unfit beyond the widest we know."""
    if not number:
        return "0"
    if abs(number.adjusted()) > _DIGITS_MAX:
        raise Unfit
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def round_decimal_text(text: str, places: int) -> str:
    """A canonical decimal text rounded to `places` digits after the point, ties away from zero.

    Ties go the way of numeric rounding in PostgreSQL, MySQL and DuckDB. Oddities, nan and infinities stay.
    """
    if text.startswith(ODD) or text in ("nan", "infinity", "-infinity"):
        return text
    exponent = decimal.Decimal(1).scaleb(-places)
    return decimal_text(WIDE.create_decimal(text).quantize(exponent, context=WIDE))


def float_text(number: float, bits: int = 64) -> str:
    """The shortest decimal text that reads back as the same float; -0 is 0.

    Raises OverflowError for a finite number that 32 bits can't hold.
    """
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "infinity" if number > 0 else "-infinity"
    if number == 0:
        return "0"
    return (_shortest_float32(number) if bits == 32 else repr(number)).removesuffix(".0")


def _shortest_float32(number: float) -> str:
    packed = struct.pack("<f", number)
    exact: float = struct.unpack("<f", packed)[0]
    if exact == 0:
        return "0"
    for digits in range(1, 10):
        short = float(f"{exact:.{digits}g}")
        try:
            if struct.pack("<f", short) == packed:
                return repr(short)
        except OverflowError:
            continue
    return repr(exact)
