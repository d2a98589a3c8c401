"""What a receiver's answer says of the changes that it was sent: docs/how-to/url-handlers.md has the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from trueup.errors import HandlerError, Unreachable
from trueup.model.canonical import parse_json
from trueup.model.outcome import HandlerOutcome, RateLimited, Reject, Retry, WaitFor
from trueup.model.retry_after import retry_after_us
from trueup.sides.http.calls import Answer

# It read the change and will never take it.
REFUSED: Final = frozenset((413, 422))
# The address, the right or the deployment is wrong: every change would fare the same.
MISPLACED: Final = frozenset((401, 403, 404, 405, 407, 408, 410, 421, 426))
UNAVAILABLE: Final = 503
AFTER_S_MAX: Final = 30 * 86_400
_REASON_CHARACTERS_MAX: Final = 200
_NO_JSON: Final = object()


@dataclass(frozen=True, slots=True)
class Ending:
    """How changes end: `others` for those that `by_id` does not name; None is done."""

    others: Exception | None = None
    by_id: Mapping[str, Exception | None] = field(default_factory=dict)

    def of(self, ident: str) -> Exception | None:
        """How the change with this id ends."""
        return self.by_id.get(ident, self.others)


def ending_of(answer: Answer, idents: Sequence[str], now_us: int) -> Ending:
    """How the changes with these ids, which were sent in one call, end by its answer.

    Raises Reject where the receiver refuses them, Retry where it may take them later, RateLimited where it says when,
    Unreachable where the system is in trouble, HandlerError where the answer can't be understood.
    """
    status, who = answer.status, answer.who
    if answer.ok:
        return _accepted(answer, idents)
    if status in REFUSED:
        raise Reject(_reason(_parsed(answer)) or f"{who} refuses it ({status})")
    if status == UNAVAILABLE and (pause_us := retry_after_us(answer.headers.get("retry-after"), now_us)) is not None:
        raise RateLimited(pause_us / 1e6)
    if status in (401, 403):
        raise Unreachable(f"{who} refuses us ({status}).", hint="Does it hold the same secret, and is its clock right?")
    if 300 <= status < 400:
        raise Unreachable(f"{who} redirects ({status}).", hint="Put the address that it points to into url.")
    if status in MISPLACED or status >= 500:
        raise Unreachable(f"{who} answered {status}.", hint="Is url right, and is the receiver up? It is asked again.")
    raise Retry(f"{who} answered {status}")


def _accepted(answer: Answer, idents: Sequence[str]) -> Ending:
    kind = answer.headers.get("content-type", "").lower()
    if "html" in kind or answer.body.lstrip()[:1] == b"<":
        raise Unreachable(
            f"{answer.who} answered a web page.",
            hint="Is url right? A login page and a maintenance page look like this.",
        )
    said = _parsed(answer)
    if said is _NO_JSON and answer.body.strip() and ("json" in kind or answer.body.lstrip()[:1] == b"{"):
        raise HandlerError(f"{answer.who} answered what is not JSON.", hint="Answer an object, or nothing at all.")
    if not isinstance(said, dict):
        return Ending()
    listed = said.get("outcomes", {})
    if not isinstance(listed, dict):
        raise HandlerError(f"{answer.who}: outcomes is no object.", hint="Answer an outcome by the id of each change.")
    if not set(listed) <= set(idents):
        raise HandlerError(
            f"{answer.who} answered for a change that it was not sent.", hint="Name outcomes by the ids of changes."
        )
    return Ending(_told(said, answer.who), {name: _told(each, answer.who) for name, each in listed.items()})


def _told(said: Any, who: str) -> Exception | None:
    """The outcome that an object names, None for done; an error where it is none, which is charged as a try."""
    try:
        return _outcome(said, who)
    except HandlerError as error:
        return error


def _outcome(said: Any, who: str) -> HandlerOutcome | None:
    match said:
        case {"outcome": "retry"}:
            return Retry(_reason(said), after_s=_seconds(said.get("after_s"), who))
        case {"outcome": "reject"}:
            return Reject(_reason(said) or f"{who} gave no reason")
        case {"outcome": "wait_for", "pair": str(pair), "key": key}:
            parts = key if isinstance(key, list) else [key]
            if pair and parts and all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
                return WaitFor(pair, *parts)
        case {"outcome": "done"}:
            return None
        case {} if "outcome" not in said:
            return None
    raise HandlerError(
        f"{who} answered an outcome that there is not.",
        hint='Answer "done", "retry" with after_s, "reject" with reason, or "wait_for" with pair and key.',
    )


def _seconds(stated: Any, who: str) -> float | None:
    if stated is None:
        return None
    if not isinstance(stated, int | float | Decimal) or isinstance(stated, bool) or not math.isfinite(stated):
        raise HandlerError(f"{who}: after_s is no number.", hint="Give seconds, such as 30.")
    if not 0 <= stated <= AFTER_S_MAX:
        raise HandlerError(f"{who}: after_s is not between 0 and {AFTER_S_MAX}.", hint="Give seconds, such as 30.")
    return float(stated)


def _reason(said: Any) -> str:
    """What the receiver says of why, on one short line."""
    stated = said.get("reason") if isinstance(said, dict) else None
    if not isinstance(stated, str):
        return ""
    return "".join(each if each.isprintable() else " " for each in stated[:_REASON_CHARACTERS_MAX]).strip()


def _parsed(answer: Answer) -> Any:
    """The body as JSON; `_NO_JSON` where it is none."""
    try:
        return parse_json(answer.body)
    except (ValueError, ArithmeticError, RecursionError):
        return _NO_JSON
