"""The answer of `trueup diff` as a page: it needs no program and nothing from elsewhere, and it prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from trueup.cli import diff_analysis_text as told
from trueup.cli.diff_text import explanation, schema
from trueup.cli.html import STYLE, Html, Part, bar, document, joined, table, tag
from trueup.cli.terminal import counted, number
from trueup.engine.evidence import program_version
from trueup.model.record import key_parts
from trueup.model.times import timestamp_text

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.analysis.result import Analysis, ColumnAnalysis, Distribution, LikelyCause, Pattern
    from trueup.compare.result import Difference

# Of a page that lists all, nobody reads the end; the lists of programs have it.
ROWS_MAX: Final = 500
_FIELDS_MAX: Final = 12
_TEXT_MAX: Final = 300
# Width and height of a chart, in its own units.
_CHART: Final = (720, 90)
_WORDS: Final = {
    "same": "equal on both sides",
    "missing": "only on the left",
    "extra": "only on the right",
    "differ": "on both sides, with other values",
    "duplicate": "a key that one side holds more than once",
}


def page(answer: Answer, analysis: Analysis | None, at_us: int) -> str:
    """The whole page. at_us: when it is written, UTC."""
    counts, title = answer.comparison.counts, f"{answer.left.label} ↔ {answer.right.label}"
    sides = (f"left: {answer.left.label}, {answer.left.system}", f"right: {answer.right.label}, {answer.right.system}")
    return document(
        f"What differs: {title}",
        STYLE,
        tag("h1", title),
        *(tag("p", side, class_="quiet") for side in sides),
        tag("p", f"Compared {timestamp_text(at_us - at_us % 1_000_000, aware=False).replace('T', ' ')} UTC in "
            f"{answer.seconds:.1f} s by trueup {program_version()}.", class_="quiet"),
        _verdict(answer),
        _counts(answer),
        _schema(answer, analysis),
        *(_analysis(analysis) if analysis is not None and counts.different else ()),
        _differences(answer),
        _how(answer),
    )  # fmt: skip


def _verdict(answer: Answer) -> Html:
    counts = answer.comparison.counts
    if answer.agree:
        return tag("div", tag("strong", "Both sides agree: "), counted(counts.same, "record"), class_="box")
    if not counts.different:
        words = "All records agree; one side has columns that the other lacks."
    else:
        words = f"{counted(counts.different, 'record')} differ, {number(counts.same)} agree."
    return tag("div", tag("strong", words), class_="box bad")


def _counts(answer: Answer) -> Html:
    counts = answer.comparison.counts
    every = counts.same + counts.different
    rows: list[list[Part]] = [
        [name, words, getattr(counts, name), bar(getattr(counts, name) / every if every else 0)]
        for name, words in _WORDS.items()
    ]
    read = f"{counted(counts.left, 'record')} on the left, {number(counts.right)} on the right. Each key counts once."
    return joined(table(["", "", "keys", ""], rows, {2}), tag("p", read, class_="quiet"))


def _schema(answer: Answer, analysis: Analysis | None) -> Html | None:
    if analysis is None:
        lines = [line[9:] for line in schema(answer)]
        listed = tag("ul", *(tag("li", line) for line in lines))
        return joined(tag("h2", "Schema", class_="first"), listed) if lines else None
    if not analysis.schema:
        return None
    rows: list[list[Part]] = [
        [each.column or "–", each.right_column or "–", each.what.replace("_", " "), each.left, each.right]
        for each in analysis.schema
    ]
    heads = ["column left", "column right", "what differs", "left", "right"]
    compared = [tag("li", line) for line in answer.comparison.notes.compared_as]
    return joined(
        tag("h2", "What the schemas do not share", class_="first"),
        table(heads, rows),
        tag("ul", *compared) if compared else None,
    )


# ── what differs, and why ────────────────────────────────────────────────────────────────────────────


def _analysis(analysis: Analysis) -> Iterator[Html | None]:
    if analysis.sampled:
        some = f"{number(analysis.examined)} of {number(analysis.of)} differences"
        exact = "how many records differ in each column is exact"
        yield tag("p", f"What follows rests on {some}, evenly chosen; {exact}.", class_="quiet")
    if analysis.columns:
        yield tag("h2", "Which columns differ", class_="first")
        yield _columns_table(analysis.columns)
    causes = [(each.column, cause) for each in analysis.columns for cause in each.causes]
    causes += [("whole records", cause) for cause in analysis.causes]
    if causes:
        yield tag("h2", "Likely causes", class_="first")
        yield _causes(causes)
    if analysis.patterns:
        yield tag("h2", "Where the differences lie", class_="first")
        yield _patterns(analysis.patterns, analysis.compared_with)
    for each in analysis.distributions:
        yield _distribution(each)


def _columns_table(columns: Sequence[ColumnAnalysis]) -> Html:
    rows: list[list[Part]] = []
    for each in columns:
        shown: Part = "not shown" if each.redacted else tag("ul", *(
            tag("li", _value(one.left), " → ", _value(one.right), f" ({counted(one.count, 'record')})"
                if one.count > 1 else _at(one.key))
            for one in each.examples
        ))  # fmt: skip
        gap = told.delta(each.delta) if each.delta is not None else ""
        rows.append([each.column, each.kind, each.count, told.percent(each.share), bar(each.share), shown, gap])
    heads = ["column", "compared as", "records", "of common", "", "left → right, the most frequent", "by how much"]
    return table(heads, rows, {2, 3})


def _at(key: str | None) -> str:
    return "" if key is None else f" at {_key(key)}"


def _causes(causes: Sequence[tuple[str, LikelyCause]]) -> Html:
    rows: list[list[Part]] = [
        [
            column, cause.said, told.of(cause.count, cause.of), bar(cause.count / max(cause.of, 1)),
            tag("code", cause.advice) if cause.advice else "",
        ]
        for column, cause in causes
    ]  # fmt: skip
    return table(["column", "what probably happened", "fits", "", "to let it pass"], rows)


def _patterns(patterns: Sequence[Pattern], compared_with: int | None) -> Html:
    rows: list[list[Part]] = []
    for each in patterns:
        about = each.about if each.cause is None else f"{each.about} ({each.cause})"
        bars: list[Part] = [bar(each.count / max(each.of, 1))]
        if each.share_all is not None:
            bars += [bar(each.share_all, of_all=True)]
        told_all = "" if each.share_all is None else told.percent(each.share_all)
        rows.append([about, told.where(each), told.of(each.count, each.of), told_all, joined(*bars)])
    note = None
    if compared_with is not None:
        note = tag("p", f"Of all records: by {number(compared_with)} of the left side, evenly chosen.", class_="quiet")
    return joined(table(["what", "where", "of these", "of all records", ""], rows, {2, 3}), note)


def _distribution(found: Distribution) -> Html:
    """Shares of the differences beside shares of all records, on one scale."""
    shares = [each.count / max(found.of, 1) for each in found.bins]
    most = max([*shares, *(each.share_all or 0 for each in found.bins)], default=0) or 1
    chart = _by_value if found.kind == "value" else _in_order
    return joined(tag("h3", f"Differences by {found.column}"), chart(found, shares, most))


def _by_value(found: Distribution, shares: Sequence[float], most: float) -> Html:
    rows: list[list[Part]] = []
    for each, share in zip(found.bins, shares, strict=True):
        bars: list[Part] = [bar(share / most)]
        if each.share_all is not None:
            bars.append(bar(each.share_all / most, of_all=True))
        told_all = "" if each.share_all is None else told.percent(each.share_all) if each.share_all else "none"
        rows.append([_value(each.first), each.count, told_all, joined(*bars)])
    return table([found.column, "differences", "of all records", ""], rows, {1, 2})


def _in_order(found: Distribution, shares: Sequence[float], most: float) -> Html:
    """A chart of columns; what each stands for is told where the pointer rests, the extremes below."""
    step = _CHART[0] / max(len(shares), 1)
    drawn: list[Part] = []
    for at, (each, share) in enumerate(zip(found.bins, shares, strict=True)):
        said = f"{_plain(each.first)} to {_plain(each.last)}: {counted(each.count, 'difference')}"
        if each.share_all is not None:
            said += f", {told.percent(each.share_all) if each.share_all else 'none'} of all records"
            drawn.append(_column(at * step, step - 1, each.share_all / most, "all"))
        drawn.append(_column(at * step + step / 4, step / 2, share / most, "one", tag("title", said)))
    fullest = max(found.bins, key=lambda each: each.count)
    span = f"{_plain(found.bins[0].first)} to {_plain(found.bins[-1].last)}"
    peak = f"most in {_plain(fullest.first)} to {_plain(fullest.last)}: {number(fullest.count)} of {number(found.of)}"
    picture = tag("svg", *drawn, viewBox=f"0 0 {_CHART[0]} {_CHART[1]}", role="img", aria_label=f"{span}; {peak}")
    grey = " Behind, in grey: all records." if found.bins[0].share_all is not None else ""
    return joined(picture, tag("p", f"{span}; {peak}.{grey}", class_="quiet"))


def _column(left: float, width: float, share: float, style: str, inner: Part = None) -> Html:
    height = max(_CHART[1] * share, 1 if share else 0)
    place = {"x": f"{left:.1f}", "y": f"{_CHART[1] - height:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return tag("rect", inner, class_=style, **place)


def _plain(text: str | None) -> str:
    return "null" if text is None else _text(text).replace("T", " ")


# ── differences and how they were found ──────────────────────────────────────────────────────────────


def _differences(answer: Answer) -> Html | None:
    counts = answer.comparison.counts
    rows = [_difference(each, answer) for each in islice(answer.comparison.differences(ROWS_MAX), ROWS_MAX)]
    if not rows:
        return None
    left_out = counts.different - len(rows)
    more = f"… and {number(left_out)} more: trueup diff --limit 0 --json lists all."
    heads = [", ".join(field.name for field in answer.plan.left.key), "what", "column", "left", "right"]
    return joined(
        tag("h2", "The differences"),
        table(heads, [row for each in rows for row in each]),
        tag("p", more, class_="quiet") if left_out > 0 else None,
    )


def _difference(difference: Difference, answer: Answer) -> list[list[Part]]:
    key = _key(difference.key)
    if difference.kind == "duplicate":
        return [[key, "duplicate", "", f"{number(difference.left_copies)} ×", f"{number(difference.right_copies)} ×"]]
    left, right = difference.left, difference.right
    names = difference.fields or tuple(field.name for field in answer.plan.left.fields)
    rows: list[list[Part]] = [
        [
            key if at == 0 else "", difference.kind if at == 0 else "", name,
            "" if left is None else _value(left.get(name)), "" if right is None else _value(right.get(name)),
        ]
        for at, name in enumerate(names[:_FIELDS_MAX])
    ]  # fmt: skip
    return rows or [[key, difference.kind, "", "", ""]]


def _how(answer: Answer) -> Html:
    lines: list[Part] = [tag("li", line) for line in explanation(answer)]
    asked = [(name, sql) for name, read in zip(("left", "right"), answer.comparison.read, strict=True)
             for sql in read.statements]  # fmt: skip
    rows: list[list[Part]] = [[name, tag("pre", sql.strip())] for name, sql in asked]
    return joined(
        tag("h2", "How it was compared"),
        tag("ul", *lines),
        table(["side", "what the database was asked, without values"], rows) if rows else None,
        tag("p", "A key that only one side has is missing or extra; a column that only one side has keeps the sides "
            "from agreeing. Values are canonical: the same value of two systems is the same text. A likely cause is "
            "a guess with evidence, not a proof.", class_="quiet"),
    )  # fmt: skip


def _key(key: str) -> str:
    return ", ".join("null" if part is None else _text(part) for part in key_parts(key))


def _value(text: str | None) -> Part:
    if text is None:
        return tag("span", "null", class_="quiet")
    return _text(text) if text else tag("span", "empty", class_="quiet")


def _text(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}… ({number(len(text))} characters)"
