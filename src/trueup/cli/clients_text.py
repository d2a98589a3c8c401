"""Pairs of many clients for people: summed by definition, those first that need somebody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trueup.cli import report_text
from trueup.cli.terminal import counted, cut, number, paint, say, width
from trueup.model.duration import duration_text
from trueup.model.names import client_of, definition_of, of_client

if TYPE_CHECKING:
    from trueup.engine.report import Status

_SHOWN_MAX: Final = 5
_SUMMED: Final = {
    "case waits": "with cases",
    "cases wait": "with cases",
    "parked": "with parked records",
    "pending": "with pending records",
}


def show_status(found: Sequence[Status], *, everything: bool) -> None:
    """A line for each pair; pairs of several clients in one line by definition, unless `everything` is to be shown."""
    groups: dict[str, list[Status]] = {}
    for each in found:
        alone = everything or client_of(each.pair) is None
        groups.setdefault(each.pair if alone else of_client(definition_of(each.pair), "*"), []).append(each)
    names = [each.pair for group in groups.values() if len(group) == 1 for each in group]
    names += [name for name, group in groups.items() if len(group) > 1]
    size = max(map(len, names))
    for name, group in groups.items():
        if len(group) == 1:
            report_text.show_status(group, size)
        else:
            _show_group(name, group, size)


def _show_group(name: str, group: Sequence[Status], size: int) -> None:
    words = Counter(_summed(each.word) for each in group)
    said = ", ".join(f"{number(count)} {word}" for word, count in words.most_common())
    needing = sorted((each for each in group if each.exit_code), key=_urgency)
    say(paint(f"{name:<{size}}  {counted(len(group), 'client')}: {said}", "yellow" if needing else "green"))
    say(cut(f"{'':<{size}}  {_numbers(group)}", width()))
    if len(words) == 1 and group[0].word in ("not adopted", "never run"):
        say(f"{'':<{size}}  → trueup {'adopt' if group[0].word == 'not adopted' else 'run'} '{name}'")
        return
    report_text.show_status(needing[:_SHOWN_MAX], max((len(each.pair) for each in needing[:_SHOWN_MAX]), default=0))
    if len(needing) > _SHOWN_MAX:
        say(paint(f"… {number(len(needing) - _SHOWN_MAX)} more: trueup status '{name}' --all", "dim"))


def _summed(word: str) -> str:
    """The word of a status without its own number."""
    count, _, rest = word.partition(" ")
    return _SUMMED.get(rest, word) if count[:1].isdigit() else word


def _urgency(each: Status) -> tuple[int, int, str]:
    """Trouble first, then the oldest case."""
    return -each.exit_code, each.now_us if each.oldest_case_us is None else each.oldest_case_us, each.pair


def _numbers(group: Sequence[Status]) -> str:
    ages = [_age_us(each) for each in group if each.last_run is not None]
    if not ages:
        runs = "never run"
    elif duration_text(min(ages)) == duration_text(max(ages)):
        runs = f"last run {duration_text(max(ages))} ago"
    else:
        runs = f"last runs {duration_text(min(ages))} to {duration_text(max(ages))} ago"
    parts = [runs, f"{number(sum(each.counts.get('pending', 0) for each in group))} pending"]
    if parked := sum(each.counts.get("parked", 0) for each in group):
        parts.append(f"{number(parked)} parked")
    if cases := sum(each.cases for each in group):
        parts.append(counted(cases, "case waits", "cases wait"))
    return "   ".join(parts)


def _age_us(each: Status) -> int:
    if each.last_run is None:
        return 0
    return max(each.now_us - (each.last_run.ended_us or each.last_run.started_us), 0)
