"""Two more things to show: an outage of four hours, and that calls over a socket are the same calls."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from .contestants import new_setting
from .measure import wrong
from .ours import Trueup
from .play import HOUR_S, LAST_S, finished, playing
from .world import Plan

OUTAGE_AT_S, OUTAGE_S = 1_800.0, 4 * HOUR_S


def outage(plan: Plan, seed: int, *, out_s: float = OUTAGE_S, after_s: float = 3 * HOUR_S) -> dict[str, Any]:
    """The destination is gone for a time of usual traffic; nobody does anything about it."""
    began = time.monotonic()
    back_s = OUTAGE_AT_S + out_s
    plan = replace(plan, rush_s=0.0, hand_edits=0, ends_s=back_s + after_s)
    setting = new_setting(plan, seed)
    player = Trueup(setting, 24 * HOUR_S)
    parked: list[int] = []
    waiting: list[int] = []
    drained_s: list[float] = []
    ended: list[bool] = []

    def now_s() -> float:
        return setting.school.since_s(setting.time.now_us())

    def hourly() -> None:
        while now_s() < plan.ends_s:
            player.reconcile()
            setting.time.sleep(HOUR_S - now_s() % HOUR_S)
        setting.time.sleep(LAST_S)
        player.reconcile()
        ended.append(True)

    def watch() -> None:
        while now_s() < plan.ends_s:
            counts = player.project.ledger.counts("enrollments")
            parked.append(counts["parked"])
            waiting.append(counts["pending"])
            if now_s() > back_s and counts["pending"] <= 2 and not drained_s:
                drained_s.append(now_s() - back_s)
            setting.time.sleep(10)

    def break_down() -> None:
        setting.destination.out_until_us = setting.time.now_us() + round(out_s * 1e6)

    with playing(setting, player):
        setting.time.start(break_down, OUTAGE_AT_S)
        setting.time.start(hourly)
        setting.time.start(watch)
        setting.time.run(lambda: bool(ended) and not player.waiting())
        return {
            "outage_h": out_s / HOUR_S,
            "most_waiting": max(waiting),
            "most_parked": max(parked),
            "drained_after_s": round(drained_s[0]) if drained_s else None,
            "runs_that_failed": player.failed_runs,
            "stale_overwrites": setting.referee.stale,
            "wrong_at_end": len(wrong(setting.school.states, setting.destination.held())),
            "real_s": round(time.monotonic() - began, 1),
        }


def over_a_socket(seed: int) -> dict[str, Any]:
    """A short slice twice, once in this process and once over loopback: the calls by method, which must be equal."""
    plan = Plan(records=2_000, changes=1_800, rush_s=0.0, ends_s=600.0, hand_edits=60)
    here, there = _slice(plan, seed, socket=False), _slice(plan, seed, socket=True)
    return {"in_process": here, "over_a_socket": there, "equal": here == there}


def _slice(plan: Plan, seed: int, *, socket: bool) -> dict[str, int]:
    setting = new_setting(plan, seed)
    player = Trueup(setting, 24 * HOUR_S, socket=socket)
    with playing(setting, player):
        setting.time.start(player.reconcile, plan.ends_s / 2)
        setting.time.start(player.reconcile, plan.ends_s + LAST_S)
        setting.time.run(lambda: finished(player, 2))
    return dict(setting.destination.calls)
