"""How one run is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueup.pair import Pair

Phase = Literal["sweep", "compare", "changed"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one run does and leaves.

    only: `sweep` (stuck and changed), `compare` (everything), or `changed` (compare what was touched since the last
    comparison). dry_run: the exact plan, and nothing is written anywhere.
    enqueue: leave the jobs to other workers. backfill, trust_authority: for adopt, create what is missing,
    overwrite what differs. memory_mb: for the comparison. window: compare only these, such as `2026-11-01..2026-11-08`.
    whole: compare everything, though the pair declares windows.
    """

    only: Phase | None = None
    dry_run: bool = False
    enqueue: bool = False
    adopt: bool = False
    backfill: bool = False
    trust_authority: bool = False
    memory_mb: int = 512
    window: str | None = None
    whole: bool = False

    def windowed(self, pair: Pair) -> bool:
        """Whether windows are compared instead of everything."""
        declared = pair.windows is not None and self.only in (None, "compare")
        return self.window is not None or (declared and not self.adopt and not self.whole)
