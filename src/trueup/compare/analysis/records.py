"""Likely causes that show only in whole records: swapped columns, a batch that came twice, keys spelled otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

from trueup.compare.analysis.result import LEAST, LikelyCause, Pattern, SideName
from trueup.compare.result import Difference
from trueup.model.canonical import nfc
from trueup.model.record import key_parts

# Records that differ in more columns are not searched for swapped ones.
_FIELDS_MAX: Final = 8


def causes_of_records(
    differences: Sequence[Difference], patterns: Sequence[Pattern], *, every: int
) -> tuple[LikelyCause, ...]:
    """All that fit. every: of so many differences one was examined."""
    by_kind: dict[str, list[Difference]] = {}
    for each in differences:
        by_kind.setdefault(each.kind, []).append(each)
    found = [*_swapped(by_kind.get("differ", []))]
    found += _twice(by_kind.get("duplicate", []), patterns)
    # Of a sample, the two halves of a pair are seldom both there.
    if every == 1:
        found += _spelled(by_kind.get("missing", []), by_kind.get("extra", []))
    return tuple(found)


def _swapped(differing: Sequence[Difference]) -> Iterator[LikelyCause]:
    counted: Counter[tuple[str, str]] = Counter()
    for each in differing:
        if 2 <= len(each.fields) <= _FIELDS_MAX:
            counted.update(swapped_columns(each))
    for (a, b), count in counted.most_common():
        if count >= LEAST:
            both = sum(a in each.fields and b in each.fields for each in differing)
            yield LikelyCause("swapped-columns", None, f"{a} and {b} in each other's place", count, both)


def swapped_columns(difference: Difference) -> Iterator[tuple[str, str]]:
    """Pairs of columns that hold each other's values."""
    left, right = difference.left or {}, difference.right or {}
    for a, b in combinations(difference.fields, 2):
        if left.get(a) == right.get(b) and left.get(b) == right.get(a) and None not in (left.get(a), left.get(b)):
            yield a, b


def _twice(duplicates: Sequence[Difference], patterns: Sequence[Pattern]) -> Iterator[LikelyCause]:
    """Keys of one place that one side has more than once."""
    where = next((each for each in patterns if each.about == "duplicate" and each.kind != "value"), None)
    if where is None:
        return
    sides: dict[SideName, int] = {
        "left": sum(each.left_copies > max(each.right_copies, 1) for each in duplicates),
        "right": sum(each.right_copies > max(each.left_copies, 1) for each in duplicates),
    }
    for side, count in sides.items():
        if count >= max(LEAST, len(duplicates) // 2):
            said = f"a batch that came twice at {side}: its keys lie together"
            yield LikelyCause("duplicated-batch", side, said, count, len(duplicates))


# What two spellings of one key have in common.
_SPELLINGS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("blanks around the key", str.strip),
    ("upper and lower case", str.casefold),
    ("Unicode form", nfc),
    ("leading zeros", lambda text: text.lstrip("0") if text.isdigit() else text),
)


def _spelled(missing: Sequence[Difference], extra: Sequence[Difference]) -> Iterator[LikelyCause]:
    """Missing keys that are there in another spelling."""
    for what, spell in _SPELLINGS:
        there = {_plain(each, spell) for each in extra}
        count = sum(_plain(each, spell) in there for each in missing)
        if count >= LEAST:
            said = f"missing keys are extra ones in another spelling: {what}"
            yield LikelyCause("key-spelling", None, said, count, len(missing))
            return


def _plain(difference: Difference, spell: Callable[[str], str]) -> tuple[str | None, ...]:
    return tuple(None if part is None else spell(part) for part in key_parts(difference.key))
