"""What everybody waits for who types a command: help, and a comparison of two small files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from _common import load, machine, measure, median

from .contestants import own
from .inputs import made
from .telling import RESULTS

RUNS: Final = 5
ROWS: Final = 1_000


def small(folder: Path) -> None:
    """Measures, prints, writes."""
    trueup = str(Path(own()).with_name("trueup"))
    files = made(folder, ROWS, "integer", "hundred")
    texts = [_as_text(path) for path in (files.left, files.right)]
    commands = {
        "trueup diff --help": (trueup, "diff", "--help"),
        "trueup diff of two CSV files": (trueup, "diff", *map(str, texts), "--key", "id"),
        "trueup diff of two Parquet files": (trueup, "diff", str(files.left), str(files.right), "--key", "id"),
    }
    told: dict[str, Any] = {
        "benchmark": "small", "day": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine("trueup", "duckdb", "pyarrow"),
        "rows_a_side": ROWS, "load_before": load(), "medians": {}, "runs": {},
    }  # fmt: skip
    for name, command in commands.items():
        with (folder / "output").open("wb") as output:
            runs = [measure(command, seconds_max=60, output=output, log=output) for _ in range(RUNS)]
        if any(run.code not in (0, 1) for run in runs):
            raise SystemExit(f"{name} failed: {(folder / 'output').read_text()}")
        told["runs"][name] = [round(run.seconds, 3) for run in runs]
        told["medians"][name] = round(median([run.seconds for run in runs]), 3)
        print(f"{name:34} {told['medians'][name]:6.3f} s, median of {RUNS}")
    print(f"Load of the machine before: {told['load_before']}.")
    (RESULTS / "compare-small.json").write_text(json.dumps(told, indent=1) + "\n")


def _as_text(path: Path) -> Path:
    import duckdb

    text = path.with_suffix(".csv")
    with duckdb.connect() as database:
        database.execute(f"COPY (FROM '{path}') TO '{text}' (FORMAT csv, HEADER)")
    return text
