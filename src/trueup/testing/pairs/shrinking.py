"""A failing pair made smaller, and told so that a person can do it by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from trueup.testing.pairs.drawing import Pair
from trueup.testing.pairs.engines.engine import Row

_TRIES_MAX: Final = 200


def smaller(pair: Pair, fails: Callable[[Pair], bool]) -> Pair:
    """The smallest pair found that fails too: with fewer rows, fewer columns, or less about it that is odd."""
    left = _TRIES_MAX
    found = True
    while found and left > 0:
        found = False
        for other in _simpler(pair):
            left -= 1
            if left < 0:
                break
            if fails(other):
                pair, found = other, True
                break
    return pair


def _simpler(pair: Pair) -> Iterator[Pair]:
    every = list(dict.fromkeys(row[: pair.keys] for rows in pair.rows for row in rows))
    size = len(every) // 2
    while size:
        for start in range(0, len(every), size):
            gone = set(every[start : start + size])
            yield replace(pair, rows=_without(pair, lambda row, gone=gone: row[: pair.keys] in gone))  # type: ignore[misc]
        size //= 2
    for at in range(pair.keys, len(pair.columns)):
        yield _less(pair, at, pair.keys)
    if pair.keys > 1:
        for at in range(pair.keys):
            yield _less(pair, at, pair.keys - 1)
    for side in (0, 1):
        for at in range(len(pair.rows[side])):
            rows = list(pair.rows)
            rows[side] = pair.rows[side][:at] + pair.rows[side][at + 1 :]
            yield replace(pair, rows=(rows[0], rows[1]))
    for plainer in (
        replace(pair, lone=(None, None)), replace(pair, constraints=("", "")), replace(pair, zones=(None, None)),
        replace(pair, narrow=False), replace(pair, declared=False),
    ):  # fmt: skip
        if plainer != pair and not (plainer.zones != pair.zones and _zoned(pair)):
            yield plainer


def _without(pair: Pair, gone: Callable[[Row], bool]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    left, right = (tuple(row for row in rows if not gone(row)) for rows in pair.rows)
    return left, right


def _zoned(pair: Pair) -> bool:
    """Whether a column has its kind only by a zone."""
    return any(each.family == "instant" and type_.wall for each in pair.columns for type_ in each.types)


def _less(pair: Pair, at: int, keys: int) -> Pair:
    """Without a column."""
    left, right = (tuple((*row[:at], *row[at + 1 :]) for row in rows) for rows in pair.rows)
    return replace(pair, columns=(*pair.columns[:at], *pair.columns[at + 1 :]), keys=keys, rows=(left, right))


def story(pair: Pair, wrong: str) -> str:
    """The pair in words."""
    lines = [
        wrong,
        f"seed {pair.seed}, example {pair.number}: {' ↔ '.join(pair.engines)}, strategy {pair.strategy or 'auto'}",
        f"bounds {'narrow' if pair.narrow else 'usual'}, zero dates {'as they are' if pair.strict else 'null'}",
        f"constraints {pair.constraints}, zones {pair.zones}, lone columns {pair.lone}, declared {pair.declared}",
    ]
    for at, each in enumerate(pair.columns):
        what = "key  " if at < pair.keys else "field"
        left, right = each.types
        lines.append(f"{what} {each.family}: {each.names[0]!r} {left.declared} ↔ {each.names[1]!r} {right.declared}")
    for name, rows in zip(("left", "right"), pair.rows, strict=True):
        lines.append(f"{name}, {len(rows)} rows:")
        lines += [f"  {_shown(row)}" for row in rows[:20]]
    return "\n".join(lines)


def _shown(row: Sequence[str | None]) -> str:
    return ", ".join("null" if text is None else ascii(text if len(text) < 80 else f"{text[:60]}…") for text in row)
