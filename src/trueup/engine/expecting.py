"""What the next comparison of a pair will probably find: what the last ones did."""

from __future__ import annotations

from typing import Final

from trueup.compare.expected import Expected
from trueup.model.run import DONE, REPORT, Run
from trueup.model.schedule import COMPARE
from trueup.ports import Archive

# Older ones tell little about the next.
_LOOKED_AT: Final = 10
_DIFFERENT: Final = ("missing", "extra", "differ", "duplicate")


def compares(archive: Archive, pair: str, limit: int) -> list[Run]:
    """The newest runs that compared everything, as far as they say how much that was."""
    runs = archive.runs(pair, limit=limit, what=("run", COMPARE, "adopt", REPORT))
    return [run for run in runs if run.ended == DONE and "left" in run.counts and not run.counts.get("windows")]


def expected(archive: Archive, pair: str) -> Expected:
    """How many of these runs found no difference at their first look."""
    runs = compares(archive, pair, _LOOKED_AT)
    return Expected(sum(not any(run.counts.get(name) for name in _DIFFERENT) for run in runs), len(runs))
