"""How differences spread over keys, time and columns of few values, beside how all records do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from trueup.compare.analysis.result import LEAST, Bin, Distribution
from trueup.compare.analysis.spelled import spelled_kind, us_of
from trueup.compare.result import Difference, Values
from trueup.model.kinds import Kind
from trueup.model.record import Projection
from trueup.model.times import timestamp_text

BINS: Final = 24
_VALUES_MAX: Final = 12
_COLUMNS_MAX: Final = 6

Texts = Sequence[str | None]


def distributions(
    differences: Sequence[Difference],
    asked: Projection,
    everything: Sequence[Values] | None,
    redact: Collection[str] = (),
) -> tuple[Distribution, ...]:
    """The key's if it is a whole number, those of times, and those of columns of few values; at most six.

    everything: an even sample of all records of the left side, or None where there is none.
    """
    found: list[Distribution] = []
    records = [each.left or each.right or {} for each in differences]
    for at, field in enumerate((*asked.key, *asked.fields)):
        if field.name in redact or len(found) == _COLUMNS_MAX:
            continue
        mine = [each.get(field.name) for each in records]
        others = None if everything is None else [each.get(field.name) for each in everything]
        kind = spelled_kind(field.kind, mine)
        is_key = at == 0 and len(asked.key) == 1
        found += _of_column(field.name, kind, mine, others, is_key=is_key)
    return tuple(found)


def _of_column(name: str, kind: Kind, mine: Texts, others: Texts | None, *, is_key: bool) -> Iterator[Distribution]:
    if len(mine) < LEAST:
        return
    if kind.name == "integer" and is_key:
        yield from _in_bins(name, mine, others, _whole, str, is_time=False)
    elif kind.name in ("timestamp", "date"):
        yield from _in_bins(name, mine, others, us_of, _moment, is_time=True)
    elif kind.name in ("text", "enum", "boolean", "integer") and not is_key:
        yield from _by_value(name, mine, others)


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _moment(us: int) -> str:
    return timestamp_text(us - us % 1_000_000, aware=False)


def _in_bins(
    name: str, mine: Texts, others: Texts | None, place: Callable[[str | None], int | None],
    spell: Callable[[int], str], *, is_time: bool,
) -> Iterator[Distribution]:  # fmt: skip
    known = [at for text in mine if (at := place(text)) is not None]
    every = [at for text in others or () if (at := place(text)) is not None]
    if len(known) < LEAST:
        return
    first, last = min(known + every), max(known + every)
    width = -(-(last - first + 1) // BINS)
    counts, all_ = (Counter((at - first) // width for at in each) for each in (known, every))
    bins = tuple(
        Bin(
            spell(first + at * width),
            spell(min(first + (at + 1) * width - 1, last)),
            counts[at],
            None if others is None else all_[at] / max(len(others), 1),
        )
        for at in range(-(-(last - first + 1) // width))
    )
    yield Distribution(name, "time" if is_time else "range", len(known), bins)


def _by_value(name: str, mine: Texts, others: Texts | None) -> Iterator[Distribution]:
    """Of a column that has few values and more than one."""
    counts, all_ = Counter(mine), Counter(others or ())
    values = [*dict.fromkeys(value for value, _ in (*counts.most_common(), *all_.most_common()))]
    if 1 < len(values) <= _VALUES_MAX:
        share = (lambda value: None) if others is None else (lambda value: all_[value] / max(len(others), 1))
        yield Distribution(
            name, "value", len(mine), tuple(Bin(value, value, counts[value], share(value)) for value in values)
        )
