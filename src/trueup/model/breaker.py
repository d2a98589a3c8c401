"""Breakers: how much of a plan is done without asking a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trueup.errors import ConfigError

# A share of a small table is less than one record; so few changes are never too much because of their share.
SHARE_FLOOR: Final = 10


@dataclass(frozen=True, slots=True)
class Volume:
    """How much a plan would do at the replica. records: of the fuller side."""

    adds: int
    overwrites: int
    removes: int
    records: int

    @property
    def total(self) -> int:
        """All changes."""
        return self.adds + self.overwrites + self.removes


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a breaker stops: always what overwrites or removes; `additions` too, where these alone are too many.

    orphans: whatever the authority lacks, too, even where each would be a question of its own.
    """

    why: str
    additions: bool
    orphans: bool = False


@dataclass(frozen=True, slots=True)
class Breaker:
    """The most that one plan may do without being asked about.

    changes, deletes: records. share: of the records of the fuller side, from `SHARE_FLOOR` changes on.
    """

    changes: int | None = None
    deletes: int | None = None
    share: float | None = 0.3

    def judge(self, volume: Volume) -> Stopped | None:
        """What is stopped of this plan, and why; None where nothing is."""
        limits = [self.changes] if self.changes is not None else []
        if self.share is not None:
            limits.append(max(SHARE_FLOOR, int(self.share * volume.records)))
        limit = min(limits, default=volume.total)
        if self.deletes is not None and volume.removes > self.deletes:
            return Stopped(self._said("delete", volume.removes, volume.records), additions=volume.adds > limit)
        if volume.total <= limit:
            return None
        what, many = ("delete", volume.removes) if volume.removes > limit else ("change", volume.total)
        return Stopped(self._said(what, many, volume.records), additions=volume.adds > limit)

    def _said(self, what: str, many: int, records: int) -> str:
        share = f" ({many / records:.0%})" if records else ""
        return f"the plan would {what} {many:,} of {records:,} records{share}; stop_at {self}"

    def __str__(self) -> str:
        limits = [f"{self.changes:,} changes"] if self.changes is not None else []
        limits += [f"{self.deletes:,} deletes"] if self.deletes is not None else []
        limits += [f"{self.share:.0%}"] if self.share is not None else []
        return ", ".join(limits) or "nothing"


DEFAULT: Final = Breaker()


def breaker(name: str, declared: Mapping[str, Any] | None) -> Breaker:
    """The breaker of a pair as declared, such as {"share": 0.05, "changes": 5000}; ConfigError says what is wrong."""
    if declared is None:
        return DEFAULT
    hint = 'Write for example stop_at={"share": 0.05, "changes": 5000, "deletes": 100}; {} for no limit.'
    if unknown := sorted(set(declared) - {"changes", "deletes", "share"}):
        raise ConfigError(f"pair {name}: stop_at has no limit named {unknown[0]}.", hint=hint)
    for limit in ("changes", "deletes"):
        value = declared.get(limit)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ConfigError(f"pair {name}: stop_at: {limit} is {value!r}.", hint=hint)
    share = declared.get("share")
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
        raise ConfigError(f"pair {name}: stop_at: share is {share!r}.", hint=hint)
    return Breaker(declared.get("changes"), declared.get("deletes"), None if share is None else float(share))
