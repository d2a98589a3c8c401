"""By how much numbers and times differ: a summary, and the one step or factor between the sides, if there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from statistics import median
from typing import Final

from trueup.compare.analysis.result import LEAST, Delta
from trueup.compare.analysis.spelled import number_of, us_of
from trueup.model.kinds import Kind
from trueup.model.numbers import WIDE, decimal_text

NUMERIC: Final = ("integer", "decimal", "float")
TIMES: Final = ("timestamp", "date", "time")
_SHORT: Final = Context(prec=12, rounding=ROUND_HALF_EVEN)
_US: Final = Decimal("0.000001")

Numbers = Sequence[tuple[Decimal, Decimal] | None]


def numbers(pairs: Sequence[tuple[str | None, str | None]], kind: Kind) -> Numbers:
    """Both values of each pair as numbers, of times in seconds; None where one is none."""
    if kind.name in NUMERIC:
        found = ((number_of(a), number_of(b)) for a, b in pairs)
        return [None if a is None or b is None else (a, b) for a, b in found]
    if kind.name in TIMES:
        times = ((us_of(a), us_of(b)) for a, b in pairs)
        return [None if a is None or b is None else (a * _US, b * _US) for a, b in times]
    return [None] * len(pairs)


def delta(pairs: Numbers, kind: Kind) -> Delta | None:
    """Right minus left, summed up; None where no pair has numbers."""
    gaps = sorted(WIDE.subtract(b, a) for each in pairs if each is not None for a, b in [each])
    if not gaps:
        return None
    total = Decimal()
    for gap in gaps:
        total = WIDE.add(total, gap)
    exact = [decimal_text(each) for each in (gaps[0], gaps[-1], total)]
    near = [decimal_text(_SHORT.plus(each)) for each in (_SHORT.divide(total, Decimal(len(gaps))), median(gaps))]
    return Delta(len(gaps), exact[0], exact[1], near[0], near[1], exact[2], kind.name in TIMES)


def common_step(pairs: Numbers) -> tuple[Decimal, list[int]] | None:
    """The most frequent step from left to right and where it is found; None where too few share one."""
    return _most_frequent([None if each is None else WIDE.subtract(each[1], each[0]) for each in pairs], pairs)


def common_factor(pairs: Numbers) -> tuple[Decimal, list[int]] | None:
    """The most frequent factor from left to right and where it is found; None where too few share one."""
    ratios = [None if each is None or not each[0] else _SHORT.divide(each[1], each[0]) for each in pairs]
    return _most_frequent([each if each not in (None, 0, -1) else None for each in ratios], pairs)


def _most_frequent(found: list[Decimal | None], pairs: Numbers) -> tuple[Decimal, list[int]] | None:
    counted = Counter(each for each in found if each is not None)
    if not counted:
        return None
    most, count = counted.most_common(1)[0]
    places = [at for at, each in enumerate(found) if each == most]
    # One left value with one right value says nothing of steps or factors.
    return (most, places) if count >= LEAST and len({pairs[at] for at in places}) >= LEAST else None
