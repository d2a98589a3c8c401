"""What runs answer: counts, the plan, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueup.engine.schedules import ScheduleStatus
from trueup.engine.systems import SystemStatus
from trueup.model.case import Case
from trueup.model.condition import Condition
from trueup.model.drift import Verdict
from trueup.model.plan import PlanItem
from trueup.model.redaction import REDACTED
from trueup.model.run import Run

Counts = Counter[str]


@dataclass
class Report:
    """One run of one pair, as people and programs read it.

    what: `run`, `dry run`, `adopt`, or `report` (a run before the pair was adopted: it changes nothing).
    counts: see docs/reference/counts.md. plan: every confirmed drift. seconds: by phase. resumed: it went on with a run
    that died. notes: what a person should know beside the counts. redact: fields whose values are not shown.
    """

    pair: str
    what: str
    number: int = 0
    cutoff_us: int | None = None
    counts: Counts = field(default_factory=Counter)
    plan: list[PlanItem] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    strategy: str = ""
    adopted: bool = True
    resumed: bool = False
    notes: list[str] = field(default_factory=list)
    redact: frozenset[str] = frozenset()

    @property
    def waiting(self) -> int:
        """Records that need a person: open cases and parked records."""
        return self.counts["cases"] + self.counts["parked"]

    @property
    def exit_code(self) -> int:
        """0 in agreement or repaired, 1 a person is needed."""
        planned = [item for item in self.plan if item.verdict is not Verdict.ACCEPT]
        undone = len(planned) if self.what in ("report", "dry run") else 0
        return 1 if self.waiting or undone or self.counts["pending"] else 0

    def texts(self, item: PlanItem) -> dict[str, tuple[str | None, str | None]]:
        """(authority's, replica's) text by field that differs; of a redacted field only that there is one."""
        found = item.texts()
        for name in self.redact.intersection(found):
            authority, replica = found[name]
            found[name] = (None if authority is None else REDACTED, None if replica is None else REDACTED)
        return found

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "pair": self.pair,
            "what": self.what,
            "run": self.number,
            "cutoff_us": self.cutoff_us,
            "adopted": self.adopted,
            "counts": {name: count for name, count in sorted(self.counts.items()) if count},
            "plan": [
                {
                    "key": item.key,
                    "drift": item.drift,
                    "verdict": item.verdict,
                    "action": item.action,
                    "fields": {name: {"authority": a, "replica": r} for name, (a, r) in self.texts(item).items()},
                }
                for item in self.plan
            ],
            "strategy": self.strategy,
            "resumed": self.resumed,
            "notes": self.notes,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """The windows of a pair. waiting: names of those that are closed and not sealed. current: the one open now.

    closes_us: when that one closes, by the clock of the store.
    """

    sealed: int
    waiting: Sequence[str]
    current: str
    closes_us: int


@dataclass(frozen=True, slots=True)
class Status:
    """How one pair is: records by state, cases, the newest runs, and the next command.

    conditions: what is wrong, the worst first. last_event_us: to within a few seconds. records: of each side at the
    last comparison that looked at everything. drifts: what that one found, by name. skew_us: how far each side's clock
    was ahead at the last run. successes: by what a run did (`sweep`, `compare`, `changed`), when one last ended well.
    """

    pair: str
    adopted: bool
    counts: Mapping[str, int]
    cases: int
    oldest_case_us: int | None
    oldest_due_us: int | None
    last_run: Run | None
    last_success_us: int | None
    now_us: int
    word: str
    next_command: str | None
    errors: Sequence[str] = ()
    systems: Sequence[SystemStatus] = ()
    schedules: Sequence[ScheduleStatus] = ()
    windows: WindowStatus | None = None
    conditions: Sequence[Condition] = ()
    last_event_us: int | None = None
    records: Mapping[str, int] = field(default_factory=dict)
    skew_us: Mapping[str, int] = field(default_factory=dict)
    drifts: Mapping[str, int] = field(default_factory=dict)
    successes: Mapping[str, int] = field(default_factory=dict)

    @property
    def overdue(self) -> bool:
        """Whether a run that is due does not start."""
        return any(each.overdue for each in self.schedules)

    @property
    def exit_code(self) -> int:
        """0 in agreement, 1 a person is needed, 2 where the last run failed."""
        if self.last_run is not None and self.last_run.ended == "failed":
            return 2
        return 1 if self.cases or self.counts.get("parked") or not self.adopted or self.overdue else 0


@dataclass(frozen=True, slots=True)
class Story:
    """One record from its first event to now.

    events: (time in µs, what, detail), oldest first. authority, replica: canonical texts, None where absent.
    """

    pair: str
    key: str
    events: Sequence[tuple[int, str, str]]
    state: str
    authority: Mapping[str, str | None] | None
    replica: Mapping[str, str | None] | None
    differing: Sequence[str]
    agree: bool | None
    verified_until_us: int
    last_error: str | None
    cases: Sequence[Case]
