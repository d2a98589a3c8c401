"""The cheap comparison: only what was touched since the last one, against what is known to agree.

The authority says which records changed since its cursor, and the replica says which of its own did, each by its own
clock. A record that both show with one digest agrees; one that only one side shows is not read on the other side where
its digest is the one last found in agreement. What neither side can show (a record that vanished, a change that moved
no version) is for the full comparison to find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final, TypeAlias

from trueup.compare.result import Agreement
from trueup.engine.alike import looked_at, shown
from trueup.engine.glance import UNKNOWN, Glance
from trueup.engine.reach import reach
from trueup.engine.records import Records
from trueup.errors import ConfigError
from trueup.model.change import UPSERT
from trueup.model.row import Seen
from trueup.ports import Ledger, Runs

# So many records may wait in memory, some hundred bytes each.
_WAITING_MAX: Final = 200_000
_LOOKED_UP: Final = 10_000
# Action, digest and version of a record that was touched at the replica only.
_UNSEEN: Final = (None, None, None)
_Told: TypeAlias = tuple[str | None, str | None, int | None]


@dataclass(slots=True)
class Past:
    """How far both sides are known to have been compared. left, right: in the versions of each."""

    left: int
    right: int | None


@dataclass(slots=True)
class Touched:
    """A batch of what was touched. left, right: records read at each side.

    suspects: keys that may differ. agreed: what agrees, and is not known to.
    """

    left: int = 0
    right: int = 0
    suspects: Sequence[str] = ()
    agreed: Sequence[Agreement] = ()


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


def touched(records: Records, ledger: Ledger, past: Past, *, remember: bool) -> Iterator[Touched]:
    """What was touched, a batch at a time; with `remember`, also what agrees in another state than the ledger knows.

    The ledger is asked after both sides were read, so that a job that ends in between shows an agreement, and never
    hides a drift.
    """
    since = past.left - _overlap(records)
    since_right = None if past.right is None else past.right - records.pair.overlap_us
    # Hashes tell neither what is to be remembered nor an action.
    hashed = not (remember or records.pair.absent_when or records.pair.action_field)
    both = None if since_right is None or not hashed else records.asked(since, since_right)
    found = None if both is None else shown(*both)
    if both is None or found is None:
        yield from _digested(records, ledger, since, since_right, remember=remember)
        return
    yield Touched(left=found.left, right=found.right)
    for seen in looked_at(*both, found.others):
        yield Touched(suspects=ledger.unlike(records.pair.name, seen))


def _digested(
    records: Records, ledger: Ledger, since: int, since_right: int | None, *, remember: bool
) -> Iterator[Touched]:
    """By their digests. What was touched at one side mostly was at the other one too, and is looked up once."""
    pair, waiting, twice, matched = records.pair, dict[str, _Told](), set[str](), set[str]()
    # An authority's state that means absence is never what the replica shows.
    hidden = bool(pair.absent_when)
    with ExitStack() as reading:
        # Both before either is waited for: systems that can read at the same time.
        left = reading.enter_context(closing(records.glance_authority(since, versioned=remember)))
        right = None
        if since_right is not None:
            right = reading.enter_context(closing(records.glance_replica(since_right)))
        for seen in left:
            mine = _told(seen)
            if right is None or len(waiting) >= _WAITING_MAX:
                alone: list[Seen] = [(key, *each[:2], None) for key, each in mine]
                yield Touched(left=len(alone), suspects=ledger.unlike(pair.name, alone))
                continue
            # A key that is there twice may differ from itself.
            again = [key for key, each in mine if waiting.setdefault(key, each) != each]
            twice.update(again)
            yield Touched(left=len(mine), suspects=again)
        for seen in right or ():
            others: list[Seen] = []
            alike: list[Agreement] = []
            for key, digest in zip(seen.keys, seen.digests, strict=True):
                told = waiting.pop(key, _UNSEEN)
                if not hidden and told[:2] == (UPSERT, digest) and digest != UNKNOWN and key not in twice:
                    alike.append(Agreement(key, digest, digest, told[2]))
                else:
                    others.append((key, *told[:2], digest))
            matched.update(each.key for each in alike)
            again = [key for key, *_ in others if key in matched]
            agreements: list[Seen] = [(each.key, each.action, each.left, each.right) for each in alike if remember]
            unlike = set(ledger.unlike(pair.name, others + agreements))
            agreed = [each for each in alike if remember and each.key in unlike]
            suspects = again + [key for key, *_ in others if key in unlike]
            yield Touched(right=len(seen.keys), suspects=suspects, agreed=agreed)
    rest = [(key, *told[:2], None) for key, told in waiting.items()]
    for at in range(0, len(rest), _LOOKED_UP):
        yield Touched(suspects=ledger.unlike(pair.name, rest[at : at + _LOOKED_UP]))


def _told(seen: Glance) -> list[tuple[str, _Told]]:
    versions = seen.versions or [None] * len(seen.keys)
    return list(zip(seen.keys, zip(seen.actions, seen.digests, versions, strict=True), strict=True))


def _overlap(records: Records) -> int:
    return records.pair.overlap_us if records.dated else records.pair.overlap_versions
