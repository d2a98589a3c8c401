"""Where anchors are given, and how far each place has come.

A place is given the head of the chain as it is when somebody looks: it vouches for all entries before. Who gives it is
`trueup.model.handover`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trueup.model import handover
from trueup.model.evidence import Head
from trueup.model.handover import Handover


@dataclass(frozen=True, slots=True)
class Anchored(Handover):
    """What one place was given. head: the newest anchor that arrived."""

    head: Head = field(default_factory=Head)


def lacks(seen: Anchored, head: Head) -> bool:
    """Whether the place does not have this head of a chain."""
    return head.number > 0 and head != seen.head


def due(seen: Anchored, head: Head, now_us: int, every_us: int = 0) -> bool:
    """Whether it lacks it, and may be given it by now. every_us: least time between two anchors there."""
    rested = seen.arrived_us is None or now_us >= seen.arrived_us + every_us
    return lacks(seen, head) and rested and now_us >= seen.ready_us


def arrived(claimed: Anchored, head: Head, now_us: int) -> Anchored:
    """The place has this head."""
    return replace(handover.arrived(claimed, now_us), head=head)
