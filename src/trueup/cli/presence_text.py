"""Workers for people: who lives, who died, and that nobody does where jobs wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trueup.cli.terminal import clock, counted, cut, paint, say, width
from trueup.model.duration import duration_text
from trueup.model.names import summed
from trueup.model.presence import Presence

if TYPE_CHECKING:
    from trueup.engine.report import Status


def show_workers(workers: Sequence[Presence], found: Sequence[Status]) -> None:
    """A line for each worker, those that live first, and the next command where jobs wait and nobody works them."""
    now_us = found[0].now_us
    for each in sorted(workers, key=lambda each: not each.alive(now_us)):
        line = f"{'worker' if each.stays else 'run':<6}  {each.host} pid {each.pid}  {_life(each, now_us)}"
        line += f"   {counted(each.ended, 'job')} ended   {', '.join(summed(each.pairs))}"
        say(paint(cut(line, width()), "yellow") if not each.alive(now_us) else cut(line, width()))
    if waiting := _unattended(workers, found):
        say(f"{counted(waiting, 'job waits', 'jobs wait')}, and no worker is alive: start one with `trueup worker`")


def _life(each: Presence, now_us: int) -> str:
    if not each.alive(now_us):
        return f"dead since {clock(each.beat_us)}"
    return f"alive for {duration_text(max(0, now_us - each.started_us))}, {counted(each.threads, 'thread')}"


def _unattended(workers: Sequence[Presence], found: Sequence[Status]) -> int:
    """Records that wait although no worker of their pair lives."""
    attended = {pair for each in workers if each.stays and each.alive(found[0].now_us) for pair in each.pairs}
    return sum(each.counts.get("pending", 0) for each in found if each.pair not in attended)


def workers_json(workers: Sequence[Presence], now_us: int) -> list[dict[str, Any]]:
    """The workers as plain JSON values."""
    return [{**asdict(each), "alive": each.alive(now_us)} for each in workers]
