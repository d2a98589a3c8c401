"""Strategy *rows* in plain Python for a handful of records: the same answer, a thousand times sooner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from trueup.compare.plan import Plan
from trueup.compare.result import Agreement, Comparison, Counts, Difference, DifferenceKind
from trueup.model.change import UPSERT
from trueup.model.columns import texts
from trueup.model.record import Projection, key_text
from trueup.ports import Side

Values = Mapping[str, str | None]
Copies = list[tuple[Values, int | None]]


class PlainFindings:
    """All differences and agreements, held in memory."""

    def __init__(self, differences: list[Difference], agreements: list[Agreement]) -> None:
        self._differences, self._agreements = differences, agreements

    def differences(self, limit: int | None = None) -> Iterator[Difference]:
        """In key order."""
        return iter(self._differences[:limit])

    def agreements(self) -> Iterator[list[Agreement]]:
        """In one batch."""
        return iter([self._agreements] if self._agreements else [])

    def close(self) -> None:
        """Nothing is kept elsewhere."""


def compare_plainly(left: Side, right: Side, plan: Plan) -> Comparison:
    """Scans both sides, one after the other, and compares them key by key."""
    lefts, rights = _records(left, plan.left), _records(right, plan.right)
    differences: list[Difference] = []
    agreements: list[Agreement] = []
    for key in sorted({*lefts, *rights}):
        kind, fields = _judged(plan, lefts.get(key, []), rights.get(key, []))
        here, there = lefts.get(key, []), rights.get(key, [])
        if kind is None:
            agreements.append(_agreement(plan, key, here, there))
        else:
            first, second = (here[0][0] if here else None), (there[0][0] if there else None)
            differences.append(Difference(kind, key, first, second, fields, len(here), len(there)))
    kinds = Counter(difference.kind for difference in differences)
    counts = Counts(
        left=sum(map(len, lefts.values())), right=sum(map(len, rights.values())), same=len(agreements),
        missing=kinds["missing"], extra=kinds["extra"], differ=kinds["differ"], duplicate=kinds["duplicate"],
    )  # fmt: skip
    return Comparison(
        counts, plan.notes, "rows", "a handful of records", findings=PlainFindings(differences, agreements)
    )


def _judged(plan: Plan, here: Copies, there: Copies) -> tuple[DifferenceKind | None, tuple[str, ...]]:
    if len(here) > 1 or len(there) > 1:
        return "duplicate", ()
    if not here:
        return "extra", ()
    mine = here[0][0]
    unwanted = [name for name, states in (plan.absent_when or {}).items() if mine.get(name) in states]
    if not there:
        return (None if unwanted else "missing"), ()
    fields = plan.left.changed_fields(mine, there[0][0])
    fields = (*fields, *(name for name in unwanted if name not in fields))
    return ("differ" if fields else None), fields


def _agreement(plan: Plan, key: str, here: Copies, there: Copies) -> Agreement:
    values, version = here[0]
    right = plan.right.digest(there[0][0]) if there else None
    return Agreement(key, plan.left.digest(values), right, version, _action(plan, values))


def _action(plan: Plan, values: Values) -> str:
    return UPSERT if plan.action_field is None else values.get(plan.action_field) or UPSERT


def _records(side: Side, asked: Projection) -> dict[str, Copies]:
    """Copies by key text, each with its values and version."""
    found: dict[str, Copies] = {}
    width = len(asked.key)
    fields = [(at, field) for at, field in enumerate(asked.columns) if field is not asked.version]
    for batch in side.scan(asked):
        columns = [texts(batch.column(at), field) for at, field in fields]
        versions = [None] * batch.num_rows if asked.version is None else batch.column(width).to_pylist()
        for version, *row in zip(versions, *columns, strict=True):
            values = {field.name: text for (_, field), text in zip(fields, row, strict=True)}
            found.setdefault(key_text(row[:width]), []).append((values, version))
    return found
