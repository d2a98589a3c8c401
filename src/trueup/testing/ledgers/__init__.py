"""The contract of ledgers and archives, as test suites that ship: run your store against them in three lines.

    class TestMine(LedgerContract):
        @pytest.fixture
        def make(self):
            def make(clock): ...    # a new, empty ledger whose time is this clock's
            return make

Each rule of the offer table, each point under it and each promise about claims and finishes is a test that
names it. `ArchiveContract` does the same for runs, plans, schedules, cases, evidence, letters and workers.
"""

from __future__ import annotations

from trueup.testing.ledgers.agreement import AgreementContract
from trueup.testing.ledgers.archives import ArchiveContract
from trueup.testing.ledgers.claims import ClaimContract
from trueup.testing.ledgers.deliveries import DeliveryContract
from trueup.testing.ledgers.finishes import FinishContract
from trueup.testing.ledgers.memory import MemoryContract
from trueup.testing.ledgers.offers import OfferContract
from trueup.testing.ledgers.races import RaceContract

__all__ = ["ArchiveContract", "LedgerContract"]


class LedgerContract(
    OfferContract, DeliveryContract, ClaimContract, FinishContract, MemoryContract, RaceContract, AgreementContract
):
    """Everything that a ledger promises."""
