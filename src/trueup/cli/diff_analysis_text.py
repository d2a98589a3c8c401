"""What differs, and probably why, for people: some lines below the differences, none where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from trueup.cli.terminal import cut, number, paint, say, value, width

if TYPE_CHECKING:
    from trueup.compare.analysis.result import Analysis, ColumnAnalysis, Delta, LikelyCause, Pattern, SchemaDifference

_COLUMNS_MAX: Final = 8
_NAME_MAX: Final = 24
# Fewer numbers are seen at a glance.
_DELTAS_MIN: Final = 3
# The others are told where a comparison tells its columns.
_SCHEMA: Final = ("width", "nullability", "collation")
Line = tuple[str, str, str]


def show(analysis: Analysis) -> None:
    """Prints what was found, after a blank line; prints nothing where nothing was."""
    rows = list(lines(analysis))
    if not rows:
        return
    say()
    examined, of_all = number(analysis.examined), number(analysis.of)
    sample = f" (by {examined} of {of_all} differences, evenly chosen)" if analysis.sampled else ""
    say(f"what differs{sample}")
    size = min(max(len(name) for name, _, _ in rows), _NAME_MAX)
    for name, text, advice in rows:
        line = cut(f" {cut(name, size):<{size}}  {text}", width())
        fits = advice and len(line) + len(advice) + 3 <= width()
        say(f"{line}   {paint(advice, 'dim')}" if fits else line)


def lines(analysis: Analysis) -> Iterator[Line]:
    """Name of a kind of difference or column, what is said of it, and an option that judges the values equal."""
    columns = {each.column: each for each in analysis.columns[:_COLUMNS_MAX]}
    abouts = [*dict.fromkeys([each.about for each in analysis.patterns if each.about not in columns]), *columns]
    for about in abouts:
        places = [each for each in analysis.patterns if each.about == about]
        found = list(_of_column(columns[about], places)) if about in columns else []
        found += [(place(each), "") for each in places if each.cause is None]
        for at, (text, advice) in enumerate(found):
            yield "" if at else about, text, advice
    for cause in analysis.causes:
        yield "records", told(cause), cause.advice


def _of_column(column: ColumnAnalysis, places: list[Pattern]) -> Iterator[tuple[str, str]]:
    for cause in column.causes:
        yield told(cause), cause.advice
        for each in places:
            if each.cause == cause.name:
                yield f"  of these {place(each)}", ""
    # By how much, a cause may say already.
    said = any(each.name in ("step", "factor", "time-zone") and each.count == each.of for each in column.causes)
    if column.delta is not None and column.delta.count >= _DELTAS_MIN and not said:
        yield delta(column.delta), ""


def told(cause: LikelyCause) -> str:
    """A cause with its evidence."""
    return f"{of(cause.count, cause.of)}: {cause.said}"


def delta(found: Delta) -> str:
    """By how much numbers or times differ."""
    unit = " s" if found.seconds else ""
    least, most, mean, total = (
        _signed(text) + unit for text in (found.least, found.most, _short(found.mean), found.total)
    )
    return f"right − left: {least} to {most}, mean {mean}, sum {total}"


def _signed(text: str) -> str:
    return f"−{text[1:]}" if text.startswith("-") else text if text == "0" else f"+{text}"


def _short(text: str) -> str:
    return f"{float(text):.6g}"


def place(pattern: Pattern) -> str:
    """Where differences lie, and how many of all records do."""
    return f"{of(pattern.count, pattern.of)}: {where(pattern)}{share(pattern)}"


def where(pattern: Pattern) -> str:
    """The place of a pattern."""
    first, last = value(pattern.values[0]), value(pattern.values[-1])
    match pattern.kind:
        case "value":
            return f"{pattern.column} {' or '.join(value(each) for each in pattern.values)}"
        case "block":
            return f"{pattern.column} {first} to {last}, without a gap"
        case "time_of_day":
            return f"{pattern.column} from {first} to {last} o'clock"
        case "time" if first[:11] == last[:11] and len(first) > 11:
            return f"{pattern.column} {first} to {last[11:]}"
    return f"{pattern.column} {first} to {last}"


def share(pattern: Pattern) -> str:
    """How many of all records lie there."""
    return "" if pattern.share_all is None else f" ({percent(pattern.share_all)} of all records)"


def of(count: int, every: int) -> str:
    """`all 34`, or `31 of 33`."""
    return f"all {number(count)}" if count == every else f"{number(count)} of {number(every)}"


def percent(share: float) -> str:
    """With as many digits as it takes to see that it is not nothing."""
    return "under 0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def schema(analysis: Analysis) -> Iterator[str]:
    """What the schemas do not share, beyond columns and types."""
    return (schema_difference(each) for each in analysis.schema if each.what in _SCHEMA)


def schema_difference(each: SchemaDifference) -> str:
    """One line: `name: width varchar(20) ↔ varchar(10)`."""
    names = each.column if each.column == each.right_column else f"{each.column} ↔ {each.right_column}"
    return f"{names}: {each.what} {each.left} ↔ {each.right}"
