"""Whose turn it is to hand something over at a place, and from when on.

A message for a target and an anchor for a place take the same way: whoever has something for it claims the place, hands
it over, and says how it went. The claim is a lease, as that of a record; a place whose holder died is claimed by
whoever comes next. A place that does not take it is tried again, later each time. All this is kept in the state store,
so that restarts and several processes neither repeat nor lose anything. Pure functions, shared by every store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeVar

BACKOFF_US: Final = 5_000_000
BACKOFF_MAX_US: Final = 15 * 60_000_000
ERROR_CHARACTERS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Handover:
    """How it stands with one place; what it has is said by those that derive from this.

    name: of the place. owner, fence: who is at it now. ready_us: from when on it is tried: the end of the lease while
    somebody is at it, later after a failure. tries: failures in a row. failed: failures ever. error: what the latest
    one was. arrived_us: when something arrived the last time.
    """

    name: str
    owner: str = ""
    fence: int = 0
    ready_us: int = 0
    tries: int = 0
    failed: int = 0
    error: str = ""
    arrived_us: int | None = None


H = TypeVar("H", bound=Handover)


def claimable(stored: Handover | None, seen: Handover, now_us: int) -> bool:
    """Whether a place that was seen like this can be claimed: nobody is at it, or whoever was has not ended in time.

    After a failure it may be claimed at once. Whoever claims by itself waits until `ready_us`; a person need not.
    """
    if stored is None:
        return seen.fence == 0
    return stored.fence == seen.fence and (not stored.owner or stored.ready_us <= now_us)


def claim(seen: H, owner: str, now_us: int, lease_us: int) -> H:
    """The place as `owner` has it."""
    return replace(seen, owner=owner, fence=max(seen.fence + 1, now_us), ready_us=now_us + lease_us)


def held(stored: Handover | None, claimed: Handover) -> bool:
    """Whether whoever claimed it still has it, late or not."""
    return stored is not None and bool(stored.owner) and stored.fence == claimed.fence


def arrived(claimed: H, now_us: int) -> H:
    """The place took it."""
    return replace(claimed, owner="", ready_us=now_us, tries=0, error="", arrived_us=now_us)


def failed(claimed: H, error: str, now_us: int, share: float) -> H:
    """It did not: it is tried again, later each time. share: from 0 to 1, so that several spread."""
    wait_us = min(BACKOFF_US << min(claimed.tries, 20), BACKOFF_MAX_US)
    return replace(
        claimed, owner="", ready_us=now_us + wait_us // 2 + round(wait_us / 2 * share), tries=claimed.tries + 1,
        failed=claimed.failed + 1, error=error[:ERROR_CHARACTERS_MAX],
    )  # fmt: skip
