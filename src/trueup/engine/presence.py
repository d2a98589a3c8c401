"""Who is at work: a heart that beats in the store, and the question whether anybody's does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from trueup.errors import TrueupError
from trueup.model.presence import BEAT_S, Presence
from trueup.ports import Archive, Clock


class Heart:
    """Tells the store that this worker lives, every few seconds while it works."""

    def __init__(self, archive: Archive, clock: Clock, presence: Presence) -> None:
        self._archive, self._clock, self._presence = archive, clock, presence
        self._ended = 0
        self._lock = threading.Lock()

    def ended(self, jobs: int) -> None:
        """Counts jobs that came to an end."""
        with self._lock:
            self._ended += jobs

    @contextmanager
    def beating(self, *, stays: bool) -> Iterator[None]:
        """Beats until the end of the block, and takes its leave there. stays: see `Presence`."""
        self._presence = replace(self._presence, stays=stays)
        self._beat()
        stop: Callable[[], None] = self._clock.every(BEAT_S, self._beat)
        try:
            yield
        finally:
            stop()
            with suppress(TrueupError):  # whoever can't say good-bye is missed a little later
                self._archive.leave(self._presence.name)

    def _beat(self) -> bool:
        # Work goes on where a beat is lost; work that can't reach the store either says so itself.
        with suppress(TrueupError):
            self._archive.beat(replace(self._presence, ended=self._ended))
        return True


def alive(archive: Archive, now_us: int, pair: str | None = None) -> list[Presence]:
    """The workers that live and stay, of one pair or of any; now_us: by the store's clock.

    Where there is one, jobs that wait are worked without the caller.
    """
    return [
        each
        for each in archive.presences()
        if each.stays and each.alive(now_us) and (pair is None or pair in each.pairs)
    ]
