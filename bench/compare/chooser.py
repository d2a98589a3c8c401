"""What the chooser's choice costs beside the best strategy of each case: `python -m bench.compare.chooser`.

Every strategy and the chooser compare the same two tables, in rotating order, in this process. It promises at most 15%
over the best of them, plus one gate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from _common import load, machine, median
from _servers import services
from trueup.compare.choose import compare
from trueup.compare.expected import Expected
from trueup.compare.plan import plan
from trueup.sides.sql import Sql

from .inputs import FIELDS, KEYS, SCENARIO_TEXTS, SEED, Input, made
from .link import Link, linked
from .measuring import cpu_seconds
from .places import TABLE, Place, fill, opened, settle

PAIRS: Final = ("postgres-postgres", "postgres-mariadb", "sqlite-postgres")
SCENARIOS: Final = ("identical", "hundred", "percent", "tenth", "block")
FORCED: Final = ("gate", "segments", "keyhash", "sketch", "rows")
CHOOSER: Final = "chooser"
EXPECTING: Final = "chooser, told what to expect"
GATE: Final = "gate"
PROMISED: Final = 1.15
RESULTS: Final = Path(__file__).parents[1] / "results" / "chooser.json"
_DIRECT: Final = Link(None, 0)
_PLACE: Final = ("rows", "pair", "keys", "scenario", "link")


@dataclass(frozen=True)
class Once:
    """One comparison. answered: the strategy that gave the answer. read: bytes of both sides as they lie in memory."""

    seconds: float
    cpu_seconds: float
    answered: str
    reason: str
    right: bool
    read: int


def main() -> None:
    """Plays the grid, and writes each cell as it is measured."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="trueup-bench-", dir=services().home().parent) as name:
        for rows in options.rows:
            for pair in options.pairs:
                for keys in options.keys:
                    _play(Path(name), rows, pair, keys, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare.chooser", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000], help="records a side")
    parser.add_argument("--pairs", nargs="*", choices=PAIRS, default=PAIRS)
    parser.add_argument("--keys", nargs="*", choices=list(KEYS), default=["integer"])
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--links", nargs="*", type=_link, metavar="MBIT:MS", default=[_DIRECT, Link(100, 20)],
                        help="between client and servers, or direct")  # fmt: skip
    parser.add_argument("--only", nargs="*", choices=FORCED, default=FORCED, help="only these strategies")
    parser.add_argument("--runs", type=int, default=3, help="of each; medians are reported")
    parser.add_argument("--seed", type=int, default=SEED)
    return parser.parse_args()


def _link(text: str) -> Link:
    return _DIRECT if text == "direct" else Link.parse(text)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────


def _play(folder: Path, rows: int, pair: str, keys: str, options: argparse.Namespace) -> None:
    with opened(pair, folder) as places:
        for scenario in options.scenarios:
            files = made(folder, rows, keys, scenario, options.seed)
            for place, source in zip(places, (files.left, files.right), strict=True):
                if place is places[1] or scenario == options.scenarios[0]:
                    settle(fill(place, source, keys))
            for link in options.links:
                cell = {
                    "rows": rows, "pair": pair, "keys": keys, "scenario": scenario,
                    "link": None if link is _DIRECT else str(link),
                }  # fmt: skip
                with _between(link, places) as urls:
                    runs = _runs(places, urls, files, options)
                    gate = None
                    if GATE in runs:
                        opening = median([_opening_seconds(urls, files) for _ in range(options.runs)])
                        gate = max(0.0, median([each.seconds for each in runs[GATE]]) - opening)
                    _told(cell, runs, gate)


@contextmanager
def _between(link: Link, places: Sequence[Place]) -> Iterator[list[str]]:
    ports = [place.port for place in places if place.port is not None]
    if link is _DIRECT:
        yield [place.url for place in places]
        return
    with linked(link, ports) as between:
        yield [place.behind(between.ports) for place in places]


def _runs(
    places: Sequence[Place], urls: Sequence[str], files: Input, options: argparse.Namespace
) -> dict[str, list[Once]]:
    expected = Expected(agreed=0 if files.differences else 10, compared=10)
    asked: dict[str, Mapping[str, Any]] = {CHOOSER: {}, EXPECTING: {"expected": expected}}
    asked |= {name: {"strategy": name} for name in options.only if name != GATE or not files.differences}
    found: dict[str, list[Once]] = {name: [] for name in asked}
    _once(places, urls, files, {})  # what is read first waits for the disk
    for at in range(options.runs):
        names = list(asked)
        for name in names[at % len(names) :] + names[: at % len(names)]:
            found[name].append(_once(places, urls, files, asked[name]))
    return found


