"""The simulation's comparison gives the answer of the real one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Comparison
from trueup.sides.memory import Memory
from trueup.testing.simulation.comparison import compare_plainly

COLUMNS = {"id": "integer", "name": "text", "status": "text"}


def side(chance: random.Random, *, versioned: bool) -> Memory:
    kinds = {**COLUMNS, "v": "integer"} if versioned else COLUMNS
    side = Memory(key="id", version="v" if versioned else None, columns=kinds)
    for ident in range(1, 9):
        for _ in range(chance.choice((0, 1, 1, 1, 1, 1, 2))):
            row: dict[str, Any] = {"id": ident, "name": chance.choice("ab"), "status": chance.choice(("in", "dropped"))}
            side.add({**row, "v": ident} if versioned else row)
    return side


def told(found: Comparison) -> tuple[Any, ...]:
    with found:
        differences = [
            (each.kind, each.key, each.fields if each.kind == "differ" else ()) for each in found.differences()
        ]
        agreements = sorted((each for batch in found.agreements() for each in batch), key=lambda each: each.key)
        return found.counts, differences, agreements


@pytest.mark.parametrize("seed", range(6))
def test_the_plain_comparison_agrees_with_the_real_one(seed: int) -> None:
    chance = random.Random(seed)
    left, right = side(chance, versioned=True), side(chance, versioned=False)
    options = {"absent_when": {"status": ["dropped"]}, "action_field": "status"} if seed % 2 else {}
    planned = plan(left.describe(), right.describe(), key=["id"], version_left="v", **options)  # type: ignore[arg-type]
    assert told(compare_plainly(left, right, planned)) == told(compare(left, right, planned, strategy="rows"))
