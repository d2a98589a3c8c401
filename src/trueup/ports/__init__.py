"""The ports: all that the engine asks of the world. Every wait and every effect goes through one of them.

Sides are other people's systems; ledger, archive and budgets are our own state; the clock is time itself.
Adapters implement these protocols without naming them as bases. Times are microseconds, UTC.
"""

from trueup.ports.alerts import Pings, Pulses, Target
from trueup.ports.cases import Cases
from trueup.ports.evidence import AnchorPlace, Evidence, ReadableAnchorPlace
from trueup.ports.handovers import Handovers
from trueup.ports.runs import Runs
from trueup.ports.schedules import Schedules
from trueup.ports.scripts import Repair, ScriptableSide, Scripted
from trueup.ports.seals import Seals
from trueup.ports.sides import (
    EVERYTHING,
    Capabilities,
    Description,
    DigestingSide,
    DivisibleSide,
    ExaminableSide,
    Examined,
    MarkableSide,
    Match,
    MatchingSide,
    NewerHashingSide,
    RunningSide,
    SampledSide,
    Scope,
    Side,
    StoppableScan,
    TraceableSide,
    WindowedSide,
    WritableSide,
    Write,
    Written,
    provides,
)
from trueup.ports.snapshots import Blocks, HashingSide, Segments, Snapshot
from trueup.ports.state import Archive, DeadLetters, Ledger
from trueup.ports.systems import Budgets, Clock, Gate, GatedSide
from trueup.ports.trends import Trends
from trueup.ports.watching import NOBODY, OUTGOING, UNTRACED, Observer, Tallies, Tracing

__all__ = [
    "EVERYTHING",
    "NOBODY",
    "OUTGOING",
    "UNTRACED",
    "AnchorPlace",
    "Archive",
    "Blocks",
    "Budgets",
    "Capabilities",
    "Cases",
    "Clock",
    "DeadLetters",
    "Description",
    "DigestingSide",
    "DivisibleSide",
    "Evidence",
    "ExaminableSide",
    "Examined",
    "Gate",
    "GatedSide",
    "Handovers",
    "HashingSide",
    "Ledger",
    "MarkableSide",
    "Match",
    "MatchingSide",
    "NewerHashingSide",
    "Observer",
    "Pings",
    "Pulses",
    "ReadableAnchorPlace",
    "Repair",
    "RunningSide",
    "Runs",
    "SampledSide",
    "Schedules",
    "Scope",
    "ScriptableSide",
    "Scripted",
    "Seals",
    "Segments",
    "Side",
    "Snapshot",
    "StoppableScan",
    "Tallies",
    "Target",
    "TraceableSide",
    "Tracing",
    "Trends",
    "WindowedSide",
    "WritableSide",
    "Write",
    "Written",
    "provides",
]
