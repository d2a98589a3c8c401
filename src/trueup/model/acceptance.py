"""An accepted difference: one that a person knows of and wants to hear no more about, until a date."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acceptance:
    """It covers exactly the two states that were seen; anything else is a new question.

    authority_digest, replica_digest: None where a side lacked the record. fields: names of those that differed.
    until_us, at_us: by the store's clock. case: the number of the case that asked.
    """

    pair: str
    key: str
    authority_digest: str | None
    replica_digest: str | None
    fields: tuple[str, ...]
    person: str
    reason: str
    until_us: int
    at_us: int = 0
    case: int = 0

    def covers(self, authority_digest: str | None, replica_digest: str | None) -> bool:
        """Whether this very difference was accepted; whether it still is, the store says."""
        return (self.authority_digest, self.replica_digest) == (authority_digest, replica_digest)
