"""Handing something over at a place that was claimed, and saying how it went; nothing here raises into a run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trueup.errors import TrueupError
from trueup.model import handover as rules
from trueup.model.handover import H

_log = logging.getLogger(__name__)


def said_of(error: Exception) -> str:
    """What may be shown of an error: one of a library may say more than it should."""
    return str(error) if isinstance(error, TrueupError) else type(error).__name__


def tried(act: Callable[[], object]) -> str | None:
    """Why it did not work; None where it did."""
    try:
        act()
    except Exception as error:  # a bug included
        return said_of(error)
    return None


def waiting(what: str, act: Callable[[], object]) -> None:
    """Does it; what goes wrong is logged, and must not end what this process is there for."""
    error = tried(act)
    if error is not None:
        _log.error("%s wait: %s", what, error)


def hand_over(
    claimed: H,
    give: Callable[[], None],
    arrived: Callable[[int], H],
    end: Callable[[H], bool],
    *,
    now_us: Callable[[], int],
    share: float,
    what: str,
) -> str | None:
    """Gives what a place lacks, and frees the place; answers why it did not arrive, or None.

    arrived: the place as it is when that was at this time. end: stores how it ended, and answers whether the claim was
    still held. share: from 0 to 1, so that several spread. what: what goes where, for the log.
    """
    error = tried(give)
    ended = arrived(now_us()) if error is None else rules.failed(claimed, error, now_us(), share)
    if error is not None and claimed.tries == 0:
        _log.warning("%s do not arrive: %s", what, error)
    elif error is None and claimed.tries:
        _log.warning("%s arrive again", what)
    if not end(ended):
        _log.warning("%s: another process has taken over, and may repeat it", what)
    return error
