"""What is kept of one schedule: when it is due, who is at it, and how it went.

Exactly one process starts a run that is due: to claim is to change a row that nobody changed since it was read. The
claim is a lease, as that of a record: a holder renews it, and a turn whose holder died is due again when it ends. Times
that pass meanwhile are never made up one by one: one run stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from trueup.model.schedule import Schedule

# How soon a run is tried again that found another one of its pair under way.
OCCUPIED_US: Final = 60_000_000
BACKOFF_US: Final = 60_000_000
BACKOFF_MAX_US: Final = 15 * 60_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One schedule of one pair.

    what: `sweep`, `compare` or `changed`. rule: for what its times were computed. due_us: the time that the next run
    stands for. ready_us: when it may be claimed: `due_us`, later where it was put off, the end of the lease while
    somebody has it. missed: times that passed without a start. refused: times that came while another run of the pair
    was under way. failures: runs in a row that ended in trouble. paused_by, reason: the person who holds it, and why.
    """

    pair: str
    what: str
    rule: str
    due_us: int
    ready_us: int
    owner: str = ""
    fence: int = 0
    started_us: int | None = None
    ended_us: int | None = None
    missed: int = 0
    refused: int = 0
    failures: int = 0
    paused_by: str | None = None
    reason: str = ""

    @property
    def put_off(self) -> bool:
        """Whether the time it is due was tried already."""
        return self.ready_us > self.due_us


def claimable(stored: Turn | None, seen: Turn, now_us: int) -> bool:
    """Whether a turn that was seen like this can be claimed."""
    if stored is None or stored.paused_by is not None or stored.ready_us > now_us:
        return False
    return (stored.due_us, stored.ready_us, stored.fence) == (seen.due_us, seen.ready_us, seen.fence)


def claim(stored: Turn, owner: str, now_us: int, lease_us: int) -> Turn:
    """The turn as `owner` has it."""
    fence = max(stored.fence + 1, now_us)
    return replace(stored, owner=owner, fence=fence, ready_us=now_us + lease_us, started_us=now_us)


def held(stored: Turn | None, turn: Turn) -> bool:
    """Whether whoever claimed `turn` still has it, late or not."""
    return stored is not None and bool(stored.owner) and stored.fence == turn.fence


def ended(stored: Turn, turn: Turn, now_us: int) -> Turn:
    """The turn as its holder leaves it; what others changed meanwhile stays."""
    kept = replace(stored, owner="", ended_us=now_us, missed=turn.missed, refused=turn.refused, failures=turn.failures)
    if stored.rule != turn.rule:
        return replace(kept, ready_us=stored.due_us)
    return replace(kept, due_us=turn.due_us, ready_us=turn.ready_us)


def has_ended(stored: Turn | None, turn: Turn) -> bool:
    """Whether this very end is stored already: its answer was lost, and the call repeated."""
    return stored is not None and not stored.owner and stored.fence == turn.fence


def declared(stored: Turn | None, turn: Turn) -> Turn:
    """What is to be kept of a declared schedule: what is known of it, with new times where its rule is another."""
    if stored is None:
        return turn
    if stored.rule == turn.rule:
        return stored
    ready_us = stored.ready_us if stored.owner else turn.ready_us
    return replace(stored, rule=turn.rule, due_us=turn.due_us, ready_us=ready_us, failures=0)


def hastened(stored: Turn, now_us: int) -> Turn | None:
    """Due now; None where it is paused, or somebody is at it."""
    if stored.paused_by is not None or (stored.owner and stored.ready_us > now_us):
        return None
    return replace(stored, due_us=now_us, ready_us=now_us, owner="")


# ── how a run came to its end ────────────────────────────────────────────────────────────────────────


def done(turn: Turn, seen: Turn, schedule: Schedule, now_us: int) -> Turn:
    """The run was done: its next time is due. Times that came while it ran found it under way."""
    due_us = schedule.next_due(now_us)
    counted = _made_up(turn, seen, schedule)
    overlapped = schedule.count(counted.started_us or 0, now_us)
    return replace(counted, due_us=due_us, ready_us=due_us, refused=counted.refused + overlapped, failures=0)


def occupied(turn: Turn, seen: Turn, schedule: Schedule, now_us: int) -> Turn:
    """Another run of the pair was under way: it waits, and is counted once for its time."""
    counted = _made_up(turn, seen, schedule)
    return replace(counted, ready_us=now_us + OCCUPIED_US, refused=counted.refused + (not seen.put_off))


def stopped(turn: Turn, seen: Turn, schedule: Schedule, now_us: int) -> Turn:
    """The run was told to stop: whoever is there next goes on with it, at once."""
    counted = _made_up(turn, seen, schedule)
    return replace(counted, ready_us=max(now_us, counted.due_us + 1))


def failed(turn: Turn, seen: Turn, schedule: Schedule, now_us: int, share: float) -> Turn:
    """The run ended in trouble: it is tried again, later each time. share: from 0 to 1, so that many spread."""
    counted = _made_up(turn, seen, schedule)
    wait_us = min(BACKOFF_US << min(turn.failures, 8), BACKOFF_MAX_US)
    return replace(counted, ready_us=now_us + wait_us // 2 + round(wait_us / 2 * share), failures=turn.failures + 1)


def passed(turn: Turn, seen: Turn, schedule: Schedule) -> int:
    """How many times had passed when a turn was claimed; 0 where only one had. seen: the turn before it was claimed."""
    later = schedule.count(seen.due_us, turn.started_us or seen.due_us)
    return later + (not seen.put_off) if later else 0


def _made_up(turn: Turn, seen: Turn, schedule: Schedule) -> Turn:
    """The turn as standing for now, where times had passed."""
    if not (count := passed(turn, seen, schedule)):
        return turn
    return replace(turn, due_us=turn.started_us or seen.due_us, missed=turn.missed + count)


def overdue_after_us(schedule: Schedule, due_us: int) -> int:
    """How late a run may start before somebody should look: as long as one interval, 5 to 60 minutes."""
    # A new interval is due at once, anywhere between two of its times: what counts is how long it is.
    rhythm_us = schedule.every_us or schedule.next_due(due_us) - due_us
    return min(max(rhythm_us, 5 * 60_000_000), 3_600_000_000)
