"""What options of the command line mean: NAME=VALUE, left=… and right=…, sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final

from trueup.errors import ConfigError, did_you_mean
from trueup.model.duration import duration_us
from trueup.model.record import EXACT, Rule

SIDES: Final = ("left", "right")
FOLDS: Final = ("trim", "case", "nfc")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(mb|mib|m|gb|gib|g)?\Z", re.ASCII | re.IGNORECASE)


def names(values: Sequence[str]) -> tuple[str, ...]:
    """Names given by repeating an option, as a comma list, or both; each once."""
    return tuple(dict.fromkeys(name.strip() for value in values for name in value.split(",") if name.strip()))


def assignments(values: Sequence[str], option: str, example: str) -> dict[str, str]:
    """NAME=VALUE by name; ConfigError where the `=` is missing or a name is given twice."""
    found: dict[str, str] = {}
    for value in values:
        name, mark, text = value.rpartition("=")
        name = name.strip()
        if not mark or not name or not text.strip():
            raise ConfigError(f"{option} {value}: this is not NAME=VALUE.", hint=f"For example: {option} {example}.")
        if name in found:
            raise ConfigError(f"{option} names {name} twice.", hint="Keep one of them.")
        found[name] = text.strip()
    return found


@dataclass(frozen=True, slots=True)
class BySide:
    """What an option says for each side; `common` where it was said for both at once."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    common: bool = True

    def __getitem__(self, at: int) -> tuple[str, ...]:
        return (self.left, self.right)[at]


def by_side(values: Sequence[str], option: str, *, many: bool = False) -> BySide:
    """`left=X` and `right=X` for one side, X for both; ConfigError for a second one unless `many` are allowed."""
    found: tuple[list[str], list[str]] = ([], [])
    common = True
    for value in values:
        prefix, mark, text = value.partition("=")
        if mark and prefix in SIDES:
            found[SIDES.index(prefix)].append(text)
            common = False
        else:
            for each in found:
                each.append(value)
    if not many and any(len(each) > 1 for each in found):
        raise ConfigError(
            f"{option} is given twice for one side.", hint=f"Write {option} left=… {option} right=… once."
        )
    return BySide(tuple(found[0]), tuple(found[1]), common)


def one_by_side(values: Sequence[str], option: str) -> tuple[str | None, str | None]:
    """The one value for each side, or None."""
    found = by_side(values, option)
    return (found.left or (None,))[0], (found.right or (None,))[0]


def limits(**given: Sequence[str] | None) -> tuple[dict[str, float], dict[str, float]]:
    """How much may be asked of the database of each side, by the names of `trueup.Sql`. given: by option."""
    found: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for option, values in given.items():
        for at, text in enumerate(one_by_side(values or (), f"--{option}")):
            if text is not None:
                name, read, example = LIMITS[option]
                found[at][name] = _limit(option, text, read, example)
    return found


def _limit(option: str, text: str, read: Callable[[str], float], example: str) -> float:
    try:
        return read(text)
    except (ValueError, ConfigError):
        raise ConfigError(f"--{option} {text}: this can't be meant.", hint=f"For example: {example}.") from None


def _seconds(text: str) -> float:
    return duration_us(text) / 1_000_000 if text[-1:].isalpha() else float(text)


def _share(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


LIMITS: Final[Mapping[str, tuple[str, Callable[[str], float], str]]] = {
    "connections": ("connections", int, "--connections 4"),
    "timeout": ("timeout_s", _seconds, "--timeout 60s"),
    "throttle": ("throttle", _share, "--throttle 25%"),
}


def conditions(both: str | None, *special: str | None) -> tuple[str | None, ...]:
    """The condition for each side: the one for both and its own."""
    given = [[each for each in (both, own) if each is not None] for own in special]
    return tuple(" AND ".join(f"({each})" for each in each_side) or None for each_side in given)


def rules(tolerance: Sequence[str], places: Sequence[str], fold: Sequence[str]) -> dict[str, Rule]:
    """How fields are judged, by name."""
    found: dict[str, Rule] = {}
    for name, text in assignments(tolerance, "--tolerance", "price=0.01").items():
        found[name] = _tolerance(name, text)
    for name, text in assignments(places, "--places", "price=2").items():
        if not text.isdecimal():
            raise ConfigError(
                f"--places {name}={text}: this is no number of places.", hint="For example: --places fee=2."
            )
        found[name] = replace(found.get(name, EXACT), places=int(text))
    for name, text in assignments(fold, "--fold", "city=trim,case").items():
        chosen = [each.strip() for each in text.split(",")]
        for each in chosen:
            if each not in FOLDS:
                raise ConfigError(
                    f"--fold {name}={text}: there is no {each!r}.", hint=did_you_mean(each, FOLDS, "Folds")
                )
        rule = found.get(name, EXACT)
        found[name] = replace(rule, trim="trim" in chosen, casefold="case" in chosen, nfc="nfc" in chosen)
    return found


def _tolerance(name: str, text: str) -> Rule:
    hint = "For example: price=0.01, price=1% or seen_at=2s."
    try:
        if text.endswith("%"):
            return Rule(relative=_positive(text[:-1]) / 100)
        if text[-1].isalpha():
            return Rule(seconds=Decimal(duration_us(text)) / 1_000_000)
        return Rule(absolute=_positive(text))
    except (ConfigError, InvalidOperation):
        raise ConfigError(f"--tolerance {name}={text}: this is no tolerance.", hint=hint) from None


def _positive(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite() or number < 0:
        raise InvalidOperation
    return number


def megabytes(text: str) -> int:
    """A size such as `512MB` or `2GB` in MiB."""
    found = _SIZE.match(text.strip())
    size = 0 if found is None else int(Decimal(found[1]) * (1024 if (found[2] or "m").lower().startswith("g") else 1))
    if size < 64:
        raise ConfigError(
            f"--memory {text}: this is no size of at least 64MB.", hint="For example: --memory 512MB or 2GB."
        )
    return size
