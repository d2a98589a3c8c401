"""Telling an outside watcher how a run goes, without ever waiting for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from trueup.engine.report import Report
from trueup.errors import RunStopped, RunUnderWay
from trueup.model.run import Run
from trueup.ports import Pings

_RUNS: Final = uuid.UUID("5d4f9b39-70b5-4c5e-9a53-5f6b1d6f7e11")


def ident_of(run: Run) -> str:
    """The run as a UUID, the same for whoever goes on with it."""
    return str(uuid.uuid5(_RUNS, f"{run.pair} {run.number} {run.started_us}"))


def pinged(pings: Pings, perform: Callable[[Callable[[Run], None]], Report]) -> Report:
    """What `perform` answers or raises, with the watcher told of start, success and failure.

    A run that was stopped, or never began because another is under way, is neither.
    """
    ident = ""

    def began(run: Run) -> None:
        nonlocal ident
        ident = ident_of(run)
        pings.started(ident)

    try:
        report = perform(began)
    except (RunStopped, RunUnderWay):
        raise
    except Exception as error:
        pings.failed(ident, type(error).__name__)
        raise
    pings.succeeded(ident, f"run {report.number}: exit code {report.exit_code}")
    return report
