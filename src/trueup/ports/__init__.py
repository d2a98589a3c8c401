"""The ports: all that the engine asks of the world. Every wait and every effect goes through one of them.

Sides are other people's systems; ledger, archive and budgets are our own state; the clock is time itself.
Adapters implement these protocols without naming them as bases. Times are microseconds, UTC.
"""

from trueup.ports.sides import (
    EVERYTHING,
    Capabilities,
    Description,
    ExaminableSide,
    Examined,
    HashingSide,
    MarkableSide,
    Scope,
    Side,
    WritableSide,
    Write,
    Written,
)
from trueup.ports.state import Archive, DeadLetters, Ledger
from trueup.ports.systems import Budgets, Clock, Gate, GatedSide

__all__ = [
    "EVERYTHING",
    "Archive",
    "Budgets",
    "Capabilities",
    "Clock",
    "DeadLetters",
    "Description",
    "ExaminableSide",
    "Examined",
    "Gate",
    "GatedSide",
    "HashingSide",
    "Ledger",
    "MarkableSide",
    "Scope",
    "Side",
    "WritableSide",
    "Write",
    "Written",
]
