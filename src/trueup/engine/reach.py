"""How far a look at the authority will be complete, asked before it begins.

A transaction that still runs will commit rows of the time when it began, or with a number that it drew then. A cursor
that passed those would never see them, so it stays behind the oldest transaction, where the authority can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trueup.engine.records import Records
from trueup.ports import RunningSide, Runs

# A cursor that has passed nothing; sums with overlaps still fit into 64 bits.
BEGINNING: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class Reach:
    """until: the look is complete up to this version; None where only the look itself can tell, by the newest it sees.

    kept: cursors to write with it.
    """

    until: int | None
    kept: Mapping[str, int] = field(default_factory=dict)


def reach(records: Records, runs: Runs, cutoff_us: int | None, before: int | None) -> Reach:
    """How far a look that begins now, with this cutoff, will be complete. before: where its cursor stands."""
    side = records.pair.authority
    if records.dated:
        running_us = side.oldest_running_us() if isinstance(side, RunningSide) else None
        late = cutoff_us is not None and running_us is not None and running_us < cutoff_us
        return Reach(running_us if late else cutoff_us)
    if not isinstance(side, RunningSide) or side.oldest_running_us() is None:
        return Reach(None)
    return _by_number(records, runs, side, before)


def _by_number(records: Records, runs: Runs, side: RunningSide, before: int | None) -> Reach:
    """Numbers say nothing of time, so the newest one is noted, and passed once all that ran then has ended."""
    name, stands = records.pair.name, BEGINNING if before is None else before
    newest, asked_us, running_us = side.newest_version(records.authority), side.now_us(), side.oldest_running_us()
    if asked_us is None or running_us is None:
        return Reach(None)
    if newest is None or running_us >= asked_us:
        return Reach(BEGINNING if newest is None else newest)
    noted, noted_us = runs.cursor(noted_cursor(name)), runs.cursor(noted_time(name))
    now = {noted_cursor(name): newest, noted_time(name): asked_us}
    if noted is None or noted_us is None:
        return Reach(stands, now)
    return Reach(max(noted, stands), now) if running_us > noted_us else Reach(stands)


def noted_cursor(pair: str) -> str:
    """The name of the cursor that says the newest number at an earlier look, when transactions were still running."""
    return f"{pair} (noted)"


def noted_time(pair: str) -> str:
    """The name of the cursor that says when that was, in microseconds by the authority's clock."""
    return f"{pair} (noted at)"
