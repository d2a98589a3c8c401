"""What a process that works knows of itself and of what waits, and how that reads."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.terminal import END_WORDS, clock, cut, number, width
from trueup.model.duration import duration_text

if TYPE_CHECKING:
    from trueup.project import Project

RATE_S: Final = 10.0
# Of the time that passes, at most this part goes into counting what waits.
_COUNTING_SHARE: Final = 0.02
_COUNTING_EVERY_S: Final = 1.0
_SHOWN_MAX: Final = 8
_EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records of a pair that wait. oldest_due_us: since when the first of them could be worked; None for none."""

    pair: str
    pending: int
    oldest_due_us: int | None


@dataclass(frozen=True, slots=True)
class Hold:
    """A system that nobody calls now (`*`: every one). until_us: None where only a person ends it."""

    system: str
    reason: str
    until_us: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """One moment. ended: jobs by how they ended, since the start; times by the store's clock."""

    at_us: int
    jobs_per_s: float
    ended: Mapping[str, int]
    backlogs: Sequence[Backlog]
    holds: Sequence[Hold]

    @property
    def pending(self) -> int:
        """Records that wait, of all pairs."""
        return sum(each.pending for each in self.backlogs)

    def as_json(self) -> dict[str, Any]:
        """The moment as plain JSON values."""
        return {
            "at_us": self.at_us,
            "jobs_per_s": round(self.jobs_per_s, 1),
            "ended": dict(sorted(self.ended.items())),
            "pairs": [asdict(each) for each in self.backlogs],
            "paused": [asdict(each) for each in self.holds],
        }


class Watch:
    """Counts what threads tell it, and asks the store now and then what waits.

    However much there is to count, looking takes a fiftieth of one thread's time at most.
    """

    def __init__(self, project: Project, pairs: Sequence[str]) -> None:
        self._project, self._pairs = project, list(pairs)
        self._lock = threading.Lock()
        self._ended: Counter[str] = Counter()
        self._recent: deque[tuple[float, int]] = deque()
        self._started = self._elapsed_s()
        self._count_at = self._started
        self._counted: tuple[list[Backlog], list[Hold]] = ([], [])

    def ended(self, results: Counter[str]) -> None:
        """Takes note of how jobs ended."""
        with self._lock:
            self._ended += results
            self._recent.append((self._elapsed_s(), results.total()))

    def _elapsed_s(self) -> float:
        return self._project.clock.elapsed_us() / 1e6

    @property
    def total(self) -> int:
        """Jobs that ended."""
        return self._ended.total()

    def ended_so_far(self) -> dict[str, int]:
        """Jobs by how they ended, since the start."""
        with self._lock:
            return dict(self._ended)

    def look(self) -> Look:
        """How things are; raises TrueupError where the store does not answer."""
        began = self._elapsed_s()
        now_us = self._project.ledger.now_us()
        if began >= self._count_at:
            self._counted = self._backlogs(now_us), self._holds(now_us)
            took = self._elapsed_s() - began
            self._count_at = began + max(_COUNTING_EVERY_S, took / _COUNTING_SHARE)
        with self._lock:
            while self._recent and self._recent[0][0] < began - RATE_S:
                self._recent.popleft()
            recent = sum(jobs for _, jobs in self._recent)
        per_s = recent / min(RATE_S, max(1.0, began - self._started))
        return Look(now_us, per_s, self.ended_so_far(), *self._counted)

    def _backlogs(self, now_us: int) -> list[Backlog]:
        found = []
        for name in self._pairs:
            due_us = self._project.ledger.next_due_us([name])
            pending = 0 if due_us is None else self._project.ledger.busy(name)["pending"]
            found.append(Backlog(name, pending, due_us if due_us is not None and due_us <= now_us else None))
        return found

    def _holds(self, now_us: int) -> list[Hold]:
        budgets = self._project.budgets
        everything = budgets.health(_EVERYTHING)
        if everything.by_person:
            return [Hold(_EVERYTHING, everything.reason, None)]
        names = sorted({system for name in self._pairs for system in self._project.find(name).pair.systems})
        healths = [(name, budgets.health(name)) for name in names]
        return [
            Hold(name, health.reason, None if health.by_person else health.paused_until_us)
            for name, health in healths
            if health.paused(now_us)
        ]


def summary(ended: Mapping[str, int]) -> str:
    """How jobs ended, in words."""
    said = ", ".join(f"{number(ended[end])} {word}" for end, word in END_WORDS.items() if ended.get(end))
    return said or "nothing was due"


def line(look: Look) -> str:
    """The moment in one line, for a log."""
    held = "".join(f"; {_hold(each)}" for each in look.holds)
    return f"{summary(look.ended)}; {look.jobs_per_s:.1f} jobs/s; {number(look.pending)} pending{held}"


def lines(look: Look) -> Iterator[str]:
    """The moment in a few lines, for a terminal: the pairs with the oldest work first, then what is paused."""
    yield cut(f"{look.jobs_per_s:,.1f} jobs/s   {summary(look.ended)}", width())
    behind = sorted(look.backlogs, key=lambda each: (each.oldest_due_us or look.at_us, -each.pending))
    size = max((len(each.pair) for each in behind[:_SHOWN_MAX]), default=0)
    for each in behind[:_SHOWN_MAX]:
        due = "" if each.oldest_due_us is None else f", due for {duration_text(look.at_us - each.oldest_due_us)}"
        yield cut(f"  {each.pair:<{size}}  {number(each.pending)} pending{due}", width())
    if len(behind) > _SHOWN_MAX:
        rest = sum(each.pending for each in behind[_SHOWN_MAX:])
        yield f"  … {len(behind) - _SHOWN_MAX} more pairs, {number(rest)} pending"
    for hold in look.holds[:_SHOWN_MAX]:
        yield cut(f"  {_hold(hold)}", width())
    if len(look.holds) > _SHOWN_MAX:
        yield f"  … {len(look.holds) - _SHOWN_MAX} more systems are paused"


def _hold(hold: Hold) -> str:
    name, resume = ("everything", "--all") if hold.system == _EVERYTHING else (hold.system, hold.system)
    until = f"until trueup resume {resume}" if hold.until_us is None else f"until {clock(hold.until_us)}"
    return f"{name} is paused {until}: {hold.reason}"
