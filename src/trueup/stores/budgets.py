"""Budgets over any store that can change one system's health in one transaction."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TypeVar

from trueup.model import budget as rules
from trueup.model.budget import HEALTHY, Health, System
from trueup.ports import Clock

ALL = "*"
OK_WRITTEN_US = 1_000_000
_T = TypeVar("_T")


class HealthBudgets(ABC):
    """The flow of every operation of the port `Budgets`, which see: load, let a rule judge, save."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    @abstractmethod
    def _change(self, name: str, rule: Callable[[Health], tuple[_T, Health]]) -> _T:
        """Saves the health that the rule answers, in one transaction; nothing where it is unchanged."""

    @abstractmethod
    def _load(self, name: str) -> Health:
        """What is known of a system."""

    @abstractmethod
    def names(self) -> list[str]:
        """Systems of which anything is known."""

    def _now_us(self) -> int:
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()

    def take(self, system: System, cost: float, *, urgent: bool, call: str, call_us: int) -> int:
        """Spends if it may; answers the microseconds to wait, 0 where it was granted."""
        if not system.limits and system.concurrency is None:
            return 0
        now_us = self._now_us()
        return self._change(
            system.name,
            lambda health: rules.spend(system, health, cost, now_us, urgent=urgent, call=call, call_us=call_us),
        )

    def ended(self, name: str, call: str) -> None:
        """A call under way came to its end."""
        self._change(name, lambda health: (None, rules.ended(health, call) if call in health.calls else health))

    def failed(self, name: str, reason: str, pause_us: int | None = None) -> Health:
        """The system is in trouble: it is paused, for what it asked or ever longer."""

        def rule(health: Health) -> tuple[Health, Health]:
            after = rules.failed(health, self._now_us(), reason, pause_us=pause_us)
            return after, after

        return self._change(name, rule)

    def succeeded(self, name: str) -> None:
        """A call worked: the system is back. Written at most once a second where nothing else is new."""
        now_us = self._now_us()
        health = self._load(name)
        if health.probes or now_us - health.ok_at_us > OK_WRITTEN_US:
            self._change(name, lambda found: (None, rules.succeeded(found, now_us)))

    def probe(self, name: str, for_us: int) -> bool:
        """Whether the caller is the one that finds out whether the system is back."""
        return self._change(name, lambda health: rules.probe(health, self._now_us(), for_us))

    def pause(self, name: str, reason: str) -> None:
        """A person pauses the system (`*`: all of them) until `resume`."""
        self._change(name, lambda health: (None, replace(health, by_person=True, reason=reason)))

    def resume(self, name: str) -> None:
        """Ends a pause, whoever began it; `*` ends every pause."""
        for each in self.names() if name == ALL else [name]:
            self._change(
                each, lambda health: (None, rules.succeeded(replace(health, by_person=False), health.ok_at_us))
            )

    def health(self, name: str) -> Health:
        """What is known of the system; paused by a person where `*` is."""
        everything = self._load(ALL)
        health = self._load(name)
        return replace(health, by_person=True, reason=everything.reason) if everything.by_person else health


class MemoryBudgets(HealthBudgets):
    """Budgets of this process, gone when it ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._lock = threading.RLock()
        self._health: dict[str, Health] = {}

    def _change(self, name: str, rule: Callable[[Health], tuple[_T, Health]]) -> _T:
        with self._lock:
            answer, after = rule(self._load(name))
            self._health[name] = after
        return answer

    def _load(self, name: str) -> Health:
        return self._health.get(name, HEALTHY)

    def names(self) -> list[str]:
        """Systems of which anything is known."""
        return sorted(self._health)


def dump_health(health: Health) -> str:
    """A health as JSON, for stores that keep it as text."""
    return json.dumps(asdict(health), separators=(",", ":"))


def read_health(text: str) -> Health:
    """The inverse of `dump_health`."""
    kept = json.loads(text)
    spent = {
        int(period): {int(at): (both, low) for at, (both, low) in slices.items()}
        for period, slices in kept.pop("spent").items()
    }
    return Health(**kept, spent=spent)
