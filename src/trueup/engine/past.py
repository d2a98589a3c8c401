"""The cheap comparison: only what was touched since the last one, against what is known to agree.

The authority says which records changed since its cursor, and the replica says which of its own did, each by its own
clock. A record whose digest is the one last found in agreement is not read on the other side. What neither side can
show (a record that vanished, a change that moved no version) is for the full comparison to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from trueup.engine.reach import reach
from trueup.engine.records import Records
from trueup.errors import ConfigError
from trueup.ports import Ledger, Runs

# So many records may wait in memory, some hundred bytes each.
_WAITING_MAX: Final = 200_000
_LOOKED_UP: Final = 10_000
# Action and digest of a record that was touched at the replica only.
_UNSEEN: Final = (None, None)


@dataclass(slots=True)
class Past:
    """How far both sides are known to have been compared. left, right: in the versions of each."""

    left: int
    right: int | None


def left_cursor(pair: str) -> str:
    """The name of the cursor up to which the authority's changes have been compared."""
    return f"{pair} (compared)"


def right_cursor(pair: str) -> str:
    """The name of the cursor up to which the replica's own changes have been compared."""
    return f"{pair} (replica)"


def load(records: Records, runs: Runs) -> Past:
    """Where the last comparison ended; ConfigError where there was none, or the authority has no version."""
    name = records.pair.name
    left = runs.cursor(left_cursor(name))
    if records.authority.version is None:
        raise ConfigError(
            f"pair {name}: what changed can't be asked: the authority declares no version.",
            hint="Declare version=… for the authority, or compare everything.",
        )
    if left is None:
        raise ConfigError(
            f"pair {name} was never compared.",
            hint=f"Compare everything once: trueup adopt {name}, or trueup run {name}",
        )
    return Past(left, runs.cursor(right_cursor(name)))


def reaches(records: Records, runs: Runs, cutoff_us: int | None) -> dict[str, int]:
    """The cursors as a comparison that begins now will have moved them when it is complete.

    That of the authority is left out where only the comparison itself can tell.
    """
    pair = records.pair
    moved: dict[str, int] = {}
    if records.authority.version is not None:
        found = reach(records, runs, cutoff_us, runs.cursor(left_cursor(pair.name)))
        moved |= found.kept
        if found.until is not None:
            moved[left_cursor(pair.name)] = found.until
    if pair.replica is not None and records.replica_dated:
        now_us = pair.replica.now_us()
        if now_us is not None:
            moved[right_cursor(pair.name)] = now_us - pair.settle_us
    return moved


def touched(records: Records, ledger: Ledger, past: Past) -> Iterator[tuple[int, int, list[str]]]:
    """(records read at the authority, at the replica, keys that may differ), a batch at a time.

    What was touched at one side mostly was at the other one too, and is looked up once; after both were read, so that
    a job that ends in between shows an agreement, and never hides a drift.
    """
    pair, waiting = records.pair, dict[str, tuple[str | None, str | None]]()
    with ExitStack() as reading:
        # Both before either is waited for: systems that can read at the same time.
        left = reading.enter_context(closing(records.glance_authority(past.left - _overlap(records))))
        right = None
        if past.right is not None:
            right = reading.enter_context(closing(records.glance_replica(past.right - pair.overlap_us)))
        for seen in left:
            told = zip(seen.actions, seen.digests, strict=True)
            if right is None or len(waiting) >= _WAITING_MAX:
                alone = [(key, *each, None) for key, each in zip(seen.keys, told, strict=True)]
                yield len(alone), 0, ledger.unlike(pair.name, alone)
                continue
            # A key that is there twice may differ from itself.
            twice = [key for key, each in zip(seen.keys, told, strict=True) if waiting.setdefault(key, each) != each]
            yield len(seen.keys), 0, twice
        for seen in right or ():
            both = [
                (key, *waiting.pop(key, _UNSEEN), digest) for key, digest in zip(seen.keys, seen.digests, strict=True)
            ]
            yield 0, len(both), ledger.unlike(pair.name, both)
    rest = [(key, *told, None) for key, told in waiting.items()]
    for at in range(0, len(rest), _LOOKED_UP):
        yield 0, 0, ledger.unlike(pair.name, rest[at : at + _LOOKED_UP])


def _overlap(records: Records) -> int:
    return records.pair.overlap_us if records.dated else records.pair.overlap_versions
