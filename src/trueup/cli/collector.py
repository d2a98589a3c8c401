"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)


def collect_seldom() -> None:
    """Has the collector come seldom, and never look at what is there by now.

    Work on records makes many small objects, and none that refer to themselves; Python's own thresholds have it look
    through all that is alive time and again, which takes a twentieth of a worker's time, and more of bulk offers.
    For processes that are trueup's own; a library must not decide this for its caller.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
