"""How long the state store keeps what nothing depends on any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trueup.errors import ConfigError, did_you_mean
from trueup.model.duration import duration_us

_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages from which on something is forgotten.

    history_us: what was offered, claimed and finished of a record, of which the newest 200 or so are kept anyway.
    plans_us: records of a run's plan, once the run has ended and nobody is asked about them. letters_us: dead letters.
    Records, runs, cases, decisions and evidence are never forgotten.
    """

    history_us: int = 90 * _DAY_US
    plans_us: int = 90 * _DAY_US
    letters_us: int = 90 * _DAY_US


def retention(options: Mapping[str, str | float]) -> Retention:
    """As it is declared: `history="90d"`. ConfigError where a name or a duration is none."""
    known = ("history", "plans", "letters")
    for name in options:
        if name not in known:
            raise ConfigError(f"retention has no option {name}.", hint=did_you_mean(name, known, "Options"))
    return Retention(**{f"{name}_us": duration_us(age, f"retention, {name}") for name, age in options.items()})


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much was forgotten: entries of histories, plans of runs, dead letters."""

    history: int
    plans: int
    letters: int
