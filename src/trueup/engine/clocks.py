"""How far the clocks of both sides are from this host's, noted with every run that ends."""

from __future__ import annotations

from typing import Any, Final

from trueup.errors import SideError
from trueup.pair import Pair
from trueup.ports import Clock

SKEW: Final = "skew_us"


def note_clocks(memo: dict[str, Any], pair: Pair, clock: Clock) -> None:
    """Notes in a run's memo how far each side's clock is ahead, in microseconds, of those that have one."""
    skews = {}
    for role, side in (("authority", pair.authority), ("replica", pair.replica)):
        try:
            asked_us = clock.now_us()
            at_us = None if side is None else side.now_us()
        except SideError:
            continue  # whoever reads the side next says so
        if at_us is not None:
            # The side looked at its clock somewhere between the question and the answer.
            skews[role] = at_us - (asked_us + clock.now_us()) // 2
    memo[SKEW] = skews
