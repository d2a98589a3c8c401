"""A run: one reconciliation of one pair, as far as it came, and what it counted.

Only one run of a pair is under way. Who may work on it is a lease with a fencing token, as for a record: the fence
decides, so that whoever is late but was not replaced may go on, and whoever was replaced may not. Fences start at the
store's clock, so that a store that was lost, or a row that was purged, never gives out an old one again. Every store
loads, lets these functions judge, and saves in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

OPEN: Final = "open"
DONE: Final = "done"
FAILED: Final = "failed"
# Kinds of run that others must know: one that changes nothing, and one that looks only at what was touched.
REPORT: Final = "report"
CHANGED: Final = "changed"
# What an older run has seen is no longer worth going on with.
RESUMED_WITHIN_US: Final = 6 * 3_600_000_000
PROCESS_ENDED: Final = "its process ended"


@dataclass(frozen=True, slots=True)
class Run:
    """One reconciliation. It holds its pair's slot: a lease with a fencing token, as a job does its record.

    number: given by the archive, 0 before. what: `run`, `sweep`, `compare`, `changed`, `adopt` or `report`. cutoff_us:
    records that changed later are not judged. ended: `open`, `done` or `failed`. counts: by name, see docs/reference.
    owner, fence, lease_until_us: who works on it; "" and 0 where nobody does. done: the phases that are complete, in
    order. memo: what a later phase, or whoever takes the run over, must know of the earlier ones, as JSON has it.
    """

    pair: str
    what: str
    started_us: int
    cutoff_us: int | None = None
    number: int = 0
    ended_us: int | None = None
    ended: str = OPEN
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    owner: str = ""
    fence: int = 0
    lease_until_us: int = 0
    done: tuple[str, ...] = ()
    memo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of the one run of a pair that may be under way.

    run: the number of the run that has it, or had it last. owner: "" where it is free. refusals: how many runs found
    it taken.
    """

    pair: str
    run: int = 0
    owner: str = ""
    fence: int = 0
    lease_until_us: int = 0
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """What becomes of a run that wants to begin.

    slot: as it is to be saved; its run is 0 where the run is new. run: the one to work on, or None where it was
    refused. dead: the one to be stored as failed.
    """

    slot: Slot
    run: Run | None = None
    dead: Run | None = None


def begin(slot: Slot, last: Run | None, run: Run, owner: str, now_us: int, lease_us: int) -> Begun:
    """Judges a run that wants to begin. last: the run that the slot names."""
    under_way = last is not None and last.ended == OPEN
    if last is not None and under_way and now_us < slot.lease_until_us:
        if slot.owner == owner:
            return Begun(slot, holding(slot, last))  # asked again: the answer was lost
        return Begun(replace(slot, refusals=slot.refusals + 1))
    held = replace(slot, owner=owner, fence=_next(slot.fence, now_us), lease_until_us=now_us + lease_us)
    if last is not None and under_way and last.what == run.what and now_us - last.started_us <= RESUMED_WITHIN_US:
        return Begun(held, holding(held, last))
    dead = replace(last, ended=FAILED, ended_us=now_us, error=PROCESS_ENDED) if last is not None and under_way else None
    return Begun(replace(held, run=0), holding(held, replace(run, number=0, ended=OPEN)), dead)


def holding(slot: Slot, run: Run) -> Run:
    """The run with the lease of the slot."""
    return replace(run, owner=slot.owner, fence=slot.fence, lease_until_us=slot.lease_until_us)


def held(slot: Slot, run: Run) -> bool:
    """Whether the run still has the slot, late or not."""
    return bool(slot.owner) and (slot.run, slot.fence) == (run.number, run.fence)


def closed(slot: Slot, stored: Run | None, run: Run) -> bool:
    """Whether this very end of the run is stored already: its answer was lost, and the call repeated."""
    if stored is None or stored.ended == OPEN:
        return False
    return (slot.run, slot.fence) == (run.number, run.fence) and stored.ended == run.ended


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of keys, or a window, that one worker compares for a run.

    low, high: canonical texts of the first key column, from `low` on and below `high`; None for no bound. from_us,
    to_us: of a window. state: `open` or `done`. counts: what the comparison of this piece counted. owner, fence,
    lease_until_us: who works on it, or did.
    """

    run: int
    number: int
    low: str | None = None
    high: str | None = None
    state: str = OPEN
    counts: Mapping[str, int] = field(default_factory=dict)
    owner: str = ""
    fence: int = 0
    lease_until_us: int = 0
    from_us: int | None = None
    to_us: int | None = None


def claimable(piece: Piece, now_us: int) -> bool:
    """Whether somebody could claim this piece of a run that is open."""
    return piece.state == OPEN and piece.lease_until_us <= now_us


def claim(piece: Piece, owner: str, now_us: int, lease_us: int) -> Piece:
    """The piece as `owner` holds it."""
    return replace(piece, owner=owner, fence=_next(piece.fence, now_us), lease_until_us=now_us + lease_us)


def claimed(stored: Piece | None, piece: Piece) -> bool:
    """Whether whoever claimed `piece` still has it, late or not; the run must be open."""
    return stored is not None and stored.state == OPEN and bool(stored.owner) and stored.fence == piece.fence


def finished(stored: Piece | None, piece: Piece) -> bool:
    """Whether this very finish is stored already: its answer was lost, and the call repeated."""
    return stored is not None and stored.state == DONE and bool(stored.owner) and stored.fence == piece.fence


def _next(fence: int, now_us: int) -> int:
    return max(fence + 1, now_us)
