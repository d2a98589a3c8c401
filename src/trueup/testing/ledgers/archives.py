"""The archive: runs, plans, trends, schedules, cases, evidence, letters, workers, alerts, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from trueup.ports import Archive, Clock
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.alerts import AlertContract
from trueup.testing.ledgers.cases import CaseContract
from trueup.testing.ledgers.decisions import DecisionContract
from trueup.testing.ledgers.evidence import EvidenceContract
from trueup.testing.ledgers.letters import LetterContract
from trueup.testing.ledgers.plans import PlanContract
from trueup.testing.ledgers.presences import PresenceContract
from trueup.testing.ledgers.runs import PieceContract, RunContract
from trueup.testing.ledgers.schedules import ScheduleContract
from trueup.testing.ledgers.seals import SealContract
from trueup.testing.ledgers.tallies import TallyContract
from trueup.testing.ledgers.trends import TrendContract


class ArchiveContract(
    RunContract,
    PieceContract,
    PlanContract,
    CaseContract,
    DecisionContract,
    EvidenceContract,
    LetterContract,
    PresenceContract,
    ScheduleContract,
    SealContract,
    TrendContract,
    AlertContract,
    TallyContract,
):
    """What the archive keeps. A subclass brings `make`: a new, empty archive whose time is the clock's."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def archive(self, make: Callable[[Clock], Archive], clock: ManualClock) -> Iterator[Archive]:
        archive = make(clock)
        yield archive
        archive.close()