def _opening_seconds(urls: Sequence[str], files: Input) -> float:
    """What it takes until both sides can be asked for anything."""
    key, started = KEYS[files.keys].names, time.perf_counter()
    with closing(Sql(urls[0], TABLE, key=key)) as left, closing(Sql(urls[1], TABLE, key=key)) as right:
        planned = plan(left.describe(), right.describe(), key=key, columns=list(FIELDS))
        with ThreadPoolExecutor(2) as both:
            opening = [both.submit(left.snapshot, planned.left), both.submit(right.snapshot, planned.right)]
            snapshots = [each.result() for each in opening]
        seconds = time.perf_counter() - started
        for each in snapshots:
            each.close()
    return seconds


def _once(places: Sequence[Place], urls: Sequence[str], files: Input, how: Mapping[str, Any]) -> Once:
    servers = {place.server for place in places if place.server is not None}
    key = KEYS[files.keys].names
    cpu, mine, started = cpu_seconds(servers), time.process_time(), time.perf_counter()
    with closing(Sql(urls[0], TABLE, key=key)) as left, closing(Sql(urls[1], TABLE, key=key)) as right:
        planned = plan(left.describe(), right.describe(), key=key, columns=list(FIELDS))
        with compare(left, right, planned, **how) as found:
            differences = sum(1 for _ in found.differences())
            seconds = time.perf_counter() - started
            told = found.strategy, found.reason, found.counts.different == differences == files.differences
            size = sum(each.bytes for each in found.read)
    cpu = cpu_seconds(servers) - cpu + time.process_time() - mine
    return Once(seconds, cpu, *told, size)


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


def _told(cell: Mapping[str, Any], runs: Mapping[str, Sequence[Once]], gate_seconds: float | None) -> None:
    of = {name: _summed(several) for name, several in runs.items()}
    known = {**cell, "session": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "of": of}
    gate_seconds = _gate_seconds(cell) if gate_seconds is None else round(gate_seconds, 4)
    known |= beside_the_best({name: each["seconds"] for name, each in of.items()}, gate_seconds)
    _written(known)
    link = f", over a link of {cell['link']}" if cell["link"] else ""
    print(f"\n{cell['rows']:,} records, {cell['pair']}, {cell['keys']} key, {SCENARIO_TEXTS[cell['scenario']]}{link}")
    for name, each in of.items():
        wrong = "" if each["right"] else "  WRONG"
        print(
            f"  {name:30} {each['seconds']:8.3f} s {each['cpu_seconds']:8.2f} s CPU {each['read'] / 2**20:8.1f} MiB"
            f"  {each['answered']}{wrong}"
        )
    for name in (CHOOSER, EXPECTING):
        if name in known["beside"]:
            told = known["beside"][name]
            over = "" if told["over_the_best"] <= PROMISED else "  over"
            over = "  OVER THE PROMISE" if told["less_a_gate"] is None or told["less_a_gate"] > PROMISED else over
            gate = "" if told["less_a_gate"] is None else f", less a gate {told['less_a_gate']:.2f}"
            print(f"  {name}: {told['over_the_best']:.2f} of {known['best']}{gate}{over}: {of[name]['reason']}")
    sys.stdout.flush()


def beside_the_best(seconds: Mapping[str, float], gate: float | None) -> dict[str, Any]:
    """The best strategy, and how the chooser stands beside it: as it is, and less one gate (seconds)."""
    best = min((name for name in seconds if name in FORCED), key=lambda name: seconds[name], default=None)
    if best is None:
        return {"best": None, "gate_seconds": gate, "beside": {}}
    beside = {
        name: {
            "over_the_best": round(seconds[name] / seconds[best], 3),
            "less_a_gate": None if gate is None else round((seconds[name] - gate) / seconds[best], 3),
        }
        for name in (CHOOSER, EXPECTING)
        if name in seconds
    }
    return {"best": best, "gate_seconds": gate, "beside": beside}


def _summed(several: Sequence[Once]) -> dict[str, Any]:
    return {
        "seconds": round(median([each.seconds for each in several]), 4),
        "cpu_seconds": round(median([each.cpu_seconds for each in several]), 3),
        "answered": several[-1].answered,
        "reason": several[-1].reason,
        "right": all(each.right for each in several),
        "read": several[-1].read,
        "runs": [round(each.seconds, 4) for each in several],
    }


def _gate_seconds(cell: Mapping[str, Any]) -> float | None:
    """What the gate took on this pair over this link, where both sides are identical."""
    for each in _known()["cells"]:
        if all(each[name] == ("identical" if name == "scenario" else cell[name]) for name in _PLACE):
            return None if each["gate_seconds"] is None else float(each["gate_seconds"])
    return None


def _known() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {"cells": []}


def _written(cell: Mapping[str, Any]) -> None:
    """Adds a cell to the file, in the place of the one that was measured before."""
    others = [each for each in _known()["cells"] if any(each[name] != cell[name] for name in _PLACE)]
    cells = sorted([*others, cell], key=lambda each: [str(each[name]) for name in _PLACE])
    told = {"benchmark": "chooser", "machine": machine("trueup", "duckdb", "pyarrow", "psycopg"), "cells": cells}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    print(f"Load of the machine: {load()}.")
    main()
