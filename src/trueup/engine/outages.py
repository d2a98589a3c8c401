"""Loops that live as long as their process, outages of the state store included."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from trueup.errors import StateError

PAUSE_S_MAX: Final = 30.0
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def through_outages(stop: threading.Event, step: Callable[[], _T], then: Callable[[_T], None], waiting: str) -> None:
    """Does `step`, and `then` with its answer, until `stop` is set.

    Trouble of the state store in a step is a pause, longer each time; waiting: what is said to wait meanwhile, such as
    `work waits`. Any other error of a step sets `stop` and is raised.
    """
    pause_s = 0.0
    while not stop.is_set():
        try:
            answer = step()
        except StateError as error:
            pause_s = min(PAUSE_S_MAX, max(1.0, 2 * pause_s))
            about = {"event": "store_away", "waiting": waiting, "pause_s": pause_s, "error": str(error)}
            _log.error("%s for %.0f s: %s", waiting, pause_s, error, extra=about)
            stop.wait(pause_s)
            continue
        except BaseException:
            stop.set()  # the other threads must not hide that this one is gone
            raise
        pause_s = 0.0
        then(answer)
