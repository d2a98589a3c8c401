"""HTML as values: whatever is put into an element is escaped, and nothing else can be."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

# What stands between tags as it is.
_RAW: Final = ("style",)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


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
