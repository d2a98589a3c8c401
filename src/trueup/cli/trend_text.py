"""Drift over time for people: a line of bars for each cause and field, all with the same axis of time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from trueup.cli.terminal import counted, cut, number, paint, say, value, width
from trueup.model.record import key_parts
from trueup.model.trend import RECORD, Bucket, Length, placed

if TYPE_CHECKING:
    from trueup.engine.trends import Trend
    from trueup.model.trend import Streak

_BARS: Final = "▁▂▃▄▅▆▇█"
_NONE: Final = "·"
_NO_RUN: Final = " "
_EDGE: Final = "│"
_FIELD_MAX: Final = 24
_LINES_MAX: Final = 20
_DAY_US: Final = 86_400_000_000
_Slot = tuple[Length, int]


def show(found: Sequence[Trend]) -> None:
    """The trend of each pair, with a line between two."""
    for at, each in enumerate(found):
        if at:
            say()
        for line in lines(each):
            say(line)


def lines(trend: Trend) -> Iterator[str]:
    """The trend of one pair: what drifts, how much of what was compared, since when, and the next command."""
    every = trend.every
    if not every:
        yield f"{paint(trend.pair, 'bold')}   no comparison has closed yet"
        yield f"→ trueup run {trend.pair}"
        return
    runs, records = sum(each.runs for each in every), sum(each.records for each in every)
    said = f"{counted(runs, 'run')} since {_date(every[0].from_us)}, {counted(records, 'drift')}"
    yield f"{paint(trend.pair, 'bold')}   {cut(said, max(width() - len(trend.pair) - 3, 0))}"
    places = trend.by_place()
    if not places:
        return
    shown = dict(list(places.items())[:_LINES_MAX])
    names = {place: _name(*place) for place in shown}
    size = max(map(len, names.values()))
    sums = {place: number(sum(each.records for each in several)) for place, several in shown.items()}
    tail = max(len("records"), *map(len, sums.values()))
    slots = _axis(every, trend.now_us, width() - 1 - size - 2 - 2 - tail - 2 - len("at most"))
    room = len(_drawn(slots, [_NONE] * len(slots)))
    yield paint(cut(f" {_ends(slots):>{size + 2 + room}}  {'records':>{tail}}  at most", width()), "dim")
    ran = {(each.length, each.from_us): each for each in every}
    for place, several in shown.items():
        shares = {(each.length, each.from_us): _share(each, ran) for each in several}
        bars = _drawn(slots, [_bar(slot, shares, ran) for slot in slots])
        line = cut(f" {names[place]:<{size}}  {bars}  {sums[place]:>{tail}}  {max(shares.values()):>7.2%}", width())
        yield paint(line, "yellow") if place in trend.cases else line
    if len(places) > len(shown):
        yield paint(f" … {number(len(places) - len(shown))} more: --json", "dim")
    yield paint(cut(f" {_legend(slots)}", width()), "dim")
    yield paint(cut(f" {_NONE} no drift, blank: no run, {_BARS[-1]} the most on this line", width()), "dim")
    for (cause, field), case in sorted(trend.cases.items()):
        since = next((each.since_us for each in trend.streaks if (each.cause, each.field) == (cause, field)), None)
        began = "" if since is None else f", since {_date(since)}"
        yield paint(cut(f"{field} is a defect upstream: {cause} run after run{began}", width()), "yellow")
        yield f"→ trueup review show {case}"


def streak_lines(streak: Streak | None) -> Iterator[str]:
    """What a case about a defect shows beside its question: how it is with the last run, and examples."""
    if streak is None:
        yield "the last runs found less of it; the case closes itself once one finds none"
        return
    yield (
        f"{counted(streak.runs, 'run')} running since {_date(streak.since_us)}, {number(streak.total)} records; "
        f"in run {streak.run} {number(streak.records)} of {number(streak.compared)}, {streak.share:.2%}"
    )
    for key in streak.examples:
        yield f"  {', '.join(value(part) for part in key_parts(key))}"
    yield paint(f"see how it went: trueup status {streak.pair} --trend", "dim")


# ── the axis ─────────────────────────────────────────────────────────────────────────────────────────


def _axis(every: Sequence[Bucket], now_us: int, room: int) -> list[_Slot]:
    """A column for each day, week and month from the first run to today; the newest that fit."""
    slots: list[_Slot] = []
    day_us, last_us = every[0].from_us, max(every[-1].from_us, now_us)
    while day_us <= last_us:
        slot = placed(Length.DAY, day_us, last_us)
        if slot is not None and slot not in slots[-1:]:
            slots.append(slot)
        day_us += _DAY_US
    while len(slots) > 1 and len(_drawn(slots, [_NONE] * len(slots))) > room:
        slots.pop(0)
    return slots


def _drawn(slots: Sequence[_Slot], columns: Sequence[str]) -> str:
    """The columns, with an edge where their length changes."""
    text, before = "", None
    for (length, _), column in zip(slots, columns, strict=True):
        text += _EDGE if before not in (None, length) else ""
        text += column
        before = length
    return text


def _share(each: Bucket, ran: dict[_Slot, Bucket]) -> float:
    """Of what all runs of these days compared, what drifted."""
    compared = ran[each.length, each.from_us].compared if (each.length, each.from_us) in ran else each.compared
    return each.records / compared if compared else 1.0


def _bar(slot: _Slot, shares: dict[_Slot, float], ran: dict[_Slot, Bucket]) -> str:
    if slot not in ran:
        return _NO_RUN
    if not shares.get(slot):
        return _NONE
    return _BARS[min(int(shares[slot] / max(shares.values()) * len(_BARS)), len(_BARS) - 1)]


def _ends(slots: Sequence[_Slot]) -> str:
    first, last = _date(slots[0][1]), _date(slots[-1][1])
    return first if len(slots) == 1 else f"{first} … {last}"


def _legend(slots: Sequence[_Slot]) -> str:
    parts = [
        f"{length}s from {_date(next(from_us for each, from_us in slots if each is length))}"
        for length in dict.fromkeys(length for length, _ in slots)
    ]
    return f" {_EDGE} ".join(parts)


def _name(cause: str, field: str) -> str:
    return f"{cause:<9}  {cut(value(field), _FIELD_MAX) if field != RECORD else '(records)'}"


def _date(us: int) -> str:
    return f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m-%d}"
