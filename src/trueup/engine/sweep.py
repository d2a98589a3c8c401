"""Sweeps: what the authority says is still to be done, and what it changed since the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trueup.engine.records import Records
from trueup.model.change import Change, Origin
from trueup.ports import EVERYTHING, Runs, Scope


@dataclass(slots=True)
class Cursor:
    """How far the sweep of a pair is complete, in the authority's versions.

    at: complete up to here. first: where a pair without replica began; all before it counts as done. newest: the
    highest version ever seen. seen: the highest of this sweep.
    """

    at: int | None = None
    first: int | None = None
    newest: int | None = None
    seen: int | None = None

    @property
    def went_back(self) -> bool:
        """Whether the newest version ever seen is gone: it was deleted, or the authority was restored."""
        return self.newest is not None and (self.seen is None or self.seen < self.newest)


def load(runs: Runs, pair: str) -> Cursor:
    """The cursor as the last complete run left it."""
    return Cursor(runs.cursor(pair), runs.cursor(first_cursor(pair)), runs.cursor(newest_cursor(pair)))


def sweep_unsynced(records: Records) -> Iterator[list[Change]]:
    """Every record that the pair's `unsynced` condition selects, at any age."""
    for states in records.scan_authority(Scope(where=records.pair.unsynced)):
        yield [records.change(state, Origin.SWEEP, unsynced=True) for state in states]


def sweep_changed(records: Records, cursor: Cursor, *, whole: bool = False) -> Iterator[list[Change]]:
    """Records changed since the cursor, less the overlap, in (version, key) order; all where there is no cursor.

    The newest record ever seen is always among them, or else it is gone. whole: from the beginning.
    """
    since = cursor.first if whole else _since(records, cursor)
    for states in records.scan_authority(EVERYTHING if since is None else Scope(since=since)):
        seen = [state.version for state in states if state.version is not None]
        cursor.seen = max([*seen, *([] if cursor.seen is None else [cursor.seen])], default=None)
        yield [records.change(state, Origin.SWEEP) for state in states]


def _since(records: Records, cursor: Cursor) -> int | None:
    if cursor.at is None:
        return None
    overlap = records.pair.overlap_us if records.dated else records.pair.overlap_versions
    since = cursor.at - overlap if cursor.newest is None else min(cursor.at - overlap, cursor.newest)
    return since if cursor.first is None else max(since, cursor.first)


def first_cursor(pair: str) -> str:
    """The name of the cursor that never moves: where a pair without replica began. All before it counts as done."""
    return f"{pair} (first)"


def newest_cursor(pair: str) -> str:
    """The name of the cursor that says the newest version ever seen at the authority."""
    return f"{pair} (newest)"
