"""The schedules of a pair as people ask for them: when each is due, whether somebody is at it, what was missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trueup.model.schedule import Schedule
from trueup.model.turn import Turn, overdue_after_us
from trueup.pair import Pair
from trueup.ports import Archive


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """How one schedule is.

    rule: as declared, with the zone of a cron line. due_us: the next time, or the one that waits; None where no
    scheduler has ever seen it. overdue: nobody started it, for longer than one interval (5 minutes at least, an hour at
    most). failures: runs in a row that ended in trouble; retry_us: when the next is tried then. may_start: nobody is at
    it, and nothing holds it. overdue_after_us: how late it may be.
    """

    what: str
    rule: str
    due_us: int | None = None
    overdue: bool = False
    under_way: bool = False
    started_us: int | None = None
    ended_us: int | None = None
    missed: int = 0
    refused: int = 0
    failures: int = 0
    retry_us: int | None = None
    paused_by: str | None = None
    reason: str = ""
    may_start: bool = False
    overdue_after_us: int = 0


def schedules_of(pair: Pair, archive: Archive, now_us: int, *, held: bool = False) -> list[ScheduleStatus]:
    """How the schedules of a pair are. held: a person has paused one of its systems, so that nothing is overdue."""
    turns = {turn.what: turn for turn in archive.turns([pair.name])} if pair.schedules else {}
    return [
        _status(schedule, turns[what], now_us, held=held) if what in turns else ScheduleStatus(what, str(schedule))
        for what, schedule in pair.schedules.items()
    ]


def _status(schedule: Schedule, turn: Turn, now_us: int, *, held: bool) -> ScheduleStatus:
    under_way = bool(turn.owner) and turn.ready_us > now_us
    may_start = not (under_way or held or turn.paused_by is not None or schedule.opens_us(now_us) > now_us)
    return ScheduleStatus(
        what=turn.what,
        rule=str(schedule),
        due_us=turn.due_us,
        overdue=may_start and now_us - turn.due_us > overdue_after_us(schedule, turn.due_us),
        under_way=under_way,
        started_us=turn.started_us,
        ended_us=turn.ended_us,
        missed=turn.missed,
        refused=turn.refused,
        failures=turn.failures,
        retry_us=turn.ready_us if turn.failures and not under_way else None,
        paused_by=turn.paused_by,
        reason=turn.reason,
        may_start=may_start,
        overdue_after_us=overdue_after_us(schedule, turn.due_us),
    )


def declare_schedules(pairs: Iterable[Pair], archive: Archive, now_us: int) -> None:
    """Tells the store what is scheduled, so that what is new has its first time. now_us: by the store's clock."""
    turns = []
    for pair in pairs:
        for what, schedule in pair.schedules.items():
            due_us = schedule.first_due(now_us)
            turns.append(Turn(pair.name, what, str(schedule), due_us, due_us))
    if turns:
        archive.declare_turns(turns)
