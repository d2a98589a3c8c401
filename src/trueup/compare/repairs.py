"""Differences as statements to read: what would make the right side equal to the left one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison, Counts, Difference, Values
from trueup.model.times import timestamp_text
from trueup.ports import Repair, ScriptableSide, Scripted

_AT_ONCE: Final = 500
_DUPLICATE: Final = "{left:,} × left, {right:,} × right, and nobody can say which one is meant"
_HOW: Final = (
    "Nothing of this has been run. Read it first.",
    "A statement changes nothing where the record has moved since, so the file may be run twice.",
    "Records that are left out stand here as comments that say why.",
)


@dataclass(frozen=True)
class Script:
    """The statements for one comparison, with what a reader of the file should know.

    left, right: what was compared, without passwords. left_out: how many records have none, once all were read.
    """

    comparison: Comparison
    plan: Plan
    replica: ScriptableSide
    left: str
    right: str
    written_by: str
    now_us: int
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def left_out(self) -> int:
        """Records without a statement, of those read so far."""
        return self.outcomes["left out"]

    def lines(self) -> Iterator[str]:
        """The file, a statement or a comment at a time, in key order; a statement may hold line breaks."""
        opening, closing = self.replica.script_frame()
        yield from (_comment(line) for line in self._head(self.comparison.counts))
        yield ""
        yield from opening
        differences = self.comparison.differences()
        while few := list(islice(differences, _AT_ONCE)):
            repairs = [self._repair(each) for each in few if each.kind != "duplicate"]
            scripted = {each.key: each for each in self.replica.script(self.plan.right, repairs)}
            for each in few:
                yield self._told(each, scripted.get(each.key))
        yield from closing
        yield _comment(f" {self.outcomes['statement']:,} statements, {self.left_out:,} records left out.")

    def _head(self, counts: Counts) -> Iterator[str]:
        yield f" What would make {self.right}"
        yield f" equal to        {self.left}"
        yield f" as compared and written by {self.written_by} at {timestamp_text(self.now_us, aware=True)}."
        yield from (f" {line}" for line in _HOW)
        told = {"missing": "INSERT", "extra": "DELETE", "differ": "UPDATE", "duplicate": "left out"}
        yield f" {', '.join(f'{kind} {getattr(counts, kind):,} ({how})' for kind, how in told.items())}"
        if self.comparison.notes.only_right:
            yield f" Columns that were not compared are not set: {', '.join(self.comparison.notes.only_right)}"

    def _told(self, difference: Difference, scripted: Scripted | None) -> str:
        if scripted is not None and scripted.statement is not None:
            self.outcomes["statement"] += 1
            return scripted.statement
        self.outcomes["left out"] += 1
        copies = _DUPLICATE.format(left=difference.left_copies, right=difference.right_copies)
        reason = copies if scripted is None else scripted.reason
        return _comment(f" left out, {difference.kind} {difference.key}: {reason}")

    def _repair(self, difference: Difference) -> Repair:
        left, right = difference.left, difference.right
        if left is None or (right is not None and self._means_absence(left)):
            return Repair(difference.key, right, None)
        if right is None:
            names = [each.name for each in (*self.plan.left.key, *self.plan.left.fields)]
        else:
            names = list(difference.fields)
        return Repair(difference.key, right, {name: left[name] for name in names})

    def _means_absence(self, left: Values) -> bool:
        return any(left.get(name) in states for name, states in (self.plan.absent_when or {}).items())


def _comment(text: str) -> str:
    """A comment of one line, whatever is in it."""
    return "--" + "".join(each if each.isprintable() else "?" for each in text)
