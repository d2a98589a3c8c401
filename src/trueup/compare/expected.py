"""What earlier comparisons of the same two sides found, for whoever chooses how to compare them now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Expected:
    """Of the last `compared` comparisons, `agreed` found no difference; nothing is known where there were none."""

    agreed: int = 0
    compared: int = 0

    @property
    def agreement(self) -> float | None:
        """How likely it is that both sides agree once more; None where nothing is known.

        By Laplace's rule of succession: what held once, or ten times, is not certain to hold again.
        """
        return (self.agreed + 1) / (self.compared + 2) if self.compared else None

    def __str__(self) -> str:
        return f"{self.agreed} of the last {self.compared} comparisons found no difference"


UNKNOWN: Final = Expected()
