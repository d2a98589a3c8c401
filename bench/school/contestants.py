"""What the bench asks of a contestant, and the world that each gets for itself."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from .clock import VirtualTime
from .destination import Destination
from .measure import Referee
from .wire import Wire
from .world import Key, Plan, School, State

WORKERS = 4


@dataclass(slots=True)
class Reconciled:
    """One reconciliation. ended_us: when the last of its work was done; calls: what it cost at the destination."""

    began_us: int
    ended_us: int | None = None
    calls: int = 0


@dataclass(slots=True)
class Setting:
    """A world of its own: equal for every contestant, because everything random in it has its own seed."""

    time: VirtualTime
    school: School
    destination: Destination
    wire: Wire
    referee: Referee
    chance: random.Random


class Contestant(Protocol):
    """One way to keep the two in agreement.

    jobs: what workers took up and ended. reconciled: one for each reconciliation, in order. failed_runs: tries of one
    that did not come to their end.
    """

    jobs: int
    failed_runs: int
    reconciled: list[Reconciled]

    def event(self, key: Key, state: State) -> None:
        """An event was delivered."""

    def begin(self) -> None:
        """Starts workers; both sides agree. May wait."""

    def reconcile(self) -> None:
        """The hourly reconciliation begins; may wait."""

    def waiting(self) -> int:
        """How much is left to do."""

    def in_review(self) -> list[Key]:
        """Records about which a person is asked."""

    def close(self) -> None:
        """Gives back what it holds."""


def new_setting(plan: Plan, seed: int, *, lists: bool = True) -> Setting:
    """A world in which both sides agree and nothing has happened yet. lists: whether the API has a list."""
    time = VirtualTime()
    referee = Referee(time)
    school = School(time, plan, seed)
    destination = Destination(time, referee, lists=lists)
    destination.fill(school.states)
    return Setting(time, school, destination, Wire(time, destination, seed + 1), referee, random.Random(seed + 2))
