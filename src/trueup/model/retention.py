"""How long the state store keeps what nothing depends on any more."""

from __future__ import annotations

import datetime as dt
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
    evidence_us: entries of evidence, in whole months; None for never.
    Records, runs, cases and decisions are never forgotten.
    """

    history_us: int = 90 * _DAY_US
    plans_us: int = 90 * _DAY_US
    letters_us: int = 90 * _DAY_US
    evidence_us: int | None = None

    def cut_before_us(self, now_us: int) -> int | None:
        """Which entries of evidence go: those before the month, UTC, in which the oldest lies that must be kept.

        So that a cut, which leaves an entry, is made once a month and not for every entry that gets old.
        """
        if self.evidence_us is None or now_us < self.evidence_us:
            return None
        oldest = dt.datetime.fromtimestamp((now_us - self.evidence_us) // 1_000_000, dt.UTC)
        month = oldest.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return round(month.timestamp()) * 1_000_000


def retention(options: Mapping[str, str | float]) -> Retention:
    """As it is declared: `history="90d"`. ConfigError where a name or a duration is none."""
    known = ("history", "plans", "letters", "evidence")
    for name in options:
        if name not in known:
            raise ConfigError(f"retention has no option {name}.", hint=did_you_mean(name, known, "Options"))
    return Retention(**{f"{name}_us": duration_us(age, f"retention, {name}") for name, age in options.items()})


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much was forgotten: entries of histories, plans of runs, dead letters, entries of evidence."""

    history: int
    plans: int
    letters: int
    evidence: int = 0
