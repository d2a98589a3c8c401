"""Giving anchors: each declared place is given the head of the chain soon after it was written.

Whoever writes evidence wakes a thread for each place; no run and no decision ever waits. Several processes share
through the state store what each place was given, so that one of them gives it, once. A place that does not take it is
tried again later, each time a longer while, by whoever lives then. Nothing here raises into a run.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trueup.engine.handing import hand_over, tried, waiting
from trueup.model import anchor as rules
from trueup.model.anchor import Anchored
from trueup.model.evidence import Head
from trueup.model.handover import claim
from trueup.ports import AnchorPlace, Archive, Clock, Ledger, ReadableAnchorPlace

# What nobody confirmed by then may be given again by somebody else.
LEASE_US: Final = 120_000_000
EVERY_S: Final = 10.0
# What a process that ends waits for anchors that are on their way.
LAST_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A place, and the least time between two anchors there."""

    place: AnchorPlace
    every_us: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """What came of giving a place an anchor. error: why it did not arrive; None where it did."""

    place: str
    head: Head
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a place that can be asked answered. lost: the newest that it was given, and does not keep any more.

    error: why it could not be read; then nothing else is known.
    """

    place: str
    heads: Sequence[Head] = ()
    lost: Head | None = None
    error: str | None = None


class Anchoring:
    """Gives the declared places what they lack. owner: its name in leases."""

    def __init__(
        self,
        ledger: Ledger,
        archive: Archive,
        clock: Clock,
        places: Mapping[str, Placed],
        *,
        owner: str,
        chance: random.Random,
    ) -> None:
        self._ledger, self._archive, self._clock = ledger, archive, clock
        self._places, self._owner, self._chance = dict(places), owner, chance
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._wakes = {name: threading.Event() for name in places}
        self._over = threading.Event()

    # ── in the background ────────────────────────────────────────────────────────────────────────────

    def wake(self) -> None:
        """Something was put on record: each place is looked at soon, and then every ten seconds. Returns at once."""
        with self._lock:
            if not self._threads and not self._over.is_set():
                self._threads = [
                    threading.Thread(target=self._serve, args=(name,), name=f"trueup-anchor-{name}", daemon=True)
                    for name in self._places
                ]
                for each in self._threads:
                    each.start()
        for wake in self._wakes.values():
            wake.set()

    def serve(self, stop: threading.Event) -> None:
        """The same until `stop` is set."""
        self.wake()
        stop.wait()

    def _serve(self, name: str) -> None:
        """The last look comes after the end was asked for, so that what a run left behind is not left out."""
        over = False
        while not over:
            self._wakes[name].wait(EVERY_S)
            self._wakes[name].clear()
            over = self._over.is_set()
            waiting(f"anchors for {name}", lambda: self._give(name, at_once=False))

    def close(self) -> None:
        """Ends the threads, once each has had a last look, or after a while without that."""
        with self._lock:
            threads, self._threads = self._threads, []
        self._over.set()
        for wake in self._wakes.values():
            wake.set()
        ends_us = self._clock.elapsed_us() + LAST_S * 1e6
        for each in threads:
            each.join(max(0.0, (ends_us - self._clock.elapsed_us()) / 1e6))
        for placed in self._places.values():
            placed.place.close()

    # ── now ──────────────────────────────────────────────────────────────────────────────────────────

    def send(self) -> list[Given]:
        """Gives every place that lacks it the head now, whether it rested or not; what others are at is left out."""
        found = [self._give(name, at_once=True) for name in self._places]
        return [given for given in found if given is not None]

    def kept(self) -> list[Kept]:
        """What each place that can be asked keeps."""
        known = self._archive.places.known(list(self._places)) if self._places else {}
        return [
            _kept(known[name], placed.place)
            for name, placed in self._places.items()
            if isinstance(placed.place, ReadableAnchorPlace)
        ]

    def _give(self, name: str, *, at_once: bool) -> Given | None:
        places, placed = self._archive.places, self._places[name]
        seen, head, now_us = places.known([name])[name], self._archive.head(), self._ledger.now_us()
        lacks = rules.lacks(seen, head) if at_once else rules.due(seen, head, now_us, placed.every_us)
        if not lacks:
            return None
        claimed = places.claim(seen, lambda stored, at_us: claim(stored, self._owner, at_us, LEASE_US))
        if claimed is None:
            return None
        error = hand_over(
            claimed, lambda: placed.place.give(head, now_us), lambda at_us: rules.arrived(claimed, head, at_us),
            places.end, now_us=self._ledger.now_us, share=self._chance.random(), what=f"anchors for {name}",
        )  # fmt: skip
        return Given(name, head, error)


def _kept(known: Anchored, place: ReadableAnchorPlace) -> Kept:
    heads: list[Head] = []
    error = tried(lambda: heads.extend(place.heads()))
    if error is not None:
        return Kept(known.name, error=error)
    return Kept(known.name, heads, known.head if known.head.number and known.head not in heads else None)
