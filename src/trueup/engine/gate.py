"""The door to one system, bound to the budgets that all workers share."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Final

from trueup.errors import Unreachable
from trueup.model.allowance import Said, number_in, said_in
from trueup.model.budget import CallKind, System
from trueup.model.outcome import Postponed
from trueup.model.retry_after import http_date_us, retry_after_us
from trueup.pair import Pair
from trueup.ports import Budgets, Clock, GatedSide

DEFAULT_PAUSE_US: Final = 60_000_000
CALL_US: Final = 60_000_000
# Nothing is claimed while a person pauses the system; when the pause ends, what it met goes on soon.
HELD_S: Final = 1.0
TOO_MANY: Final = 429
# How the reason of a pause ends that the system itself asked for.
ASKED: Final = "asked for a pause"
_log = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class _Call:
    """A call under way: what was taken for it."""

    name: str = ""
    cost: float = 0.0
    urgent: bool = False


def bind_gates(pair: Pair, urls: Iterable[object], budgets: Budgets, clock: Clock) -> None:
    """Calls of the pair's sides, and of these handlers, pass the gate of their system: its budget and its pauses."""
    called: list[tuple[object, System]] = [(pair.authority, System(pair.authority_system))]
    called += [(each, pair.system) for each in (pair.replica, *urls)]
    for gated, system in called:
        if isinstance(gated, GatedSide) and gated.gate is None:
            gated.gate = SystemGate(gated.system or system, budgets, clock, secrets.token_hex(4))


class SystemGate:
    """See `trueup.ports.Gate`. owner: who calls, unique among the store's workers."""

    def __init__(self, system: System, budgets: Budgets, clock: Clock, owner: str) -> None:
        self.system, self._budgets, self._clock, self._owner = system, budgets, clock, owner
        self._numbers = count()
        self._under_way = threading.local()
        self._refused = False

    def enter(self, kind: CallKind = "read") -> None:
        """Waits until a call of this kind may be made."""
        caller, waited_us = _caller.get(), 0
        call = _Call(f"{self._owner}/{next(self._numbers)}", self.system.costs.of(kind), caller.urgent)
        while wait_us := self._wait_us(call, caller):
            if caller.patience_us is not None and waited_us + wait_us > caller.patience_us:
                raise Postponed(wait_us / 1e6, f"{self.system.name} may not be called now")
            self._clock.sleep(wait_us / 1e6)
            waited_us += wait_us
        self._under_way.call = call

    def _wait_us(self, call: _Call, caller: Caller) -> int:
        health = self._budgets.health(self.system.name)
        if health.by_person and caller.patience_us is not None:
            raise Postponed(HELD_S, f"{self.system.name} is paused: {health.reason}")
        if health.by_person:
            name = "--all" if health.everything else self.system.name
            raise Unreachable(
                f"{self.system.name} is paused: {health.reason}", hint=f"End it with: trueup resume {name}"
            )
        return self._budgets.take(self.system, call.cost, urgent=call.urgent, call=call.name, call_us=CALL_US)

    def leave(self, status: int | None, headers: Mapping[str, str], *, used_up: bool = False) -> None:
        """Tells how the call ended; reads what the system says of its limits."""
        call: _Call = getattr(self._under_way, "call", _Call())
        self._under_way.call = _Call()
        lower = {name.lower(): value for name, value in headers.items()}
        # Dates in an answer are by the clock of whoever sent it.
        sent_us = None if "age" in lower else http_date_us(lower.get("date"))
        now_us = self._clock.now_us() if sent_us is None else sent_us
        said = self._said(lower, now_us)
        if used_up and self.system.quota is not None:
            reset_us = self.system.quota.reset_us(self._clock.now_us())
            said = Said(0.0, reset_us - self._clock.now_us())
        extra = self._extra(call, lower)
        if extra or said is not None:
            self._budgets.answered(self.system, call.name, extra=extra, urgent=call.urgent, said=said)
        elif self.system.concurrency is not None:
            self._budgets.ended(self.system.name, call.name)
        if used_up and said is not None and self.system.quota is not None:
            raise Postponed(said.lasts_us / 1e6, f"the quota of {self.system.name} is used up")
        if status == TOO_MANY:
            self._pause(lower, said, now_us)
        elif self._refused and status is not None and status < 400:
            self._refused = False
            self._budgets.succeeded(self.system.name)

    def _pause(self, headers: Mapping[str, str], said: Said | None, now_us: int) -> None:
        asked_us = retry_after_us(headers.get("retry-after"), now_us)
        if asked_us is None:
            asked_us = said.lasts_us if said is not None and said.left < 1 else DEFAULT_PAUSE_US
            about = {"event": "system_silent_on_pause", "system": self.system.name}
            _log.warning("%s refuses calls and does not say for how long.", self.system.name, extra=about)
        # No wait at all is believed once; then it is asked again ever later.
        pause_us = None if not asked_us and self._refused else min(asked_us, self.system.pause_max_us)
        self._refused = True
        health = self._budgets.failed(self.system.name, f"{self.system.name} {ASKED}", pause_us)
        wait_us = max(0, health.paused_until_us - self._clock.now_us()) if pause_us is None else pause_us
        raise Postponed(wait_us / 1e6, f"{self.system.name} {ASKED}")

    def _said(self, headers: Mapping[str, str], now_us: int) -> Said | None:
        if self.system.remaining_header is None:
            return None
        said = said_in(headers, self.system.remaining_header, self.system.reset_header, now_us)
        return None if said is None else Said(said.left, min(said.lasts_us, self.system.pause_max_us))

    def _extra(self, call: _Call, headers: Mapping[str, str]) -> float:
        """What the answer says the call did cost, beyond what was taken for it."""
        header = self.system.cost_header
        cost = None if header is None else number_in(headers.get(header.lower()))
        return 0.0 if cost is None else min(cost, self.system.most) - call.cost
