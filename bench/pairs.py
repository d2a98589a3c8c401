"""Generated pairs of tables on every two engines, by every strategy, each answer held against the right one.

    python bench/pairs.py [--examples 10000] [--seed N] [--number N …] [--jobs 2]

Prints how often each combination was seen and answered right, and writes it with the seed to bench/results/pairs.json.
With --number, only these examples are played, and a failure is made small. See bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from _common import machine
from _servers import empty_database, services
from trueup.testing.pairs.engines import opened
from trueup.testing.pairs.engines.engine import Engine
from trueup.testing.pairs.shrinking import smaller, story
from trueup.testing.pairs.trial import tried
from trueup.testing.pairs.turns import Combination, combinations, pair_of

RESULTS: Final = Path(__file__).parent / "results" / "pairs.json"
SEED: Final = 20_261_129
SEEN_MIN: Final = 20
_AT_ONCE: Final = 250
# Combination, strategy that answered, what was wrong, number of the example.
Outcome = tuple[Combination, str, str, int]


def main() -> None:
    """Plays the examples, prints counts, writes them."""
    options = _options()
    if options.number:
        _told(options.seed, options.number)
        return
    services()
    started = time.monotonic()
    outcomes = _played(options.seed, options.examples, options.jobs)
    results = _results(outcomes, options, time.monotonic() - started)
    _print(results)
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print("\nWritten to bench/results/pairs.json.")
    if results["wrong"] or results["seen_least"] < SEEN_MIN:
        sys.exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--number", type=int, nargs="*", help="only the examples of these numbers; nothing is written")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with databases of its own")
    return parser.parse_args()


@contextmanager
def _engines() -> Iterator[dict[str, Engine]]:
    with (
        tempfile.TemporaryDirectory(prefix="trueup-bench-") as folder,
        empty_database("postgres") as postgresql,
        empty_database("mariadb") as mariadb,
        opened(Path(folder), postgresql, mariadb) as engines,
    ):
        yield engines


def _told(seed: int, numbers: Sequence[int]) -> None:
    with _engines() as engines:
        for number in numbers:
            _, pair = pair_of(seed, number)
            trial = tried(pair, engines)
            if trial.wrong:
                pair = smaller(pair, lambda each: bool(tried(each, engines).wrong))
                print(story(pair, tried(pair, engines).wrong), "\n")
            else:
                print(story(pair, f"right, by {trial.strategy}"), "\n")


def _played(seed: int, examples: int, jobs: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    parts = [range(first, min(first + _AT_ONCE, examples)) for first in range(0, examples, _AT_ONCE)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_part, seed, part) for part in parts]):
            outcomes += done.result()
            wrong = sum(1 for each in outcomes if each[2])
            print(f"{len(outcomes):,} of {examples:,} examples, {wrong} wrong", file=sys.stderr)
    return outcomes


def _part(seed: int, numbers: range) -> list[Outcome]:
    outcomes = []
    with _engines() as engines:
        for number in numbers:
            combination, pair = pair_of(seed, number)
            trial = tried(pair, engines)
            outcomes.append((combination, trial.strategy, trial.wrong, number))
    return outcomes


def _results(outcomes: Sequence[Outcome], options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    seen = Counter(each[0] for each in outcomes)
    answered = Counter((each[0], each[1]) for each in outcomes if not each[2])
    return {
        "benchmark": "pairs",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine("trueup", "duckdb", "pyarrow", "sqlalchemy", "psycopg", "PyMySQL"),
        "seed": options.seed,
        "examples": len(outcomes),
        "wrong": sum(1 for each in outcomes if each[2]),
        "seconds": round(seconds, 1),
        "seen_least": min(seen[each] for each in combinations()),
        "combinations": [
            {
                "engines": [left, right],
                "strategy": strategy,
                "seen": seen[left, right, strategy],
                "answered_by": {
                    name: count for (each, name), count in sorted(answered.items()) if each == (left, right, strategy)
                },
            }
            for left, right, strategy in combinations()
        ],
        "failures": [{"number": number, "wrong": wrong[:400]} for _, _, wrong, number in outcomes if wrong],
    }


def _print(results: dict[str, Any]) -> None:
    print(f"{'engines':24} {'asked for':10} {'seen':>6}  answered by")
    for each in results["combinations"]:
        by = ", ".join(f"{name} {count}" for name, count in each["answered_by"].items())
        print(f"{' ↔ '.join(each['engines']):24} {each['strategy']:10} {each['seen']:6}  {by}")
    for each in results["failures"]:
        print(f"example {each['number']}: {each['wrong']}")
    print(
        f"\n{results['examples']:,} examples, seed {results['seed']}: {results['wrong']} wrong answers; "
        f"each combination seen at least {results['seen_least']} times; {results['seconds']} s"
    )


if __name__ == "__main__":
    main()
