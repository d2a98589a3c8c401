"""What is wrong, for people: the cause, and the next command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from trueup.cli.terminal import clock, counted, cut, paint, say, width
from trueup.model.alert_text import condition_json
from trueup.model.condition import Condition, Severity
from trueup.model.duration import duration_text

if TYPE_CHECKING:
    from trueup.engine.alerts import Told
    from trueup.model.alert import Telling
    from trueup.model.pulse import Pulse


# What the line of a pair says by itself, with the command below it.
_SAID: Final = ("parked",)


def lines(found: Sequence[Condition], now_us: int, said: str | None = None) -> Iterator[str]:
    """A few lines for each condition; said: a next command that stands there already."""
    for each in found:
        if each.name in _SAID and each.command == said:
            continue
        yield f"{each.severity}: {each.name}{_lasting(each, now_us)}"
        yield f"  {each.cause}"
        if each.command != said:
            yield f"  → {each.command}"


def _lasting(condition: Condition, now_us: int) -> str:
    return "" if condition.since_us is None else f" for {duration_text(max(0, now_us - condition.since_us))}"


def show(found: Sequence[Condition], now_us: int) -> None:
    """Each condition with what it is about, the worst first."""
    for each in found:
        head = f"{each.severity:<8}  {each.name:<12}  {each.subject}{_lasting(each, now_us)}"
        say(paint(cut(head, width()), "red" if each.severity is Severity.CRITICAL else "yellow"))
        say(cut(f"          {each.cause}", width()))
        say(f"          → {each.command}")
    if not found:
        say(paint("nothing is wrong", "green"))


def show_beside(found: Sequence[Condition], now_us: int) -> None:
    """What is wrong beside the pairs, where anything is."""
    if found:
        show(found, now_us)


def show_targets(tellings: Sequence[Telling], pulses: Sequence[Pulse]) -> None:
    """What each target was told, and pings that did not arrive."""
    for each in tellings:
        told = "told nothing yet" if each.arrived_us is None else f"last told {clock(each.arrived_us)}"
        parts = [told, f"knows of {counted(len(each.known), 'condition')}"]
        if each.failed:
            parts.append(f"{counted(each.failed, 'delivery', 'deliveries')} failed")
        if each.error:
            parts.append(f"tries again {clock(each.ready_us)}: {each.error}")
        line = cut(f"target {each.name}: {', '.join(parts)}", width())
        say(paint(line, "yellow") if each.error else line)
    if not tellings:
        say("nobody is told: declare a target, such as [alerts.target.oncall]")
    for pulse in pulses:
        if pulse.pings_failed:
            why = f", the last {pulse.in_row:,} of them: {pulse.ping_error}" if pulse.in_row else ""
            failed = counted(pulse.pings_failed, "ping")
            say(cut(f"{pulse.pair}: {failed} did not arrive{why}", width()))


def as_json(
    found: Sequence[Condition], tellings: Sequence[Telling], pulses: Sequence[Pulse], runbook: str
) -> dict[str, Any]:
    """The same as plain JSON values."""
    return {
        "conditions": [condition_json(each, runbook) for each in found],
        "targets": [
            {
                "target": each.name,
                "known": sorted(each.known),
                "told_us": each.arrived_us,
                "waits": each.outgoing is not None,
                "tries": each.tries,
                "failed": each.failed,
                "error": each.error,
                "ready_us": each.ready_us,
            }
            for each in tellings
        ],
        "pings": [
            {"pair": each.pair, "failed": each.pings_failed, "in_row": each.in_row, "error": each.ping_error}
            for each in pulses
            if each.pings_failed
        ],
    }


def show_told(told: Sequence[Told]) -> None:
    """What came of telling each target."""
    for each in told:
        if each.error is not None:
            say(paint(f"{each.target}: {each.error}", "yellow"))
        elif each.message.test:
            say(f"{each.target}: took the test")
        else:
            began, ended = len(each.message.began), len(each.message.ended)
            say(f"{each.target}: told of {counted(began, 'condition')}, {ended:,} recovered")
    if not told:
        say("nothing changed since the targets were told")
