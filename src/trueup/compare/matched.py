"""Strategy *match*: the engine that reads both sides matches them; what it can't prove equal is judged here."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison
from trueup.compare.rows import judge_records
from trueup.compare.watched import Traffic
from trueup.compare.workspace import Workspace
from trueup.ports import MatchingSide, Side

_REASON = "one engine reads both sides, and matches them itself"


def compare_matched(
    left: MatchingSide, right: Side, plan: Plan, *, memory_mb: int, traffic: tuple[Traffic, Traffic]
) -> Comparison | None:
    """The comparison, or None where one engine does not read both sides, or states mean absence: none knows of that."""
    if plan.absent_when:
        return None
    match = left.match(plan.left, right, plan.right, memory_mb=memory_mb)
    if match is None:
        return None
    with closing(match):
        workspace = Workspace(memory_mb)
        records = (match.left_records(), match.right_records())
        a, b = (watch.records(each) for watch, each in zip(traffic, records, strict=True))
        try:
            counts, differing, findings = judge_records(workspace, a, b, plan, match.stop)
        except BaseException:
            workspace.close()
            raise
    whole = replace(counts, left=match.left, right=match.right, same=match.same + counts.same)
    return Comparison(whole, plan.notes, "match", _REASON, differing_fields=differing, findings=findings)
