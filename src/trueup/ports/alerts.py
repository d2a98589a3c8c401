"""Signs of life of pairs, and who is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trueup.model.alert_text import Notice
from trueup.model.pulse import Pulse


class Pulses(Protocol):
    """Signs of life of pairs, by the store's clock."""

    def pulses(self, pairs: Sequence[str]) -> dict[str, Pulse]:
        """The pulse of each of these pairs."""

    def hear(self, pairs: Sequence[str]) -> None:
        """An event came for each of these pairs."""

    def note_ping(self, pair: str, error: str | None) -> None:
        """A ping of this pair arrived, or did not: then why."""


class Target(Protocol):
    """Somebody who is told."""

    @property
    def who(self) -> str:
        """For messages: never an address, which may hold a token."""

    def send(self, notice: Notice) -> None:
        """Hands it over; returns once it was accepted. Raises TrueupError where it was not."""

    def close(self) -> None:
        """Gives back connections."""


class Pings(Protocol):
    """Tells an outside watcher how runs of a pair go; never delays a run, and raises nothing."""

    def started(self, run: str) -> None:
        """A run began. run: an ident in the form of a UUID, the same for its end."""

    def succeeded(self, run: str, said: str) -> None:
        """It ended well; said: a line for people."""

    def failed(self, run: str, said: str) -> None:
        """It ended in trouble."""
