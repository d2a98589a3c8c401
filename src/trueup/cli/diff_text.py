"""The answer of `trueup diff` for people: a header, what the schemas say, counts, and aligned differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from trueup.cli import diff_analysis_text
from trueup.cli.diff_json import COUNTS
from trueup.cli.terminal import counted, cut, number, paint, say, value, width
from trueup.model.canonical import is_odd
from trueup.model.record import key_parts

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.analysis.result import Analysis
    from trueup.compare.result import Difference
    from trueup.ports import Description

_KIND: Final = 9
_KEY_MAX: Final = 36
_NAME_MAX: Final = 24
_PER_RECORD: Final = 8
# So many keys are read before the first is shown, so that columns line up.
_ALIGNED: Final = 100


def show(
    answer: Answer,
    limit: int | None,
    *,
    explain: bool = False,
    statements: bool = False,
    analysis: Analysis | None = None,
) -> None:
    """Prints the answer; limit: differences listed at most, None for all. statements: what databases were asked."""
    counts = answer.comparison.counts
    say(header(answer))
    for line in schema(answer, analysis):
        say(line)
    say("   ".join(f"{name} {number(getattr(counts, name))}" for name in COUNTS[2:]))
    by_field = {name: count for name, count in answer.comparison.differing_fields.items() if count}
    if by_field:
        most = sorted(by_field.items(), key=lambda item: (-item[1], item[0]))
        say(cut("differ in   " + ", ".join(f"{name} {number(count)}" for name, count in most), width()))
    if explain:
        say()
        for line in (*explanation(answer), *(_statements(answer) if statements else ())):
            say(line)
    listed = list_differences(answer, limit)
    if listed < counts.different:
        say(paint(f" … {number(counts.different - listed)} more: --limit 0 for all, --json", "dim"))
    if analysis is not None:
        diff_analysis_text.show(analysis)
    if answer.agree:
        say(paint("agree", "green"))


def header(answer: Answer) -> str:
    """Both sides with their systems and row counts, and how long it took."""
    counts = answer.comparison.counts
    sides = f"{_side(answer.left, counts.left)}  ↔  {_side(answer.right, counts.right)}"
    cost = f"{answer.seconds:.1f} s · {answer.comparison.strategy}"
    gap = width() - len(sides) - len(cost)
    return f"{sides}{' ' * gap}{cost}" if gap >= 2 else f"{sides}\n{cost:>{width()}}"


def _side(side: Description, rows: int) -> str:
    return f"{side.label} ({side.system}, {number(rows)} {'row' if rows == 1 else 'rows'})"


def schema(answer: Answer, analysis: Analysis | None = None) -> Iterator[str]:
    """What the columns of both sides say about each other; one-sided columns keep the sides from agreeing."""
    notes = answer.comparison.notes
    lines = list(notes.compared_as)
    for names, where in ((notes.only_left, answer.left.label), (notes.only_right, answer.right.label)):
        if names:
            lines.append(f"only in {where}: {', '.join(names)} (--ignore {','.join(names)} to leave out)")
    lines += [f"{a} ↔ {b}: the same but for case? --map {a}={b}" for a, b in notes.case_only]
    if analysis is not None:
        lines += diff_analysis_text.schema(analysis)
    for at, line in enumerate(lines):
        yield f"{'schema' if at == 0 else '':<9}{line}"


def explanation(answer: Answer) -> Iterator[str]:
    """How it was compared, why so, and what was read."""
    comparison = answer.comparison
    yield f"strategy {comparison.strategy}: {comparison.reason}"
    left, right = (f"{counted(each.rows, 'row')} ({_size(each.bytes)})" for each in comparison.read)
    yield f"read     left {left}, right {right}, {answer.seconds:.1f} s"
    for field in (*answer.plan.left.key, *answer.plan.left.fields):
        role = "key" if field in answer.plan.left.key else "field"
        how = ", redacted" if field.name in answer.redact else "" if field.native else ", as canonical text"
        yield f"{role:<9}{field.name}: {field.kind}{how}"


def _statements(answer: Answer) -> Iterator[str]:
    for name, read in zip(("left", "right"), answer.comparison.read, strict=True):
        for statement in read.statements:
            yield f"{name:<9}{' '.join(statement.split())}"


def _size(count: int) -> str:
    """Bytes in the largest unit of which there is at least one."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def list_differences(answer: Answer, limit: int | None) -> int:
    """Prints differences in key order; answers how many."""
    differences = answer.comparison.differences(limit)
    first = list(islice(differences, _ALIGNED))
    key_size = max((len(_key(each)) for each in first), default=0)
    listed = 0
    odd: dict[str, str] = {}
    for listed, difference in enumerate(chain(first, differences), start=1):
        if listed == 1:
            say()
        for line in lines_of(difference, answer, key_size, odd):
            say(line)
    for note in odd.values():
        say(paint(note, "yellow"))
    return listed


