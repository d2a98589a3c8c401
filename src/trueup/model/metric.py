"""Every metric: its name, what it measures, and by which labels it is told apart.

Names and units follow Prometheus' conventions (https://prometheus.io/docs/practices/naming). Labels hold names that
were declared and words of a fixed set, never a key, a value or a message. What a process does is counted in the state
store; all else is read from it. So every process of a project answers the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from trueup.model.change import Outcome
from trueup.model.condition import CONDITIONS, Severity
from trueup.model.drift import Drift


class Kind(enum.StrEnum):
    """As Prometheus has them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class Merge(enum.StrEnum):
    """How the values of several clients become one: added up, or the worst of them."""

    SUM = "sum"
    LEAST = "least"
    MOST = "most"


class Count(NamedTuple):
    """One number that is added up: a metric, and its labels in their order.

    A histogram has one for each bucket and for `sum`, which stands behind its labels, a summary for `count` and `sum`.
    """

    metric: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A declared metric. labels: their names. merge: for clients of one definition, where these are summed up."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    merge: Merge = Merge.SUM

    def count(self, *labels: str) -> Count:
        """One of its numbers."""
        return Count(self.name, labels)


COUNTER, GAUGE, HISTOGRAM, SUMMARY = Kind
SUM, LEAST, MOST = Merge

# Upper bounds of event latencies, in seconds: from a worker that waits for it to one that was away for a day.
BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 86_400.0)
BEYOND: Final = "+Inf"
TOTAL: Final = "sum"
NUMBER: Final = "count"
# A run of windows is named for them; what it is called here must be one of a few.
WINDOW: Final = "window"

# The words that a label may have; labels that are not here hold declared names: pairs, systems, sources, limits.
WORDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "trueup_offers_total": {"outcome": tuple(Outcome)},
    "trueup_jobs_total": {"outcome": ("done", "verified", "retry", "parked", "waits", "refused")},
    "trueup_runs_total": {
        "run": ("run", "sweep", "compare", "changed", "adopt", "report", "dry run", WINDOW),
        "outcome": ("done", "failed", "stopped", "refused"),
    },
    "trueup_run_phase_seconds": {
        "phase": ("stuck", "changed", "work", "windows", "compare", "settle", "confirm", "act", "repair")
    },
    "trueup_records": {"state": ("idle", "pending", "parked")},
    "trueup_drift_records": {"kind": tuple(Drift)},
    "trueup_last_success_timestamp_seconds": {"phase": ("sweep", "compare", "changed")},
    "trueup_run_due_timestamp_seconds": {"run": ("sweep", "compare", "changed")},
    "trueup_side_records": {"side": ("authority", "replica")},
    "trueup_side_clock_ahead_seconds": {"side": ("authority", "replica")},
    "trueup_conditions": {"condition": tuple(CONDITIONS), "severity": tuple(Severity)},
    "trueup_workers": {"state": ("alive", "silent")},
}

# ── counted ──────────────────────────────────────────────────────────────────────────────────────────

OFFERS: Final = Metric(
    "trueup_offers_total", COUNTER, "Changes offered to the ledger, by what it answered.", ("pair", "outcome")
)
JOBS: Final = Metric(
    "trueup_jobs_total", COUNTER, "Jobs that ended, by how. Refused: the lease had gone to another worker.",
    ("pair", "outcome"),
)  # fmt: skip
LATENCY: Final = Metric(
    "trueup_event_latency_seconds", HISTOGRAM, "From the offer of an event to the end of its job, done.", ("pair",)
)
RUNS: Final = Metric("trueup_runs_total", COUNTER, "Runs that ended, by how.", ("pair", "run", "outcome"))
PHASES: Final = Metric("trueup_run_phase_seconds", SUMMARY, "What phases of runs took.", ("pair", "phase"))
REQUESTS: Final = Metric(
    "trueup_webhook_requests_total", COUNTER, "Deliveries answered, by HTTP status. No source: not a declared one.",
    ("source", "status"),
)  # fmt: skip

# ── read from the state ──────────────────────────────────────────────────────────────────────────────

