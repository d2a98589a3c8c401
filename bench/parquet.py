"""Two Parquet files with 1% of scattered differences, compared by trueup, by a peer and by joins written by hand.

    python bench/parquet.py [--rows 10000000] [--repeat 1] [--folder DIR] [--only NAME …]

Each contestant runs in a process of its own and writes what it found to a file, which is compared with what
was injected. See bench/README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb

from _common import Measured, environment, load, machine, measure, median, releases
from _records import Files, files

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results"
SEED: Final = 20_130_101
LIMIT_MIB: Final = 1536


@dataclass(frozen=True)
class Contestant:
    """Something that compares two files.

    command: from left, right, the file its answer goes to, and megabytes.
    """

    name: str
    command: Callable[[str, str, str, str], Sequence[str]]


def main() -> None:
    """Runs all contestants, prints a table, writes the figures."""
    options = _options()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="trueup-bench-"))
    made = files(folder, options.rows, options.seed)
    contestants = [each for each in _contestants() if not options.only or each.name in options.only]
    print(
        f"{made.rows:,} records a side, {made.bytes_a_row:.0f} bytes each, {made.differences:,} differences, "
        f"memory limit {options.memory_mb} MB\n"
    )
    _warm(made)
    runs: dict[str, list[dict[str, Any]]] = {each.name: [] for each in contestants}
    for at in range(options.repeat):
        # Nobody is always the first, or always after the same other.
        for each in contestants[at % len(contestants) :] + contestants[: at % len(contestants)]:
            runs[each.name].append(_run(each, made, folder, options))
    results = _results(made, runs, options)
    _print(results)
    if not options.only:
        path = RESULTS / f"parquet-{made.rows}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(f"\nWritten to bench/results/{path.name}.")
    if options.folder is None:
        _remove(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="records a side")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each contestant; medians are reported")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="keep the files here and use them again")
    parser.add_argument("--memory-mb", type=int, default=512, help="for those that can be told (trueup's default)")
    parser.add_argument("--seconds-max", type=float, default=600, help="a contestant is stopped after this long")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these contestants; nothing is written")
    return parser.parse_args()


# Contestants.


def _contestants() -> list[Contestant]:
    trueup = str(Path(sys.executable).with_name("trueup"))
    found = [
        Contestant(
            "trueup diff",
            lambda left, right, _, mb: (
                trueup, "diff", left, right, "--key", "id", "--limit", "0", "--json", "--memory", f"{mb}MB",
            ),
        ),
        Contestant("trueup in process", _script("trueup_in_process", sys.executable)),
        Contestant("DuckDB outer join", _script("duckdb_outer_join", sys.executable)),
        Contestant("DuckDB join of key and hash", _script("duckdb_hash_join", sys.executable)),
    ]  # fmt: skip
    peer = environment("datacompy")
    if peer is not None:
        found.append(Contestant("datacompy (Polars)", _script("datacompy_polars", peer)))
    return found


def _script(name: str, python: str) -> Callable[[str, str, str, str], Sequence[str]]:
    path = str(HERE / "contestants" / f"{name}.py")
    return lambda *arguments: (python, path, *arguments)


def _releases() -> dict[str, str]:
    peer = environment("datacompy")
    return {} if peer is None else releases(peer, "datacompy", "polars")


# Running and judging.


def _run(each: Contestant, made: Files, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    answer, output = folder / "answer.csv", folder / "output.json"
    answer.unlink(missing_ok=True)
    before = load()
    command = each.command(str(made.left), str(made.right), str(answer), str(options.memory_mb))
    with output.open("wb") as to, (folder / "log").open("wb") as log:
        measured = measure(command, seconds_max=options.seconds_max, output=to, log=log)
    if each.name == "trueup diff" and measured.code == 1:
        _from_json(output, answer)
    return {
        "seconds": round(measured.seconds, 2),
        "cpu_seconds": round(measured.cpu_seconds, 2),
        "peak_mib": round(measured.peak_bytes / 2**20),
        "answer": _judged(measured, answer, made),
        "load_before": before,
    }


def _from_json(output: Path, answer: Path) -> None:
    with output.open() as file, answer.open("w", newline="") as to:
        writer = csv.writer(to)
        writer.writerow(("id", "kind", "field"))
        for each in json.load(file)["differences"]:
            fields = each["fields"] if each["kind"] == "differ" else ()
            writer.writerow((each["key"]["id"], each["kind"], "+".join(fields)))


def _judged(measured: Measured, answer: Path, made: Files) -> str:
    """Whether exactly the injected differences were found."""
    if measured.code is None:
        return f"stopped after {measured.seconds:.0f} s"
    if not answer.exists():
        return f"failed with exit code {measured.code}"
    with duckdb.connect() as database:
        told = f"read_csv('{answer}', all_varchar = true, header = true, auto_detect = true)"
        names = [row[0] for row in database.execute(f"DESCRIBE FROM {told}").fetchall()]
        columns = ", ".join(f"coalesce({name}::VARCHAR, '')" for name in names[:3] if name in ("id", "kind", "field"))
        database.execute(f"CREATE TABLE told AS SELECT {columns} FROM {told}")
        database.execute(f"CREATE TABLE truth AS SELECT {columns} FROM '{made.truth}'")
        wrong = [
            database.execute(f"SELECT count(*) FROM (FROM {a} EXCEPT ALL FROM {b})").fetchall()[0][0]
            for a, b in (("truth", "told"), ("told", "truth"))
        ]
    if any(wrong):
        return f"wrong: {wrong[0]:,} not found, {wrong[1]:,} false"
    return "right: keys, kinds, fields" if "field" in names else "right: keys, kinds"


def _warm(made: Files) -> None:
    """Reads both files once, so that nobody is the first to wait for the disk."""
    for path in (made.left, made.right):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


# Telling.


def _results(made: Files, runs: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> dict[str, Any]:
    medians = {
        name: {figure: median([run[figure] for run in several]) for figure in ("seconds", "cpu_seconds", "peak_mib")}
        for name, several in runs.items()
    }
    base = next(iter(medians.values()))
    return {
        "benchmark": "parquet",
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine("trueup", "duckdb", "pyarrow"),
        "peers": _releases(),
        "input": {
            "rows_a_side": made.rows,
            "bytes_a_row_in_arrow": made.bytes_a_row,
            "bytes_of_both_files": made.file_bytes,
            "differences": made.differences,
            "seed": options.seed,
        },
        "memory_limit_mb": options.memory_mb,
        "medians": medians,
        "times_the_first": {
            name: {figure: round(value / base[figure], 2) for figure, value in each.items()}
            for name, each in medians.items()
        },
        "answers": {name: sorted({run["answer"] for run in several}) for name, several in runs.items()},
        "runs": runs,
    }


def _print(results: dict[str, Any]) -> None:
    print(f"{'':30} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9} {'× time':>7} {'× memory':>8}  answer")
    for name, each in results["medians"].items():
        times, answers = results["times_the_first"][name], "; ".join(results["answers"][name])
        print(
            f"{name:30} {each['seconds']:8.2f} {each['cpu_seconds']:8.2f} {each['peak_mib']:9.0f} "
            f"{times['seconds']:7.2f} {times['peak_mib']:8.2f}  {answers}"
        )
    peaks = [each["peak_mib"] for name, each in results["medians"].items() if name.startswith("trueup")]
    if peaks:
        said = "within" if max(peaks) <= LIMIT_MIB else "above"
        print(f"\ntrueup's peak of {max(peaks):,.0f} MiB is {said} {LIMIT_MIB:,} MiB.")
    loads = [run["load_before"] for several in results["runs"].values() for run in several]
    print(f"Load of the machine before the runs: {min(loads)} to {max(loads)} on {results['machine']['cores']} cores.")


if __name__ == "__main__":
    main()
