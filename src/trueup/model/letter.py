"""A dead letter: what a known sender sent and nobody could make sense of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# What is kept for each source; beyond it the oldest letters go, and whoever keeps one is told how many went.
LETTERS_KEPT: Final = 1_000
BYTES_KEPT: Final = 16 << 20
BODY_KEPT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One request that was refused although its signature was right.

    status, reason: as its sender was told. delivery: its id, where it has one. headers: by lower-case name, without
    credentials. body: at most `BODY_KEPT` bytes of it; size: all its bytes. number: given by the archive, 0 before.
    """

    source: str
    received_us: int
    status: int
    reason: str
    body: bytes
    size: int
    headers: Mapping[str, str] = field(default_factory=dict)
    delivery: str | None = None
    number: int = 0

    @property
    def whole(self) -> bool:
        """Whether all of the body is here, so that it can be read again."""
        return len(self.body) == self.size
