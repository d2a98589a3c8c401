"""What evidence costs: the same month with and without it by turns, by the processor time that they took."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from _common import median

from .databases import Places
from .life import Plan
from .play import Month

ROUNDS: Final = 3
WITH, WITHOUT = "with", "without"


def overhead(plan: Plan, opened: Callable[[], AbstractContextManager[Places]], seed: int) -> dict[str, Any]:
    """Plays each month `ROUNDS` times, every round in the other order. opened: gives new databases.

    Answers the seconds of processor time of each month, in order, and the share by which the median with evidence is
    above the one without. A month includes the shop, the ERP and the people: what a program around trueup does as well.
    The processor time of a database server is not in it.
    """
    cpu_s: dict[str, list[float]] = {WITH: [], WITHOUT: []}
    found: dict[str, Any] = {}
    for number in range(ROUNDS):
        for way in (WITH, WITHOUT)[:: 1 if number % 2 else -1]:
            with opened() as places:
                gc.collect()
                figures = Month(plan, places, seed, evidence=way == WITH).play()
            cpu_s[way].append(figures["cpu_s"])
            if way == WITH:
                found = {name: figures[name] for name in ("databases", "seed", "orders_a_day", "days", "evidence")}
    usual, without = median(cpu_s[WITH]), median(cpu_s[WITHOUT])
    return found | {"cpu_s": cpu_s, "median_s": {WITH: usual, WITHOUT: without}, "share": round(usual / without - 1, 4)}


def said(found: dict[str, Any]) -> Iterator[str]:
    """The figures for people."""
    medians = found["median_s"]
    yield ""
    yield (
        f"{found['databases']}: {found['orders_a_day']:,} orders a day for {found['days']} days, seed {found['seed']}; "
        f"{found['evidence']['entries']:,} entries, {found['evidence']['bytes']:,} bytes"
    )
    yield f"  evidence costs {found['share']:.1%}: {medians[WITH]:.1f} s of processor, {medians[WITHOUT]:.1f} s without"
    for way, all_s in found["cpu_s"].items():
        yield f"  {way}: {', '.join(f'{each:.1f}' for each in all_s)} s"
