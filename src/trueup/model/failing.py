"""Records whose job does not get done: in which way, why, for how long, and which of them somebody means."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trueup.errors import ConfigError, did_you_mean
from trueup.model.duration import duration_us
from trueup.model.row import Row, State


class Failing(enum.StrEnum):
    """In which way. `waiting`: its last try failed, and the next one is still to come."""

    REJECTED = "rejected"
    SPENT = "out-of-tries"
    WAITING = "waiting"


CONDITIONS: Final = ("status", "error", "older")


def failing(row: Row) -> Failing | None:
    """In which way the record's job fails; None where it does not, or only waits for another record."""
    if row.state is State.PARKED:
        return Failing.REJECTED if row.rejected else Failing.SPENT
    if row.state is State.PENDING and row.last_error is not None and row.waits_for is None:
        return Failing.WAITING
    return None


def reason_of(row: Row) -> str:
    """Why, as it was said last."""
    return row.park_reason or row.last_error or "out of tries"


def kind_of(row: Row) -> str:
    """The first words of the reason, by which failures are counted: `ValueError`, `rejected`."""
    return reason_of(row).partition(":")[0].strip()


@dataclass(frozen=True, slots=True)
class FailingFilter:
    """Which failing records are meant; None stands for any.

    error: a text in the reason, in any case. until_us: nothing happened to the record since, by the store's clock.
    """

    status: Failing | None = None
    error: str | None = None
    until_us: int | None = None

    @classmethod
    def of(cls, conditions: Mapping[str, str], now_us: int) -> FailingFilter:
        """As people write it: `status=rejected`, `error=ValueError`, `older=1d`. ConfigError where that is nothing."""
        for name in conditions:
            if name not in CONDITIONS:
                raise ConfigError(
                    f"--where {name}: there is no such condition.", hint=did_you_mean(name, CONDITIONS, "Conditions")
                )
        status, older = conditions.get("status"), conditions.get("older")
        if status is not None and status not in list(Failing):
            raise ConfigError(
                f"--where status={status}: there is no such status.", hint=did_you_mean(status, Failing, "Statuses")
            )
        return cls(
            None if status is None else Failing(status),
            conditions.get("error"),
            None if older is None else now_us - duration_us(older, "--where older"),
        )

    def fits(self, row: Row) -> bool:
        """Whether the record fails, and in the way that is meant."""
        found = failing(row)
        return (
            found is not None
            and self.status in (None, found)
            and (self.error is None or self.error.casefold() in reason_of(row).casefold())
            and (self.until_us is None or row.touched_at <= self.until_us)
        )

    @property
    def places(self) -> tuple[str, ...]:
        """Where such records are: what `Ledger.scan` is asked for."""
        if self.status is None:
            return "parked", "pending"
        return ("pending",) if self.status is Failing.WAITING else ("parked",)
