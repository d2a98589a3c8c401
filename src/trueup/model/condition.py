"""A condition: something that is wrong now, why, and what to type.

Conditions are computed anew from what the state store holds; what of them people were told is `trueup.model.alert`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class Severity(enum.StrEnum):
    """How soon somebody should look: in working hours, or now."""

    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def colour(self) -> str:
        """As it is shown on a terminal."""
        return "red" if self is Severity.CRITICAL else "yellow"


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong now.

    name: one of `CONDITIONS`. subject: the pair, the system, or the part of trueup that it is about. severity: see
    `Severity`. cause: a sentence without its full stop, and without values of records. command: what to type next.
    since_us: since when, by the store's clock; None where nobody knows.
    """

    name: str
    subject: str
    severity: Severity
    cause: str
    command: str
    since_us: int | None = None

    @property
    def ident(self) -> str:
        """Equal for what people would call the same trouble, however long it lasts."""
        return f"{self.name} {self.subject}"

    @property
    def page(self) -> str:
        """The page of the runbook, by its name in docs/runbook."""
        return f"{self.name}.md"


# What a condition may be about besides pairs and systems.
WORKERS: Final = "workers"
STATE: Final = "state store"

# Each condition, and when it is one. docs/runbook has a page for each.
CONDITIONS: Final[Mapping[str, str]] = {
    "overdue": "a run that is due does not start",
    "stuck": "a run under way gives no sign of life, or takes far longer than it may",
    "failing": "runs of the pair end in trouble",
    "unreachable": "a system does not answer, or refuses the login",
    "few-records": "a side held far fewer records than it used to, or none",
    "held": "a breaker holds a plan until a person approves it",
    "parked": "records are parked: each needs a person",
    "backlog": "too many records wait to be worked",
    "old-pending": "a record has waited for too long to be worked",
    "old-drift": "a case has waited for too long for a person",
    "defect": "a field drifts run after run: something upstream of trueup does not do what it should",
    "no-events": "no event has come for too long",
    "paused": "a system has been paused for too long",
    "budget": "the limits of a system keep what waits from being done",
    "clock": "clocks disagree: that of a side, or of this host, with the others",
    "growth": "the ledger holds far more rows than the sides hold records",
    "workers": "workers die one after the other",
    "pings": "pings to an outside watcher do not arrive",
    "anchors": "anchors of evidence do not arrive",
    "state": "the state store can't be read or written",
}
