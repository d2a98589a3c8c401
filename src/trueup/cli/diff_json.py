"""The answer of `trueup diff` as one JSON object, written as it is read: it may list millions of differences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trueup.cli.terminal import say
from trueup.model.record import key_parts

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.result import Difference


def show(answer: Answer, limit: int | None) -> None:
    """Prints the object; limit: differences listed at most, None for all."""
    comparison, counts = answer.comparison, answer.comparison.counts
    say("{")
    say(f' "agree": {_text(answer.agree)},')
    say(f' "counts": {_text({name: getattr(counts, name) for name in COUNTS})},')
    say(' "differences": [')
    separator = ""
    for difference in comparison.differences(limit):
        print(f"{separator}  {_text(as_json(difference, answer))}", end="")
        separator = ",\n"
    say("\n ]," if separator else " ],")
    say(f' "schema": {_text(schema(answer))},')
    say(f' "strategy": {_text(comparison.strategy)},')
    say(f' "seconds": {round(answer.seconds, 3)}')
    say("}")


COUNTS = ("left", "right", "same", "missing", "extra", "differ", "duplicate")


def as_json(difference: Difference, answer: Answer) -> dict[str, Any]:
    """One difference; of a record that one side lacks, all values of the other beside nulls."""
    names = [field.name for field in answer.plan.left.key]
    key = dict(zip(names, key_parts(difference.key), strict=True))
    left, right = difference.left, difference.right
    shown = {"kind": difference.kind, "key": key}
    present = difference.fields or [field.name for field in answer.plan.left.fields]
    if difference.kind != "duplicate":
        return {**shown, "fields": {name: _both(left, right, name) for name in present}}
    return {
        **shown,
        "fields": {},
        "copies": {"left": difference.left_copies, "right": difference.right_copies},
        "unmatched": {"left": [dict(each) for each in difference.left_only],
                      "right": [dict(each) for each in difference.right_only]},
    }  # fmt: skip


def _both(left: Any, right: Any, name: str) -> dict[str, str | None]:
    return {
        "left": None if left is None else left.get(name),
        "right": None if right is None else right.get(name),
    }


def schema(answer: Answer) -> dict[str, Any]:
    """What the columns of both sides say about each other."""
    notes = answer.comparison.notes
    return {
        "only_left": list(notes.only_left),
        "only_right": list(notes.only_right),
        "case_only": [list(pair) for pair in notes.case_only],
        "compared_as": list(notes.compared_as),
    }


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
