"""Dead letters for people and as JSON: what was refused; the values that it holds only where they are asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.terminal import clock, counted, cut, number, paint, say, value, width

if TYPE_CHECKING:
    from trueup.deliveries import Replayed
    from trueup.model.letter import DeadLetter

HIDDEN: Final = "(hidden)"
_SECRET = re.compile(r"auth|cookie|hmac|key|passw|secret|signature|token", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,63}\Z", re.ASCII)
_SHAPE_CHARACTERS_MAX: Final = 2_000


def mention(kept: int) -> None:
    """A line for `trueup status`: how many letters are kept, and what to type; nothing where there are none."""
    if kept:
        say(f"{counted(kept, 'dead letter')} from webhooks → trueup letters")


def show_letters(letters: Sequence[DeadLetter], kept: int) -> None:
    """A line for each letter, and the next command."""
    if not letters:
        say("no dead letters")
        return
    names = max(len(each.source) for each in letters)
    digits = max(len(str(each.number)) for each in letters)
    for each in letters:
        delivery = "" if each.delivery is None else f"  {value(each.delivery)}"
        line = f"{each.number:>{digits}}  {each.source:<{names}}  {clock(each.received_us)}  {size_of(each)}{delivery}"
        say(cut(line, width()))
        say(cut(f"{'':>{digits}}  {each.status}: {each.reason}", width()))
    if kept > len(letters):
        say(paint(f"… {number(kept - len(letters))} more: --limit 0 for all", "dim"))
    say(f"next: trueup letters show {letters[0].number}, then trueup letters replay or drop")


def show_letter(letter: DeadLetter, hidden: Sequence[str], *, body: bool) -> None:
    """One letter: why it was refused, its headers, and its body or only the body's shape."""
    delivery = "" if letter.delivery is None else f", delivery {value(letter.delivery)}"
    say(f"letter {letter.number} of {letter.source}, received {clock(letter.received_us)}{delivery}")
    say(f"refused with {letter.status}: {letter.reason}")
    for name, text in shown_headers(letter, hidden).items():
        say(cut(f"  {name}: {value(text)}", width()))
    if body:
        say(f"body, {size_of(letter)}:")
        say(text_of(letter))
    else:
        say(f"body, {size_of(letter)}: {cut(shape_text(letter), _SHAPE_CHARACTERS_MAX)}")
        say(paint("--body shows its values", "dim"))


def show_replayed(found: Sequence[Replayed]) -> None:
    """What became of each letter that was read again."""
    for each in found:
        if each.kept is not None:
            say(cut(f"{each.letter.number}  {paint('kept', 'yellow')}: {each.kept}", width() + 9))
        elif each.outcomes:
            outcomes = ", ".join(f"{number(count)} {outcome}" for outcome, count in each.outcomes.items())
            say(f"{each.letter.number}  {paint('offered', 'green')}: {outcomes}")
        else:
            say(f"{each.letter.number}  dropped: it is about no record of this project")
    kept = sum(each.kept is not None for each in found)
    gone = len(found) - kept
    say(f"{counted(gone, 'letter')} read again and dropped" + (f", {number(kept)} kept" if kept else ""))


def letter_json(letter: DeadLetter, hidden: Sequence[str] = (), *, body: bool = False) -> dict[str, Any]:
    """A letter as JSON; its body as text only where it is asked for."""
    return {
        "number": letter.number, "source": letter.source, "received_us": letter.received_us, "status": letter.status,
        "reason": letter.reason, "size": letter.size, "whole": letter.whole, "delivery": letter.delivery,
        "headers": shown_headers(letter, hidden), **({"body": text_of(letter)} if body else {}),
    }  # fmt: skip


def replayed_json(found: Replayed) -> dict[str, Any]:
    """What became of a letter, as JSON."""
    outcomes = {str(outcome): count for outcome, count in found.outcomes.items()}
    letter = found.letter
    return {"number": letter.number, "source": letter.source, "kept": found.kept, "outcomes": outcomes}


def shown_headers(letter: DeadLetter, hidden: Sequence[str]) -> Mapping[str, str]:
    """The headers, but of those that may let somebody in only the names. hidden: names beside the telling ones."""
    return {
        name: HIDDEN if name in hidden or _SECRET.search(name) else text
        for name, text in sorted(letter.headers.items())
    }


def size_of(letter: DeadLetter) -> str:
    """How large it was, and how much of it is here."""
    kept = "" if letter.whole else f" (the first {len(letter.body):,} kept)"
    return counted(letter.size, "byte") + kept


def text_of(letter: DeadLetter) -> str:
    """The body as text; what is no UTF-8, and what could move a terminal's cursor, is escaped."""
    text = letter.body.decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() or each in "\n\t" else value(each).strip("'") for each in text)


def shape_text(letter: DeadLetter) -> str:
    """What kind of body it is, without any value."""
    from trueup.model.canonical import parse_json  # noqa: PLC0415

    try:
        return _shape(parse_json(letter.body))
    except (ValueError, ArithmeticError, RecursionError):
        return "not JSON"


def _shape(found: Any) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "text"
        case dict():
            # A name that looks like none may be a value: an address, a number.
            members = (f"{name if _NAME.match(name) else '…'}: {_shape(each)}" for name, each in found.items())
            return "{" + ", ".join(members) + "}"
        case list():
            more = f" × {len(found):,}" if len(found) > 1 else ""
            return f"[{_shape(found[0])}{more}]" if found else "[]"
        case _:
            return "number"
