"""Strategy *gate*: two databases of one engine are asked for count and hash sum; equal means equal.

The gate only ever says *agree*, and only when that is certain. Anything else is left to the strategy `rows`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from trueup.compare.plan import Plan
from trueup.compare.result import Comparison, Counts
from trueup.ports import HashingSide, Side


def gate(left: Side, right: Side, plan: Plan) -> tuple[Comparison | None, str]:
    """The comparison where the gate proves agreement, else None and why the records must be read."""
    if not (isinstance(left, HashingSide) and isinstance(right, HashingSide)):
        return None, "records are read: not both sides can hash them in place"
    a, b = left.capabilities.engine, right.capabilities.engine
    if not a or a != b:
        return None, f"records are read: {a or left.label} and {b or right.label} hash in different ways"
    if not plan.exact:
        return None, "records are read: tolerances, folding and states that mean absence are judged here"
    with ThreadPoolExecutor(2, thread_name_prefix="trueup-gate") as pool:
        # At once: the closer the two snapshots, the less has changed between them.
        sums = [pool.submit(side.hash_sum, asked) for side, asked in ((left, plan.left), (right, plan.right))]
        one, two = (each.result() for each in sums)
    if one is None or two is None:
        return None, "records are read: a key that may repeat, or a type that can't surely be hashed in place"
    if one.function != two.function:
        return None, "records are read: the two databases hash, or declare their columns, in different ways"
    if (one.count, one.total) != (two.count, two.total):
        return None, "records are read: count or hash sum of the two databases differ"
    counts = Counts(left=one.count, right=two.count, same=one.count)
    reason = f"count and hash sum, taken inside both {a} databases, are equal"
    return Comparison(counts, plan.notes, "gate", reason), reason
