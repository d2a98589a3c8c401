"""The ports: all that the engine asks of the world. Every wait and every effect goes through one of them.

Sides are other people's systems; ledger, archive and budgets are our own state; the clock is time itself.
Adapters implement these protocols without naming them as bases. Times are microseconds, UTC.
"""

from trueup.ports.cases import Cases
from trueup.ports.evidence import Evidence
from trueup.ports.runs import Runs
from trueup.ports.schedules import Schedules
from trueup.ports.seals import Seals
from trueup.ports.sides import (
    EVERYTHING,
    Capabilities,
    Description,
    DivisibleSide,
    ExaminableSide,
    Examined,
    HashingSide,
    MarkableSide,
    RunningSide,
    Scope,
    Segments,
    Side,
    Snapshot,
    TraceableSide,
    WindowedSide,
    WritableSide,
    Write,
    Written,
    provides,
)
from trueup.ports.state import Archive, DeadLetters, Ledger
from trueup.ports.systems import Budgets, Clock, Gate, GatedSide

__all__ = [
    "EVERYTHING",
    "Archive",
    "Budgets",
    "Capabilities",
    "Cases",
    "Clock",
    "DeadLetters",
    "Description",
    "DivisibleSide",
    "Evidence",
    "ExaminableSide",
    "Examined",
    "Gate",
    "GatedSide",
    "HashingSide",
    "Ledger",
    "MarkableSide",
    "RunningSide",
    "Runs",
    "Schedules",
    "Scope",
    "Seals",
    "Segments",
    "Side",
    "Snapshot",
    "TraceableSide",
    "WindowedSide",
    "WritableSide",
    "Write",
    "Written",
    "provides",
]
