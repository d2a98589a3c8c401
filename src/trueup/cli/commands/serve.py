"""`trueup serve`: starts runs when they are due, takes webhooks and works what waits, in one process."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trueup.cli.commands._project import opened
from trueup.cli.commands.worker import Every, Grace, Host, JsonLines, MetricsPort, Quiet, Threads, answering_metrics
from trueup.errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from trueup.cli.service import Display
    from trueup.engine.scheduler import Performed
    from trueup.project import Project


class Part(enum.StrEnum):
    """What `--only` names."""

    SCHEDULER = "scheduler"
    INGEST = "ingest"
    WORKERS = "workers"


Only = Annotated[
    list[Part] | None,
    typer.Option("--only", help="Only this part; may be repeated. By default all three run in one process."),
]
RunsAtOnce = Annotated[
    int | None,
    typer.Option("--runs-at-once", metavar="N", min=1, help="Runs of different pairs at a time; else the project's."),
]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to listen on; 0 for any.")]


def serve(
    context: typer.Context,
    only: Only = None,
    host: Host = "127.0.0.1",
    port: Port = 8484,
    metrics_port: MetricsPort = None,
    threads: Threads = None,
    runs_at_once: RunsAtOnce = None,
    grace: Grace = 20.0,
    quiet: Quiet = False,
    every: Every = 10.0,
    json: JsonLines = False,
) -> int:
    """Start runs when they are due, take webhooks at /events/SOURCE and work what waits, until SIGTERM or Ctrl-C.

    /metrics and /healthz answer on the port of the webhooks; --metrics-port serves them without webhooks, or elsewhere.

    A stop refuses new requests, lets the batches that have begun come to their end, stops runs at their next
    checkpoint, and then ends.
    """
    from trueup.cli.service import Service, display, together  # noqa: PLC0415
    from trueup.cli.watch import Watch  # noqa: PLC0415

    parts = set(only or Part)
    with opened(context) as project:
        watch = Watch(project, list(project.pairs))
        shown = display(watch, quiet=quiet, json=json, every_s=every)
        running: list[Callable[[threading.Event], None]] = []
        if Part.INGEST in parts:
            running.append(_ingest(project, shown, host, port))
        if metrics_port is not None:
            running.append(answering_metrics(project, shown, host, metrics_port))
        if Part.SCHEDULER in parts:
            running += [*_scheduler(project, shown, runs_at_once, asked=only is not None), project.keeping().serve]
        if Part.WORKERS in parts:
            working = project.worker(threads=threads)
            running.append(lambda stop: working.serve(stop, watch.ended))
        if project.alert_plan.targets:  # whoever lives tells that another one does not
            running.append(project.alerting().serve)
        if project.anchors:
            running.append(project.anchoring().serve)
        return Service(shown, grace_s=grace).run(together(running))


def _scheduler(
    project: Project, shown: Display, runs_at_once: int | None, *, asked: bool
) -> list[Callable[[threading.Event], None]]:
    """What starts runs; nothing where no pair has a schedule and nobody asked for it."""
    from trueup.cli import logs, schedules_text  # noqa: PLC0415
    from trueup.engine.scheduler import logged  # noqa: PLC0415

    scheduled = [name for name, each in project.pairs.items() if each.pair.schedules]
    if not scheduled and asked:
        raise ConfigError("no pair has a schedule.", hint='Declare one: sweep="10m", compare="0 3 * * *".')
    if not scheduled:
        return []
    scheduler = project.scheduler(scheduled, runs_at_once=runs_at_once)

    def tell(done: Performed) -> None:
        if logs.for_programs():
            logged(done)
        shown.tell(schedules_text.ended(done), ended_run=schedules_text.ended_json(done))

    return [lambda stop: scheduler.serve(stop, tell)]


def _ingest(project: Project, shown: Display, host: str, port: int) -> Callable[[threading.Event], None]:
    """What takes webhooks."""
    from trueup.cli.listening import listening  # noqa: PLC0415

    def tell(address: str) -> None:
        names = ", ".join(project.sources) or "no sources"
        url = f"{address}/events/"
        shown.tell(f"listening on {url}… ({names})", listening=url, sources=list(project.sources))

    def app() -> Starlette:
        from trueup.web.ingest import app  # noqa: PLC0415  an extra

        return app(project, project.sources.values())

    return listening(app, host, port, tell, without="take no webhooks: --only scheduler --only workers")
