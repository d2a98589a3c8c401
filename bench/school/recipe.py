"""(b) The published recipe: what was done is remembered for a while, with jitter; a lock; a check for newer events.

The store is a dictionary with Redis's semantics (SET with TTL, SET NX) on the virtual clock: a real Redis lets keys
expire by the time of day, which virtual time is not.
"""

from __future__ import annotations

import random

from .contestants import Setting
from .naive import Job, Naive
from .world import Key, State

LOCK_S = 60.0
AGAIN_S = 1.0
JITTER = 0.2
Done = tuple[Key, str]  # user and course, action


class Expiring:
    """GET, SET with TTL, SET NX with TTL, DEL."""

    def __init__(self, setting: Setting) -> None:
        self._time = setting.time
        self._values: dict[object, tuple[int, int]] = {}

    def get(self, name: object) -> int | None:
        """The value, or None where there is none or its time is over."""
        found = self._values.get(name)
        return None if found is None or found[1] <= self._time.now_us() else found[0]

    def set(self, name: object, value: int, ttl_s: float) -> None:
        """Stores it for a while."""
        self._values[name] = value, self._time.now_us() + round(ttl_s * 1e6)

    def set_nx(self, name: object, value: int, ttl_s: float) -> bool:
        """Stores it where there is none."""
        if self.get(name) is not None:
            return False
        self.set(name, value, ttl_s)
        return True

    def delete(self, name: object) -> None:
        """Forgets it."""
        self._values.pop(name, None)


class Recipe(Naive):
    """See the module. recency_s: how long what was done counts as fresh, ± 20%."""

    def __init__(self, setting: Setting, recency_s: float) -> None:
        super().__init__(setting)
        self._recency_s, self._chance = recency_s, setting.chance
        self._redis = Expiring(setting)

    def begin(self) -> None:
        """In steady state: what was done was done at any time in the past."""
        for key, state in self.setting.school.states.items():
            left_s = residual_s(self._chance, self._recency_s)
            self._redis.set((key, state.status), state.version, left_s)
        super().begin()

    def event(self, key: Key, state: State) -> None:
        """Remembers the newest event of the record, then one more job."""
        if state.version > (self._redis.get(("newest", key)) or 0):
            self._redis.set(("newest", key), state.version, self._recency_s)
        super().event(key, state)

    def wants(self, key: Key, state: State) -> bool:
        """Only what was not done lately."""
        return self._redis.get((key, state.status)) is None

    def perform(self, job: Job) -> bool:
        """Skips what is done or overtaken; else writes under the lock of this record and action."""
        done = job.key, job.state.status
        known = self._redis.get(done)
        if known is not None and (job.sweep is not None or known >= job.state.version):
            return True
        if job.state.version < (self._redis.get(("newest", job.key)) or 0):
            return True
        if not self._redis.set_nx(("lock", done), 1, LOCK_S):
            self.time.start(lambda: self.enqueue(job), AGAIN_S)
            return False
        try:
            self.write(job)
            ttl_s = self._recency_s * self._chance.uniform(1 - JITTER, 1 + JITTER)
            self._redis.set(done, max(job.state.version, known or 0), ttl_s)
        finally:
            self._redis.delete(("lock", done))
        return True


def residual_s(chance: random.Random, recency_s: float) -> float:
    """What is left of a period of recency ± 20% at a moment that knows nothing of it: long ones are met more often."""
    while True:
        period = chance.uniform(1 - JITTER, 1 + JITTER)
        if chance.uniform(0, 1 + JITTER) <= period:
            return recency_s * period * chance.random()
