"""One contestant in one world: what happens when, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .contestants import Contestant, Reconciled, Setting, new_setting
from .destination import CALLS_A_MINUTE, MINUTE_US
from .measure import Waited, spread, wrong
from .naive import Naive
from .ours import Trueup
from .recipe import Recipe
from .world import Plan

HOUR_S = 3_600.0
LAST_S = 300.0  # after the last change; what is late is in by then
# How long it may take after the last change until everything is done; what takes longer never is.
PATIENCE_S = {"a": 24 * HOUR_S, "b": 24 * HOUR_S, "c": HOUR_S, "d": HOUR_S}
NAMES = {
    "a": "naive",
    "b": "recipe",
    "c": "trueup",
    "d": "trueup, no list",
}


def contestant(name: str, setting: Setting, recency_s: float) -> Contestant:
    """The contestant of this letter."""
    if name == "a":
        return Naive(setting)
    return Recipe(setting, recency_s) if name == "b" else Trueup(setting, recency_s)


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted up to a moment."""

    calls: int
    refused: int
    source: int
    jobs: int
    changing: int


def play(name: str, plan: Plan, recency_s: float, seed: int) -> dict[str, Any]:
    """Two hours and what follows; the second hour is measured."""
    began = time.monotonic()
    setting = new_setting(plan, seed, lists=name != "d")
    player = contestant(name, setting, recency_s)
    counts: list[Count] = []
    with playing(setting, player):
        setting.time.start(player.reconcile)
        setting.time.start(player.reconcile, HOUR_S)
        for at_s in (HOUR_S, 2 * HOUR_S):
            setting.time.at(
                setting.school.began_us + round(at_s * 1e6) - 1, lambda: counts.append(_count(setting, player))
            )
        setting.time.start(player.reconcile, plan.ends_s + LAST_S)
        last_us = setting.school.began_us + round((plan.ends_s + PATIENCE_S[name]) * 1e6)
        setting.time.run(lambda: finished(player, 3) or setting.time.now_us() > last_us)
        return {"contestant": name, "name": NAMES[name], "recency_h": recency_s / HOUR_S} | _result(
            setting, player, counts, time.monotonic() - began
        )


def finished(player: Contestant, runs: int) -> bool:
    """Whether so many reconciliations have ended and nothing is left to do."""
    return len(player.reconciled) == runs and player.reconciled[-1].ended_us is not None and not player.waiting()


@contextmanager
def playing(setting: Setting, player: Contestant) -> Iterator[None]:
    """The contestant works, the source lives, people edit by hand."""

    def deliver(key: tuple[int, int], state: Any) -> None:
        setting.referee.delivered(key, state.version)
        player.event(key, state)

    def edit() -> None:
        while setting.school.since_s(setting.time.now_us()) < setting.school.plan.ends_s:
            setting.time.sleep(HOUR_S / setting.school.plan.hand_edits)
            setting.destination.edit_by_hand(setting.chance)

    begun = False

    def begin() -> None:
        nonlocal begun
        player.begin()
        begun = True

    try:
        setting.time.start(begin)
        setting.time.run(lambda: begun)
        setting.school.begin(deliver)
        if setting.school.plan.hand_edits:
            setting.time.start(edit)
        yield
    finally:
        player.close()


def _count(setting: Setting, player: Contestant) -> Count:
    calls = setting.destination.calls
    accepted = calls.total() - calls["429"]
    return Count(accepted, calls["429"], setting.school.calls, player.jobs, setting.referee.changing)


def _result(setting: Setting, player: Contestant, counts: list[Count], real_s: float) -> dict[str, Any]:
    first, last = counts
    jobs = last.jobs - first.jobs
    hour, waiting = player.reconciled[1], player.waiting()
    differing = wrong(setting.school.states, setting.destination.held())
    reviewed = differing & set(player.in_review())
    return {
        "destination_calls": last.calls - first.calls,
        "refused_calls": last.refused - first.refused,
        "source_calls": last.source - first.source,
        "jobs": jobs,
        "jobs_that_did_nothing": round(1 - (last.changing - first.changing) / jobs, 4),
        "reconciliation_calls": hour.calls,
        "reconciliation_s": _took_s(hour),
        "reconciliation_alone_s": _took_s(player.reconciled[0]),
        **_latency(setting, hour.began_us, hour.ended_us or setting.time.now_us()),
        **_budget(setting),
        "stale_overwrites": setting.referee.stale,
        "hand_edits_overwritten": setting.referee.overwritten,
        "wrong_at_end": len(differing - reviewed),
        "of_them_edited_by_hand": len((differing - reviewed) & setting.referee.by_hand),
        "in_review_at_end": len(reviewed),
        "source_events": setting.school.events,
        "waiting_at_end": waiting,
        "runs_that_failed": player.failed_runs,
        "ended_after_h": round(setting.school.since_s(setting.time.now_us()) / HOUR_S, 2),
        "real_s": round(real_s, 1),
    }


def _took_s(reconciled: Reconciled) -> float | None:
    ended_us = reconciled.ended_us
    return None if ended_us is None else round((ended_us - reconciled.began_us) / 1e6, 1)


def _latency(setting: Setting, began_us: int, ended_us: int) -> dict[str, Any]:
    """Of events delivered in the second hour: in the rush, outside it, and of those while the reconciliation ran."""
    school, plan = setting.school, setting.school.plan
    hour = [each for each in setting.referee.events if HOUR_S <= school.since_s(each.delivered_us) < 2 * HOUR_S]

    def in_rush(event: Waited) -> bool:
        return plan.in_rush(school.since_s(event.delivered_us))

    outside = [each for each in hour if not in_rush(each)]
    during = [each for each in outside if began_us <= each.delivered_us < ended_us]
    return {
        "events_during_reconciliation": spread(during),
        "events_outside_rush": spread(outside),
        "events_in_rush": spread(each for each in hour if in_rush(each)),
    }


def _budget(setting: Setting) -> dict[str, Any]:
    """Shares of the limit in the second hour: on average, in the fullest minute, and there without events."""
    first = (setting.school.began_us + round(HOUR_S * 1e6)) // MINUTE_US
    minutes = range(first, first + 60)
    all_of = [setting.destination.minutes[minute] / CALLS_A_MINUTE for minute in minutes]
    rest = [setting.wire.minutes["reconciliation", minute] / CALLS_A_MINUTE for minute in minutes]
    return {
        "budget_used": round(sum(all_of) / 60, 3),
        "budget_fullest_minute": round(max(all_of), 3),
        "budget_fullest_minute_without_events": round(max(rest), 3),
    }
