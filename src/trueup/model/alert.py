"""What people were told of conditions, and what is to be told next.

People hear of a change of state and of the recovery, never of a state that lasts. Whoever claims a target stores the
message with that, so that one whose sender died is sent again, under the same ident, by whoever comes next
(`trueup.model.handover`). Pure functions, shared by every store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trueup.model import handover
from trueup.model.condition import Condition, Severity
from trueup.model.handover import Handover


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
class Telling(Handover):
    """What one target was told.

    known: the conditions it knows of, by ident. outgoing: a message that is being sent, or will be again.
    """

    known: Mapping[str, Condition] = field(default_factory=dict)
    outgoing: Message | None = None


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


def claim(seen: Telling, some: News, owner: str, now_us: int, lease_us: int) -> Telling:
    """The target as `owner` has it, with a message to send: the one that waits already, else these news."""
    claimed = handover.claim(seen, owner, now_us, lease_us)
    return replace(claimed, outgoing=seen.outgoing or Message(f"{seen.name}-{claimed.fence}", now_us, *some))


def delivered(telling: Telling, now_us: int) -> Telling:
    """The message arrived: the target knows of it."""
    message = telling.outgoing
    if message is None:
        return telling
    over = {each.ident for each in message.ended}
    known = {ident: each for ident, each in telling.known.items() if ident not in over}
    known |= {each.ident: each for each in message.began}
    return replace(handover.arrived(telling, now_us), known=known, outgoing=None)
