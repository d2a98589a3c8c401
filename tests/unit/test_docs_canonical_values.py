"""The tables of docs/concepts/canonical-values.md say what the code does."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trueup.errors import SchemaError
from trueup.model.canonical import canonical_text, is_odd
from trueup.model.kinds import Column, common_kind, kind_named
from trueup.model.record import Rule

PAGE = Path(__file__).parents[2] / "docs/concepts/canonical-values.md"


def _rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its two head lines."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]
    assert rows, heading
    return rows


def _spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


RULES, ODDITIES = _rows("The rules"), _rows("What does not fit: `!`")


@pytest.mark.parametrize(("kind", "rule", "held", "text"), [*RULES, *ODDITIES], ids=lambda cell: cell[:30])
def test_every_spelling_has_the_canonical_text_of_its_row(kind: str, rule: str, held: str, text: str) -> None:
    (name,), (expected,) = _spans(kind), _spans(text)
    assert _spans(held)
    for value in _spans(held):
        assert canonical_text(value, kind_named(name)) == expected
    assert is_odd(expected, kind_named(name)) == ([kind, rule, held, text] in ODDITIES)


def test_every_kind_is_explained() -> None:
    explained = {kind_named(_spans(row[0])[0]).name for row in RULES}
    assert explained == {
        "boolean", "integer", "decimal", "float", "text", "enum", "bytes", "uuid", "date", "time", "timestamp",
        "interval", "json", "array",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "meaning", "kind", "left", "right", "equal"), _rows("When two values count as equal"), ids=lambda c: c[:30]
)
def test_every_rule_judges_as_its_row_says(
    rule: str, meaning: str, kind: str, left: str, right: str, equal: str
) -> None:
    options: dict[str, Any] = {}
    for span in _spans(rule):
        name, _, value = span.partition("=")
        options[name] = int(value) if name == "places" else Decimal(value) if value else True
    (a,), (b,), (name,) = _spans(left), _spans(right), _spans(kind)
    assert Rule(**options).same(a, b, kind_named(name)) == (equal == "yes")


@pytest.mark.parametrize(("left", "right", "met"), _rows("Which kind two columns meet in"), ids=lambda cell: cell[:30])
def test_every_two_kinds_meet_as_their_row_says(left: str, right: str, met: str) -> None:
    if right == "any other kind":
        right, met = "`date`", "`date`"
    one, other = (Column("x", kind_named(_spans(cell)[0])) for cell in (left, right))
    if met.startswith("refused"):
        with pytest.raises(SchemaError):
            common_kind(one, other)
    else:
        assert common_kind(one, other)[0] == kind_named(_spans(met)[0])
