"""A run: one reconciliation of one pair, and what it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Run:
    """One reconciliation.

    number: given by the archive, 0 before. what: `run`, `adopt` or `dry-run`. cutoff_us: records that
    changed later are not judged. ended: `open`, `done` or `failed`. counts: by name, see docs/reference.
    """

    pair: str
    what: str
    started_us: int
    cutoff_us: int | None = None
    number: int = 0
    ended_us: int | None = None
    ended: str = "open"
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
