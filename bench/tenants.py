#!/usr/bin/env python3
"""Many tenants in one process: how long a run waits from its due time to its start, where all are alike.

Every tenant is a pair of its own with the same few records and the same rhythm. In virtual time every run takes exactly
as long as any other, so that only the order of starts counts; in real time the runs are those of a SQLite state.

- *together*: all are due at the same moment of each interval, and there is time enough for all of them;
- *too much*: the interval is too short by a fifth, so that there is always somebody who waits;
- *spread*: each has its own moment, as pairs have where nothing else is declared.

Prints a line for each and writes results/tenants.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import _common
import trueup
from trueup.engine.scheduler import Performed
from trueup.ports import Clock
from trueup.testing.clock import ManualClock

RESULTS = Path(__file__).parent / "results" / "tenants.json"
RECORDS = 20
RUN_S = 0.05
FIRST_ROUNDS = 2


class Costly(trueup.Memory):
    """A side on which a scan takes a fixed virtual time."""

    clock: ManualClock

    def scan(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """The records, later."""
        self.clock.advance(RUN_S)
        return super().scan(*arguments, **options)


def project(state: str, tenants: int, every_s: float, clock: Clock | None = None, **options: Any) -> trueup.Project:
    """Tenants on one state."""
    made = trueup.Project(state, clock=clock, seed=1)
    for at in range(tenants):
        records = [{"id": key, "v": 1} for key in range(RECORDS)]
        if isinstance(clock, ManualClock):
            side: trueup.Memory = Costly(records, key="id", version="v")
            side.clock = clock  # type: ignore[attr-defined]
        else:
            side = trueup.Memory(records, key="id", version="v")
        pair = made.pair(f"orders@tenant-{at:04}", authority=side, settle=0, sweep=every_s, **options)
        pair.on_change(lambda change: None)
    return made


def virtual(tenants: int, rounds: int, every_s: float, **options: Any) -> dict[str, Any]:
    """One run after the other, in virtual time."""
    clock = ManualClock()
    with project("memory:", tenants, every_s, clock, **options) as made:
        scheduler = made.scheduler()
        ended: list[Performed] = []
        scheduler.declare()
        while len(ended) < tenants * (rounds + FIRST_ROUNDS):
            if (performed := scheduler.once()) is None:
                clock.advance(RUN_S / 10)
            else:
                ended.append(performed)
    return figures(ended, tenants)


def real(tenants: int, rounds: int, every_s: float, runs_at_once: int, **options: Any) -> dict[str, Any]:
    """As a service does it, on SQLite."""
    stop, enough = threading.Event(), tenants * (rounds + FIRST_ROUNDS)
    ended: list[Performed] = []

    def told(performed: Performed) -> None:
        ended.append(performed)
        if len(ended) >= enough:
            stop.set()

    with (
        tempfile.TemporaryDirectory() as folder,
        project(f"sqlite:///{folder}/state.db", tenants, every_s, **options) as made,
    ):
        made.scheduler(runs_at_once=runs_at_once).serve(stop, told)
    return figures(ended[:enough], tenants)


def figures(ended: Sequence[Performed], tenants: int) -> dict[str, Any]:
    """Waits of each round, but for those in which every pair was new and due at once, or waited behind these."""
    assert all(each.how == "done" for each in ended)
    runs = Counter(each.pair for each in ended[tenants * FIRST_ROUNDS :]).values()
    rounds = [_round(ended[at : at + tenants]) for at in range(tenants * FIRST_ROUNDS, len(ended), tenants)]
    return {
        "rounds": rounds,
        "runs_of_a_tenant": [min(runs), max(runs)],
        "median_s": statistics.median(each["median_s"] for each in rounds),
        "longest_s": max(each["longest_s"] for each in rounds),
        "longest_to_median": max(each["longest_to_median"] for each in rounds),
    }


def _round(ended: Sequence[Performed]) -> dict[str, Any]:
    waits_s = sorted(each.late_us / 1e6 for each in ended)
    median_s = statistics.median(waits_s)
    return {
        "run_s": round(statistics.median(each.took_us for each in ended) / 1e6, 4),
        "missed": sum(each.passed for each in ended),
        "median_s": round(median_s, 4),
        "longest_s": round(waits_s[-1], 4),
        "longest_to_median": round(waits_s[-1] / median_s, 3) if median_s else 0.0,
    }


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--every", type=float, default=45.0, metavar="SECONDS", help="in real time")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--runs-at-once", type=int, default=2)
    chosen = parser.parse_args()
    tenants, rounds, all_s = chosen.tenants, chosen.rounds, chosen.tenants * RUN_S
    answer: dict[str, Any] = {
        "machine": _common.machine("duckdb", "pyarrow", "cronsim"),
        "tenants": tenants,
        "every_s": chosen.every,
        "runs_at_once": chosen.runs_at_once,
        "load_before": _common.load(),
    }
    scenes: dict[str, Callable[[], dict[str, Any]]] = {
        "virtual, together": lambda: virtual(tenants, rounds, all_s * 2, start_jitter=0),
        "virtual, too much": lambda: virtual(tenants, rounds, all_s / 1.2),
        "real, together": lambda: real(tenants, rounds, chosen.every, chosen.runs_at_once, start_jitter=0),
        "real, spread": lambda: real(tenants, rounds, chosen.every, chosen.runs_at_once),
    }
    print(f"{'':<18}{'median':>10}{'longest':>11}   longest/median   runs of a tenant")
    for name, measured in scenes.items():
        found = answer[name] = measured()
        print(f"{name:<18}{found['median_s']:>8.3f} s{found['longest_s']:>9.3f} s{found['longest_to_median']:>17.2f}   "
              f"{found['runs_of_a_tenant'][0]} to {found['runs_of_a_tenant'][1]}",
              flush=True)  # fmt: skip
    answer["load_after"] = _common.load()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(answer, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
