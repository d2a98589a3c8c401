"""The source: 100,000 enrolments that change, and events about it that get lost, late, out of order and doubled."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Scope
from trueup.sides.memory import Memory

from .clock import VirtualTime

REGISTERED, DROPPED = "registered", "dropped"
PAGE = 500
Key = tuple[int, int]  # user, course
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens, and how much of it. Rates are per hour, shares are of 1.

    rush_at_s: when the registration rush begins; for rush_s there are rush_a_minute changes, in place of the usual.
    lost, late, doubled: shares of events. late_s: how late those are, at most. hand_edits: per hour, at the API.
    ends_s: when changes and hand edits end. hot: share of changes that meet a record that changed a moment ago.
    """

    records: int = 100_000
    changes: int = 5_000
    rush_at_s: float = 5_400.0
    rush_s: float = 600.0
    rush_a_minute: int = 300
    lost: float = 0.01
    late: float = 0.05
    late_s: float = 300.0
    doubled: float = 0.03
    hot: float = 0.3
    hand_edits: int = 12
    ends_s: float = 7_200.0

    def in_rush(self, at_s: float) -> bool:
        """Whether the rush is on."""
        return self.rush_at_s <= at_s < self.rush_at_s + self.rush_s

    def gap_s(self, at_s: float) -> float:
        """Seconds between two changes at this time, on average."""
        return 60 / self.rush_a_minute if self.in_rush(at_s) else 3_600 / self.changes


@dataclass(frozen=True, slots=True)
class State:
    """What the source says of one enrolment. version: microseconds, no two states have the same."""

    status: str
    fee: Decimal
    version: int


class School:
    """The truth: what every enrolment is now. calls: what was asked of the source's API."""

    def __init__(self, time: VirtualTime, plan: Plan, seed: int) -> None:
        self.time, self.plan = time, plan
        self._chance = random.Random(seed)
        self.began_us = time.now_us()
        self.states: dict[Key, State] = {}
        self.events = self.lost = self.calls = 0
        self._recent: deque[Key] = deque(maxlen=50)
        for at in range(plan.records):
            status = DROPPED if self._chance.random() < 0.05 else REGISTERED
            self.states[at // 5 + 1, at % 5 + 1] = State(status, self._fee(), self.began_us - 86_400_000_000 + at)
        self._keys = list(self.states)
        self._newest = self.began_us
        self.side = SourceSide(self)

    def begin(self, deliver: Callable[[Key, State], None]) -> None:
        """From now on the source changes. deliver: told of every event that arrives, with the state that it carries."""
        self._deliver, self.began_us = deliver, self.time.now_us()
        self.time.start(self._live)

    def since_s(self, at_us: int) -> float:
        """Seconds since the beginning."""
        return (at_us - self.began_us) / 1e6

    def listed(self) -> list[tuple[Key, State]]:
        """Every enrolment, by as many calls as there are pages."""
        self.calls += -(-len(self.states) // PAGE)
        return list(self.states.items())

    def _live(self) -> None:
        while (now_s := self.since_s(self.time.now_us())) < self.plan.ends_s:
            self.time.sleep(self._chance.expovariate(1 / self.plan.gap_s(now_s)))
            self._change(rush=self.plan.in_rush(now_s))

    def _change(self, *, rush: bool) -> None:
        chance = self._chance
        key = chance.choice(self._recent) if self._recent and chance.random() < self.plan.hot else self._any(rush=rush)
        before = self.states.get(key)
        self._newest = max(self._newest + 1, self.time.now_us())
        if before is None or before.status == DROPPED:
            state = State(REGISTERED, self._fee(), self._newest)
        elif chance.random() < 0.4:
            state = State(DROPPED, before.fee, self._newest)
        else:
            state = State(REGISTERED, self._fee(), self._newest)
        if before is None:
            self._keys.append(key)
        self.states[key] = state
        self.side.put(row(key, state))
        self._recent.append(key)
        self._tell(key, state)

    def _any(self, *, rush: bool) -> Key:
        """A record; in the rush mostly one that the source did not have."""
        if self._chance.random() < (0.8 if rush else 0.1):
            return len(self._keys) + 1_000_000, self._chance.randint(1, 5)
        return self._chance.choice(self._keys)

    def _tell(self, key: Key, state: State) -> None:
        chance = self._chance
        self.events += 1
        late_s = chance.uniform(5, self.plan.late_s) if chance.random() < self.plan.late else chance.uniform(0.1, 1.0)
        again = chance.random() < self.plan.doubled
        again_s = late_s + chance.uniform(1, 120)
        if chance.random() < self.plan.lost:
            self.lost += 1
            return
        for each_s in (late_s, again_s) if again else (late_s,):
            self.time.start(lambda: self._deliver(key, state), each_s)

    def _fee(self) -> Decimal:
        return Decimal(self._chance.randint(10_000, 99_999)) / 100


def row(key: Key, state: State) -> dict[str, Any]:
    """A state as the source spells it."""
    at = _EPOCH + timedelta(microseconds=state.version)
    return {"user_id": key[0], "course_id": key[1], "status": state.status, "fee": state.fee, "updated_at": at}


class SourceSide(Memory):
    """The source as trueup reads it: every page and every record read by key is a call."""

    def __init__(self, school: School) -> None:
        self._school = school
        super().__init__(
            (row(*each) for each in school.states.items()),
            key=("user_id", "course_id"),
            version="updated_at",
            columns={
                "user_id": "integer", "course_id": "integer", "status": "text", "fee": "decimal(12,2)",
                "updated_at": "instant",
            },
            clock=school.time,
            label="school",
        )  # fmt: skip

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Counts the pages that the answer takes."""
        rows = 0
        for batch in super().scan(projection, scope):
            rows += batch.num_rows
            yield batch
        self._school.calls += max(1, -(-rows // PAGE))

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """Counts one call a record."""
        self._school.calls += len(keys)
        return super().read(projection, keys)
