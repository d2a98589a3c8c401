"""What differs, and probably why: an analysis of the differences that a comparison found.

It looks at differences only, at a bounded number of them, and at a bounded sample of all records beside them. What
rests on a sample says so. Nothing here changes what a comparison answers.
"""

from __future__ import annotations

from collections.abc import Collection

from trueup.compare.analysis.columns import analysed_columns
from trueup.compare.analysis.distributions import distributions
from trueup.compare.analysis.places import groups, patterns
from trueup.compare.analysis.records import causes_of_records
from trueup.compare.analysis.result import Analysis
from trueup.compare.analysis.sample import compared_with, examined
from trueup.compare.analysis.schema import schema_differences
from trueup.compare.plan import Plan
from trueup.compare.result import Comparison
from trueup.ports import Description, Side


def analyse(
    comparison: Comparison,
    plan: Plan,
    described: tuple[Description, Description],
    left: Side | None = None,
    redact: Collection[str] = (),
) -> Analysis:
    """The analysis of a comparison that is not closed yet.

    described: left and right side. left: is asked for a few records where the comparison did not read all of them.
    redact: names of columns whose values must not be shown.
    """
    schema = tuple(schema_differences(plan, *described))
    counts = comparison.counts
    if not counts.different:
        return Analysis(schema)
    differences, every = examined(comparison, plan)
    everything = compared_with(comparison, plan, left)
    differing = [each for each in differences if each.kind == "differ"]
    both = counts.same + counts.differ
    columns = analysed_columns(differing, plan.left, comparison.differing_fields, both, redact)
    where = patterns(groups(differences, columns, every), plan.left, everything, redact)
    return Analysis(
        schema=schema,
        examined=len(differences),
        of=counts.different,
        compared_with=None if everything is None else len(everything),
        columns=tuple(each.analysis for each in columns),
        causes=causes_of_records(differences, where, every=every),
        patterns=where,
        distributions=distributions(differences, plan.left, everything, redact),
    )
