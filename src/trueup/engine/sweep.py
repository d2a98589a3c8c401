"""Sweeps: what the authority says is still to be done, and what it changed since the cursor."""

from __future__ import annotations

from collections.abc import Iterator

from trueup.engine.records import Records
from trueup.model.change import Change, Origin
from trueup.ports import EVERYTHING, Scope


def sweep_unsynced(records: Records) -> Iterator[list[Change]]:
    """Every record that the pair's `unsynced` condition selects, at any age."""
    for states in records.scan_authority(Scope(where=records.pair.unsynced)):
        yield [records.change(state, Origin.SWEEP, unsynced=True) for state in states]


def sweep_changed(records: Records, cursor: int | None, first: int | None, newest: list[int]) -> Iterator[list[Change]]:
    """Records changed since the cursor, less the overlap, in (version, key) order; all where there is no cursor.

    first: the overlap does not reach back before this version. newest: receives the highest version of each batch.
    """
    asked = records.authority.version
    overlap = records.pair.overlap_us if asked is not None and asked.kind.name == "timestamp" else 0
    scope = EVERYTHING if cursor is None else Scope(since=max(cursor - overlap, first or cursor - overlap))
    for states in records.scan_authority(scope):
        newest.extend([max((s.version for s in states if s.version is not None), default=-(2**63))])
        yield [records.change(state, Origin.SWEEP) for state in states]
