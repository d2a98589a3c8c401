"""Which engines are compared by which strategies, and whose turn it is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Final

from trueup.compare.choose import STRATEGIES
from trueup.testing.pairs.drawing import RANGED, Pair, draw, hashes
from trueup.testing.pairs.engines import TYPES

# Two engines in alphabetical order, and a strategy; "auto" leaves the choice to the comparison.
Combination = tuple[str, str, str]
AUTO: Final = "auto"


def combinations(engines: Sequence[str] = tuple(TYPES)) -> list[Combination]:
    """All that exist. A strategy that two engines can't be compared by is none, though it may be asked for."""
    return [
        (a, b, strategy) for a, b in combinations_with_replacement(sorted(engines), 2) for strategy in _strategies(a, b)
    ]


def _strategies(a: str, b: str) -> Sequence[str]:
    if (a, b) == ("parquet", "parquet"):
        return ("match", "rows", AUTO)
    if not hashes((a, b)):
        return ("rows",)
    if not (a in RANGED and b in RANGED):
        return ("gate", "keyhash", "rows", AUTO)
    # Some database has to make the cells of a sketch, and MariaDB makes none.
    sketch = "mariadb" not in (a, b) and (a, b) != ("sqlite", "sqlite")
    return ("gate", "segments", "keyhash", *(("sketch",) if sketch else ()), "rows", AUTO)


def pair_of(seed: int, number: int) -> tuple[Combination, Pair]:
    """The example of this number, the same whenever it is asked for. Each combination has its turn."""
    every = combinations()
    combination = every[number % len(every)]
    chance = random.Random(f"{seed}:{number}:turn")
    left, right, strategy = combination
    if _strategies(left, right) == ("rows",):
        strategy = chance.choice((*STRATEGIES, AUTO))
    if chance.random() < 0.5:
        left, right = right, left
    return combination, draw(seed, number, (left, right), None if strategy == AUTO else strategy)
