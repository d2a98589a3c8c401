"""Systems as far as trueup may burden them, and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from trueup.model.allowance import Said
from trueup.model.budget import CallKind, System
from trueup.model.health import Health


class Budgets(Protocol):
    """What may be asked of each system, shared by all workers of a store (rules: `trueup.model.health`)."""

    def take(self, system: System, cost: float, *, urgent: bool, call: str, call_us: int) -> int:
        """Spends if it may; answers the microseconds to wait, 0 where it was granted."""

    def ended(self, name: str, call: str) -> None:
        """A call under way came to its end."""

    def answered(self, system: System, call: str, *, extra: float, urgent: bool, said: Said | None) -> None:
        """A call came to its end, and its answer told more.

        extra: what it did cost beyond what was taken for it, below 0 where less. said: what the system says is left.
        """

    def failed(self, name: str, reason: str, pause_us: int | None = None) -> Health:
        """The system is in trouble: it is paused, for what it asked or ever longer."""

    def succeeded(self, name: str) -> None:
        """A call worked: the system is back."""

    def probe(self, name: str, for_us: int) -> bool:
        """Whether the caller is the one that finds out whether the system is back."""

    def pause(self, name: str, reason: str, by: str = "") -> None:
        """A person pauses the system (`*`: all of them) until `resume`. by: who."""

    def resume(self, name: str) -> None:
        """Ends a pause, whoever began it."""

    def health(self, name: str) -> Health:
        """What is known of the system; paused by a person where `*` is.

        A store may answer what it knew up to 50 ms ago of a system that was not in trouble then.
        """

    def healths(self, names: Sequence[str]) -> dict[str, Health]:
        """`health` of each of these systems, in one question."""

    def names(self) -> list[str]:
        """Systems of which anything is known."""


class Gate(Protocol):
    """The door to one system: its budget, its pause, its limit of calls at once. Bound by the project."""

    def enter(self, kind: CallKind = "read") -> None:
        """Waits until a call of this kind may be made.

        Raises `trueup.model.outcome.Postponed` where the wait would be longer than the caller may wait, and
        Unreachable where a person paused the system.
        """

    def leave(self, status: int | None, headers: Mapping[str, str], *, used_up: bool = False) -> None:
        """Tells how the call ended (status None: no answer); reads what the system says of its limits.

        used_up: the answer meant that the day's quota is used up. Raises Postponed where the answer was a refusal
        for having called too often (429).
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

    def elapsed_us(self) -> int:
        """Microseconds since some moment, never set back: for how long something took."""

    def sleep(self, seconds: float) -> None:
        """Waits."""

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """Calls `call` at this rhythm until it answers False; returns what stops it."""
