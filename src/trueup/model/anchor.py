"""Where anchors are given, and how far each place has come.

A place is given the head of the chain as it is when somebody looks: it vouches for all entries before. What a place was
given is kept in the state store, so that restarts and several processes neither repeat nor lose anything; a claim is a
lease, as that of a target of alerts. Pure functions, shared by every store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trueup.model.alert import ERROR_CHARACTERS_MAX, backoff_us
from trueup.model.evidence import Head


@dataclass(frozen=True, slots=True)
class Anchored:
    """What one place was given.

    head: the newest anchor that arrived. owner, fence: who gives it one now. ready_us: when it may be claimed: the end
    of the lease while somebody is at it, later after a failure. tries: failures in a row. failed: failures ever. error:
    what the latest one was. given_us: when the newest arrived.
    """

    place: str
    head: Head = field(default_factory=Head)
    owner: str = ""
    fence: int = 0
    ready_us: int = 0
    tries: int = 0
    failed: int = 0
    error: str = ""
    given_us: int | None = None


def lacks(seen: Anchored, head: Head) -> bool:
    """Whether the place does not have this head of a chain."""
    return head.number > 0 and head != seen.head


def due(seen: Anchored, head: Head, now_us: int, every_us: int = 0) -> bool:
    """Whether it lacks it, and may be given it by now. every_us: least time between two anchors there."""
    rested = seen.given_us is None or now_us >= seen.given_us + every_us
    return lacks(seen, head) and rested and now_us >= seen.ready_us


def claimable(stored: Anchored | None, seen: Anchored, now_us: int) -> bool:
    """Whether a place that was seen like this can be claimed: nobody is at it, or whoever was has not ended in time."""
    if stored is None:
        return seen.fence == 0
    return stored.fence == seen.fence and (not stored.owner or stored.ready_us <= now_us)


def claim(seen: Anchored, owner: str, now_us: int, lease_us: int) -> Anchored:
    """The place as `owner` has it."""
    return replace(seen, owner=owner, fence=max(seen.fence + 1, now_us), ready_us=now_us + lease_us)


def held(stored: Anchored | None, anchored: Anchored) -> bool:
    """Whether whoever claimed it still has it, late or not."""
    return stored is not None and bool(stored.owner) and stored.fence == anchored.fence


def arrived(anchored: Anchored, head: Head, now_us: int) -> Anchored:
    """The place has this head."""
    return replace(anchored, head=head, owner="", ready_us=now_us, tries=0, error="", given_us=now_us)


def failed(anchored: Anchored, error: str, now_us: int, share: float) -> Anchored:
    """It did not arrive: it is given again, later each time. share: from 0 to 1, so that several spread."""
    return replace(
        anchored, owner="", ready_us=now_us + backoff_us(anchored.tries, share), tries=anchored.tries + 1,
        failed=anchored.failed + 1, error=error[:ERROR_CHARACTERS_MAX],
    )  # fmt: skip
