"""Runs of several pairs, one after another: trouble of one does not keep the others from their turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.cli.commands._project import park_reasons
from trueup.errors import StateError, TrueupError
from trueup.model.names import client_of
from trueup.model.outcome import HandlerOutcome

if TYPE_CHECKING:
    from trueup.bound import BoundPair
    from trueup.cli.terminal import Progress
    from trueup.engine.report import Report
    from trueup.project import Project


@dataclass(frozen=True, slots=True)
class Trouble:
    """A run that ended with an error."""

    pair: str
    message: str
    hint: str | None
    exit_code: int = 2

    def as_json(self) -> dict[str, Any]:
        """The trouble as plain JSON values."""
        return {"pair": self.pair, "error": self.message, "hint": self.hint, "exit_code": self.exit_code}


def reconcile(
    project: Project,
    pairs: Sequence[BoundPair],
    act: Callable[[BoundPair, Progress], Report],
    limit: int | None,
    *,
    json: bool,
) -> list[Report | Trouble]:
    """What became of each pair, shown as it ends unless `json`. limit: records of a plan to list; None for all.

    Errors of a single pair are raised, and so are those of the state store: all pairs need it.
    """
    ended: list[Report | Trouble] = []
    for pair in pairs:
        try:
            ended.append(_run(project, pair, act, limit, json=json, size=_size(pairs)))
        except (TrueupError, HandlerOutcome) as error:
            if len(pairs) == 1 or isinstance(error, StateError):
                raise
            ended.append(_troubled(pair.name, error, json=json))
        finally:
            if len(pairs) > 1:
                # A thousand clients are not to hold a thousand connections.
                pair.close()
    if len(pairs) > 1 and not json:
        _sum_up(ended)
    return ended


def _run(
    project: Project,
    pair: BoundPair,
    act: Callable[[BoundPair, Progress], Report],
    limit: int | None,
    *,
    json: bool,
    size: int,
) -> Report:
    from trueup.cli import report_text  # noqa: PLC0415
    from trueup.cli.terminal import progress  # noqa: PLC0415

    with progress() as follower:
        report = act(pair, follower)
    if json:
        return report
    if size and report.exit_code == 0:
        report_text.show_line(report, pair.pair, size)
        return report
    reasons = park_reasons(project, pair.name) if report.counts["parked"] else {}
    report_text.show(report, pair.pair, limit, reasons)
    return report


def _size(pairs: Sequence[BoundPair]) -> int:
    """The width of names where pairs of clients get a line each; 0 where every pair gets its paragraph."""
    several = len(pairs) > 1 and any(client_of(pair.name) for pair in pairs)
    return max(len(pair.name) for pair in pairs) if several else 0


def _troubled(pair: str, error: TrueupError | HandlerOutcome, *, json: bool) -> Trouble:
    from trueup.cli.terminal import complain  # noqa: PLC0415

    message, hint = (error.message, error.hint) if isinstance(error, TrueupError) else (f"{error}.", "Try again later.")
    if not json:
        complain(message if pair in message else f"{pair}: {message}", hint)
    return Trouble(pair, message, hint)


def _sum_up(ended: Sequence[Report | Trouble]) -> None:
    from trueup.cli.terminal import counted, number, say  # noqa: PLC0415

    words = {0: "in agreement", 1: "not in agreement", 2: "in trouble"}
    counts = {word: sum(each.exit_code == code for each in ended) for code, word in words.items()}
    said = ", ".join(f"{number(count)} {word}" for word, count in counts.items() if count)
    say(f"{counted(len(ended), 'pair')}: {said}")
