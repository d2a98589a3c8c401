"""The referee: knows both sides and every version, and counts what contestants do right and wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import quantiles
from typing import Any

from .clock import VirtualTime
from .world import REGISTERED, Key, State


@dataclass(slots=True)
class Waited:
    """An event that had something to bring: when it was delivered, and when its state (or a newer) was there."""

    delivered_us: int
    landed_us: int | None = None


@dataclass(slots=True)
class Referee:
    """What happened at the destination, by versions of the source.

    stale: writes that put an older state over a newer one. writes, changing: all writes that were accepted, and
    those that changed anything. overwritten: hand edits that a write wiped out without anybody being asked.
    by_hand: records that were ever edited by hand.
    """

    time: VirtualTime
    stale: int = 0
    writes: int = 0
    changing: int = 0
    overwritten: int = 0
    events: list[Waited] = field(default_factory=list)
    _held: dict[Key, int] = field(default_factory=dict)
    _waiting: dict[Key, list[tuple[int, Waited]]] = field(default_factory=dict)
    _edited: set[Key] = field(default_factory=set)
    by_hand: set[Key] = field(default_factory=set)

    def begin(self, key: Key, version: int) -> None:
        """The record is in agreement at this version."""
        self._held[key] = version

    def written(self, key: Key, version: int, *, changed: bool) -> None:
        """A write of the state with this version was accepted."""
        self.writes += 1
        self.changing += changed
        self.stale += changed and version < self._held.get(key, 0)
        if changed and key in self._edited:
            self._edited.discard(key)
            self.overwritten += 1
        self._held[key] = version
        waiting = self._waiting.pop(key, [])
        left = [each for each in waiting if each[0] > version]
        for at, event in waiting:
            if at <= version:
                event.landed_us = self.time.now_us()
        if left:
            self._waiting[key] = left

    def delivered(self, key: Key, version: int) -> None:
        """An event of this version arrives; one that is no news has nothing to wait for."""
        if version <= self._held.get(key, 0) or any(at == version for at, _ in self._waiting.get(key, ())):
            return
        event = Waited(self.time.now_us())
        self.events.append(event)
        self._waiting.setdefault(key, []).append((version, event))

    def edited(self, key: Key, *, removed: bool) -> None:
        """A person changed the record at the destination. A removal is put back without asking, as it should be."""
        (self._edited.discard if removed else self._edited.add)(key)
        self.by_hand.add(key)


def wrong(states: Mapping[Key, State], held: Mapping[Key, tuple[str, str]]) -> set[Key]:
    """Records that are not as the source says."""
    return {key for key in {*states, *held} if not _agree(states.get(key), held.get(key))}


def _agree(state: State | None, held: tuple[str, str] | None) -> bool:
    wanted = None if state is None or state.status != REGISTERED else (state.status, state.fee)
    return wanted == (None if held is None else (held[0], Decimal(held[1])))


def spread(waited: Iterable[Waited]) -> dict[str, Any]:
    """Number, p50 and p99 in seconds, and how many never did: of records in review."""
    events = list(waited)
    took_s = sorted((each.landed_us - each.delivered_us) / 1e6 for each in events if each.landed_us is not None)
    if len(took_s) < 2:
        return {"events": len(events), "p50_s": None, "p99_s": None, "never_landed": len(events) - len(took_s)}
    cuts = quantiles(took_s, n=100, method="inclusive")
    return {
        "events": len(events), "p50_s": round(cuts[49], 3), "p99_s": round(cuts[98], 3),
        "never_landed": len(events) - len(took_s),
    }  # fmt: skip
