"""Budgets over any store that can change one system's health in one transaction."""

from __future__ import annotations

import json
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from trueup.errors import own_words
from trueup.model import health as rules
from trueup.model.allowance import Allowance, Said
from trueup.model.budget import System
from trueup.model.health import HEALTHY, Health, Kept
from trueup.ports import Clock

ALL = "*"
OK_WRITTEN_US = 1_000_000
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
# What is known now, and the store's time → an answer, and what is to be known.
Rule = Callable[[Health, int], tuple[_T, Health]]


class HealthBudgets(ABC):
    """The flow of every operation of the port `Budgets`, which see: load, let a rule judge, save.

    clock: the store's clock, for tests.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._told: dict[str, int] = {}

    @abstractmethod
    def _change(self, name: str, rule: Rule[_T], *, durable: bool = False) -> _T:
        """Saves the health that the rule answers, in one transaction; nothing where it is unchanged.

        durable: it is on disk when this returns. What was spent need not be: to lose it with the machine's power
        costs a few calls too many, and to wait for the disk would cost every call.
        """

    @abstractmethod
    def _known(self, names: Sequence[str]) -> dict[str, Health]:
        """What is known of these systems; of one that is not in the answer nothing is."""

    @abstractmethod
    def _now_us(self) -> int:
        """The store's clock."""

    @abstractmethod
    def names(self) -> list[str]:
        """Systems of which anything is known."""

    def take(self, system: System, cost: float, *, urgent: bool, call: str, call_us: int) -> int:
        """Spends if it may; answers the microseconds to wait, 0 where it was granted."""
        if not system.counted and self.health(system.name).free:
            return 0
        return self._change(
            system.name,
            lambda health, now_us: rules.spend(system, health, cost, now_us, urgent=urgent, call=call, call_us=call_us),
        )

    def ended(self, name: str, call: str) -> None:
        """A call under way came to its end."""
        self._change(name, lambda health, _: (None, rules.ended(health, call)))

    def answered(self, system: System, call: str, *, extra: float, urgent: bool, said: Said | None) -> None:
        """A call came to its end, and its answer told more. extra: cost beyond what was taken. said: what is left."""

        def rule(health: Health, now_us: int) -> tuple[None, Health]:
            return None, rules.answered(system, health, call, now_us, extra=extra, urgent=urgent, said=said)

        self._change(system.name, rule)

    def failed(self, name: str, reason: str, pause_us: int | None = None) -> Health:
        """The system is in trouble: it is paused, for what it asked or ever longer."""

        def rule(health: Health, now_us: int) -> tuple[tuple[Health, int], Health]:
            after = rules.failed(health, now_us, reason, pause_us=pause_us)
            return (after, after.paused_until_us - now_us), after

        after, wait_us = self._change(name, rule)
        why = own_words(reason)
        _log.log(
            _level(after), "%s is paused for %.0f s: %s", name, wait_us / 1e6, why,
            extra={"event": "system_paused", "system": name, "pause_s": wait_us / 1e6, "why": why},
        )  # fmt: skip
        return after

    def succeeded(self, name: str) -> None:
        """A call worked: the system is back. Written at most once a second where nothing else is new."""
        now_us = time.monotonic_ns() // 1_000 if self._clock is None else self._clock.elapsed_us()
        if self.health(name).probes or now_us - self._told.get(name, -OK_WRITTEN_US) >= OK_WRITTEN_US:
            was = self._change(name, lambda found, now_us: (found, rules.succeeded(found, now_us)))
            self._told[name] = now_us
            if was.probes and not was.by_person:
                _log.log(_level(was), "%s is back", name, extra={"event": "system_back", "system": name})

    def probe(self, name: str, for_us: int) -> bool:
        """Whether the caller is the one that finds out whether the system is back."""
        return self._change(name, lambda health, now_us: rules.probe(health, now_us, for_us))

    def pause(self, name: str, reason: str, by: str = "") -> None:
        """A person pauses the system (`*`: all of them) until `resume`. by: who."""

        def rule(health: Health, now_us: int) -> tuple[None, Health]:
            since_us = health.since_us if health.by_person else now_us
            return None, replace(health, by_person=True, reason=reason, by=by, since_us=since_us)

        self._change(name, rule, durable=True)
        _log.info("%s is paused by a person", name, extra={"event": "system_held", "system": name, "by": by})

    def resume(self, name: str) -> None:
        """Ends a pause, whoever began it; `*` ends every pause."""
        for each in self.names() if name == ALL else [name]:
            if not self._change(each, lambda health, _: (health.free, rules.resumed(health)), durable=True):
                _log.info("a person ends the pause of %s", each, extra={"event": "system_resumed", "system": each})

    def health(self, name: str) -> Health:
        """What is known of the system; paused by a person where `*` is."""
        return self.healths([name])[name]

    def healths(self, names: Sequence[str]) -> dict[str, Health]:
        """What is known of each of these systems, as `health` says it."""
        known = self._known([*names, ALL])
        everything = known.get(ALL, HEALTHY)
        return {name: _under(everything, known.get(name, HEALTHY)) for name in names}


def _level(health: Health) -> int:
    """Trouble that the first probe ends is nothing to wake anybody for."""
    return logging.WARNING if health.probes > 1 else logging.INFO


def _under(everything: Health, health: Health) -> Health:
    if not everything.by_person:
        return health
    return replace(
        health,
        by_person=True,
        everything=True,
        reason=everything.reason,
        by=everything.by,
        since_us=everything.since_us,
    )


class MemoryBudgets(HealthBudgets):
    """Budgets of this process, gone when it ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._lock = threading.RLock()
        self._health: dict[str, Health] = {}

    def _change(self, name: str, rule: Rule[_T], *, durable: bool = False) -> _T:
        with self._lock:
            before = self._health.get(name, HEALTHY)
            answer, after = rule(before, self._now_us())
            if after is not before:
                self._health[name] = after
        return answer

    def _known(self, names: Sequence[str]) -> dict[str, Health]:
        return {name: self._health[name] for name in names if name in self._health}

    def _now_us(self) -> int:
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()

    def names(self) -> list[str]:
        """Systems of which anything is known."""
        return sorted(self._health)


def dump_health(health: Health) -> str:
    """A health as JSON, for stores that keep it as text: only what differs from that of a system nobody called."""
    kept = {name: value for name, value in asdict(health).items() if value != _NOTHING[name]}
    return json.dumps(kept, separators=(",", ":"))


def read_health(text: str) -> Health:
    """The inverse of `dump_health`; what a newer version added is left out."""
    kept: dict[str, Any] = {name: value for name, value in json.loads(text).items() if name in _NOTHING}
    if "spent" in kept:
        kept["spent"] = {
            int(period): {int(at): (both, rest) for at, (both, rest) in slices.items()}
            for period, slices in kept["spent"].items()
        }
    if "day" in kept:
        kept["day"] = tuple(kept["day"])
    if kept.get("allowance"):
        kept["allowance"] = Allowance(**kept["allowance"])
    if "kept" in kept:
        kept["kept"] = Kept(**kept["kept"])
    return Health(**kept)


_NOTHING = asdict(HEALTHY)