RECORDS: Final = Metric("trueup_records", GAUGE, "Records known, by state; pending is the queue.", ("pair", "state"))
UNDER_WAY: Final = Metric("trueup_records_under_way", GAUGE, "Pending records that a worker is at.", ("pair",))
OLDEST_PENDING: Final = Metric(
    "trueup_oldest_pending_timestamp_seconds", GAUGE, "When the oldest pending record was due.", ("pair",), LEAST
)
CASES: Final = Metric("trueup_cases_open", GAUGE, "Cases that wait for a person.", ("pair",))
OLDEST_CASE: Final = Metric(
    "trueup_oldest_case_timestamp_seconds", GAUGE, "When the oldest open case was opened.", ("pair",), LEAST
)
DRIFT: Final = Metric(
    "trueup_drift_records", GAUGE, "Confirmed drifts at the last comparison of everything.", ("pair", "kind")
)
LAST_EVENT: Final = Metric(
    "trueup_last_event_timestamp_seconds", GAUGE, "When the last event came, to within a few seconds.", ("pair",),
    LEAST,
)  # fmt: skip
LAST_SUCCESS: Final = Metric(
    "trueup_last_success_timestamp_seconds", GAUGE, "When a run that did this last ended well.", ("pair", "phase"),
    LEAST,
)  # fmt: skip
DUE: Final = Metric(
    "trueup_run_due_timestamp_seconds", GAUGE, "When the next run is due, or was.", ("pair", "run"), LEAST
)
RUN_UNDER_WAY: Final = Metric("trueup_run_under_way", GAUGE, "Whether a run is under way.", ("pair",))
ADOPTED: Final = Metric("trueup_pair_adopted", GAUGE, "Whether the pair was adopted.", ("pair",))
SIDE_RECORDS: Final = Metric(
    "trueup_side_records", GAUGE, "Records of a side at the last comparison of everything.", ("pair", "side")
)
SIDE_CLOCK: Final = Metric(
    "trueup_side_clock_ahead_seconds", GAUGE, "How far a side's clock was ahead at the last run.", ("pair", "side"),
    MOST,
)  # fmt: skip
WINDOWS: Final = Metric("trueup_windows_waiting", GAUGE, "Closed windows that are not sealed.", ("pair",))
PAUSED: Final = Metric("trueup_system_paused", GAUGE, "Whether the system is paused.", ("system",))
TROUBLED: Final = Metric("trueup_system_troubled", GAUGE, "Whether calls of the system fail.", ("system",))
CALLS: Final = Metric("trueup_system_calls_under_way", GAUGE, "Calls under way.", ("system",))
BUDGET_USED: Final = Metric("trueup_budget_used", GAUGE, "What counts now of a limit.", ("system", "limit"))
BUDGET_LIMIT: Final = Metric("trueup_budget_limit", GAUGE, "How much a limit allows.", ("system", "limit"))
BUDGET_LEFT: Final = Metric("trueup_budget_left", GAUGE, "What the system itself said is left.", ("system",))
CONDITION: Final = Metric(
    "trueup_conditions", GAUGE, "What is wrong now; nothing where all is well. Subject: a pair, system, or part.",
    ("condition", "severity", "subject"),
)  # fmt: skip
WORKERS: Final = Metric("trueup_workers", GAUGE, "Workers, by whether they give signs of life.", ("state",))
LETTERS: Final = Metric("trueup_dead_letters", GAUGE, "Dead letters that are kept.", ("source",))
PAIRS: Final = Metric("trueup_pairs", GAUGE, "Pairs that the project declares.")
BUILD: Final = Metric("trueup_build_info", GAUGE, "Which trueup answers; always 1.", ("version", "python"))
LOOK_AT: Final = Metric("trueup_look_timestamp_seconds", GAUGE, "When the state store was read for this answer.")
LOOK_TOOK: Final = Metric("trueup_look_seconds", GAUGE, "How long it took to read the state store for this answer.")

COUNTED: Final = (OFFERS, JOBS, LATENCY, RUNS, PHASES, REQUESTS)
METRICS: Final = (
    *COUNTED, RECORDS, UNDER_WAY, OLDEST_PENDING, CASES, OLDEST_CASE, DRIFT, LAST_EVENT, LAST_SUCCESS, DUE,
    RUN_UNDER_WAY, ADOPTED, SIDE_RECORDS, SIDE_CLOCK, WINDOWS, PAUSED, TROUBLED, CALLS, BUDGET_USED, BUDGET_LIMIT,
    BUDGET_LEFT, CONDITION, WORKERS, LETTERS, PAIRS, BUILD, LOOK_AT, LOOK_TOOK,
)  # fmt: skip


def series_max(metric: Metric) -> int | None:
    """How many series one pair has of it at most; None where it is not about a pair."""
    if "pair" not in metric.labels:
        return None
    series = 1
    for label in metric.labels:
        series *= len(WORDS.get(metric.name, {}).get(label, ("",)))
    extra = {HISTOGRAM: len(BUCKETS) + 3, SUMMARY: 2}
    return series * extra.get(metric.kind, 1)
