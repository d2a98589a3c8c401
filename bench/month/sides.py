"""The two sides as trueup sees them: real tables, clocks of virtual time, and the outages of the month."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa

from trueup.errors import Unreachable
from trueup.model.record import Found, Projection
from trueup.ports import EVERYTHING, Scope, Write, Written
from trueup.sides.sql import Sql

from .clock import VirtualTime
from .databases import ERP, SHOP, Database

HINT: Final = "It is back later."
Outage = Literal["", "empty page", "lost rights"]


@dataclass
class Trouble:
    """What is wrong with a side at the moment, and how often it showed.

    outage: an enumeration of everything answers nothing, once; or nothing can be seen at all, as where a policy on
    rows hides them, and nothing be written. timeouts: share of the writing calls whose answer gets lost.
    """

    outage: Outage = ""
    timeouts: float = 0.0
    shown: Counter[str] = field(default_factory=Counter)


class _Timed(Sql):
    """A table whose system lives in virtual time."""

    def __init__(self, url: str, table: str, version: str, time: VirtualTime) -> None:
        super().__init__(url, table, key="id", version=version)
        self.time, self.trouble = time, Trouble()
        self.calls: Counter[str] = Counter()

    def now_us(self) -> int:
        """The month's clock, in place of the server's."""
        return self.time.now_us()

    def oldest_running_us(self) -> int | None:
        """Nothing that runs lasts: transactions take no virtual time."""
        return None

    def scan(self, projection: Projection, scope: Scope = EVERYTHING) -> Generator[pa.RecordBatch, None, None]:
        """What can be seen."""
        self.calls["enumerations"] += 1
        trouble = self.trouble
        everything = scope.since is None and scope.where is None
        if trouble.outage == "lost rights" or (trouble.outage == "empty page" and everything):
            trouble.shown[f"{trouble.outage}: nothing enumerated"] += 1
            trouble.outage = "" if trouble.outage == "empty page" else trouble.outage
            return
        for batch in super().scan(projection, scope):
            self.calls["rows enumerated"] += batch.num_rows
            yield batch

    def read(self, projection: Projection, keys: Sequence[str]) -> dict[str, Found]:
        """What can be seen."""
        self.calls["reads by key"] += 1
        self.calls["rows read by key"] += len(keys)
        if self.trouble.outage == "lost rights":
            self.trouble.shown["lost rights: nothing read"] += len(keys)
            return {}
        return super().read(projection, keys)

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """What may be written."""
        self.calls["writing calls"] += 1
        if self.trouble.outage == "lost rights":
            self.trouble.shown["lost rights: write refused"] += 1
            raise Unreachable(f"{self.label}: permission denied.", hint=HINT)
        return super().apply(projection, writes)


class Shop(_Timed):
    """The authority."""

    def __init__(self, url: str, time: VirtualTime) -> None:
        super().__init__(url, SHOP, "updated_at", time)


class Erp(_Timed):
    """The replica: its own clock stamps what is written, and some answers get lost after the write landed."""

    def __init__(self, url: str, time: VirtualTime, database: Database, chance: random.Random) -> None:
        super().__init__(url, ERP, "changed_at", time)
        self._database, self._chance, self._clock_us = database, chance, 0

    def apply(self, projection: Projection, writes: Sequence[Write]) -> list[Written]:
        """Writes, and may time out though everything landed."""
        self.tick()
        written = super().apply(projection, writes)
        self.calls["rows written"] += sum(each.landed for each in written)
        if self._chance.random() < self.trouble.timeouts:
            self.trouble.shown["timed out after the write landed"] += 1
            self.trouble.shown["rows of these writes"] += sum(each.landed for each in written)
            raise Unreachable(f"{self.label}: the answer did not come in time.", hint=HINT)
        return written

    def tick(self) -> None:
        """Sets the clock of the ERP."""
        if self._clock_us != self.time.now_us():
            self._clock_us = self.time.now_us()
            self._database.run("UPDATE clock SET now_us = ?", self._clock_us)
