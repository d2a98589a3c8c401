"""The right answer for two tables, told from canonical texts alone, without any code of the comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trueup.model.record import key_text

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Told:
    """What is to be said of one key that differs.

    left, right: of a duplicate, the copies that have no equal on the other side; else the one record, or none.
    """

    kind: str
    fields: tuple[int, ...] = ()
    left_copies: int = 0
    right_copies: int = 0
    left: tuple[Row, ...] = ()
    right: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The right answer: differences by key text, rows that agree by key text, counts, and how often fields differ."""

    told: dict[str, Told]
    agreeing: dict[str, Row]
    counts: dict[str, int] = field(default_factory=dict)
    fields: dict[int, int] = field(default_factory=dict)


def answer(left: Sequence[Row], right: Sequence[Row], keys: int) -> Answer:
    """Of two tables of canonical texts, of which the first `keys` columns are the key."""
    a, b = _by_key(left, keys), _by_key(right, keys)
    told: dict[str, Told] = {}
    agreeing: dict[str, Row] = {}
    for key in {**a, **b}:
        ours, theirs = a.get(key, []), b.get(key, [])
        if len(ours) > 1 or len(theirs) > 1:
            only = _beyond(ours, theirs), _beyond(theirs, ours)
            told[key] = Told("duplicate", (), len(ours), len(theirs), *only)
        elif not theirs:
            told[key] = Told("missing", (), 1, 0, (ours[0],))
        elif not ours:
            told[key] = Told("extra", (), 0, 1, (), (theirs[0],))
        elif ours[0] != theirs[0]:
            fields = tuple(at for at in range(len(ours[0])) if ours[0][at] != theirs[0][at])
            told[key] = Told("differ", fields, 1, 1, (ours[0],), (theirs[0],))
        else:
            agreeing[key] = ours[0]
    kinds = Counter(each.kind for each in told.values())
    counts = {
        "left": len(left), "right": len(right), "same": len(agreeing),
        **{kind: kinds[kind] for kind in ("missing", "extra", "differ", "duplicate")},
    }  # fmt: skip
    fields_found = Counter(at for each in told.values() for at in each.fields)
    return Answer(told, agreeing, counts, dict(fields_found))


def _by_key(rows: Iterable[Row], keys: int) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key_text(row[:keys]), []).append(row)
    return found


def _beyond(rows: Sequence[Row], others: Sequence[Row]) -> tuple[Row, ...]:
    """Those of the rows that are left when each of the others has taken away one equal to it."""
    return tuple((Counter(rows) - Counter(others)).elements())
