"""A case: one question to a person."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

# What stands in the place of a key in a case that is about a pair. Key texts are JSON arrays.
UNLIKE: Final = ""  # records differ although both sides are as we left them
REGRESSED: Final = "#regressed"  # the authority holds older versions than were done
HELD: Final = "#held"  # a breaker holds a plan
REOPENED: Final = "#window "  # and its name: something changed under its seal
DEFECT: Final = "#defect "  # and cause and field: it drifts run after run


@dataclass(frozen=True, slots=True)
class Case:
    """A record, or the pair itself, about which a person must decide.

    drift: one of the drift names, `regressed`, `reopened`, `defect` or `held`. authority, replica: canonical texts, or
    None where absent. fields: names of the fields that differ. ancestor: the authority's digest when the sides last
    agreed, or None. cause: how it came about, as far as that is known. authority_digest, replica_digest,
    authority_version: of what was read, None where absent. changed_us: when the authority changed the record, where its
    versions are times. agreed_us: when the sides were last known to agree. revision: the ledger row's when it was asked
    (0 = no row). assignee, due_us: who looks into it, and until when.
    """

    pair: str
    key: str
    drift: str
    opened_us: int
    authority: Mapping[str, str | None] | None = None
    replica: Mapping[str, str | None] | None = None
    fields: tuple[str, ...] = ()
    ancestor: str | None = None
    run: int = 0
    cause: str = ""
    number: int = 0
    closed_us: int | None = None
    closed: str | None = None
    authority_digest: str | None = None
    replica_digest: str | None = None
    authority_version: int | None = None
    changed_us: int | None = None
    agreed_us: int | None = None
    revision: int = 0
    assignee: str | None = None
    due_us: int | None = None

    @property
    def is_record(self) -> bool:
        """Whether it is about one record, and not about the pair."""
        return self.key.startswith("[")

    @property
    def shown(self) -> str:
        """A short text that is another one as soon as the case shows something else: 8 hex digits."""
        # Every run looks at a plan anew; the other questions about a pair stay the same.
        pair = (self.drift, self.run if self.key == HELD else 0)
        seen = (self.authority_digest, self.replica_digest) if self.is_record else pair
        return hashlib.md5(repr(seen).encode(), usedforsecurity=False).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person said about a case. at_us: by the store's clock."""

    person: str
    text: str
    at_us: int = 0


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases are meant; everything by default.

    assignee: "" for cases that nobody looks into. opened_until_us: not those opened later. field: the name of a field
    that differs. key: a whole key text. text: stands, in whatever case, in the key, the cause or a value.
    """

    drift: str | None = None
    assignee: str | None = None
    opened_until_us: int | None = None
    field: str | None = None
    key: str | None = None
    text: str | None = None

    def fits(self, case: Case) -> bool:
        """Whether the case is meant."""
        return (
            self.drift in (None, case.drift)
            and self.assignee in (None, case.assignee or "")
            and (self.opened_until_us is None or case.opened_us <= self.opened_until_us)
            and (self.field is None or self.field in case.fields)
            and self.key in (None, case.key)
            and (self.text is None or any(self.text.casefold() in each.casefold() for each in _texts(case)))
        )


ANY_CASE: Final = CaseFilter()


def _texts(case: Case) -> Iterator[str]:
    yield from (case.key, case.cause)
    for values in (case.authority, case.replica):
        yield from (text for text in (values or {}).values() if text is not None)
