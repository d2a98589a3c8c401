"""Figures of a cell: medians, ratios, a table, and the file where cells of different times come together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from _common import machine, median

from .contestants import LIMIT, TRUEUP
from .inputs import SCENARIO_TEXTS

RESULTS: Final = Path(__file__).parents[1] / "results"
_FIGURES: Final = (
    "seconds", "wall_seconds", "client_cpu_seconds", "server_cpu_seconds", "peak_mib", "bytes_moved",
)  # fmt: skip
_HEADINGS: Final = (
    f"{'':28} {'seconds':>8} {'process':>8} {'CPU':>7} {'servers':>8} {'peak MiB':>9} {'MiB moved':>10}"
    f" {'× trueup':>9} {'× limit':>8}  answer"
)


def summed(runs: Sequence[Mapping[str, Any]], session: str) -> dict[str, Any]:
    """One contestant's runs of a cell. session: names the program run in which they were measured."""
    medians = {}
    for figure in _FIGURES:
        known = [run[figure] for run in runs if run[figure] is not None]
        medians[figure] = median(known) if known else None
    return {
        "session": session,
        "medians": medians,
        "answers": sorted({run["answer"] for run in runs}),
        "told": runs[-1]["told"],
        "load_before": [run["load_before"] for run in runs],
        "runs": list(runs),
    }


def with_ratios(found: Mapping[str, Any]) -> dict[str, Any]:
    """Each beside trueup and beside the limit, where those were measured in the same session."""
    told = {}
    for name, each in found.items():
        ratios = {}
        for beside, base in (("times_trueup", TRUEUP), ("times_limit", LIMIT)):
            other = found.get(base)
            failed = any(answer.startswith("failed") for answer in each["answers"])
            if other is not None and not failed and other["session"] == each["session"]:
                ratios[beside] = round(each["medians"]["seconds"] / other["medians"]["seconds"], 2)
        told[name] = {**{key: value for key, value in each.items() if not key.startswith("times_")}, **ratios}
    return told


def show(title: str, found: Mapping[str, Any]) -> None:
    """Prints one cell."""
    print(f"\n{title}\n{_HEADINGS}")
    for name, each in found.items():
        of = each["medians"]
        moved = of["bytes_moved"]
        print(
            f"{name:28} {of['seconds']:8.2f} {of['wall_seconds']:8.2f} {of['client_cpu_seconds']:7.2f}"
            f" {_text(of['server_cpu_seconds'], 8, 2)} {of['peak_mib']:9.0f}"
            f" {_text(None if moved is None else moved / 2**20, 10, 1)}"
            f" {_text(each.get('times_trueup'), 9, 2)} {_text(each.get('times_limit'), 8, 2)}"
            f"  {'; '.join(each['answers'])}"
        )
    loads = [load for each in found.values() for load in each["load_before"]]
    print(f"Load of the machine before the runs: {min(loads)} to {max(loads)}.", flush=True)


def _text(value: float | None, width: int, places: int) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:{width}.{places}f}"


def title(cell: Mapping[str, Any]) -> str:
    """A cell in words."""
    link = f", over a link of {cell['link']}" if cell["link"] else ""
    return f"{cell['pair']}, {cell['keys']} key, {SCENARIO_TEXTS[cell['scenario']]}{link}"


def merged(rows: int, cell: Mapping[str, Any], found: Mapping[str, Any]) -> Path:
    """Adds a cell to the file of its size; contestants that were not measured now keep what they had."""
    path = RESULTS / f"compare-{rows}.json"
    path.parent.mkdir(exist_ok=True)
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cells": []}
    names = ("pair", "keys", "scenario", "link")
    same = [each for each in known["cells"] if all(each[name] == cell[name] for name in names)]
    before = same[0]["contestants"] if same else {}
    peers = {**(same[0]["peers"] if same else {}), **cell["peers"]}
    cells = [each for each in known["cells"] if each not in same]
    cells.append({**cell, "peers": peers, "contestants": with_ratios({**before, **found})})
    told = {
        "benchmark": "compare", "rows_a_side": rows, "machine": machine("trueup", "duckdb", "pyarrow", "psycopg"),
        "cells": sorted(cells, key=lambda each: [str(each[name]) for name in names]),
    }  # fmt: skip
    path.write_text(json.dumps(told, indent=1) + "\n")
    return path
