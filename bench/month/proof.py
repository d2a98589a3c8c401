"""Evidence of the month: the page that its auditor reads, and a month in which none is kept, to see what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from trueup.cli.evidence_page import Period, page_of
from trueup.engine.account import prove
from trueup.model.evidence import Head
from trueup.project import Project


def page(project: Project, anchors: Sequence[Head]) -> str:
    """The account of everything that happened, as HTML. anchors: what the auditor noted meanwhile."""
    period = Period(None, None, project.ledger.now_us())
    return page_of(project.archive, None, prove(project.archive, anchors), period)


class _NoRoots:
    """Adds up nothing."""

    counts: dict[str, int] = {}  # noqa: RUF012

    def add_agreed(self, agreed: Any) -> None:
        """Reads them, as what is compared has to be read in any case."""
        for _ in agreed:
            pass

    def add(self, key: str, authority: str | None, replica: str | None) -> None:
        """Nothing."""


@contextmanager
def none_kept() -> Iterator[None]:
    """Within, runs and decisions put nothing on record, and comparisons add up nothing for it."""
    nothing = {
        "trueup.engine.run.fact_of_run": lambda *_: None,
        "trueup.engine.run.note_inputs": lambda *_: None,
        "trueup.engine.run.record_repairs": lambda *_: None,
        "trueup.engine.review.fact_of_decision": lambda *_: None,
        "trueup.engine.comparing.Roots": _NoRoots,
    }
    with ExitStack() as patches:
        for name, instead in nothing.items():
            patches.enter_context(patch(name, instead))
        yield
