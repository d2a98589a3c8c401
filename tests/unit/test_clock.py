"""The real clock's rhythm."""

from __future__ import annotations

import threading

from trueup.engine.clock import SystemClock
from trueup.errors import StateError


def test_a_rhythm_goes_on_after_trouble_that_passes() -> None:
    """Given a call that fails twice, as a renewal does while the store restarts, I expect the next beats to call it."""
    beats: list[int] = []
    enough = threading.Event()

    def call() -> bool:
        beats.append(len(beats))
        if len(beats) < 3:
            raise StateError("the state store does not answer.")
        enough.set()
        return False

    stop = SystemClock().every(0.01, call)
    assert enough.wait(20)
    stop()
    assert len(beats) == 3
