"""`python -m trueup.testing.simulation`: plays seeds, or one seed with its story."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from trueup.testing.simulation import KINDS, STEPS, Scene, simulate


def main() -> int:
    """0 where every promise held, 1 where one was broken."""
    parser = argparse.ArgumentParser(prog="python -m trueup.testing.simulation", description=__doc__)
    parser.add_argument("--class", dest="kind", choices=KINDS, help="class of the replica; all by default")
    parser.add_argument("--seed", type=int, help="plays this one and tells its story")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds of each class")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help="things that happen before all comes to rest")
    asked = parser.parse_args()
    kinds = KINDS if asked.kind is None else (asked.kind,)
    if asked.seed is not None:
        played = simulate(Scene.drawn(kinds[0], asked.seed, asked.steps))
        print(played.report() if played.broken else played.story)
        return 1 if played.broken else 0
    return _many(kinds, range(asked.first, asked.first + asked.seeds), asked.steps)


def _many(kinds: tuple[str, ...], seeds: range, steps: int) -> int:
    started = time.monotonic()
    counts: Counter[str] = Counter()
    for kind in kinds:
        for seed in seeds:
            played = simulate(Scene.drawn(kind, seed, steps), told=False)  # type: ignore[arg-type]
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


if __name__ == "__main__":
    sys.exit(main())
