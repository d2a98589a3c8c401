"""`python -m trueup.testing.simulation`: plays seeds, or one seed with its story."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter

from trueup.testing.simulation import KINDS, STEPS, Kind, Scene, simulate
from trueup.testing.simulation.exhaustive import SCOPES, search


def main() -> int:
    """0 where every promise held, 1 where one was broken."""
    parser = argparse.ArgumentParser(prog="python -m trueup.testing.simulation", description=__doc__)
    parser.add_argument("--class", dest="kind", choices=KINDS, help="class of the replica; all by default")
    parser.add_argument("--seed", type=int, help="plays this one and tells its story")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds of each class")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help="things that happen before all comes to rest")
    parser.add_argument("--search", type=int, metavar="DEVIATIONS", help="searches small scopes instead of seeds")
    parser.add_argument("--schedules", type=int, default=2_500, help="at most so many of each scope")
    asked = parser.parse_args()
    # Trouble is what it makes: what trueup says of it is not what is looked for.
    logging.getLogger("trueup").setLevel(logging.CRITICAL)
    kinds = KINDS if asked.kind is None else (asked.kind,)
    if asked.search is not None:
        return _search(kinds, asked.search, asked.schedules)
    if asked.seed is not None:
        played = simulate(Scene.drawn(kinds[0], asked.seed, asked.steps))
        print(played.report() if played.broken else played.story)
        return 1 if played.broken else 0
    return _many(kinds, range(asked.first, asked.first + asked.seeds), asked.steps)


def _many(kinds: tuple[Kind, ...], seeds: range, steps: int) -> int:
    started = time.monotonic()
    counts: Counter[str] = Counter()
    for kind in kinds:
        for seed in seeds:
            played = simulate(Scene.drawn(kind, seed, steps), told=False)
            counts.update(played.counts)
            if played.broken:
                print(played.report())
                return 1
    took_s = time.monotonic() - started
    print(
        f"{len(kinds) * len(seeds):,} seeds, {took_s * 1_000 / len(kinds) / len(seeds):.1f} ms each, all promises held"
    )
    print(", ".join(f"{name} {number:,}" for name, number in sorted(counts.items())))
    return 0


def _search(kinds: tuple[Kind, ...], deviations: int, schedules_max: int) -> int:
    for kind in kinds:
        for scope in SCOPES:
            found = search(kind, scope, deviations, schedules_max)
            if found.broken is not None:
                print(found.broken)
            end = "all" if found.complete else "a promise broken" if found.broken else "the limit"
            print(f"{kind}: {scope.name}: {found.schedules:,} schedules, {found.known:,} known already; {end}")
            if found.broken is not None:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
