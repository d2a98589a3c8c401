"""Places that are handed something: targets of alerts, and places of anchors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from trueup.model.handover import H


class Handovers(Protocol[H]):
    """Places of one kind. Every method is one transaction and may be repeated (rules: `trueup.model.handover`)."""

    def known(self, names: Sequence[str]) -> dict[str, H]:
        """How it stands with each of these places; one that nobody was at has nothing."""

    def claim(self, seen: H, take: Callable[[H, int], H]) -> H | None:
        """Takes a place that nobody changed since it was read; None where somebody did.

        take: from the place as it is, and the time by the store's clock, to the place as it is claimed.
        """

    def end(self, ended: H) -> bool:
        """Frees a place and stores what it has now; False, and nothing stored, where the fence is old."""