def _key(difference: Difference) -> str:
    return cut(", ".join(value(part) for part in key_parts(difference.key)), _KEY_MAX)


def lines_of(difference: Difference, answer: Answer, key_size: int, odd: dict[str, str]) -> Iterator[str]:
    """One difference in one line or, where several fields differ, one line a field."""
    head = f" {difference.kind:<{_KIND}} {_key(difference):<{key_size}}  "
    room = width() - len(head)
    match difference.kind:
        case "duplicate":
            yield f"{head}{number(difference.left_copies)} × left, {number(difference.right_copies)} × right"
        case "differ":
            rows = list(_fields(difference, answer, odd, room))
            for at, row in enumerate(rows[:_PER_RECORD]):
                yield f"{head if at == 0 else ' ' * len(head)}{row}"
            if len(rows) > _PER_RECORD:
                yield f"{' ' * len(head)}… and {len(rows) - _PER_RECORD} more fields"
        case _:
            values = difference.left if difference.left is not None else difference.right
            yield f"{head}{_summary(values or {}, answer, room)}".rstrip()


def _fields(difference: Difference, answer: Answer, odd: dict[str, str], room: int) -> Iterator[str]:
    left, right = difference.left or {}, difference.right or {}
    size = min(max((len(name) for name in difference.fields), default=0), _NAME_MAX)
    each = max((room - size - 9) // 2, 8)
    kinds = {field.name: field.kind for field in answer.plan.left.fields}
    for name in difference.fields:
        a, b = left.get(name), right.get(name)
        for side, text in (("left", a), ("right", b)):
            if is_odd(text, kinds[name]):
                odd[name] = f" {name}: ! marks a value at {side} that is no {kinds[name]}{_advice(kinds[name].name)}"
        minus, plus = f"− {cut(value(a), each)}", f"+ {cut(value(b), each)}"
        yield f"{cut(name, _NAME_MAX):<{size}}  {paint(minus, 'red')}{_pad(minus, 12)}   {paint(plus, 'green')}"


def _pad(text: str, size: int) -> str:
    return " " * max(size - len(text), 0)


def _advice(kind: str) -> str:
    advice = {
        "decimal": ". If it is a number in other marks: --decimal ',' --thousands '.'",
        "timestamp": ". If it is a wall-clock time: --zone SIDE=Europe/Berlin",
    }
    return advice.get(kind, ". To compare it as it is written: --type NAME=text")


def _summary(values: Mapping[str, str | None], answer: Answer, room: int) -> str:
    """As many fields of a one-sided record as the line holds."""
    shown = ""
    fields: Iterable[str] = (field.name for field in answer.plan.left.fields)
    for name in fields:
        text = f"{'  ' if shown else ''}{name} {cut(value(values.get(name)), 24)}"
        if len(shown) + len(text) > room:
            return shown or cut(text, room)
        shown += text
    return shown
