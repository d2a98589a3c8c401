"""Systems as far as trueup may burden them, and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from trueup.model.budget import Health, System


class Budgets(Protocol):
    """What may be asked of each system, shared by all workers of a store (rules: `trueup.model.budget`)."""

    def take(self, system: System, cost: float, *, urgent: bool, call: str, call_us: int) -> int:
        """Spends if it may; answers the microseconds to wait, 0 where it was granted."""

    def ended(self, name: str, call: str) -> None:
        """A call under way came to its end."""

    def failed(self, name: str, reason: str, pause_us: int | None = None) -> Health:
        """The system is in trouble: it is paused, for what it asked or ever longer."""

    def succeeded(self, name: str) -> None:
        """A call worked: the system is back."""

    def probe(self, name: str, for_us: int) -> bool:
        """Whether the caller is the one that finds out whether the system is back."""

    def pause(self, name: str, reason: str) -> None:
        """A person pauses the system (`*`: all of them) until `resume`."""

    def resume(self, name: str) -> None:
        """Ends a pause, whoever began it."""

    def health(self, name: str) -> Health:
        """What is known of the system; paused by a person where `*` is."""

    def names(self) -> list[str]:
        """Systems of which anything is known."""


class Gate(Protocol):
    """The door to one system: its budget, its pause, its limit of calls at once. Bound by the project."""

    def enter(self, cost: float = 1.0) -> None:
        """Waits until a call of this cost may be made.

        Raises `trueup.model.outcome.RateLimited` where the wait would be longer than the caller may wait, and
        Unreachable where the system is paused.
        """

    def leave(self, status: int | None, headers: Mapping[str, str]) -> None:
        """Tells how the call ended (status None: no answer); reads what the system says of its limits.

        Raises RateLimited where the answer was a refusal for having called too often.
        """


@runtime_checkable
class GatedSide(Protocol):
    """A side whose calls pass a gate, which the project binds."""

    system: System | None
    gate: Gate | None


class Clock(Protocol):
    """Time and waiting. The simulation brings its own."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00Z."""

    def sleep(self, seconds: float) -> None:
        """Waits."""

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it."""
