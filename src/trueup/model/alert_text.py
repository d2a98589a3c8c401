"""A message as people read it, and as programs do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from trueup.model.alert import Message
from trueup.model.condition import CONDITIONS, Condition, Severity
from trueup.model.duration import duration_text
from trueup.model.moment import moment_text
from trueup.model.names import definition_of, summed


@dataclass(frozen=True, slots=True)
class Notice:
    """A message as it is handed over. title, body: for people, as plain text. document: for programs, as JSON."""

    message: Message
    title: str
    body: str
    document: Mapping[str, Any]


RUNBOOK: Final = "https://github.com/trueup/trueup/blob/main/docs/runbook/"
TYPE: Final = "trueup.alert"
# A message is read on a telephone: of many conditions of one name it shows the first, and how many more there are.
SHOWN_MAX: Final = 20
ALIKE_MAX: Final = 3


def notice_of(message: Message, project: str, runbook: str) -> Notice:
    """The message, ready to be handed over. project: how it is named. runbook: where the pages are."""
    title, body = title_of(message, project), body_of(message, runbook)
    return Notice(message, title, body, _document(message, project, runbook, title, body))


def title_of(message: Message, project: str) -> str:
    """`shop: 2 critical, 1 warning, 1 recovered`."""
    if message.test:
        return f"{project}: a test"
    counts = [
        (sum(each.severity is severity for each in message.began), str(severity))
        for severity in (Severity.CRITICAL, Severity.WARNING)
    ]
    counts.append((len(message.ended), "recovered"))
    return f"{project}: " + ", ".join(f"{count:,} {word}" for count, word in counts if count)


def body_of(message: Message, runbook: str) -> str:
    """A few lines for each condition: what, why, what to type, and the page that says more."""
    if message.test:
        return "Alerts arrive here. Nothing is wrong."
    parts = [_began(each, runbook) for each in _grouped(message.began)]
    parts += [_ended(each, message.at_us) for each in _grouped(message.ended)]
    if len(parts) > SHOWN_MAX:
        parts = [*parts[:SHOWN_MAX], f"… and {len(parts) - SHOWN_MAX:,} more: trueup alerts list"]
    return "\n\n".join(parts)


def _grouped(some: Sequence[Condition]) -> Iterator[Sequence[Condition]]:
    """Conditions that are said together: where many have one name, one cause of theirs stands for them."""
    alike = sorted(
        some, key=lambda each: (each.severity is not Severity.CRITICAL, each.name, definition_of(each.subject))
    )
    for _, members in groupby(alike, key=lambda each: (each.severity, each.name)):
        group = list(members)
        if len(group) > ALIKE_MAX:
            yield group
        else:
            yield from ([each] for each in group)


def _subjects(group: Sequence[Condition]) -> str:
    names = summed(each.subject for each in group)
    more = f" and {len(names) - ALIKE_MAX:,} more" if len(names) > ALIKE_MAX else ""
    return ", ".join(names[:ALIKE_MAX]) + more


def _began(group: Sequence[Condition], runbook: str) -> str:
    first = group[0]
    cause = first.cause if len(group) == 1 else f"{first.subject}: {first.cause}"
    head = f"{first.severity.upper()} {first.name}: {_subjects(group)}"
    return f"{head}\n{cause}.\n→ {first.command}\n{runbook}{first.page}"


def _ended(group: Sequence[Condition], at_us: int) -> str:
    first = group[0]
    lasted = f" after {duration_text(max(0, at_us - first.since_us))}" if first.since_us is not None else ""
    return f"RECOVERED {first.name}: {_subjects(group)}{lasted}"


def _document(message: Message, project: str, runbook: str, title: str, body: str) -> dict[str, Any]:
    return {
        "type": TYPE,
        "timestamp": moment_text(message.at_us).replace(" UTC", "Z").replace(" ", "T"),
        "data": {
            "id": message.ident,
            "project": project,
            "test": message.test,
            "title": title,
            "text": body,
            "began": [condition_json(each, runbook) for each in message.began],
            "ended": [condition_json(each, runbook) for each in message.ended],
        },
    }


def condition_json(condition: Condition, runbook: str = RUNBOOK) -> dict[str, Any]:
    """A condition as plain JSON values."""
    return {
        "name": condition.name,
        "subject": condition.subject,
        "severity": str(condition.severity),
        "what": CONDITIONS.get(condition.name, ""),
        "cause": condition.cause,
        "command": condition.command,
        "since_us": condition.since_us,
        "runbook": runbook + condition.page,
    }
