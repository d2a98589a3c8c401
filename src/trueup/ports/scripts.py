"""Repairs in a side's own language, for a person to read and to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trueup.model.record import Projection
from trueup.ports.sides import Side


@dataclass(frozen=True, slots=True)
class Repair:
    """What would make one record of a side agree.

    before: canonical texts by field name as the side was seen to hold them; None where it lacked the record.
    after: the texts to put, of a record that is there only those that change; None to delete it.
    """

    key: str
    before: Mapping[str, str | None] | None
    after: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True)
class Scripted:
    """The statement for one repair; or None, and why there is none, in words that hold no value of the record."""

    key: str
    statement: str | None
    reason: str = ""


@runtime_checkable
class ScriptableSide(Side, Protocol):
    """A side whose repairs can be written out in its own language, for a person to read and to run."""

    def script(self, projection: Projection, repairs: Iterable[Repair]) -> Iterator[Scripted]:
        """One statement for each repair, in order, in bounded memory. Reads, and writes nothing.

        A statement that is run changes nothing where the record is no longer what it was when it was written.
        """

    def script_frame(self) -> tuple[Sequence[str], Sequence[str]]:
        """What stands before the statements and after them, so that all of them take effect, or none."""
