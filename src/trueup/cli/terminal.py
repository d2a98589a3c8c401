"""How results look: colour on a terminal and plain text elsewhere, widths, numbers, progress."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, TextIO

Colour = Literal["red", "green", "yellow", "dim", "bold"]
_CODES: Final[dict[Colour, str]] = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_WIDTH_MAX: Final = 100
# How jobs end, in the order in which people care.
END_WORDS: Final = {
    "done": "done", "verified": "verified", "retry": "to try again", "parked": "parked", "waits": "waiting",
}  # fmt: skip
# Short work should not flicker.
_QUIET_S: Final = 0.5


class Progress(Protocol):
    """What long work calls now and then: what it does, how much is done, of how much (None: not known)."""

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Takes note."""


def width() -> int:
    """Columns that output may use: those of the terminal, at most 100."""
    return min(_WIDTH_MAX, shutil.get_terminal_size((_WIDTH_MAX, 24)).columns)


def colourful(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that wants colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: Colour, stream: TextIO | None = None) -> str:
    """`text` in colour where the stream (standard output by default) wants it."""
    chosen = sys.stdout if stream is None else stream
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colourful(chosen) else text


def say(text: str = "") -> None:
    """A line on standard output."""
    print(text)


def complain(message: str, hint: str | None = None) -> None:
    """An error on standard error, with what to do about it."""
    word = paint("error:", "red", sys.stderr)
    print(f"{word} {message}" + (f"\n  hint: {hint}" if hint else ""), file=sys.stderr)


def number(count: int) -> str:
    """A count with thousands separators."""
    return f"{count:,}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut(text: str, size: int) -> str:
    """`text` in at most `size` characters."""
    return text if len(text) <= size else text[: max(size - 1, 0)] + "…"


def value(text: str | None) -> str:
    """A canonical text for people, on one line and without control characters.

    Null is `null`; a text that could be mistaken for it, is empty, or begins or ends with a blank is quoted.
    """
    if text is None:
        return "null"
    shown = text if text.isprintable() else "".join(map(_printable, text))
    return f"'{shown}'" if not shown or shown == "null" or shown != shown.strip() else shown


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()


def clock(us: int) -> str:
    """A time in the reader's zone, such as `14:58:00` today or `2026-11-28 02:03`."""
    import datetime as dt  # noqa: PLC0415

    moment = dt.datetime.fromtimestamp(us / 1e6, dt.UTC).astimezone()
    today = dt.datetime.now(dt.UTC).astimezone().date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M}"


@contextmanager
def progress(*, shown: bool = True) -> Iterator[Progress]:
    """One line on standard error that follows long work; silent where that is no terminal or not wanted."""
    if not shown or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    line = _Line()
    try:
        yield line
    finally:
        line.clear()


class _Line:
    """A line that is drawn at most ten times a second."""

    def __init__(self) -> None:
        self._drawn = False
        self._next = time.monotonic() + _QUIET_S

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 0.1
        share = f" of {total:,}  {_bar(done / total)}" if total else ""
        sys.stderr.write(f"\r\x1b[K {what}  {done:,}{share}")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _bar(share: float) -> str:
    done = round(min(share, 1) * 20)
    return f"{'█' * done}{'·' * (20 - done)} {min(share, 1):.0%}"


def print_json(document: Any) -> None:
    """A document as JSON, one object on standard output."""
    import json  # noqa: PLC0415

    say(json.dumps(document, ensure_ascii=False, indent=2, default=str))
