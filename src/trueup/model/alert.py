"""What people were told of conditions, and what is to be told next.

People hear of a change of state and of the recovery, never of a state that lasts. What one target was told is kept in
the state store, so that restarts and several processes neither repeat nor lose anything: whoever has something to tell
claims the target, stores the message with that, sends it, and says how it went. The claim is a lease, as that of a
record; a message whose sender died is sent again, under the same ident, by whoever comes next. Pure functions, shared
by every store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from trueup.model.condition import Condition, Severity

BACKOFF_US: Final = 5_000_000
BACKOFF_MAX_US: Final = 15 * 60_000_000
ERROR_CHARACTERS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Message:
    """What is told at once. ident: the same for every attempt. began: conditions that began, or changed severity.

    ended: conditions that are over, as they were told.
    """

    ident: str
    at_us: int
    began: tuple[Condition, ...] = ()
    ended: tuple[Condition, ...] = ()
    test: bool = False

    @property
    def worst(self) -> Severity | None:
        """The worst of what began; None where all of it is recovery."""
        severities = {each.severity for each in self.began}
        return next((each for each in (Severity.CRITICAL, Severity.WARNING) if each in severities), None)

    def as_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "ident": self.ident,
            "at_us": self.at_us,
            "began": [asdict(each) for each in self.began],
            "ended": [asdict(each) for each in self.ended],
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Message:
        """The inverse of `as_json`."""
        return cls(kept["ident"], kept["at_us"], conditions_of(kept["began"]), conditions_of(kept["ended"]))


def conditions_of(kept: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
    """Conditions as JSON has them."""
    return tuple(Condition(**{**each, "severity": Severity(each["severity"])}) for each in kept)


@dataclass(frozen=True, slots=True)
class Telling:
    """What one target was told.

    known: the conditions it knows of, by ident. outgoing: a message that is being sent, or will be again. ready_us:
    when it may be claimed: the end of the lease while somebody sends, later after a failure. tries: failures of the
    outgoing message. failed: failures ever. error: what the latest one was. told_us: the latest message that arrived.
    """

    target: str
    known: Mapping[str, Condition] = field(default_factory=dict)
    outgoing: Message | None = None
    owner: str = ""
    fence: int = 0
    ready_us: int = 0
    tries: int = 0
    failed: int = 0
    error: str = ""
    told_us: int | None = None


News = tuple[tuple[Condition, ...], tuple[Condition, ...]]


def news(
    known: Mapping[str, Condition],
    now: Sequence[Condition],
    judged: Collection[str],
    *,
    least: Severity = Severity.WARNING,
    quiet: bool = False,
) -> News:
    """(what began or changed severity, what ended) since a target was told.

    judged: the subjects that whoever asks can judge; of others, nothing is taken to have ended. least: warnings are
    not told where it is critical. quiet: warnings wait, and so does their end.
    """
    current = {each.ident: each for each in now if least is Severity.WARNING or each.severity is Severity.CRITICAL}
    began = [
        each for ident, each in current.items() if ident not in known or known[ident].severity is not each.severity
    ]
    ended = [each for ident, each in known.items() if ident not in current and each.subject in judged]
    if quiet:
        began, ended = ([each for each in some if each.severity is Severity.CRITICAL] for some in (began, ended))
    return tuple(sorted(began, key=_order)), tuple(sorted(ended, key=_order))


def _order(condition: Condition) -> tuple[bool, str, str]:
    return condition.severity is not Severity.CRITICAL, condition.name, condition.subject


def claimable(stored: Telling | None, seen: Telling, now_us: int) -> bool:
    """Whether a target that was seen like this can be claimed."""
    if stored is None:
        return seen.fence == 0
    return stored.fence == seen.fence and stored.ready_us <= now_us


def claim(seen: Telling, some: News, owner: str, now_us: int, lease_us: int) -> Telling:
    """The target as `owner` has it, with a message to send: the one that waits already, else these news."""
    fence = max(seen.fence + 1, now_us)
    message = seen.outgoing or Message(f"{seen.target}-{fence}", now_us, *some)
    return replace(seen, outgoing=message, owner=owner, fence=fence, ready_us=now_us + lease_us)


def held(stored: Telling | None, telling: Telling) -> bool:
    """Whether whoever claimed `telling` still has it, late or not."""
    return stored is not None and bool(stored.owner) and stored.fence == telling.fence


def delivered(telling: Telling, now_us: int) -> Telling:
    """The message arrived: the target knows of it."""
    message = telling.outgoing
    if message is None:
        return telling
    over = {each.ident for each in message.ended}
    known = {ident: each for ident, each in telling.known.items() if ident not in over}
    known |= {each.ident: each for each in message.began}
    return replace(
        telling, known=known, outgoing=None, owner="", ready_us=now_us, tries=0, error="", told_us=now_us
    )  # fmt: skip


def undelivered(telling: Telling, error: str, now_us: int, share: float) -> Telling:
    """The message did not arrive: it is sent again, later each time. share: from 0 to 1, so that several spread."""
    return replace(
        telling, owner="", ready_us=now_us + backoff_us(telling.tries, share), tries=telling.tries + 1,
        failed=telling.failed + 1, error=error[:ERROR_CHARACTERS_MAX],
    )  # fmt: skip


def backoff_us(tries: int, share: float) -> int:
    """How long something that failed `tries` times before and once more now waits. share: as above."""
    wait_us = min(BACKOFF_US << min(tries, 20), BACKOFF_MAX_US)
    return wait_us // 2 + round(wait_us / 2 * share)
