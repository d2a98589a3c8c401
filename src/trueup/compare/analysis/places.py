"""Where differences lie: ranges of keys, times, and values that differing records share and other records do not.

A place is told only where it is telling: the share of the differing records that lie there is compared with the
share of all records that do, by the relative entropy of the two (Sanov's bound on the chance of seeing that many
there by accident). Nothing is told of shares that are not known, except that keys follow each other without a gap.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from trueup.compare.analysis.columns import Examined
from trueup.compare.analysis.result import LEAST, Pattern
from trueup.compare.analysis.spelled import spelled_kind, us_of
from trueup.compare.result import Difference, Values
from trueup.model.kinds import Kind
from trueup.model.record import Projection
from trueup.model.times import US_PER_DAY

COLUMNS_MAX: Final = 40
# Columns that differ and are looked at on their own.
ABOUT_MAX: Final = 8
_SHARE_MIN: Final = 0.9
_PARTS: Final = (1.0, 0.98, 0.95, _SHARE_MIN)
# In nats. By chance, one place in so many would be told: e to the power of it.
_SURPRISE_MIN: Final = 12.0
# A column with more values than this among all records has no few of them.
_VALUES_MAX: Final = 200
_VALUES_TOLD: Final = 3
_DENSE: Final = 0.98
_FAMILY: Final = {"block": "key", "range": "key", "time": "time", "time_of_day": "time", "value": "value"}


@dataclass(frozen=True, slots=True)
class Group:
    """Records that differ in the same way. about: a kind of difference or a column. values: of the whole records.

    every: of so many records that differ in this way, one was examined. cause: the likely cause that all share.
    """

    about: str
    values: Sequence[Values]
    every: int = 1
    cause: str | None = None


def groups(differences: Sequence[Difference], columns: Sequence[Examined], every: int) -> Iterator[Group]:
    """By kind; by column and by cause where that is not nearly the same again. columns: the most frequent first."""
    by_kind: dict[str, list[Difference]] = {}
    for each in differences:
        by_kind.setdefault(each.kind, []).append(each)
    for kind, mine in by_kind.items():
        yield Group(kind, _whole(mine), every)
    differing = by_kind.get("differ", [])
    for column in columns[:ABOUT_MAX]:
        name = column.analysis.column
        if len(column.records) < _SHARE_MIN * len(differing):
            yield Group(name, _whole(column.records), every)
        for cause, fitting in column.by_cause:
            if len(fitting) < _SHARE_MIN * len(column.records):
                yield Group(name, _whole(fitting), every, cause.name)


def _whole(differences: Sequence[Difference]) -> list[Values]:
    return [each.left or each.right or {} for each in differences]


def patterns(
    found: Iterator[Group], asked: Projection, everything: Sequence[Values] | None, redact: Collection[str] = ()
) -> tuple[Pattern, ...]:
    """Where each group lies, the most telling places first.

    everything: an even sample of all records of the left side, or None where there is none.
    """
    told: list[Pattern] = []
    for group in found:
        if len(group.values) < LEAST:
            continue
        mine: list[tuple[float, Pattern]] = []
        for name, declared, is_key in _columns(asked, redact):
            texts = [each.get(name) for each in group.values]
            every = None if everything is None else [each.get(name) for each in everything]
            kind = spelled_kind(declared, chain(texts, every or ()))
            mine += _in_column(group, name, kind, texts, every, is_key=is_key, only_key=len(asked.key) == 1)
        mine.sort(key=lambda each: -each[0])
        # Times go with each other, and so do values: the most telling column speaks for the others.
        told += {_FAMILY[each.kind]: each for _, each in reversed(mine)}.values()
    return tuple(told)


def _columns(asked: Projection, redact: Collection[str]) -> Iterator[tuple[str, Kind, bool]]:
    for at, field in enumerate([*asked.key, *asked.fields, *asked.extra][:COLUMNS_MAX]):
        if field.name not in redact:
            yield field.name, field.kind, at < len(asked.key)


def _in_column(
    group: Group, name: str, kind: Kind, texts: Sequence[str | None], every: Sequence[str | None] | None,
    *, is_key: bool, only_key: bool,
) -> Iterator[tuple[float, Pattern]]:  # fmt: skip
    if is_key and only_key and kind.name == "integer" and (block := _block(group, name, texts)):
        yield math.inf, block
        return
    if every is None:
        return
    if kind.name in ("timestamp", "date"):
        yield from _in_time(group, name, kind, texts, every)
    elif is_key and kind.name in ("integer", "text", "enum"):
        place: Callable[[str | None], Any] = _integer if kind.name == "integer" else _bytes
        if found := _narrowest([place(each) for each in texts], [place(each) for each in every]):
            yield found.surprise, found.pattern(group, "range", name, texts)
    if kind.name in ("text", "enum", "boolean", "integer") and not (is_key and only_key):
        yield from _few_values(group, name, texts, every)


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


# ── keys in a row ────────────────────────────────────────────────────────────────────────────────────


def _block(group: Group, name: str, texts: Sequence[str | None]) -> Pattern | None:
    """Whole numbers without a gap; of a sample, as densely as the sample allows."""
    keys = sorted(key for text in texts if (key := _integer(text)) is not None)
    span = keys[-1] - keys[0] + 1 if keys else 0
    if len(keys) < max(LEAST, len(texts)) or len(keys) * group.every < _DENSE * span or len(keys) <= LEAST:
        return None
    return Pattern(group.about, "block", name, (str(keys[0]), str(keys[-1])), len(keys), len(texts), cause=group.cause)


# ── ranges ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Range:
    """A range by the numbers of its first and last record in the group. share_all: of all records."""

    first: int
    last: int
    count: int
    share_all: float
    surprise: float

    def pattern(self, group: Group, kind: Any, name: str, texts: Sequence[str | None]) -> Pattern:
        """The pattern with the texts of its ends."""
        ends = texts[self.first], texts[self.last]
        return Pattern(group.about, kind, name, ends, self.count, len(texts), self.share_all, group.cause)


def _narrowest(mine: Sequence[Any], every: Sequence[Any]) -> _Range | None:
    """The range that holds all of these places, or most of them in the smallest share of all records."""
    known = sorted((place, at) for at, place in enumerate(mine) if place is not None)
    others = sorted(place for place in every if place is not None)
    if len(known) < LEAST or not others:
        return None

    def share(first: int, last: int) -> float:
        hits = bisect_right(others, known[last][0]) - bisect_left(others, known[first][0])
        return hits / len(every)

    # All of them says more than most of them.
    for part in _PARTS:
        size = math.ceil(part * len(known))
        first = min(range(len(known) - size + 1), key=lambda first: share(first, first + size - 1))
        found = _range(known, first, first + size - 1, share, len(mine), len(every))
        if found is not None:
            return found
    return None


def _range(
    known: Sequence[tuple[Any, int]], first: int, last: int, share: Callable[[int, int], float], of: int, sampled: int
) -> _Range | None:
    count, of_all = last - first + 1, share(first, last)
    surprise = _surprise(count, of, of_all, sampled)
    return None if surprise is None else _Range(known[first][1], known[last][1], count, of_all, surprise)


def _in_time(
    group: Group, name: str, kind: Kind, texts: Sequence[str | None], every: Sequence[str | None]
) -> Iterator[tuple[float, Pattern]]:
    mine, others = [us_of(each) for each in texts], [us_of(each) for each in every]
    found = _narrowest(mine, others)
    if found is not None:
        yield found.surprise, found.pattern(group, "time", name, texts)
    elif kind.name == "timestamp":
        found = _narrowest(*([None if us is None else us % US_PER_DAY for us in each] for each in (mine, others)))
        if found is not None:
            clock = [None if text is None else text[11:].rstrip("Z") for text in texts]
            yield found.surprise, found.pattern(group, "time_of_day", name, clock)


# ── few values ───────────────────────────────────────────────────────────────────────────────────────


def _few_values(
    group: Group, name: str, texts: Sequence[str | None], every: Sequence[str | None]
) -> Iterator[tuple[float, Pattern]]:
    """One value, or up to three, that nearly all of the group have and few of all records."""
    others = Counter(every)
    if len(others) > _VALUES_MAX:
        return
    told: list[str | None] = []
    count = 0
    for value, many in Counter(texts).most_common(_VALUES_TOLD):
        told.append(value)
        count += many
        if count >= _SHARE_MIN * len(texts):
            of_all = sum(others[each] for each in told) / len(every)
            surprise = _surprise(count, len(texts), of_all, len(every))
            if surprise is not None:
                yield surprise, Pattern(group.about, "value", name, tuple(told), count, len(texts), of_all, group.cause)
            return


def _surprise(count: int, of: int, share_all: float, sampled: int) -> float | None:
    """How telling it is that `count` of `of` lie where this share of all does; None where it is not telling."""
    p, q = count / of, max(share_all, 1 / (sampled + 1))
    if p < _SHARE_MIN or q > p / 2:
        return None
    entropy = p * math.log(p / q) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)
    return of * entropy if of * entropy >= _SURPRISE_MIN else None
