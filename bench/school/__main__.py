"""Plays the school with every contestant and prints what came of it: `python -m bench.school`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .play import HOUR_S, NAMES, play
from .stories import outage, over_a_socket
from .world import Plan

_BENCH = Path(__file__).parents[1]
sys.path.insert(0, str(_BENCH))
from _common import load, machine  # noqa: E402  as the scripts beside this package find it

RESULTS = _BENCH / "results" / "school.json"
LABEL = "virtual time, calls in-process"
HEADINGS = (
    ("contestant", "name"),
    ("recency h", "recency_h"),
    ("calls", "destination_calls"),
    ("refused", "refused_calls"),
    ("source calls", "source_calls"),
    ("did nothing", "jobs_that_did_nothing"),
    ("reconcile s", "reconciliation_s"),
    ("its calls", "reconciliation_calls"),
    ("event p50/p99 s during it", "events_during_reconciliation"),
    ("outside the rush", "events_outside_rush"),
    ("in the rush", "events_in_rush"),
    ("budget", "budget_used"),
    ("fullest minute", "budget_fullest_minute"),
    ("without events", "budget_fullest_minute_without_events"),
    ("stale", "stale_overwrites"),
    ("edits lost", "hand_edits_overwritten"),
    ("wrong", "wrong_at_end"),
    ("in review", "in_review_at_end"),
    ("waiting", "waiting_at_end"),
)


def main() -> None:
    """Runs what is asked for; writes the results where everything was."""
    asked = _arguments()
    plan = Plan(records=asked.records)
    games = [
        (name, hours) for hours in asked.recency for name in asked.only if name != "a" or hours == asked.recency[0]
    ]
    print(f"The school: {asked.records:,} enrolments, seed {asked.seed}; {LABEL}. Hour 2 is measured.", flush=True)
    print("| " + " | ".join(heading for heading, _ in HEADINGS) + " |")
    print("|" + " --- |" * len(HEADINGS), flush=True)
    found: dict[str, Any] = {
        "what": "the school", "time": LABEL, "seed": asked.seed, "records": asked.records,
        "machine": machine("greenlet", "httpx2"), "load": [load()], "contestants": [],
    }  # fmt: skip
    for name, hours in games:
        found["contestants"].append(play(name, plan, hours * HOUR_S, asked.seed))
        print("| " + " | ".join(_cell(found["contestants"][-1][field]) for _, field in HEADINGS) + " |", flush=True)
        _save(found, asked.output)
    if not asked.no_stories:
        found["outage"] = {"time": LABEL} | outage(plan, asked.seed)
        print(f"outage of the destination: {json.dumps(found['outage'])}", flush=True)
        found["cross_check"] = {"time": "virtual time; one of the two over a real socket"} | over_a_socket(asked.seed)
        print(f"cross-check: {json.dumps(found['cross_check'])}", flush=True)
    _save(found, asked.output)


def _save(found: dict[str, Any], output: Path | None) -> None:
    found["load"][1:] = [load()]
    if output is not None:
        output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.school", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20130101)
    parser.add_argument("--only", nargs="+", choices=sorted(NAMES), default=sorted(NAMES))
    parser.add_argument("--recency", nargs="+", type=float, default=[24.0, 1.0, 168.0], help="hours")
    parser.add_argument("--no-stories", action="store_true", help="leave out the outage and the cross-check")
    parser.add_argument("--output", type=Path, help=f"where results go; {RESULTS.name} where everything is played")
    asked = parser.parse_args()
    everything = asked.only == sorted(NAMES) and not asked.no_stories and asked.records == 100_000
    asked.output = asked.output or (RESULTS if everything else None)
    return asked


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['p50_s']} / {value['p99_s']}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
