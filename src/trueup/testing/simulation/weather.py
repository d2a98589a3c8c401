"""How bad the world is: what becomes of each call, decided by the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

How = Literal["", "lost", "unanswered", "twice", "crash before", "crash after", "freeze before", "freeze after"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one call.

    before_us, after_us: how long until it takes effect, and until it is answered. how: `lost` fails before it took
    effect, `unanswered` after; `twice` takes effect twice; the host may crash or freeze on either side of the effect.
    frozen_us: for how long.
    """

    before_us: int = 0
    after_us: int = 0
    how: How = ""
    frozen_us: int = 0


CALM = Fate()


@dataclass(frozen=True, slots=True)
class Weather:
    """Chances in a thousand calls: `failing` (lost, unanswered or twice), `crashing`, `freezing`; the share that lags.

    lagging: share of reads that a lagging copy of the authority answers.
    """

    failing: int = 0
    crashing: int = 0
    freezing: int = 0
    lagging: float = 0.0

    @staticmethod
    def drawn(chance: random.Random) -> Weather:
        """From calm to stormy; lag only sometimes, since it excuses what would otherwise be a fault."""
        return Weather(
            failing=chance.choice((0, 10, 30, 80)),
            crashing=chance.choice((0, 0, 5, 15)),
            freezing=chance.choice((0, 5, 15, 40)),
            lagging=chance.choice((0.0, 0.0, 0.0, 0.3)),
        )

    def fate(self, chance: random.Random, lease_us: int) -> Fate:
        """The fate of the next call."""
        roll = chance.random() * 1_000
        before_us, after_us = _latency(chance), _latency(chance)
        if roll < self.failing:
            return Fate(before_us, after_us, chance.choice(("lost", "unanswered", "twice")))
        roll -= self.failing
        if roll < self.crashing:
            return Fate(before_us, after_us, chance.choice(("crash before", "crash after")))
        roll -= self.crashing
        if roll < self.freezing:
            frozen_us = int(lease_us * chance.uniform(0.5, 3.0))
            return Fate(before_us, after_us, chance.choice(("freeze before", "freeze after")), frozen_us)
        return Fate(before_us, after_us)


def _latency(chance: random.Random) -> int:
    """Mostly none, so that many can go on at the same instant and the scheduler decides; sometimes seconds."""
    roll = chance.random()
    if roll < 0.6:
        return 0
    return int(roll * 20_000) if roll < 0.95 else int(chance.random() * 3_000_000)
