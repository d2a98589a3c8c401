"""A case: one question to a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """A record (or, with key "", the pair itself) about which a person must decide.

    drift: one of the drift names, or `parked`. authority, replica: canonical texts, or None where absent.
    fields: names of the fields that differ.
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
    detail: str = ""
    number: int = 0
    closed_us: int | None = None
    closed: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
