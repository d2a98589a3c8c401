"""The answer of `trueup diff` as one JSON object, written as it is read: it may list millions of differences."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.terminal import say
from trueup.model.record import key_parts

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.analysis.result import Analysis


# One for all: `json.dumps` would build one for each of millions of lines.
_text: Final = json.JSONEncoder(ensure_ascii=False).encode


def show(answer: Answer, limit: int | None, analysis: Analysis | None = None) -> None:
    """Prints the object; limit: differences listed at most, None for all."""
    from trueup.compare.outputs import as_document  # noqa: PLC0415  loads Arrow

    comparison, counts = answer.comparison, answer.comparison.counts
    say("{")
    say(f' "agree": {_text(answer.agree)},')
    say(f' "counts": {_text({name: getattr(counts, name) for name in COUNTS})},')
    say(' "differences": [')
    separator = ""
    for difference in comparison.differences(limit):
        print(f"{separator}  {_text(as_document(difference, answer.plan))}", end="")
        separator = ",\n"
    say("\n ]," if separator else " ],")
    say(f' "schema": {_text(schema(answer))},')
    if analysis is not None:
        say(f' "analysis": {_text(analysis_as_json(analysis, answer))},')
    say(f' "strategy": {_text(comparison.strategy)},')
    say(f' "seconds": {round(answer.seconds, 3)}')
    say("}")


COUNTS = ("left", "right", "same", "missing", "extra", "differ", "duplicate")


def schema(answer: Answer) -> dict[str, Any]:
    """What the columns of both sides say about each other."""
    notes = answer.comparison.notes
    return {
        "only_left": list(notes.only_left),
        "only_right": list(notes.only_right),
        "case_only": [list(pair) for pair in notes.case_only],
        "compared_as": list(notes.compared_as),
    }


def analysis_as_json(analysis: Analysis, answer: Answer) -> dict[str, Any]:
    """What was found, by the names of its values; keys of examples as those of differences."""
    names = [field.name for field in answer.plan.left.key]
    told = asdict(analysis)
    for column, shown in zip(analysis.columns, told["columns"], strict=True):
        shown["share"] = round(column.share, 6)
        for example in shown["examples"]:
            key = example["key"]
            example["key"] = None if key is None else dict(zip(names, key_parts(key), strict=True))
    return told
