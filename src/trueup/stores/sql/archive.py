"""The archive in SQL; its parts stand in files of their own."""

from __future__ import annotations

from trueup.ports import Clock
from trueup.stores.sql.alerts import SqlAlerts
from trueup.stores.sql.anchors import places
from trueup.stores.sql.cases import SqlCases
from trueup.stores.sql.decisions import SqlDecisions
from trueup.stores.sql.evidence import SqlEvidence
from trueup.stores.sql.letters import SqlLetters
from trueup.stores.sql.plans import SqlPlans
from trueup.stores.sql.presences import SqlPresences
from trueup.stores.sql.runs import SqlRuns
from trueup.stores.sql.schedules import SqlSchedules
from trueup.stores.sql.seals import SqlSeals
from trueup.stores.sql.storage import Storage
from trueup.stores.sql.tallies import SqlTallies
from trueup.stores.sql.trends import SqlTrends


class SqlArchive(
    SqlRuns,
    SqlPlans,
    SqlTrends,
    SqlSchedules,
    SqlSeals,
    SqlCases,
    SqlDecisions,
    SqlEvidence,
    SqlLetters,
    SqlPresences,
    SqlAlerts,
    SqlTallies,
):
    """Runs with cursors, plans and trends, schedules, seals, cases, evidence, letters, workers, alerts in a database.

    clock: of leases, and when something happened; by default the storage's.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        SqlRuns.__init__(self, storage, clock)
        SqlPlans.__init__(self, storage)
        SqlTrends.__init__(self, storage)
        SqlSchedules.__init__(self, storage, clock)
        SqlSeals.__init__(self, storage)
        SqlCases.__init__(self, storage, clock)
        SqlDecisions.__init__(self, storage, clock)
        SqlEvidence.__init__(self, storage, clock)
        SqlLetters.__init__(self, storage)
        SqlPresences.__init__(self, storage, clock)
        SqlAlerts.__init__(self, storage, clock)
        self.places = places(storage, clock)
        SqlTallies.__init__(self, storage)

    def close(self) -> None:
        """Gives back connections."""
        self._storage.close()
