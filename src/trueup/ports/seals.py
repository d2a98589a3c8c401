"""What is kept of windows that are final: a seal says what each side held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trueup.model.window import Seal


class Seals(Protocol):
    """Every method is one transaction and may be repeated."""

    def seals(self, pair: str) -> list[Seal]:
        """All seals of the pair, the earliest window first."""

    def seal(self, seals: Sequence[Seal]) -> None:
        """Stores seals; one of the same pair, beginning and end replaces the former."""

    def break_seals(self, seals: Sequence[Seal]) -> int:
        """Forgets the seals of these windows: they are compared again; answers how many there were."""
