"""A canonical text as people and programs write it: every spelling is the same value."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from typing import Any, Final

from trueup.model.natural import natural
from trueup.model.numbers import ODD
from trueup.testing.pairs.values import KINDS

_BOOLEANS: Final = {"true": ("true", "t", "1", "TRUE", "True"), "false": ("false", "f", "0", "FALSE", "False")}
_LONG_NUMBER: Final = re.compile(r"\d{15}|\d\.\d{15}")


def is_mistake(text: str, family: str) -> bool:
    """Whether this canonical text is of something that is no value of the kind."""
    return family not in ("text", "enum") and text.startswith(ODD)


def value(text: str, family: str) -> Any:
    """As a Python value, where there is one."""
    return natural(text, KINDS[family])


def plain(text: str, family: str) -> str:
    """As it is; without its mark where it is no value of the kind."""
    return text[1:] if is_mistake(text, family) else text


def written(text: str, family: str, chance: random.Random) -> str:
    """As text that a column of texts may hold."""
    if is_mistake(text, family):
        return text[1:]
    others = _OTHERS.get(family)
    return text if others is None or chance.random() < 0.5 else others(text, chance)


def _boolean(text: str, chance: random.Random) -> str:
    return chance.choice(_BOOLEANS[text])


def _integer(text: str, chance: random.Random) -> str:
    return chance.choice((text, f"{text}.0", f"{text}e0"))


def _decimal(text: str, chance: random.Random) -> str:
    if not text[-1].isdigit():
        return {"nan": "NaN", "infinity": "Infinity", "-infinity": "-inf"}[text]
    signed = text if text.startswith("-") else f"+{text}"
    return chance.choice((signed, f"{text}0" if "." in text else f"{text}.00", f"{text}e0"))


def _float(text: str, chance: random.Random) -> str:
    if not text[-1].isdigit() or "e" in text:
        return {"nan": "NaN", "infinity": "inf", "-infinity": "-Infinity"}.get(text, text.upper())
    if text == "0":
        return chance.choice(("-0", "0.0", "-0.0"))
    return f"{text}0" if "." in text else f"{text}.0"


def _bytes(text: str, chance: random.Random) -> str:
    return chance.choice((text.upper(), f"\\x{text}", f"0x{text}"))


def _uuid(text: str, chance: random.Random) -> str:
    return chance.choice((text.upper(), f"{{{text}}}", text.replace("-", "")))


def _date(text: str, chance: random.Random) -> str:
    return text if text.endswith("infinity") else f"{text}{chance.choice((' ', 'T'))}00:00:00"


def _time(text: str, chance: random.Random) -> str:
    return f"{text}000" if "." in text else text


def _timestamp(text: str, chance: random.Random) -> str:
    if text.endswith("infinity"):
        return text
    bare = text.replace("T", " ") if chance.random() < 0.5 else text
    return f"{bare}00" if "." in bare else f"{bare}.000"


def _instant(text: str, chance: random.Random) -> str:
    if text.endswith("infinity"):
        return text
    hours = chance.choice((0, 2, -5))
    try:
        moved = dt.datetime.fromisoformat(text).astimezone(dt.timezone(dt.timedelta(hours=hours)))
    except (ValueError, OverflowError):
        return f"{text.removesuffix('Z')}+00:00"
    return moved.isoformat(chance.choice((" ", "T")))


def _json(text: str, chance: random.Random) -> str:
    if _LONG_NUMBER.search(text):
        return text  # Python would cut its digits
    found = json.loads(text)
    if isinstance(found, dict):
        found = dict(reversed(found.items()))
    return json.dumps(found, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 1)))


_OTHERS: Final = {
    "boolean": _boolean, "integer": _integer, "decimal": _decimal, "float": _float, "float32": _float, "bytes": _bytes,
    "uuid": _uuid, "date": _date, "time": _time, "timestamp": _timestamp, "instant": _instant, "json": _json,
}  # fmt: skip
