"""HTML as values: whatever is put into an element is escaped, and nothing else can be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

# What stands between tags as it is.
_RAW: Final = ("style",)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
# What pages look like: on a screen, light or dark, and on paper.
STYLE: Final = """
:root { --line: #c9ced6; --quiet: #59626f; --good: #14632f; --bad: #a01919; --shade: #f4f5f7; --text: #15181d;
  --page: #fff; --bar: #3f72c4; --all: #b9c0ca; color-scheme: light dark; }
@media screen and (prefers-color-scheme: dark) { :root { --line: #3a414c; --quiet: #9aa4b2; --good: #6ecb8f;
  --bad: #ff8f8f; --shade: #1f242c; --text: #e4e8ee; --page: #14181e; --bar: #78a6f0; --all: #566070; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; color: var(--text);
  background: var(--page);  max-width: 72rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.3rem; margin: 2.4rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
p { margin: .4rem 0; max-width: 60rem; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { background: var(--shade); font-weight: 600; overflow-wrap: normal; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.w { white-space: nowrap; } th.side { width: 13rem; }
code { font: .85em ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.box { border: 1px solid var(--line); border-left: 6px solid var(--good); padding: .6rem 1rem; margin: 1.2rem 0;
  background: var(--shade); } .box.bad { border-left-color: var(--bad); }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.box.bad { color: inherit; font-weight: inherit; }
.bar { display: flex; height: .8rem; min-width: 7rem; background: var(--shade); }
.bar i { display: block; background: var(--bar); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.bar i.all { background: var(--all); }
svg { display: block; width: 100%; max-height: 9rem; background: var(--shade); }
rect.one { fill: var(--bar); } rect.all { fill: var(--all); }
pre { overflow-x: auto; white-space: pre-wrap; font: .8rem/1.4 ui-monospace, Menlo, Consolas, monospace; margin: 0; }
ul { margin: .3rem 0; padding-left: 1.3rem; } td ul { margin: 0; padding-left: 1rem; }
@media print { html { font-size: 12px; } body { margin: 0; max-width: none; font-size: 1rem; padding: 0; }
  h2 { break-before: page; } h2.first { break-before: auto; } h3, p { break-after: avoid; }
  tr, .box { break-inside: avoid; } .box.bad { break-inside: auto; } thead { display: table-header-group; } }
@page { margin: 15mm; }
"""


@dataclass(frozen=True, slots=True)
class Html:
    """Markup that is ready."""

    markup: str


Part = str | int | Html | None


def tag(name: str, *parts: Part, **attributes: str | None) -> Html:
    """An element. parts: texts, which are escaped, and other elements; None is left out. `class_` stands for class."""
    told = "".join(
        f' {each.rstrip("_").replace("_", "-")}="{escape(text)}"'
        for each, text in attributes.items()
        if text is not None
    )
    inner = "".join(_markup(each, raw=name in _RAW) for each in parts)
    return Html(f"<{name}{told}>{inner}</{name}>")


def joined(*parts: Part) -> Html:
    """Parts one behind the other."""
    return Html("".join(_markup(each) for each in parts))


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Part]],
    numbers: Collection[int] = (),
    whole: Collection[int] = (),
) -> Html:
    """A table. numbers: columns, from 0, that stand to the right; whole: those whose cells are one line."""

    def style(at: int) -> str | None:
        return "n" if at in numbers else "w" if at in whole else None

    head = tag("tr", *(tag("th", name, class_=style(at)) for at, name in enumerate(heads)))
    body = [tag("tr", *(tag("td", part, class_=style(at)) for at, part in enumerate(row))) for row in rows]
    return tag("table", tag("thead", head), tag("tbody", *body))


def bar(share: float, *, of_all: bool = False) -> Html:
    """A share from 0 to 1 as a bar; of_all: in the colour of what the others are measured by."""
    width = f"width: {min(max(share, 0), 1):.2%}"
    return tag("div", tag("i", style=width, class_="all" if of_all else None), class_="bar")


def document(title: str, style: str, *parts: Part) -> str:
    """A whole page that needs nothing else: no script, no font, no image, no address of others."""
    head = joined(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", title),
        tag("style", style),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', *parts), lang='en').markup}\n"


def _markup(part: Part, *, raw: bool = False) -> str:
    match part:
        case None:
            return ""
        case Html():
            return part.markup
        case int():
            return f"{part:,}"
    return part if raw else escape(_printable(part))


def _printable(text: str) -> str:
    """Characters that no page may hold are spelled out."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )
