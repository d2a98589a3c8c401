"""The door to one system, bound to the budgets that all workers share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Final

from trueup.errors import Unreachable
from trueup.model.budget import System
from trueup.model.outcome import RateLimited
from trueup.model.retry_after import retry_after_us
from trueup.ports import Budgets, Clock

DEFAULT_PAUSE_US: Final = 60_000_000
CALL_US: Final = 60_000_000
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a call is made. patience_us: how long it may wait at the door; None for ever."""

    urgent: bool = False
    patience_us: int | None = None


NOBODY: Final = Caller()
_caller: ContextVar[Caller] = ContextVar("trueup_caller", default=NOBODY)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Calls within are made on this behalf."""
    call = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(call)


class SystemGate:
    """See `trueup.ports.Gate`. owner: who calls, unique among the store's workers."""

    def __init__(self, system: System, budgets: Budgets, clock: Clock, owner: str) -> None:
        self.system, self._budgets, self._clock, self._owner = system, budgets, clock, owner
        self._numbers = count()
        self._call = threading.local()

    def enter(self, cost: float = 1.0) -> None:
        """Waits until a call of this cost may be made."""
        caller, waited_us = _caller.get(), 0
        call = f"{self._owner}/{next(self._numbers)}"
        while wait_us := self._wait_us(caller, call, cost):
            if caller.patience_us is not None and waited_us + wait_us > caller.patience_us:
                raise RateLimited(wait_us / 1e6)
            self._clock.sleep(wait_us / 1e6)
            waited_us += wait_us
        self._call.value = call

    def _wait_us(self, caller: Caller, call: str, cost: float) -> int:
        health, now_us = self._budgets.health(self.system.name), self._clock.now_us()
        if health.by_person:
            raise Unreachable(
                f"{self.system.name} is paused: {health.reason}", hint=f"End it with: trueup resume {self.system.name}"
            )
        if health.paused(now_us):
            return health.paused_until_us - now_us
        return self._budgets.take(self.system, cost, urgent=caller.urgent, call=call, call_us=CALL_US)

    def leave(self, status: int | None, headers: Mapping[str, str]) -> None:
        """Tells how the call ended; reads what the system says of its limits."""
        if self.system.concurrency is not None:
            self._budgets.ended(self.system.name, getattr(self._call, "value", ""))
        if status != TOO_MANY:
            return
        said = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
        pause_us = retry_after_us(said, self._clock.now_us())
        pause_us = DEFAULT_PAUSE_US if pause_us is None else pause_us
        self._budgets.failed(self.system.name, "it asked for a pause (429)", pause_us)
        raise RateLimited(pause_us / 1e6)
