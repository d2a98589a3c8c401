"""The systems of a pair for people: pauses, what was spent, and how long what waits will take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trueup.cli.terminal import clock, counted, number
from trueup.model.duration import duration_text

if TYPE_CHECKING:
    from trueup.engine.report import Status
    from trueup.engine.systems import Spending, SystemStatus


def lines(status: Status) -> Iterator[str]:
    """What there is to say of each system; nothing of one that is free and has no limits."""
    pending = status.counts.get("pending", 0)
    for each in status.systems:
        if each.paused:
            until = "until a person ends it" if each.paused_until_us is None else f"until {clock(each.paused_until_us)}"
            yield f"{each.system}: paused {until}, by {each.paused_by}{': ' if each.reason else ''}{each.reason}"
        if said := [*_spending(each), *_left(each)]:
            yield f"{each.system}: {'; '.join(said)}"
        if pending and each.lasts_us is not None:
            yield f"{each.system}: {counted(pending, 'record')} in about {duration_text(each.lasts_us)} at {each.pace}"


def _spending(system: SystemStatus) -> Iterator[str]:
    for each in system.spending:
        if each.used_up:
            resets = "" if each.resets_us is None else f", until {clock(each.resets_us)}"
            yield f"{each.limit} used up{resets}"
        elif each.spent:
            yield f"{number(round(each.spent))} of {each.limit} spent{_by_rest(each)}"


def _by_rest(spending: Spending) -> str:
    """Where what is no event has used its share, why it waits."""
    return ", all but events wait" if spending.by_rest + 1 > spending.most_of_rest else ""


def _left(system: SystemStatus) -> Iterator[str]:
    if system.left is not None and system.left_until_us is not None:
        yield f"{system.system} says {number(round(system.left))} left until {clock(system.left_until_us)}"
