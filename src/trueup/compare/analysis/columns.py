"""One column after the other: how often it differs, which pairs of values there are, and what probably made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Final

from trueup.compare.analysis.causes import CAUSES, Cause, Pairs
from trueup.compare.analysis.deltas import TIMES, Numbers, common_factor, common_step, delta, numbers
from trueup.compare.analysis.result import LEAST, ColumnAnalysis, Example, LikelyCause, SideName
from trueup.compare.analysis.spelled import spelled_kind
from trueup.compare.result import Difference
from trueup.model.kinds import Kind
from trueup.model.numbers import decimal_text
from trueup.model.record import Field, Projection

EXAMPLES_MAX: Final = 3
# A cause that explains less than this of a column is no explanation.
_SHARE_MIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Examined:
    """A column, the examined records that differ in it, and those of them that each cause fits."""

    analysis: ColumnAnalysis
    records: Sequence[Difference]
    by_cause: Sequence[tuple[LikelyCause, Sequence[Difference]]] = ()


@dataclass(frozen=True, slots=True)
class _Fit:
    """A cause and which of the examined pairs it fits."""

    name: str
    side: SideName | None
    said: str
    at: frozenset[int]
    advice: str = ""


def analysed_columns(
    differing: Sequence[Difference],
    asked: Projection,
    counts: Mapping[str, int],
    both: int,
    redact: Collection[str] = (),
) -> list[Examined]:
    """Every column that differs, the most frequent first.

    differing: the examined differences of kind `differ`. counts: exact, by column. both: keys that both sides have
    once. redact: columns whose values are not shown.
    """
    hidden_key = any(field.name in redact for field in asked.key)
    found = []
    for field in asked.fields:
        if count := counts.get(field.name, 0):
            mine = [each for each in differing if field.name in each.fields]
            found.append(_examined(field, mine, (count, both), redacted=field.name in redact, hidden_key=hidden_key))
    found.sort(key=lambda each: -each.analysis.count)
    return found


def _examined(
    field: Field, mine: Sequence[Difference], counted: tuple[int, int], *, redacted: bool, hidden_key: bool
) -> Examined:
    name = field.name
    pairs = [((each.left or {}).get(name), (each.right or {}).get(name)) for each in mine]
    kind = spelled_kind(field.kind, chain.from_iterable(pairs))
    spelled = numbers(pairs, kind)
    # A smallest gap, a step or a factor may give a value away: they are hidden with the values.
    found = likely_causes(field, pairs, kind, telling=not redacted)
    examples = () if redacted else _examples([None if hidden_key else each.key for each in mine], pairs)
    analysis = ColumnAnalysis(
        column=name,
        kind=str(field.kind),
        count=counted[0],
        of=counted[1],
        examined=len(mine),
        alone=sum(len(each.fields) == 1 for each in mine),
        redacted=redacted,
        examples=examples,
        delta=None if redacted else delta(spelled, kind),
        causes=tuple(cause for cause, _ in found),
    )
    return Examined(analysis, mine, [(cause, [mine[at] for at in sorted(places)]) for cause, places in found])


def _examples(keys: Sequence[str | None], pairs: Pairs) -> tuple[Example, ...]:
    """The most frequent pairs, each with the first key that has it."""
    counted = Counter(pairs)
    first = dict(zip(reversed(pairs), reversed(keys), strict=True))
    return tuple(Example(first[pair], *pair, count) for pair, count in counted.most_common(EXAMPLES_MAX))


def likely_causes(
    field: Field, pairs: Pairs, kind: Kind | None = None, *, telling: bool = True
) -> list[tuple[LikelyCause, frozenset[int]]]:
    """Causes that fit these pairs of values of one column and where, each explaining some that those before do not.

    kind: what the values are, where the column's own kind is text. telling: whether a step or factor may be told,
    which together with one side's value would give the other.
    """
    kind = kind or field.kind
    fits = [*_from_table(field, kind, pairs), *(_steps(kind, numbers(pairs, kind)) if telling else ())]
    fits.sort(key=lambda fit: -len(fit.at))
    explained: set[int] = set()
    causes = []
    for fit in fits:
        if len(fit.at - explained) >= max(LEAST, _SHARE_MIN * len(pairs)):
            explained |= fit.at
            cause = LikelyCause(fit.name, fit.side, fit.said, len(fit.at), len(pairs), fit.advice)
            causes.append((cause, fit.at))
    return causes


def _from_table(field: Field, kind: Kind, pairs: Pairs) -> Iterator[_Fit]:
    for cause in CAUSES:
        if not cause.kinds or not cause.kinds.isdisjoint((field.kind.name, kind.name)):
            yield from _fitting(cause, field, pairs, "right")
            if cause.directed:
                yield from _fitting(cause, field, [(b, a) for a, b in pairs], "left")


def _fitting(cause: Cause, field: Field, pairs: Pairs, side: SideName) -> Iterator[_Fit]:
    at = [place for place, pair in enumerate(pairs) if cause.holds(*pair)]
    if len(at) < LEAST:
        return
    more = cause.more([pairs[place] for place in at])
    if more is not None:
        other = "left" if side == "right" else "right"
        said = cause.said.format(side=side, other=other, more=more).replace(" 1 places", " 1 place")
        advice = cause.advice.format(name=field.name, more=more)
        yield _Fit(cause.name, side if cause.directed else None, said, frozenset(at), advice)


def _steps(kind: Kind, spelled: Numbers) -> Iterator[_Fit]:
    """One step or one factor from left to right."""
    step = common_step(spelled)
    if step is not None:
        size, at = step
        yield _Fit("step", None, _step(size, times=kind.name in TIMES), frozenset(at))
    factor = common_factor(spelled) if kind.name not in TIMES else None
    if factor is not None:
        size, at = factor
        up = abs(size) > 1
        said = f"right is left {'×' if up else '÷'} {decimal_text(size if up else _inverse(size))}"
        yield _Fit("factor", None, said, frozenset(at))


def _inverse(factor: Decimal) -> Decimal:
    return round(1 / factor, 9)


def _step(size: Decimal, *, times: bool) -> str:
    shown = decimal_text(abs(size))
    if times:
        return f"{shown} s {'later' if size > 0 else 'earlier'} at right"
    return f"right is left {'+' if size > 0 else '−'} {shown}"
