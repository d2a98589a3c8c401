"""Values of every kind at which comparisons break, as canonical texts; and values that are nearly the same."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import string
import unicodedata
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from trueup.model.canonical import canonical_text
from trueup.model.kinds import Kind, kind_named
from trueup.model.numbers import ODD, float_text

FAMILIES: Final = (
    "boolean", "integer", "decimal", "float", "float32", "text", "enum", "bytes", "uuid", "date", "time", "timestamp",
    "instant", "interval", "json", "array of integer", "array of text",
)  # fmt: skip
KINDS: Final[dict[str, Kind]] = {family: kind_named(family) for family in FAMILIES}
LABELS: Final = ("so so", "well", "Ä", "it's")
_LETTERS: Final = "aAbBzZäÄßéΩ😀\u200d01 9~!:,;|\"'`\\%_\t\n\r{}[]&<>$"

POOLS: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("true", "false"),
    "integer": (
        "0", "1", "-1", "5", "-5", "7", "42", "127", "-128", "128", "255", "32767", "-32768", "65535", "2147483647",
        "-2147483648", "4294967295", "4294967296", "-4294967297", "9007199254740992", "9007199254740993",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
        "123456789012345678901234567890",
    ),
    "decimal": (
        "0", "1", "-1", "5", "-5", "0.01", "-0.01", "0.1", "19.99", "100", "1200", "-1200", "9999999999.99", "0.58",
        "1234567890.12", "0.0000000001", "-0.0000000001", "0.0000001", "12345678901234567890.12",
        "0.00000000000000000001", "1000000000000000000000000000000000000000000000000", "nan", "infinity", "-infinity",
    ),
    "float": (
        "0", "1", "-1", "0.1", "-0.1", "0.30000000000000004", "0.3", "0.16015625", "1e+16", "1e-05", "123456789.125",
        "16777217", "9007199254740992", "5e-324", "2.2250738585072014e-308", "1.7976931348623157e+308", "-1e+300",
        "1e+22", "nan", "infinity", "-infinity",
    ),
    "float32": (
        "0", "1", "-1", "0.1", "-0.1", "19.99", "16777216", "1234567.9", "1e-45", "1e+16", "3.4028235e+38", "1e-05",
        "nan", "infinity", "-infinity",
    ),
    "text": (
        "", " ", "a", "A", "a ", " a", "ab", "ä", "Ä", "a\u0308", "é", "e\u0301", "ß", "ss", "SS", "ı", "i", "I", "😀",
        "👩\u200d💻", "\u200b", "\u00a0", "\ufeff", "\ufffd", "~", "!", "1:x", "0:", "null", "NULL", "\\N", "\\",
        "\\\\x",
        "nan",
        "true", "1", "1.0", "01", "-0", "1e3", "%s", "%", "_", "'", '"', '""', "`", ",", ";", "|", "\t", "\n", "\r\n",
        "\r", "a\nb", "x" * 8, "x" * 64, "x" * 65, "y" * 255, "z" * 5000, "é" * 1500, "a\0b", "\0", "abcdefgh12345678",
        "bbcdefgh22345678", '","', "\x1f", "\x7f", "\x85", "\u2028", "2024-02-29", "a\\xffb", "ﬁ", "fi", "ａ", "K",
    ),
    "enum": LABELS,
    "bytes": ("", "00", "0000", "0001", "ff", "FF".lower(), "00ff5c", "5c4e", "27", "22", "2c0a", "61", "ab" * 40),
    "uuid": (
        "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        "00000000-0000-0000-0000-000000000001", "01000000-0000-0000-0000-000000000000",
        "12345678-1234-1234-1234-123456789012",
    ),
    "date": (
        "1970-01-01", "1969-12-31", "2024-02-29", "2023-03-01", "1000-01-01", "0001-01-01", "0999-12-31", "9999-12-31",
        "1582-10-10", "2000-12-31", "0000-12-31", "-0043-03-15", "+12345-01-01", "infinity", "-infinity",
    ),
    "time": (
        "00:00:00", "12:30:00", "12:30:00.1", "23:59:59.999999", "12:30:00.000001", "24:00:00", "838:59:59",
        "-00:00:01", "-12:30:00.5", "12:30:00+02:00", "10:30:00+00:00",
    ),
    "timestamp": (
        "1970-01-01T00:00:00", "1969-12-31T23:59:59.5", "2024-02-29T12:00:00", "2024-02-29T12:00:00.000001",
        "2024-02-29T12:00:00.123", "2024-02-29T13:11:34.967296", "2026-03-29T02:30:00", "2026-10-25T02:30:00",
        "1000-01-01T00:00:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "2038-01-19T03:14:08",
        "0000-12-31T00:00:00", "-0043-03-15T12:00:00", "+10000-01-01T00:00:00.5", "infinity", "-infinity",
    ),
    "instant": (
        "1970-01-01T00:00:01Z", "1969-12-31T23:59:59.5Z", "2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000001Z",
        "2024-02-29T13:11:34.967296Z", "2026-03-29T01:00:00Z", "2026-03-29T00:59:59.999999Z", "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z", "2024-07-01T10:00:00Z", "2024-07-01T12:00:00Z", "1890-01-01T00:00:00Z",
        "2038-01-19T03:14:07.5Z", "0001-01-02T00:00:00Z", "9999-12-30T23:59:59.999999Z", "+10000-01-01T00:00:00Z",
        "infinity", "-infinity",
    ),
    "interval": ("PT0S", "PT1S", "PT-1S", "PT0.000001S", "PT-0.5S", "P1M", "P-1M", "P14MT1.5S", "PT86400S", "P12M",
                 "PT2592000S"),
    "json": (
        "null", "true", "0", "1.5", "12345678901234567890.1", '""', '"a b"', "[]", "{}", "[null]", '[1,"1",1.5]',
        '{"a":1,"b":2}', '{"a":{"b":[1,2,{"c":null}]}}', '{"":0}', '{"é":"é"}', '{"a":"x, y: z"}', "[2,1]", "[1,2]",
    ),
    "array of integer": ("[]", '["1"]', '["1",null]', '["-5","7"]', '["7","-5"]', '["9223372036854775807"]', "[null]"),
    "array of text": ("[]", '[""]', '["a"]', '["A"]', '["a,b","q\\"q",null]', '["NULL"]', "[null]", '["a ","{}"]'),
}  # fmt: skip
# What a column of the kind may hold by mistake, where the system lets it; the canonical text is the same after a "!".
MISTAKES: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("2", "yes", "", "wahr"),
    "integer": ("007", "x", "", "1 000", "1.5", "+7"),
    "decimal": ("12,5", "x", "", "1.2.3"),
    "float": ("x", "", "1e400", "1,5"),
    "float32": ("x", ""),
    "bytes": ("0", "xyz", "\\xg0"),
    "uuid": ("", "f81d4fae", "x" * 36),
    "date": ("0000-00-00", "2023-02-29", "2023-00-10", "29.02.2024", ""),
    "time": ("25", "12:61", "", "noon"),
    "timestamp": ("0000-00-00 00:00:00", "2023-02-29 10:00:00", "2023-07-00 08:15:00", "2024-02-29 12:00:00+02", ""),
    "instant": ("2023-02-29 10:00:00Z", "noon", ""),
    "interval": ("1 day", "P", ""),
    "json": ("{", '{"a":1,"a":2}', "", "NaN"),
    "array of integer": ("1", "{1,2}", "["),
    "array of text": ("a", "{a}", "["),
}  # fmt: skip


def drawn(family: str, chance: random.Random) -> str:
    """The canonical text of some value: a known trap, or a fresh one."""
    fresh = _FRESH.get(family)
    return chance.choice(POOLS[family]) if fresh is None or chance.random() < 0.6 else fresh(chance)


def mistake(family: str, chance: random.Random) -> str:
    """The canonical text of something that is no value of the kind."""
    return ODD + chance.choice(MISTAKES[family])


def near(text: str | None, family: str, chance: random.Random) -> str | None:
    """The canonical text of a value that a careless comparison takes for the same; at times, of the same."""
    if text is None:
        return "" if family == "text" else drawn(family, chance)
    if text.startswith(ODD) and family not in ("text", "enum"):
        return text[1:] if text[1:] in POOLS[family] else mistake(family, chance)
    if chance.random() < 0.15:
        return None
    moved = _NEAR.get(family)
    if moved is None or chance.random() < 0.15:
        return drawn(family, chance)
    try:
        return canonical_text(moved(text, chance), KINDS[family])
    except (ValueError, OverflowError, ArithmeticError):
        return drawn(family, chance)


# Fresh values.


def _fresh_integer(chance: random.Random) -> str:
    return str(chance.randint(*chance.choice(((-20, 60), (-1000, 1000), (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)))))


def _fresh_decimal(chance: random.Random) -> str:
    places = chance.choice((0, 1, 2, 2, 2, 6, 10))
    return _canonical(Decimal(chance.randint(-(10**9), 10**9)).scaleb(-places), "decimal")


def _fresh_float(chance: random.Random) -> str:
    return float_text(chance.choice((chance.uniform(-1, 1), chance.uniform(-1e6, 1e6), chance.gauss(0, 1) * 1e200)))


def _fresh_float32(chance: random.Random) -> str:
    return float_text(chance.choice((chance.uniform(-1, 1), chance.uniform(-1e6, 1e6))), 32)


def _fresh_text(chance: random.Random) -> str:
    letters = string.ascii_lowercase if chance.random() < 0.5 else _LETTERS
    return "".join(chance.choices(letters, k=chance.randrange(12)))


def _fresh_us(chance: random.Random) -> dt.datetime:
    first = chance.choice((dt.datetime(2024, 1, 1), dt.datetime(1971, 1, 1), dt.datetime(2001, 9, 9)))  # noqa: DTZ001
    step = chance.choice((1, 1000, 1_000_000, 3_600_000_000))
    return first + dt.timedelta(microseconds=step * chance.randrange(9000))


_FRESH: Final[dict[str, Callable[[random.Random], str]]] = {
    "integer": _fresh_integer,
    "decimal": _fresh_decimal,
    "float": _fresh_float,
    "float32": _fresh_float32,
    "text": _fresh_text,
    "bytes": lambda chance: chance.randbytes(chance.randrange(20)).hex(),
    "uuid": lambda chance: str(uuid.UUID(int=chance.getrandbits(128))),
    "date": lambda chance: _fresh_us(chance).date().isoformat(),
    "time": lambda chance: _canonical(_fresh_us(chance).time(), "time"),
    "timestamp": lambda chance: _canonical(_fresh_us(chance), "timestamp"),
    "instant": lambda chance: _canonical(_fresh_us(chance).replace(tzinfo=dt.UTC), "instant"),
    "interval": lambda chance: _canonical(dt.timedelta(microseconds=chance.randrange(-(10**9), 10**12)), "interval"),
    "json": lambda chance: _canonical({_fresh_text(chance): chance.choice((None, True, "x", [1]))}, "json"),
    "array of integer": lambda chance: _canonical([chance.randint(-9, 9) for _ in range(3)], "array of integer"),
}


def _canonical(value: object, family: str) -> str:
    text = canonical_text(value, KINDS[family])
    assert text is not None
    return text


# Values nearby.


def _near_integer(text: str, chance: random.Random) -> str:
    number = int(text)
    return str(chance.choice((-number, number + 1, number - 1, number + 2**32, number ^ 1, number * 10)))


def _near_decimal(text: str, chance: random.Random) -> str:
    number = Decimal(text)
    if not number.is_finite():
        return drawn("decimal", chance)
    unit = Decimal(1).scaleb(chance.choice((-2, -10, -20, 0)))
    return format(chance.choice((-number, number.scaleb(1), number + unit, number - unit)), "f")


def _near_float(text: str, chance: random.Random) -> str:
    number = float(text)
    up, down = math.nextafter(number, math.inf), math.nextafter(number, -math.inf)
    return float_text(chance.choice((-number, up, down, number * 10)))


def _near_float32(text: str, chance: random.Random) -> str:
    number = float(text)
    return float_text(chance.choice((-number, number * (1 + 2**-23), number * (1 - 2**-23), number * 10)), 32)


def _near_text(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return chance.choice(
        (
            f"{text} ", f" {text}", text.strip(), text.swapcase(), "", f"{text}\0", unicodedata.normalize("NFD", text),
            unicodedata.normalize("NFC", text), text[:at] + chance.choice(_LETTERS) + text[at + 1 :], text[::-1],
            text[:-1], text.replace("\r\n", "\n"), f"{text}\n",
        )
    )  # fmt: skip


def _near_bytes(text: str, chance: random.Random) -> str:
    return chance.choice((f"{text}00", text[:-2], f"00{text}", bytes.fromhex(text)[::-1].hex(), ""))


def _near_uuid(text: str, chance: random.Random) -> str:
    number = uuid.UUID(text).int
    return str(uuid.UUID(int=number ^ (1 << chance.randrange(128))))


def _near_date(text: str, chance: random.Random) -> str:
    return str(dt.date.fromisoformat(text) + dt.timedelta(days=chance.choice((-1, 1, 365, 31))))


def _near_time(text: str, chance: random.Random) -> str:
    of_day = dt.datetime.combine(dt.date(2000, 1, 2), dt.time.fromisoformat(text))
    return (of_day + dt.timedelta(microseconds=_moved_us(chance))).time().isoformat()


def _near_timestamp(text: str, chance: random.Random) -> str:
    moved = dt.datetime.fromisoformat(text) + dt.timedelta(microseconds=_moved_us(chance))
    return moved.isoformat()


def _moved_us(chance: random.Random) -> int:
    # An hour and two: a zone. The last one is what a fold of 64 bits into 32 does not see.
    return chance.choice((1, -1, 1000, 1_000_000, 3_600_000_000, -3_600_000_000, 7_200_000_000, 2**32))


def _near_json(text: str, chance: random.Random) -> object:
    value = json.loads(text)
    if isinstance(value, list) and value:
        return chance.choice((value[::-1], value[:-1], [*value, None], [value]))
    if isinstance(value, dict) and value:
        return chance.choice(({**value, "z": None}, dict.fromkeys(value), [value]))
    return [value]


def _near_array(text: str, chance: random.Random) -> object:
    items = json.loads(text)
    return chance.choice((items[::-1], items[:-1], [*items, None], [*items, "7"]))


_NEAR: Final[dict[str, Callable[[str, random.Random], object]]] = {
    "boolean": lambda text, _: text != "true",
    "integer": _near_integer,
    "decimal": _near_decimal,
    "float": _near_float,
    "float32": _near_float32,
    "text": _near_text,
    "bytes": _near_bytes,
    "uuid": _near_uuid,
    "date": _near_date,
    "time": _near_time,
    "timestamp": _near_timestamp,
    "instant": _near_timestamp,
    "json": _near_json,
    "array of integer": _near_array,
    "array of text": _near_array,
}
