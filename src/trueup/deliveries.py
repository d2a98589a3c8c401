"""What a delivery offers, when it arrives and when a dead letter is read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trueup.engine.records import Records
from trueup.errors import ConfigError, EventRefused, HandlerError, SchemaError
from trueup.events.webhook import Delivery
from trueup.model.canonical import is_odd
from trueup.model.change import Change, Origin, Outcome, count_outcomes
from trueup.model.event import Event
from trueup.model.letter import DeadLetter
from trueup.model.names import client_of, definition_of
from trueup.project import Project


def changes_of(project: Project, delivery: Delivery) -> list[Change]:
    """The changes that a delivery offers; EventRefused (422) where one is about no record that could exist."""
    changes = []
    for at, event in enumerate(delivery.events):
        if client_of(event.pair) is not None and event.pair not in project.pairs:
            # Who the client is was read from the body: that is a value.
            raise EventRefused(
                f"there is no pair {definition_of(event.pair)} of the client that the event names.",
                status=422, authentic=True, hint="Declare the client, or drop the letter.",
            )  # fmt: skip
        try:
            change = _storable(project.find(event.pair).records, event)
        except (ConfigError, SchemaError, HandlerError) as error:
            raise EventRefused(error.message, status=422, authentic=True, hint=error.hint) from error
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise EventRefused(
                f"pair {event.pair}: a value of the event is none that could be stored.", status=422, authentic=True
            ) from None
        if delivery.id is not None:
            part = f"#{at}" if at else ""
            change = replace(change, delivery=f"{delivery.source}/{delivery.id}{part}")
        changes.append(change)
    return changes


def _storable(records: Records, event: Event) -> Change:
    """The change of an event; ValueError where its key is odd or its text is none that every store can hold."""
    change = records.change_of(event.values, deleted=event.deleted, origin=Origin.EVENT)
    if any(is_odd(part, asked.kind) for part, asked in zip(change.key_parts, records.authority.key, strict=True)):
        raise ValueError("odd key")
    # Half a surrogate pair is legal JSON, but has no UTF-8; a NUL is legal text, but not in PostgreSQL.
    f"{change.key}{change.action}{change.payload}".encode()
    if "\0" in change.action:
        raise ValueError("NUL")
    return change


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a dead letter that was read again.

    kept: why it is kept still; None where it was offered and is gone. outcomes: of its changes; none where the letter
    is about no record of this project.
    """

    letter: DeadLetter
    kept: str | None = None
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)


def replay(project: Project, letter: DeadLetter) -> Replayed:
    """Reads a kept body again by its source's mapping as it is now, and offers what it asks for.

    The letter is dropped once the offer is durable; its delivery is judged once, however often that fails in
    between. It is kept with the new reason where it is refused again. StateError where the store can't be written.
    """
    source = project.sources.get(letter.source)
    if source is None:
        return Replayed(letter, f"The project declares no source {letter.source}.")
    if not letter.whole:
        return Replayed(letter, f"Only the first {len(letter.body):,} of its {letter.size:,} bytes were kept.")
    try:
        changes = changes_of(project, source.understood(letter.body, letter.headers))
    except EventRefused as error:
        project.archive.refuse_letter(letter.number, error.status, str(error))
        return Replayed(letter, str(error))
    outcomes = count_outcomes(project.ledger.offer(changes)) if changes else {}
    project.archive.drop_letters([letter.number])
    return Replayed(letter, outcomes=outcomes)
