"""What happened, so that a person can read it: who did what, at which virtual time, on which record."""

from __future__ import annotations

from collections.abc import Callable

from trueup.testing.clock import START_US


class Story:
    """Lines in order. They are put into words only when somebody asks: most stories end well."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lines: list[tuple[int, str, str, tuple[object, ...]]] = []

    def tell(self, who: str, what: str, *details: object) -> None:
        """One line; what: a format for the details."""
        self._lines.append((self._now_us(), who, what, details))

    def text(self) -> str:
        """The whole story."""
        return "\n".join(
            f"{(at_us - START_US) / 1e6:10.3f}s  {who:<10} {what.format(*details)}"
            for at_us, who, what, details in self._lines
        )
